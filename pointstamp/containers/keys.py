"""The hash of a key that is a Python value, equal to that of the same key in a column.

The law: keys that are equal in Python hash canonical_key, here, in every other process,
and in columns (`kernels/hashing.py`). So 1, 1.0, True and Decimal(1) agree, a
text agrees with its Arrow column, and a tuple with the columns of its parts.
Keys of other types are refused rather than hashed by `hash` or `repr`, which
may differ between processes.

`hash_keys` takes the keys of a whole batch: where all are of one type it makes
a column of them and hashes that, which is some twenty times quicker.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import reprlib
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.expressions import is_expression
from pointstamp.containers.key_hashes import (
    hash_into,
    is_its_own_key,
    is_plain,
    leave_others_to,
    stable_hash,
)
from pointstamp.errors import BuildError, ColumnError, ContainerError, DataError, KeyHashError
from pointstamp.kernels.hashing import (
    EMPTY_HASH,
    NULL_HASH,
    Hashes,
    combine,
    combine_all,
    float_words,
    hash_column,
    hash_float,
    hash_spans,
    hash_text,
    hash_words,
    mix,
)

_NAN = math.nan


class _NanOfField(float):
    """The NaN in a field of a dataclass, which equals itself, by `==` alone.

    In tuples what is one object is equal. So were fields, which dataclasses compare each by itself
    since Python 3.13. Sent elsewhere, it is a NaN as any other.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = float.__hash__

    def __reduce__(self) -> tuple[type[float], tuple[str]]:
        return float, ("nan",)


_NAN_OF_FIELD = _NanOfField(math.nan)

# Below this many keys, making a column of them costs more than it saves.
_FEW = 12

_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH = _EPOCH_UTC.replace(tzinfo=None)
_MICROSECOND = datetime.timedelta(microseconds=1)


def hash_key(key: Any) -> int:
    """The stable hash of one key, at least 0 and below 2**64.

    Raises
    ------
    KeyHashError
        For a type of which no hash is the same in every process.

    >>> hash_key(1) == hash_key(1.0) == hash_key(True) == hash_key((1,))
    True
    """
    return stable_hash(key)


def hash_by_type(key: Any) -> int:
    """The hash of a key of a type that `stable_hash` leaves to this module."""
    hasher = _BY_TYPE.get(type(key))
    return hasher(key) if hasher is not None else _hash_other(key)


def hash_keys(keys: Sequence[Any]) -> Hashes:
    """The stable hash of each key, uint64[len(keys)]; see `hash_key`.

    >>> [int(h) for h in hash_keys(["a", None])] == [hash_key("a"), hash_key(None)]
    True
    """
    if len(keys) > _FEW:
        types = set(map(type, keys))
        if len(types) == 1:
            hashes = _hash_alike(types.pop(), keys)
            if hashes is not None:
                return hashes
    hashes = np.empty(len(keys), np.uint64)
    hash_into(keys if type(keys) is list else list(keys), hashes)
    return hashes


def canonical_key(key: Any) -> Any:
    """`key`; where it is a NaN, or something with one in it, what stands for all of those.

    A NaN equals itself only while it is one object, and a record that was sent has another:
    what collects by key would have as many groups as there were batches.

    >>> {canonical_key(float("nan")): 1}[canonical_key(float("nan"))], canonical_key((1, "a"))
    (1, (1, 'a'))
    """
    if not has_nan(key):
        return key
    kind: Any = type(key)
    if isinstance(key, tuple):
        parts = map(canonical_key, key)
        return kind._make(parts) if hasattr(kind, "_make") else tuple(parts)
    if isinstance(key, frozenset):
        return frozenset(map(canonical_key, key))
    names = _compared_fields(kind)
    if not names:
        return _NAN
    found = copy.copy(key)
    for name in names:
        value = canonical_key(getattr(key, name))
        object.__setattr__(found, name, _NAN_OF_FIELD if value is _NAN else value)
    return found


def hashable_key(key: Any) -> Any:
    """`canonical_key` of what is to be found again in a dict.

    Raises
    ------
    KeyHashError
        If it cannot be hashed: as where it is sent by its hash, so that a program on one worker
        and on several fails alike.

    >>> hashable_key((1, "a"))
    (1, 'a')
    """
    kind = type(key)
    if kind is int or kind is str or is_its_own_key(key):
        return key
    try:
        hash(key)
    except TypeError as error:
        hash_key(key)  # which says why it has none
        raise KeyHashError(
            f"a key of type {kind.__name__} cannot be hashed ({error}): {reprlib.repr(key)}; "
            f"{_advice(key)}"
        ) from error
    return canonical_key(key)


def checked_pair(record: Any, operator: str) -> tuple[Any, Any]:
    """The key and the value of a record that is a pair of them.

    Raises
    ------
    DataError
        If it is none.
    """
    try:
        of, value = record
    except (TypeError, ValueError):
        raise DataError(
            f"{operator} without a key takes records that are pairs (key, value), and was given "
            f"{record!r:.200}; say what its key is, as key=lambda record: ..."
        ) from None
    return hashable_key(of), value


def has_nan(key: Any) -> bool:
    """Whether `key` is a NaN, or a tuple, a frozenset or a frozen dataclass with one."""
    kind: Any = type(key)
    if is_its_own_key(key):  # most keys, of which there is one for each record
        return False
    if isinstance(key, (tuple, frozenset)):
        return any(map(has_nan, key))
    if hasattr(kind, "__dataclass_fields__") and (names := _compared_fields(kind)):
        return any(has_nan(getattr(key, name)) for name in names)
    try:
        return bool(key != key)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise KeyHashError(
            f"a key of type {kind.__name__} cannot be compared with itself ({error}): "
            f"{reprlib.repr(key)}; {_advice(key)}"
        ) from error


def expression_hint(names: Sequence[str]) -> str:
    """What to write where one of the names of columns is rather an expression; else nothing.

    >>> expression_hint(["a b"]), expression_hint(["a > 2"])
    ('', "; what is computed is an expression, such as pc.field('x') > 2")
    """
    is_computed = any(set("<>=!+*/()").intersection(name) for name in names)
    return "; what is computed is an expression, such as pc.field('x') > 2" * is_computed


def column_names(
    key: Any, names: Sequence[str], holder: str, use: str = "be keyed by"
) -> list[str]:
    """The columns that `key` (a name, names, or None for all) means, of those in `names`.

    `use` is what `holder` cannot do with a name that is not there.

    Raises
    ------
    ColumnError
        For a name that is not among them, or is there twice, listing those that are.
    """
    if key is None:
        return list(names)
    if is_expression(key):
        raise _no_expression(key, holder)
    wanted = [key] if isinstance(key, str) else list(key)
    wrong = [name for name in wanted if names.count(name) != 1]
    if wrong or not wanted:
        if several := [name for name in wrong if name in names]:
            raise ColumnError(
                f"{holder} cannot {use} {several[0]!r}: {several[0]!r} is the name of "
                f"{names.count(several[0])} columns of {list(names)}; give each its own"
            )
        missing = wrong
        what = ", ".join(map(repr, missing)) if missing else "an empty list of columns"
        hint = expression_hint(missing) if use == "give" else ""
        raise ColumnError(f"{holder} cannot {use} {what}: its columns are {list(names)}{hint}")
    return wanted


def check_key(key: Any, operator: str) -> None:
    """Refuse what is no key of rows or columns, when the dataflow is built.

    Raises
    ------
    BuildError
        Unless it is a function, the name of a column, several names, or None.
    """
    if key is None or callable(key) or isinstance(key, str):
        return
    if isinstance(key, (list, tuple)) and key and all(isinstance(name, str) for name in key):
        return
    found = f"the expression {key}" if is_expression(key) else repr(key)
    raise BuildError(
        f"operator {operator!r} cannot be keyed by {found}: give a function of a record, or name a "
        "column or several; what is to be computed of columns, map_batches can add as a column"
    )


def check_rows_key(key: Any, record: Any, operator: str | None = None) -> None:
    """Refuse a key that names columns where the records are Python values.

    operator : what was given a column that is no key, such as one of times

    Raises
    ------
    ColumnError
        Unless `key` is a function of a record or None.
    """
    if key is None or callable(key):
        return
    if is_expression(key):
        raise _no_expression(key, "a list of Python records")
    names = [key] if isinstance(key, str) else list(key)
    parts = ", ".join(_part(record, name) for name in names)
    function = f"give a function of a record (lambda r: {parts})"
    if operator is not None:
        raise ColumnError(
            f"{operator} is given the column {key!r}, but this batch is a list of Python records, "
            f"such as {reprlib.repr(record)}; {function}"
        )
    raise ColumnError(
        f"the key {key!r} names columns, but this batch is a list of Python records, such as "
        f"{reprlib.repr(record)}; {function}, or None for the record itself"
    )


def _part(record: Any, name: str) -> str:
    """How a function has what is called `name` of such a record `r`."""
    if isinstance(record, dict):
        return f"r[{name!r}]"
    return f"r.{name}" if name.isidentifier() and hasattr(record, name) else "r[0]"


def _no_expression(key: Any, holder: str) -> ContainerError:
    return ContainerError(
        f"the key {key} is an expression of Arrow record batches, and this is {holder}: name a "
        "column, or give a function"
    )


def checked_values(values: Any, n_records: int, function: Any) -> Any:
    """`values`, after a look that `function` gave one per record.

    Raises
    ------
    KeyHashError
        If it gave more or fewer, one alone, or a masked array, whose mask would be lost.
    """
    is_other = isinstance(values, np.ndarray) and type(values) is not np.ndarray
    # The module of those is imported when it is used, hence the first question.
    if is_other and isinstance(values, np.ma.MaskedArray):
        raise KeyHashError(
            f"the function {function!r} gave a masked array, and a key is a value in each "
            "record: give what stands for those that are masked, as keys.filled(value), or an "
            "Arrow array, which has nulls"
        )
    is_one = not hasattr(values, "__len__")
    if is_one or len(values) != n_records:
        found = reprlib.repr(values) if is_one else f"{len(values)} keys"
        raise KeyHashError(
            f"the function {function!r} gave {found} ({type(values).__name__}) for a "
            f"batch of {n_records} records; it is called with the whole batch, and must return "
            "an array with a value for each record"
        )
    return values


def _hash_alike(kind: type, keys: Sequence[Any]) -> Hashes | None:
    """The hashes of keys that all are of type `kind`; None if that needs one by one."""
    if kind is float:
        return hash_words(float_words(np.array(keys, np.float64)))
    if issubclass(kind, np.generic) and keys[0].dtype.kind in "iubfmM":
        if keys[0].dtype.kind in "mM" and len({key.dtype for key in keys}) > 1:
            return None  # an array has one unit, and days hash as days
        return _hash_numpy_alike(np.array(keys))
    if not is_plain():
        return None
    if kind is int:
        try:
            return hash_words(np.array(keys, np.int64).view(np.uint64))
        except OverflowError:
            return None
    if kind is str or kind is bytes:
        encoded = [k.encode("utf-8", "surrogatepass") for k in keys] if kind is str else keys
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(list(map(len, encoded)), out=offsets[1:])
        octets = np.frombuffer(b"".join(encoded), np.uint8)
        return hash_spans(offsets[:-1], offsets[1:], octets)
    if issubclass(kind, tuple) and len(set(map(len, keys))) == 1 and len(keys[0]):
        first, *more = (hash_keys(part) for part in zip(*keys, strict=True))
        for part in more:
            first = combine_all(first, part)
        return first
    return None


def _hash_numpy_alike(values: npt.NDArray[Any]) -> Hashes:
    if values.dtype.kind in "iub":
        wide = np.uint64 if values.dtype.kind == "u" else np.int64
        return hash_words(values.astype(wide).view(np.uint64))
    if values.dtype.kind == "f" and values.dtype.itemsize <= 8:
        return hash_words(float_words(values.astype(np.float64)))
    return hash_column(values)


def _hash_int(key: int) -> int:
    if -(1 << 63) <= key < 1 << 64:
        return mix(key)
    try:
        as_float = float(key)
    except OverflowError:
        as_float = 0.0
    if as_float == key:
        return hash_float(as_float)
    return hash_text(key.to_bytes(key.bit_length() // 8 + 1, "little", signed=True))


def _hash_ratio(key: decimal.Decimal | fractions.Fraction) -> int:
    if isinstance(key, decimal.Decimal) and not key.is_finite():
        if key.is_snan():
            raise KeyHashError(
                f"a key of type {type(key).__name__} is a signaling NaN, {key!r}, which equals "
                "nothing and has no hash; give None, or a NaN that is quiet"
            )
        return hash_float(float(key))
    above, below = key.as_integer_ratio()
    if below == 1:
        return _hash_int(above)
    try:
        if float(key) == key:
            return hash_float(float(key))
    except OverflowError:
        pass
    return combine(_hash_int(above), _hash_int(below))


def _hash_datetime(key: datetime.datetime) -> int:
    epoch = _EPOCH if key.utcoffset() is None else _EPOCH_UTC
    return mix((key - epoch) // _MICROSECOND)


def _hash_date(key: datetime.date) -> int:
    return mix(key.toordinal() - _EPOCH.toordinal())


def _hash_time(key: datetime.time) -> int:
    since = datetime.timedelta(
        hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
    )
    return mix((since - (key.utcoffset() or datetime.timedelta())) // _MICROSECOND)


def _hash_tuple(key: tuple[Any, ...]) -> int:
    if not key:
        return EMPTY_HASH
    hash = hash_key(key[0])
    for part in key[1:]:
        hash = combine(hash, hash_key(part))
    return hash


# Exact types first, in one look-up; then subclasses, the more special first
# (bool is an int, datetime a date).
_BY_TYPE: dict[type, Callable[[Any], int]] = {
    int: _hash_int,
    str: lambda key: hash_text(key.encode("utf-8", "surrogatepass")),
    tuple: _hash_tuple,
    float: hash_float,
    bool: mix,
    type(None): lambda key: NULL_HASH,
    bytes: hash_text,
    datetime.datetime: _hash_datetime,
    datetime.date: _hash_date,
    datetime.time: _hash_time,
    datetime.timedelta: lambda key: mix(key // _MICROSECOND),
    uuid.UUID: lambda key: hash_text(key.bytes),
    decimal.Decimal: _hash_ratio,
    fractions.Fraction: _hash_ratio,
    frozenset: lambda key: mix(sum(map(hash_key, key))),
}


def _hash_other(key: Any) -> int:
    if isinstance(key, np.generic):
        return _hash_numpy(key)
    for kind, hasher in _BY_TYPE.items():
        if isinstance(key, kind):
            return hasher(key)
    if isinstance(key, enum.Enum):
        return hash_key(key.value)
    kind_of_other: Any = type(key)
    if (compared := _compared_fields(kind_of_other)) is not None:
        return _hash_tuple(tuple(getattr(key, name) for name in compared))
    raise KeyHashError(
        f"a key of type {type(key).__name__} has no hash that is the same on every worker: "
        f"{reprlib.repr(key)}; {_advice(key)}"
    )


def _hash_numpy(key: np.generic) -> int:
    if key.dtype.kind in "SUV":
        return hash_key(key.item())
    return int(_hash_numpy_alike(np.array([key]))[0])


@functools.lru_cache(256)
def _compared_fields(kind: type) -> tuple[str, ...] | None:
    """The names of the fields by which frozen dataclasses are equal; None of other types."""
    if not dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum):
        return None
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # all have them
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)


def _advice(key: Any) -> str:
    if isinstance(key, (list, np.ndarray, bytearray)):
        return "make it immutable: tuple(key) or bytes(key)"
    if isinstance(key, (dict, set)):
        return "choose the parts that identify it, as a tuple such as tuple(sorted(key))"
    if dataclasses.is_dataclass(key):
        return "declare the dataclass with frozen=True, or key by a tuple of its fields"
    return (
        "key by numbers, text, bytes, dates, UUIDs, enums, frozen dataclasses, or tuples of "
        "these, for example lambda r: (r.id, r.day)"
    )


leave_others_to(hash_by_type)
