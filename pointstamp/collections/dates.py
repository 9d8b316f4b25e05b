"""Parts of dates and timestamps, and their truncation to a unit, on bound expressions.

The calendar is that of Python's `datetime`: Gregorian also where it was not in use yet.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pointstamp.collections.casts import Bound
from pointstamp.collections.evaluation import Evaluated, Values, computed
from pointstamp.containers.words import LONG, DateType, TimestampType
from pointstamp.errors import BuildError, SchemaError

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MONDAY = 3
"""So many days after a Monday 1970-01-01 was."""

_OF_DAYS: dict[str, Callable[[Values], Values]] = {
    "year": lambda days: _months(days) // 12 + 1970,
    "quarter": lambda days: _months(days) % 12 // 3 + 1,
    "month": lambda days: _months(days) % 12 + 1,
    "day": lambda days: days - _first_days(_months(days)) + 1,
    "weekday": lambda days: (days + _MONDAY) % 7,
}
_OF_TIMES: dict[str, Callable[[Values], Values]] = {
    "hour": lambda times: times % _DAY // (3_600 * _SECOND),
    "minute": lambda times: times // (60 * _SECOND) % 60,
    "second": lambda times: times // _SECOND % 60,
    "microsecond": lambda times: times % _SECOND,
}
_BEGINNINGS: dict[str, Callable[[Values], Values]] = {
    "year": lambda days: _first_days(_months(days) // 12 * 12),
    "quarter": lambda days: _first_days(_months(days) // 3 * 3),
    "month": lambda days: _first_days(_months(days)),
    "week": lambda days: days - (days + _MONDAY) % 7,
    "day": lambda days: days,
}
_LENGTHS = {"hour": 3_600 * _SECOND, "minute": 60 * _SECOND, "second": _SECOND}


def date_part(bound: Bound, name: str, what: object) -> Bound:
    """The part of that name of a date or timestamp, a long.

    Raises
    ------
    SchemaError
        If it is of another type, or is a date and the part is of a time.
    """
    if isinstance(bound.type, DateType) and name in _OF_DAYS:
        return _of_values(bound, _OF_DAYS[name])
    if not isinstance(bound.type, TimestampType):
        raise _no_part(bound, what)
    if name in _OF_TIMES:
        return _of_values(bound, _OF_TIMES[name])
    return _of_values(bound, lambda times: _OF_DAYS[name](times // _DAY))


def truncated(bound: Bound, unit: str, what: object) -> Bound:
    """The beginning of the unit of time that a date or timestamp is in, of the same type.

    Raises
    ------
    SchemaError
        If it is of another type, or is a date and the unit is shorter than a day.
    """
    check_unit(unit)
    kind = bound.type
    if isinstance(kind, DateType) and unit in _BEGINNINGS:
        compute = _BEGINNINGS[unit]
    elif not isinstance(kind, TimestampType):
        raise _no_part(bound, what)
    elif unit in _LENGTHS:
        compute = lambda times: times - times % _LENGTHS[unit]  # noqa: E731  (one of three forms)
    else:
        compute = lambda times: _BEGINNINGS[unit](times // _DAY) * _DAY  # noqa: E731  (as above)
    found = _of_values(bound, compute)
    return Bound(kind, found.nullable, found.evaluate)


def check_unit(unit: str) -> None:
    """Refuse what is no unit of time.

    Raises
    ------
    BuildError
    """
    if unit not in _BEGINNINGS and unit not in _LENGTHS:
        units = ", ".join([*_BEGINNINGS, *_LENGTHS])
        raise BuildError(f"truncate is given {unit!r}; there are {units}")


def _of_values(bound: Bound, compute: Callable[[Values], Values]) -> Bound:
    def evaluate(column: Evaluated) -> Evaluated:
        return compute(column[0]), column[1]

    return Bound(LONG, bound.nullable, computed(evaluate, bound.evaluate))


def _no_part(bound: Bound, what: object) -> SchemaError:
    return SchemaError(f"{what} is asked of {bound.type.name}, which has no such part")


def _months(days: Values) -> Values:
    """Months since 1970-01 of days since 1970-01-01, both int64[n]."""
    months: Values = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return months


def _first_days(months: Values) -> Values:
    """The other way: the first day of each month."""
    days: Values = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    return days
