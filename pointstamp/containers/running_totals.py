"""Aggregates so far: each record of columns with what its key's records give up to it.

Keys are numbered as they come, and of each aggregate there is an array by number, which one loop
goes through for a batch (`kernels/running_folds.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.convert import numbers
from pointstamp.containers.registry import kind_of
from pointstamp.errors import DataError, KeyHashError, SchemaError
from pointstamp.kernels.group_tables import number_keys
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.key_tables import FEW, reserved, with_room
from pointstamp.kernels.running_folds import (
    add_floats_so_far,
    add_ints_so_far,
    count_so_far,
    lower_floats_so_far,
    lower_ints_so_far,
    raise_floats_so_far,
    raise_ints_so_far,
)

FUNCTIONS = ("count", "max", "mean", "min", "sum")

Numbers = npt.NDArray[np.int32]
Values = npt.NDArray[Any]

_LIMITS = np.iinfo(np.int64)
_LOOPS: Mapping[str, tuple[Any, Any, Any, Any]] = {
    "sum": (add_ints_so_far, 0, add_floats_so_far, 0.0),
    "mean": (None, 0, add_floats_so_far, 0.0),
    "min": (lower_ints_so_far, _LIMITS.max, lower_floats_so_far, np.nan),
    "max": (raise_ints_so_far, _LIMITS.min, raise_floats_so_far, np.nan),
}
"""By function: of integers the loop, and what a total is before; then of floats."""


class RunningTotals:
    """The aggregates of each key so far.

    Parameters
    ----------
    key : str or sequence of str
        The column of the key, or several.
    aggregates : sequence of (column, function)
        A function is one of `FUNCTIONS`.
    operator : str
        For the messages of errors.

    >>> from pointstamp.containers import Arrays
    >>> totals = RunningTotals("k", [("x", "sum"), ("x", "count")], "an example")
    >>> found = totals.extended(Arrays(k=[7, 9, 7], x=[1, 2, 3]))
    >>> found["x_sum"].tolist(), found["x_count"].tolist()
    ([1, 2, 4], [1, 1, 2])
    """

    def __init__(
        self, key: str | Sequence[str], aggregates: Sequence[tuple[str, str]], operator: str
    ) -> None:
        self._key = key
        self._operator = operator
        self._keys = _NumberedKeys()
        self._totals = [
            _RunningTotal(column, function, operator) for column, function in aggregates
        ]
        self._touched: Numbers = np.empty(0, np.int32)

    def extended(self, batch: Any) -> Any:
        """The batch with a column `{column}_{function}` for each aggregate.

        Raises
        ------
        ColumnError
            If a column is not there, or one of such a name is.
        SchemaError
            If a column cannot be aggregated so.
        DataError
            If a sum of integers is beyond 64 bits.
        """
        kind = kind_of(batch)
        groups = self._groups(kind, batch)
        n = self._keys.n
        self._touched = groups
        return kind.with_columns(
            batch,
            {
                total.name: total.take(groups, kind.column(batch, total.column, self._operator), n)
                for total in self._totals
            },
        )

    def _groups(self, kind: Any, batch: Any) -> Numbers:
        if isinstance(self._key, str):
            column = kind.column(batch, self._key, self._operator)
            if type(column) is np.ndarray and column.dtype.kind == "i":
                return self._keys.of_integers(column)
            is_arrow = type(column) is not np.ndarray and hasattr(column, "null_count")
            if is_arrow and str(column.type)[:3] == "int" and not column.null_count:
                return self._keys.of_integers(numbers(column))
        return self._keys.of_values(kind.keys(batch, self._key, self._operator))

    # What lasts: of each key the totals, as Python's own values.

    def touched(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The keys of the last batch, each once, and their states."""
        groups = np.unique(self._touched).tolist()
        for group, key in zip(groups, self._keys.values(groups), strict=True):
            yield key, tuple(total.state(group) for total in self._totals)

    def restore(self, states: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        """Take in, before any batch, what `touched` gave, the last of each key."""
        stored = list(states)
        if stored:
            self._keys.of_values([key for key, _ in stored])
            for place, total in enumerate(self._totals):
                total.restore([state[place] for _, state in stored])


class _NumberedKeys:
    """Numbers of keys, in the order of their first records."""

    def __init__(self) -> None:
        self.n = 0
        self._slots = np.zeros((FEW, 2), np.int64)
        self._integers = np.empty(FEW, np.int64)
        """By number; of keys that are no integers of 64 bits a number that stands for one."""
        self._others: dict[Any, int] = {}
        """Numbers of those."""
        self._by_number: dict[int, Any] = {}
        """The same the other way round."""

    def of_integers(self, column: npt.NDArray[Any]) -> Numbers:
        """Of a column of signed integers, int32[r]."""
        n_more = len(column)
        self._slots = reserved(self._slots, self.n, n_more)
        self._integers = with_room(self._integers, self.n, n_more)
        groups = np.empty(n_more, np.int32)
        keys = contiguous(column.astype(np.int64, copy=False))
        self.n = number_keys(self._slots, self.n, self._integers, keys, groups)
        return groups

    def of_values(self, keys: list[Any]) -> Numbers:
        """Of canonical keys of any type."""
        groups = np.empty(len(keys), np.int32)
        of_integers = [place for place, key in enumerate(keys) if _is_integer(key)]
        if of_integers:
            groups[of_integers] = self.of_integers(np.array([keys[place] for place in of_integers]))
        if len(of_integers) < len(keys):
            self._integers = with_room(self._integers, self.n, len(keys))
            others = self._others
            for place, key in enumerate(keys):
                if not _is_integer(key):
                    try:
                        is_new = key not in others
                    except TypeError as error:
                        raise KeyHashError(
                            f"{key!r:.200} is no key: it cannot be hashed"
                        ) from error
                    if is_new:
                        others[key] = self.n
                        self._by_number[self.n] = key
                        self.n += 1
                    groups[place] = others[key]
        return groups

    def values(self, groups: list[int]) -> list[Any]:
        """The keys of some numbers."""
        integers, others = self._integers, self._by_number
        return [others[n] if n in others else int(integers[n]) for n in groups]


class _RunningTotal:
    """One aggregate of all keys."""

    def __init__(self, column: str, function: str, operator: str) -> None:
        self.column, self.name = column, f"{column}_{function}"
        self._function, self._operator = function, operator
        self._n = 0
        self._counts: npt.NDArray[np.int64] | None = None
        """How many values, by group; of sums and extremes only since a null was there."""
        self._sums: Values | None = None
        """The totals by group, int64 or float64, once there is a column."""
        if function in ("count", "mean"):
            self._counts = np.empty(FEW, np.int64)

    def take(self, groups: Numbers, column: Any, n: int) -> Any:
        """The totals with each record, a column; there are `n` groups now."""
        valid = _valid(column)
        counts = self._count(groups, valid, n)
        if self._function == "count":
            self._n = n
            return _like(counts, column, None, keeps_type=False)
        words = _words(column, valid, self._function, f"{self._operator}: {self.column!r}")
        is_float = words.dtype == np.float64
        of_ints, before_ints, of_floats, before_floats = _LOOPS[self._function]
        before = before_floats if is_float else before_ints
        if valid is not None:
            words = np.where(valid, words, before)
        totals = self._totals(words.dtype, before, n)
        found = np.empty(len(groups), words.dtype)
        wrong = (of_floats if is_float else of_ints)(groups, contiguous(words), totals, found)
        if wrong is not None and wrong >= 0:
            raise DataError(
                f"{self._operator}: the sum of {self.column!r} is beyond 64 bits at record "
                f"{wrong} of a batch; cast the column to float64 before"
            )
        self._n = n
        if self._function == "mean":
            found /= np.maximum(counts, 1)
        there = None if self._counts is None else counts > 0
        return _like(found, column, there, keeps_type=self._function in ("min", "max"))

    def _count(
        self, groups: Numbers, valid: npt.NDArray[np.bool_] | None, n: int
    ) -> npt.NDArray[np.int64]:
        """How many values there are with each record; nothing where that is not looked at."""
        found = np.empty(0 if self._counts is None and valid is None else len(groups), np.int64)
        if self._counts is None:
            if valid is None:
                return found
            self._counts = np.ones(max(FEW, self._n), np.int64)  # without nulls each has one
        self._counts = with_room(self._counts, self._n, n - self._n)
        self._counts[self._n : n] = 0
        if valid is None:
            count_so_far(groups, self._counts, found)
        else:
            add_ints_so_far(groups, valid.astype(np.int64), self._counts, found)
        return found

    def _totals(self, dtype: np.dtype[Any], before: Any, n: int) -> Values:
        if self._sums is None:
            self._sums = np.full(max(FEW, n), before, dtype)
        elif self._sums.dtype != dtype:
            raise SchemaError(
                f"{self._operator}: the column {self.column!r} was of "
                f"{'integers' if dtype == np.float64 else 'floats'} before, and is not now"
            )
        self._sums = with_room(self._sums, self._n, n - self._n)
        self._sums[self._n : n] = before
        return self._sums

    def state(self, group: int) -> Any:
        """What is to be kept of a group."""
        count = None if self._counts is None else int(self._counts[group])
        total = None if self._sums is None else self._sums[group].item()
        return count, total

    def restore(self, states: Sequence[Any]) -> None:
        """Take in the states of groups 0, 1, 2 and so on."""
        n = len(states)
        if any(count is not None for count, _ in states):
            # What another worker has kept without counts had values only.
            counts = [1 if count is None else count for count, _ in states]
            self._counts = np.array(counts, np.int64)
        totals = [total for _, total in states if total is not None]
        if totals:
            is_float = any(isinstance(total, float) for total in totals)
            dtype = np.dtype(np.float64 if is_float else np.int64)
            self._sums = np.array([total for _, total in states], dtype)
        self._n = n


def _valid(column: Any) -> npt.NDArray[np.bool_] | None:
    """Which values are not null, nor no time; None if all are."""
    if type(column) is np.ndarray:
        is_none = np.isnat(column) if column.dtype.kind in "mM" else np.zeros(1, np.bool_)
        return ~is_none if is_none.any() else None
    if not column.null_count:
        return None
    found: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return found


def _words(
    column: Any, valid: npt.NDArray[np.bool_] | None, function: str, what: str
) -> npt.NDArray[Any]:
    """The values as int64 or float64; anything where they are null."""
    is_extreme = function in ("min", "max")
    values: npt.NDArray[Any] | None = None
    if type(column) is np.ndarray:
        if column.dtype.kind in "iuf":
            values = column
        elif column.dtype.kind in "mM" and is_extreme:
            values = column.view(np.int64)
        found: Any = column.dtype
    else:
        found = column.type
        name = str(found)
        if "int" in name[:4] or name in ("halffloat", "float", "double"):
            values = numbers(column)
        elif is_extreme and _is_temporal(found):
            values = numbers(column.view(f"int{found.bit_width}"))
    if values is None:
        others = "numbers and times" if is_extreme else "numbers"
        raise SchemaError(
            f"{what} has values of {found}, which have no {function} so far: {others} have; cast "
            "the column before"
        )
    if values.dtype.kind == "f" or function == "mean":
        return values.astype(np.float64, copy=False)
    if values.dtype == np.uint64:
        known = values if valid is None else values[valid]
        if len(known) and int(known.max()) > _LIMITS.max:
            raise SchemaError(f"{what} has integers of 2^63 or more; cast the column to float64")
    return values.astype(np.int64, copy=False)


def _is_temporal(kind: Any) -> bool:
    import pyarrow as pa  # here and not above: `Arrays` do without

    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def _like(
    found: npt.NDArray[Any],
    column: Any,
    there: npt.NDArray[np.bool_] | None,
    *,
    keeps_type: bool,
) -> Any:
    """The totals as a column of the kind of `column`, null where they are not `there`."""
    if type(column) is np.ndarray:
        is_time = column.dtype.kind in "mM"
        if not keeps_type:
            return found
        return found.view(column.dtype) if is_time else found.astype(column.dtype, copy=False)
    import pyarrow as pa

    kind = column.type
    if keeps_type and _is_temporal(kind):
        found = found.astype(f"i{kind.bit_width // 8}")
    elif keeps_type:
        found = found.astype(numbers(column[:0]).dtype)
    totals: Any = pa.array(found, mask=None if there is None else ~there)
    return totals.view(kind) if keeps_type and _is_temporal(kind) else totals


def _is_integer(key: Any) -> bool:
    """Whether it is looked up as an integer of 64 bits."""
    return type(key) is int and _LIMITS.min <= key <= _LIMITS.max
