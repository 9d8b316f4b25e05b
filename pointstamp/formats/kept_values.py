"""Whether values are still themselves in a column: Arrow rounds some of them without a word.

Of records it makes 1 of 1.5 where a column has integers, a day of a time, and a day, counted from
1970, of a decimal. What it does not change by itself is not looked at: so of a column that has
values of the class that it is for, only their classes are.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_of = pa.types
_FRACTIONS = (float, Decimal, np.floating)


def changed_value(values: Sequence[Any], kind: pa.DataType, *, is_given: bool) -> Any:
    """The first value that a column of a type does not have as it is; None if it has them all.

    Parameters
    ----------
    values : sequence
        From which Arrow makes a column of the type.
    kind : pyarrow.DataType
    is_given : bool
        Whether the type was given, rather than inferred from the values; then integers are taken
        as days and times.

    >>> changed_value([1, 2.0, 2.5], pa.int64(), is_given=True)
    2.5
    >>> changed_value([{"n": [1, None, 2]}], pa.struct({"n": pa.list_(pa.int8())}), is_given=True)
    """
    if _of.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        dicts = [value for value in values if isinstance(value, dict)]
        parts = [([value.get(f.name) for value in dicts], f.type) for f in fields]
    elif _of.is_map(kind):
        pairs = [pair for value in values if value is not None for pair in _pairs(value)]
        parts = [
            ([key for key, _ in pairs], kind.key_type),
            ([item for _, item in pairs], kind.item_type),
        ]
    elif isinstance(kind, (pa.ListType, pa.LargeListType, pa.FixedSizeListType)):
        items = [each for value in values if value is not None for each in value]
        parts = [(items, kind.value_type)]
    else:
        return _changed(values, kind, is_given=is_given)
    found = (changed_value(part, of_part, is_given=is_given) for part, of_part in parts)
    return next((value for value in found if value is not None), None)


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items() if isinstance(value, dict) else value)


def _changed(values: Sequence[Any], kind: pa.DataType, *, is_given: bool) -> Any:
    is_kept = _check_of(kind, is_given=is_given)
    if is_kept is None:
        return None
    return next((value for value in values if value is not None and not is_kept(value)), None)


def _check_of(kind: pa.DataType, *, is_given: bool) -> Callable[[Any], bool] | None:
    """What says whether a value is kept; None of a type that keeps, or refuses, every one."""
    if _of.is_integer(kind):
        return _is_whole
    if _of.is_date(kind):
        return _is_day if is_given else lambda value: not isinstance(value, int) and _is_day(value)
    if _of.is_timestamp(kind) or _of.is_time(kind):
        n_least = {"s": 1_000_000, "ms": 1000}.get(kind.unit, 1)
        return lambda value: (
            _is_of_unit(value, n_least) and (is_given or not isinstance(value, int))
        )
    return None


def _is_whole(value: Any) -> bool:
    return not isinstance(value, _FRACTIONS) or value == value // 1


def _is_day(value: Any) -> bool:
    if isinstance(value, datetime.datetime):
        return value.time() == datetime.time()
    return not isinstance(value, _FRACTIONS)


def _is_of_unit(value: Any, n_least: int) -> bool:
    """Whether a time has no less than so many microseconds; a decimal is no time."""
    if isinstance(value, _FRACTIONS):
        return False
    return n_least == 1 or not getattr(value, "microsecond", 0) % n_least
