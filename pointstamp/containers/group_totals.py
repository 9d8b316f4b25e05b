"""Totals by an integer key or a text, added up as parts of aggregates come.

What Arrow makes of all parts together, it makes by grouping them again; here the groups stay
in a table, and each record is added once. For keys that are texts, or like totals numbers of 64
bits or fewer, without nulls; anything else is Arrow's (`arrow_groups.combined`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.containers.texts import (
    MOST_BYTES,
    is_large,
    is_text,
    text_array,
    text_parts,
)
from pointstamp.kernels.group_tables import (
    add_floats,
    add_ints,
    lower_ints,
    number_keys,
    number_texts,
    raise_ints,
)
from pointstamp.kernels.hashing import contiguous, hash_bytes
from pointstamp.kernels.key_tables import FEW, reserved, with_room

TOGETHER = 1 << 16
"""Records that are looked up at a time: the table has room for so many new keys beforehand."""

_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_LIMITS = np.iinfo(np.int64)

Numbers = npt.NDArray[np.int32]
Change = Callable[[Numbers, Any, Any], None]


def has_table(kind: pa.DataType) -> bool:
    """Whether keys of a type can be looked up in a table here.

    >>> has_table(pa.string()), has_table(pa.int8()), has_table(pa.float64())
    (True, True, False)
    """
    return is_text(kind) or is_small_key(kind)


def is_small_key(kind: pa.DataType) -> bool:
    """Whether its values are integers of 64 bits or fewer: numbers, dates, times, durations.

    >>> is_small_key(pa.uint64()), is_small_key(pa.date32()), is_small_key(pa.float64())
    (True, True, False)
    """
    is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return pa.types.is_integer(kind) or is_time


def total_of(function: str, kind: pa.DataType) -> tuple[Change, np.dtype[Any], Any] | None:
    """How values of a column change a total, its dtype, and what it is before: or None.

    >>> total_of("max", pa.int32())[1:] == (np.int64, np.iinfo(np.int64).min)
    True
    """
    if function == "sum" and kind in (pa.int64(), pa.uint64()):
        return add_ints, np.dtype(np.int64), 0
    if function == "sum" and kind == pa.float64():
        return add_floats, np.dtype(np.float64), 0.0
    if function in ("min", "max") and is_small_key(kind) and kind != pa.uint64():
        return (
            (lower_ints, np.dtype(np.int64), _LIMITS.max)
            if function == "min"
            else (raise_ints, np.dtype(np.int64), _LIMITS.min)
        )
    return None


class GroupTotals:
    """For each key its totals so far; the groups are in the order of their first records.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the parts, and of the answer: the key, then what is added up.
    functions : sequence of "sum", "min" or "max"
        For each column but the key.

    >>> part = pa.RecordBatch.from_pydict({"k": [7, 9, 7], "n": [1, 2, 3]})
    >>> totals = GroupTotals(part.schema, ["sum"])
    >>> totals.add(part), totals.add(part), totals.batch().to_pydict()
    (True, True, {'k': [7, 9], 'n': [8, 4]})
    """

    def __init__(self, schema: pa.Schema, functions: Sequence[str]) -> None:
        self._schema = schema
        self._functions = list(functions)
        self._n = 0
        key = schema.types[0]
        self._keys: _SmallKeys | _Texts = _Texts(key) if is_text(key) else _SmallKeys(key)
        self._changes: list[Change] = []
        self._starts: list[Any] = []
        self._totals: list[npt.NDArray[Any]] = []
        for field, function in zip(list(schema)[1:], functions, strict=True):
            change, dtype, start = _certain(total_of(function, field.type))
            self._changes.append(change)
            self._starts.append(start)
            self._totals.append(np.empty(FEW, dtype))

    @property
    def n(self) -> int:
        """How many keys there are."""
        return self._n

    def __reduce__(self) -> Any:
        # Without the table, which is made again of the keys.
        return _restored, (self._schema, self._functions, self.batch())

    def add(self, part: pa.RecordBatch) -> bool:
        """Add the records of a part, and say whether they were added: those with nulls are not.

        Nor are those of other types, nor those whose keys would make the column of all of them
        too long for its type.
        """
        if part.schema.types != self._schema.types:
            return False
        if any(column.null_count for column in part.columns):
            return False
        keys, *columns = part.columns
        if not self._keys.has_room(keys):
            return False
        values = list(map(_words, columns))
        for start in range(0, part.num_rows, TOGETHER):
            chunk = slice(start, start + TOGETHER)
            self._add(self._keys.numbers(keys[chunk]), [column[chunk] for column in values])
        return True

    def _add(self, groups: Numbers, values: list[Any]) -> None:
        n_known, n = self._n, self._keys.n
        for place, (change, start) in enumerate(zip(self._changes, self._starts, strict=True)):
            totals = with_room(self._totals[place], n_known, n - n_known)
            totals[n_known:n] = start
            change(groups, values[place], totals)
            self._totals[place] = totals
        self._n = n

    def batch(self) -> pa.RecordBatch:
        """The keys and their totals."""
        columns = [self._keys.column()]
        for words, kind in zip(self._totals, self._schema.types[1:], strict=True):
            columns.append(_typed(words[: self._n], kind))
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)


class _SmallKeys:
    """Keys of 64 bits or fewer, by number."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self.n = 0
        self._slots = np.zeros((FEW, 2), np.int64)
        self._keys = np.empty(FEW, np.int64)

    def has_room(self, column: Any) -> bool:
        """Always."""
        return True

    def numbers(self, column: Any) -> Numbers:
        """Of each key; those that are new get one."""
        n_more = len(column)
        self._slots = reserved(self._slots, self.n, n_more)
        self._keys = with_room(self._keys, self.n, n_more)
        groups = np.empty(n_more, np.int32)
        self.n = number_keys(self._slots, self.n, self._keys, _words(column), groups)
        return groups

    def column(self) -> Any:
        """The keys."""
        return _typed(self._keys[: self.n], self._kind)


class _Texts:
    """Keys that are text or binaries, by number."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self.n = 0
        self._slots = np.zeros((FEW, 2), np.int64)
        self._ends = np.zeros(FEW, np.int64)
        self._texts = np.empty(FEW, np.uint8)

    def has_room(self, column: Any) -> bool:
        """Whether one column may hold all keys with these, were they all new."""
        bounds, _ = text_parts(column)
        n_bytes = int(self._ends[self.n]) + int(bounds[-1]) - int(bounds[0])
        return is_large(self._kind) or n_bytes <= MOST_BYTES

    def numbers(self, column: Any) -> Numbers:
        """Of each key; those that are new get one."""
        found, data = text_parts(column)
        bounds = contiguous(found.astype(np.int64, copy=False))
        n_more, n_bytes = len(column), int(self._ends[self.n])
        self._slots = reserved(self._slots, self.n, n_more)
        self._ends = with_room(self._ends, self.n + 1, n_more)
        self._texts = with_room(self._texts, n_bytes, int(bounds[-1]) - int(bounds[0]))
        groups = np.empty(n_more, np.int32)
        self.n = number_texts(
            self._slots,
            self.n,
            self._ends,
            self._texts,
            hash_bytes(bounds, data).view(np.int64),
            bounds,
            data,
            groups,
        )
        return groups

    def column(self) -> Any:
        """The keys."""
        ends = self._ends[: self.n + 1].copy()
        return text_array(self._kind, ends, self._texts[: int(ends[-1])].copy())


def _certain(total: Any) -> Any:
    assert total is not None, "for what total_of has no change, Arrow combines the parts"
    return total


def _restored(schema: pa.Schema, functions: list[str], batch: pa.RecordBatch) -> GroupTotals:
    totals = GroupTotals(schema, functions)
    totals.add(batch)
    return totals


def _words(column: Any) -> Any:
    """The values as int64 (those of uint64 by their bits), or as float64."""
    kind = column.type
    if kind == pa.float64():
        return contiguous(numbers(column))
    if not pa.types.is_integer(kind):
        column = column.view(_SIGNED[kind.bit_width])
    words = numbers(column)
    if words.dtype == np.uint64:
        return contiguous(words).view(np.int64)
    return contiguous(words.astype(np.int64, copy=False))


def _typed(words: npt.NDArray[Any], kind: pa.DataType) -> Any:
    """What `_words` made of a column of that type, as such a column again; a copy."""
    if kind == pa.float64():
        return arrow_array(words.copy())
    if pa.types.is_integer(kind):
        sign = "i" if pa.types.is_signed_integer(kind) else "u"
        dtype = np.dtype(f"{sign}{kind.bit_width // 8}")
        return arrow_array(words.view(dtype).copy() if dtype.itemsize == 8 else words.astype(dtype))
    narrow: Any = arrow_array(words.astype(np.dtype(f"i{kind.bit_width // 8}")))
    return narrow.view(kind)
