"""Event times and keys of a batch, and the bounds of windows put to its records.

Event times are integers, in whatever unit the program has: exact, so that it is certain
in which window a record is. Arrow's timestamps and dates are integers in their unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.arrays import Arrays
from pointstamp.containers.expressions import evaluate, is_expression
from pointstamp.containers.gather import Key, column_of, with_columns
from pointstamp.containers.keys import canonical_key
from pointstamp.containers.registry import kind_of
from pointstamp.errors import ColumnError, DataError, SchemaError

Ints = npt.NDArray[np.int64]
TimeOf = Callable[[Any], Any] | str


def event_times(batch: Any, time: TimeOf, operator: str) -> Ints:
    """The event time of each record, int64[n].

    Parameters
    ----------
    time : callable, str or pyarrow.compute.Expression
        Of rows a function of a record; else a column, or an expression (of record batches).

    Raises
    ------
    DataError
        If they are not integers, or null.

    >>> event_times([("a", 3), ("b", 5)], lambda record: record[1], "an example")
    array([3, 5])
    """
    if callable(time):
        found = list(map(time, batch)) if type(batch) is list else time(batch)
    elif is_expression(time):
        found = evaluate(batch, time).column(0)
    else:
        found = column_of(batch, time, operator)
    if type(found).__module__.partition(".")[0] == "pyarrow":
        found = _numbers(found, operator)
    values = np.asarray(found)
    if values.dtype.kind in "mM":
        if np.isnat(values).any():
            raise DataError(
                f"{operator} needs an event time for every record; "
                f"{int(np.isnat(values).sum())} of {len(values)} are not a time: drop those "
                "records first"
            )
        values = values.view(np.int64)
    if values.dtype.kind not in "iu":
        raise DataError(
            f"{operator} needs integers as event times, and was given {values.dtype}, such as "
            f"{values.ravel()[:1].tolist()}; count in a unit that is small enough"
        )
    if values.dtype == np.uint64 and len(values) and values.max() > np.iinfo(np.int64).max:
        raise DataError(f"{operator} needs event times below 2^63; the largest is {values.max()}")
    return values.astype(np.int64, copy=False)


def _numbers(column: Any, operator: str) -> Any:
    import pyarrow as pa

    from pointstamp.containers.convert import numbers

    if column.null_count:
        raise DataError(
            f"{operator} needs an event time for every record; {column.null_count} of "
            f"{len(column)} are null: drop those records first"
        )
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if not pa.types.is_integer(column.type):
        raise DataError(f"{operator} needs integers or times as event times, not {column.type}")
    return numbers(column)


def group_numbers(batch: Any, key: Key | Callable[[Any], Any] | None, operator: str) -> Ints:
    """A number for each record, int64[n]: equal if and only if the keys are."""
    if key is None:
        return np.zeros(len(batch), np.int64)
    if callable(key):
        if type(batch) is not list:
            raise ColumnError(
                f"{operator} is given the function {key!r} as a key, and the stream carries "
                f"{kind_of(batch).name}: name a column, or several"
            )
        known: dict[Any, int] = {}
        keys = (canonical_key(key(record)) for record in batch)
        return np.array([known.setdefault(of, len(known)) for of in keys], np.int64)
    groups = np.zeros(len(batch), np.int64)
    for name in [key] if isinstance(key, str) else key:
        numbers = _numbered(column_of(batch, name, operator), name, operator)
        if groups.any():
            # Dense again after each column, or the products would not fit.
            numbers += groups * (int(numbers.max()) + 1)
            numbers = np.unique(numbers, return_inverse=True)[1]
        groups = numbers.astype(np.int64, copy=False)
    return groups


def _numbered(column: Any, name: str, operator: str) -> Ints:
    """The values of a column by number; a null is a value."""
    if isinstance(column, np.ndarray):
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    import pyarrow as pa

    from pointstamp.containers.convert import numbers

    try:
        indices = column.dictionary_encode(null_encoding="encode").indices
    except pa.ArrowNotImplementedError as error:
        raise SchemaError(
            f"{operator} cannot group by the column {name!r} of type {column.type}; make numbers, "
            "texts or times of it"
        ) from error
    return numbers(indices).astype(np.int64)


def key_at(batch: Any, key: Key | Callable[[Any], Any] | None, place: int) -> Any:
    """The key of one record: None without one, a tuple where it has several columns."""
    if key is None:
        return None
    if callable(key):
        return canonical_key(key(batch[place]))
    if not isinstance(key, str):
        return tuple(key_at(batch, name, place) for name in key)
    value = column_of(batch, key, "a key")[place]
    return canonical_key(value.as_py() if hasattr(value, "as_py") else value.item())


def with_bounds(batch: Any, starts: Ints, ends: Ints, time: TimeOf | None) -> Any:
    """`batch` with the columns `window_start` and `window_end`, of the type of its time.

    starts, ends : int64[n]
    """
    bounds: dict[str, Any] = {"window_start": starts, "window_end": ends}
    if not isinstance(batch, Arrays):
        from pointstamp.containers.convert import arrow_array

        bounds = {name: arrow_array(values) for name, values in bounds.items()}
        if isinstance(time, str):
            kind = batch.schema.field(time).type
            bounds = {name: _as(values, kind) for name, values in bounds.items()}
    elif isinstance(time, str) and batch[time].dtype.kind in "mM":
        bounds = {name: values.view(batch[time].dtype) for name, values in bounds.items()}
    return with_columns(batch, bounds)


def _as(values: Any, kind: Any) -> Any:
    import pyarrow as pa

    if not pa.types.is_temporal(kind):
        return values
    return values.cast(pa.int32()).view(kind) if kind.bit_width == 32 else values.view(kind)
