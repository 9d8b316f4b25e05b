"""Hashes of 64 bits that are the same on every machine, in columns and one by one.

Records are routed by hash, so two workers, two Python versions, or a list and an
Arrow column must never disagree. What holds:

- equal numbers hash alike, whatever their width or type: int8 5, int64 5, 5.0
  and Python's 5, and True like 1 (Python's `==` says so, and so must we, or
  answers would depend on the number of workers);
- -0.0 hashes like 0.0, and every NaN like every other;
- text hashes like its UTF-8 bytes;
- one column combined with nothing is itself: a key of one part is that part.

The mix is the finalizer of splitmix64 (Steele, Lea, Flood: "Fast splittable
pseudorandom number generators", 2014), so that `mix(0)` is the first output of
that generator seeded with 0. Bytes go through it eight at a time.

Knows nothing of Python objects as keys; `containers/keys.py` does.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.errors import KeyHashError
from pointstamp.kernels.forms import kernel

Hashes = npt.NDArray[np.uint64]

MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_STEP = 0xD6E8FEB86659FD93
_NAN_BITS = 0x7FF8000000000000
_TEXT = 0x74657874

_GAMMA_64 = np.uint64(_GAMMA)
_FIRST_64 = np.uint64(_FIRST)
_SECOND_64 = np.uint64(_SECOND)
_STEP_64 = np.uint64(_STEP)
_TEXT_64 = np.uint64(_TEXT)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_EIGHT = np.uint64(8)

_LEAST_INT = -float(1 << 63)
_BEYOND_INT = float(1 << 63)
_BEYOND_UINT = float(1 << 64)


# One number at a time, in Python's own integers.


def mix(word: int) -> int:
    """The hash of an integer, of which the lowest 64 bits count.

    >>> hex(mix(0))
    '0xe220a8397b1dcdaf'
    """
    word = (word + _GAMMA) & MASK
    word = ((word ^ (word >> 30)) * _FIRST) & MASK
    word = ((word ^ (word >> 27)) * _SECOND) & MASK
    return word ^ (word >> 31)


NULL_HASH = mix(0x6E756C6C)
"""The hash of None, of a null in a column, and of NaT."""

EMPTY_HASH = mix(0x656D707479)
"""The hash of a key of no parts, the empty tuple."""


def combine(hash: int, more: int) -> int:
    """The hash of a key with one more part; the order of parts counts."""
    return mix(hash * _STEP + more)


def hash_float(value: float) -> int:
    """The hash of a float; like that of the integer it equals, if it does."""
    if value != value:
        return mix(_NAN_BITS)
    if _LEAST_INT <= value < _BEYOND_UINT and value == int(value):
        return mix(int(value))
    return mix(int.from_bytes(struct.pack("<d", value), "little"))


def hash_text(data: bytes) -> int:
    """The hash of a string of bytes, eight at a time as little-endian words."""
    hash = _TEXT + len(data)
    for start in range(0, len(data), 8):
        hash = combine(hash, int.from_bytes(data[start : start + 8], "little"))
    return mix(hash)


# Columns: kernels and their twins.


@kernel("hash_loops")
def hash_words(words: Hashes) -> Hashes:
    """Mix each word.

    words : uint64[n] (two's complement) · returns uint64[n]
    """
    return _mixed(words)


def _mixed(words: Hashes) -> Hashes:
    """The same by NumPy, also where other twins need it."""
    words = words + _GAMMA_64
    words ^= words >> _30
    words *= _FIRST_64
    words ^= words >> _27
    words *= _SECOND_64
    words ^= words >> _31
    return words


@kernel("hash_loops")
def float_words(values: npt.NDArray[np.float64]) -> Hashes:
    """Make whole numbers that integer, every NaN the same; others are their bits.

    values : float64[n] · returns uint64[n], to be hashed
    """
    words = values.view(np.uint64).copy()
    whole = (values >= _LEAST_INT) & (values < _BEYOND_UINT)
    whole &= np.trunc(values) == values
    low = whole & (values < _BEYOND_INT)
    high = whole & ~low
    words[low] = values[low].astype(np.int64).view(np.uint64)
    words[high] = values[high].astype(np.uint64)
    words[np.isnan(values)] = np.uint64(_NAN_BITS)
    return words


@kernel("hash_loops")
def hash_spans(
    starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]
) -> Hashes:
    """Hash `data[starts[i]:stops[i]]` for each i.

    starts, stops : int64[n] into data · data : uint8[m] · returns uint64[n]
    """
    lengths = stops - starts
    hashes = _TEXT_64 + lengths.astype(np.uint64)
    shifts = _EIGHT * np.arange(8, dtype=np.uint64)
    active = np.flatnonzero(lengths > 0)
    done = 0
    while len(active):
        at = (starts[active] + done)[:, None] + np.arange(8)
        inside = at < stops[active][:, None]
        octets = np.where(inside, data[np.minimum(at, len(data) - 1)], 0).astype(np.uint64)
        words = np.bitwise_or.reduce(octets << shifts, axis=1)
        hashes[active] = _mixed(hashes[active] * _STEP_64 + words)
        done += 8
        active = active[lengths[active] > done]
    return _mixed(hashes)


@kernel("hash_loops")
def combine_all(hashes: Hashes, more: Hashes) -> Hashes:
    """Add one part to each key.

    hashes, more : uint64[n] · returns uint64[n]
    """
    return _mixed(hashes * _STEP_64 + more)


# What others call: any width, any layout.


def hash_ints(values: npt.NDArray[Any]) -> Hashes:
    """The hash of each integer or bool of a column, uint64[n].

    >>> [hex(h) for h in hash_ints(np.array([0], np.int8))]
    ['0xe220a8397b1dcdaf']
    """
    return hash_words(int_words(values))


def int_words(values: npt.NDArray[Any]) -> Hashes:
    """Integers or bools of any width as words of 64 bits, which `hash_words` mixes; uint64[n].

    >>> int_words(np.array([-1], np.int8)).tolist() == [2**64 - 1]
    True
    """
    wide = np.uint64 if values.dtype.kind == "u" else np.int64
    return contiguous(values.astype(wide, copy=False).view(np.uint64))


def hash_floats(values: npt.NDArray[Any]) -> Hashes:
    """The hash of each float of a column of at most 64 bits, uint64[n]."""
    return hash_words(contiguous(float_words(contiguous(values.astype(np.float64, copy=False)))))


def hash_slices(
    starts: npt.NDArray[Any], stops: npt.NDArray[Any], data: npt.NDArray[np.uint8]
) -> Hashes:
    """The hash of each `data[starts[i]:stops[i]]`, uint64[n].

    Parameters
    ----------
    starts, stops : integers[n], within data.
    data : uint8[m], the bytes of text or binaries.
    """
    first = contiguous(starts.astype(np.int64, copy=False))
    return hash_spans(first, contiguous(stops.astype(np.int64, copy=False)), contiguous(data))


def hash_bytes(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8]) -> Hashes:
    """The hash of each of n strings that lie one after the other, uint64[n].

    Parameters
    ----------
    offsets : int32 or int64[n + 1], where each string starts, and the last ends.
    data : uint8[m]
    """
    bounds = offsets.astype(np.int64, copy=False)  # once, and not of both ends
    return hash_slices(bounds[:-1], bounds[1:], data)


def combine_columns(parts: Sequence[Hashes]) -> Hashes:
    """The hash of keys of several parts, of the hashes of each part, uint64[n].

    >>> one = hash_ints(np.array([7, 8]))
    >>> bool((combine_columns([one]) == one).all())
    True
    """
    combined = parts[0]
    for part in parts[1:]:
        combined = combine_all(contiguous(combined), contiguous(part))
    return combined


UNITS_OF_DATES = ("Y", "M", "W", "D")
"""What of `datetime64` is a date to Python, which a moment never equals."""


def hash_times(values: npt.NDArray[Any]) -> Hashes:
    """The hash of each datetime64 or timedelta64, in microseconds; of dates, in days.

    So a moment hashes alike in every unit from seconds to nanoseconds, like
    Python's datetime; times within the same microsecond hash alike too.
    """
    kind = values.dtype.kind
    unit = np.datetime_data(values.dtype)[0]
    wanted = f"{kind}8[D]" if kind == "M" and unit in UNITS_OF_DATES else f"{kind}8[us]"
    hashes = hash_ints(values.astype(wanted, copy=False).view(np.int64))
    hashes[np.isnat(values)] = NULL_HASH
    return hashes


def hash_column(values: npt.NDArray[Any]) -> Hashes:
    """The hash of each item of a NumPy column of numbers or times, uint64[n].

    Raises
    ------
    KeyHashError
        For a dtype that has no stable hash here. Columns of objects and of text
        are for `pointstamp.containers.keys`.
    """
    kind = values.dtype.kind
    if kind in "iub":
        return hash_ints(values)
    if kind == "f" and values.dtype.itemsize <= 8:
        return hash_floats(values)
    if kind in "mM":
        return hash_times(values)
    raise KeyHashError(
        f"a column of dtype {values.dtype} cannot be a key: no hash of it is the same on every "
        "machine; use columns of integers, floats, bools, times or text"
    )


def contiguous(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous and aligned array of the same values, for a kernel to read."""
    flags = values.flags
    if flags.c_contiguous and flags.aligned:
        return values
    return np.require(values, requirements=["C", "A"])
