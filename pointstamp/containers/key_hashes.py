"""Stable hash of one Python value: equal keys hash alike in every process, and in columns.

The hash of a row's key, computed where the row is sent. Compiled it takes some 20 to 60 ns a
key and needs nothing but this module; so an exchange of rows imports no Numba. What holds for
hashes, and for columns of them, says `kernels/hashing.py`, whose plain functions are this
module's oracle in the tests; keys of rarer types are `keys.py`'s.

All arithmetic is modulo 2^64: in C by the type of a word, in Python by `& _MASK`.
"""

from __future__ import annotations

from struct import Struct
from types import FunctionType
from typing import Any

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_STEP = 0xD6E8FEB86659FD93
_TEXT = 0x74657874

_HALF = 2.0**63
_PACK = Struct("<d").pack

_LEAST_INT = -(1 << 63)
_MOST_INT = (1 << 63) - 1


def _mix(word: int) -> int:
    word = (word + _GAMMA) & _MASK
    word = ((word ^ (word >> 30)) * _FIRST) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND) & _MASK
    return word ^ (word >> 31)


def _hash_octets(data: bytes, n_bytes: int) -> int:
    """Eight bytes at a time as little-endian words, the last of fewer."""
    hash_ = _TEXT + n_bytes
    at = 0
    while at < n_bytes:
        stop = min(at + 8, n_bytes)
        hash_ = _mix(hash_ * _STEP + _word(data, at, stop))
        at = stop
    return _mix(hash_)


def _word(data: bytes, start: int, stop: int) -> int:
    """At most eight bytes, the first of them lowest."""
    word = 0
    k = stop
    while k > start:
        k -= 1
        word = (word << 8) | data[k]
    return word


_NULL_HASH = _mix(0x6E756C6C)
_EMPTY_HASH = _mix(0x656D707479)


def stable_hash(key: Any) -> int:
    """The stable hash of one key, at least 0 and below 2**64; see `keys.hash_key`.

    >>> hex(stable_hash(0)), stable_hash(True) == stable_hash((1,)) == stable_hash(1)
    ('0xe220a8397b1dcdaf', True)
    """
    kind = type(key)
    if kind is int:
        return _hash_int(key)
    if kind is str:
        return _hash_text(key)
    if kind is tuple:
        return _hash_tuple(key)
    if kind is float:
        return _hash_float(key)
    if kind is bool:
        return _mix(1 if key else 0)
    if key is None:
        return _NULL_HASH
    if kind is bytes:
        return _hash_octets(key, len(key))
    return _hash_other(key)


def _hash_int(key: Any) -> int:
    try:
        number = key  # compiled, this raises beyond 64 bits
        if _IS_PLAIN and not _LEAST_INT <= key <= _MOST_INT:
            return _hash_other(key)
    except OverflowError:
        return _hash_other(key)
    return _mix(number)


def _hash_text(text: str) -> int:
    octets = text.encode("utf-8", "surrogatepass")
    return _hash_octets(octets, len(octets))


def _hash_float(value: float) -> int:
    """A whole number hashes like that integer."""
    if not -_HALF <= value < _HALF:
        return _hash_other(value)  # large, or no number
    whole = int(value)
    if whole == value:
        return _mix(whole)
    octets = _PACK(value)
    return _mix(_word(octets, 0, 8))


def _hash_tuple(parts: tuple[Any, ...]) -> int:
    """The parts one after the other; a tuple of one part is that part."""
    if not parts:
        return _EMPTY_HASH
    hash_ = stable_hash(parts[0])
    for i in range(1, len(parts)):
        hash_ = _mix(hash_ * _STEP + stable_hash(parts[i]))
    return hash_


_by_type: Any = None


def leave_others_to(function: Any) -> None:
    """Have `function(key)` hash the keys of rarer types; `keys.py`, which needs this, calls it."""
    global _by_type
    _by_type = function


def _hash_other(key: Any) -> int:
    return _by_type(key)  # type: ignore[no-any-return]


def is_its_own_key(key: Any) -> bool:
    """Whether a key surely is what `keys.hashable_key` makes of it: of the types that most have.

    >>> is_its_own_key((1, "a")), is_its_own_key(float("nan")), is_its_own_key([1])
    (True, False, False)
    """
    kind = type(key)
    if kind is int or kind is str or kind is bytes or kind is bool or key is None:
        return True
    if kind is float:
        return bool(key == key)
    if kind is not tuple:
        return False
    for part in key:
        if not is_its_own_key(part):
            return False
    return True


def hash_into(keys: list[Any], hashes: Any) -> None:
    """Put the hash of each key into its place.

    hashes : uint64[len(keys)], filled
    """
    for i in range(len(keys)):
        hashes[i] = stable_hash(keys[i])


def split_by_hash(records: list[Any], key: Any, n_parts: int) -> list[list[Any]]:
    """The records of each part, by the hash of what the function `key` gives, or of themselves."""
    parts: list[list[Any]] = [[] for _ in range(n_parts)]
    for record in records:
        place = stable_hash(record if key is None else key(record)) % n_parts
        parts[place].append(record)
    return parts


def split_by_number(records: list[Any], to: Any, n_parts: int, checked: Any) -> list[list[Any]]:
    """The records of each part, by what the function `to` gives, modulo the number of parts.

    What is no int, or negative, is handed to `checked(number, record)`, which gives another
    one, or raises.
    """
    parts: list[list[Any]] = [[] for _ in range(n_parts)]
    for record in records:
        number = to(record)
        if type(number) is not int or number < 0:
            number = checked(number, record)
        place = number % n_parts
        parts[place].append(record)
    return parts


_IS_PLAIN = isinstance(stable_hash, FunctionType)


def is_plain() -> bool:
    """Whether the functions above run as Python, where NumPy is quicker for many keys."""
    return bool(_IS_PLAIN)
