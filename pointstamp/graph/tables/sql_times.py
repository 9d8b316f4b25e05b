"""Times in expressions: what clocks in a zone show at a moment, and which moment a time there is.

A time with a zone is a moment, as Spark's `timestamp` is; one without a zone is what a clock
shows, as Spark's `timestamp_ntz`. Zones are those that Spark names: regions, which Arrow knows, or
offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.errors import UsageError
from pointstamp.graph.tables.vertex_ids import is_zoned

_CLOCK = pa.timestamp("us")
_MOMENT = pa.timestamp("us", "UTC")
_DAY = pa.scalar(timedelta(days=1))

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?(?::?(\d\d))?")


@lru_cache
def fixed_offset(zone: str) -> timedelta | None:
    """The distance of a zone from UTC where it is the same always; None for a region.

    >>> fixed_offset("GMT-3") == timedelta(hours=-3), fixed_offset("Asia/Tokyo")
    (True, None)
    """
    if zone in ("Z", "UTC", "GMT", "UT"):
        return timedelta(0)
    if (found := _OFFSET.fullmatch(zone)) is None:
        return None
    sign, *parts = found.groups()
    hours, minutes, seconds = (int(part or 0) for part in parts)
    distance = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -distance if sign == "-" else distance


def clock_times(moments: Any, zone: str) -> Any:
    """What clocks in a zone show at moments: times without a zone.

    >>> noon = pa.scalar(43_200_000_000, pa.timestamp("us", "UTC"))
    >>> clock_times(noon, "Asia/Tokyo").as_py().hour
    21
    """
    offset = fixed_offset(zone)
    if offset is None:
        shown = pc.local_timestamp(pc.cast(moments, pa.timestamp(moments.type.unit, zone)))
        return _with_late_years(shown, moments, zone)
    return pc.add(pc.cast(moments, pa.timestamp(moments.type.unit)), pa.scalar(offset))


_KNOWN_S = 2_145_916_800
"""The beginning of 2038, from which on Arrow knows of no summer."""
_LISTED_S = 16_725_225_600
"""The beginning of 2500: before it, days on which clocks are set may be listed one by one."""
_CYCLE_S = 400 * 31_556_952
"""After so long the calendar is the same again, and so are the days on which clocks are set."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _with_late_years(shown: Any, moments: Any, zone: str) -> Any:
    """What clocks show, of years after 2037, too."""
    if isinstance(moments, pa.Scalar):
        given: Any = pa.array([moments.as_py()], moments.type)
        return _with_late_years(pa.array([shown.as_py()], shown.type), given, zone)[0]
    per_second = _PER_SECOND[moments.type.unit]
    known: Any = pa.scalar(_KNOWN_S * per_second, moments.type)
    is_late = pc.greater_equal(moments, known)
    if not pc.any(is_late).as_py():
        return shown
    region = ZoneInfo(zone)

    def clock(moment: int) -> int:
        seconds = moment // per_second
        if seconds > _LISTED_S:
            seconds = _LISTED_S + (seconds - _LISTED_S) % _CYCLE_S
        distance = datetime.fromtimestamp(seconds, region).utcoffset()
        assert distance is not None
        return moment + int(distance.total_seconds()) * per_second

    # Of a time that stands for none there are many: each is looked up once.
    late = pc.dictionary_encode(_one_array(moments.filter(is_late)))
    clocks = pa.array(map(clock, late.dictionary.cast(pa.int64()).to_pylist()), pa.int64())
    found = clocks.cast(shown.type).take(late.indices)
    return pc.replace_with_mask(_one_array(shown), _one_array(is_late), found)


def _one_array(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def moments_at(times: Any, zone: str, near: Any = None) -> Any:
    """The moments at which clocks in a zone show times without one, or begin dates; as in Spark.

    Where clocks show a time twice it is the first one, and where they never show it, because they
    were set forward, it is what they would show if they had not been yet.

    near : moments, from which the clocks were not set, if so the time is there
    """
    times = pc.cast(times, _CLOCK)
    offset = fixed_offset(zone)
    if offset is not None:
        return pc.cast(pc.subtract(times, pa.scalar(offset)), _MOMENT)

    def distances(moments: Any) -> Any:
        """From UTC, at moments that are given as times of UTC."""
        return pc.subtract(clock_times(pc.cast(moments, _MOMENT), zone), moments)

    # Clocks are set once within two days at most.
    before, after = distances(pc.subtract(times, _DAY)), distances(pc.add(times, _DAY))
    early, late = pc.subtract(times, before), pc.subtract(times, after)
    is_late = pc.and_(pc.not_equal(distances(early), before), pc.equal(distances(late), after))
    found = pc.if_else(is_late, late, early)
    if near is not None:
        here = distances(pc.cast(near, _CLOCK))
        close = pc.subtract(times, here)
        found = pc.if_else(pc.equal(distances(close), here), close, found)
    return pc.cast(found, _MOMENT)


def moment_of(time: datetime, zone: str) -> datetime:
    """`moments_at` of one time, also in years after 2037, of which Arrow knows no summer.

    >>> moment_of(datetime(2050, 7, 1, 12), "Europe/Berlin").astimezone(timezone.utc).hour
    10
    """
    offset = fixed_offset(zone)
    return time.replace(tzinfo=ZoneInfo(zone) if offset is None else timezone(offset))


def as_moments(operands: list[Any], zone: str) -> list[Any]:
    """Operands of which dates and times are moments, if one of them is one."""
    if not any(is_zoned(one.type) for one in operands):
        return operands
    return [moments_at(one, zone) if _is_clock(one.type) else one for one in operands]


def _is_clock(kind: Any) -> bool:
    return pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)


def as_text(value: Any, zone: str | None) -> Any:
    """Dates, times and all else as text; of moments in a zone what its clocks show."""
    if zone is not None and is_zoned(value.type):
        value = clock_times(value, zone)
    if pa.types.is_timestamp(value.type) and value.type.tz is None:
        # Of microseconds, whose text has a point, behind which zeros at the end say nothing.
        text = pc.cast(pc.cast(value, _CLOCK, safe=False), pa.string())
        return pc.replace_substring_regex(text, r"\.?0*$", "")
    if pa.types.is_floating(value.type):
        return _texts_of_floats(value)
    if pa.types.is_decimal(value.type) and not 0 <= value.type.scale <= _PLAIN_SCALE:
        return _each_as_text(value, lambda one: format(one, "f"))
    return pc.cast(value, pa.string())


_PLAIN_SCALE = 6
"""Arrow writes decimals of more places that are near to 0 with an exponent: 0E-7."""


def _each_as_text(value: Any, text_of: Callable[[Any], str]) -> Any:
    if isinstance(value, pa.Scalar):
        return pa.scalar(None if value.as_py() is None else text_of(value.as_py()), pa.string())
    texts = [None if one is None else text_of(one) for one in value.to_pylist()]
    return pa.array(texts, pa.string())


def _texts_of_floats(value: Any) -> Any:
    """Floats as Spark writes them, which is as Java does: 100.0, 1.0E10."""
    kind = np.float32 if pa.types.is_float32(value.type) else np.float64
    return _each_as_text(value, lambda one: _text_of(kind(one)))


def _text_of(number: Any) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    text = np.format_float_scientific(number, trim="0", exp_digits=1)
    return text.replace("e+", "E").replace("e", "E")


_UNITS = {
    "year": "year",
    "yyyy": "year",
    "yy": "year",
    "quarter": "quarter",
    "month": "month",
    "mon": "month",
    "mm": "month",
    "week": "week",
    "day": "day",
    "dd": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "millisecond",
    "microsecond": "microsecond",
}
"""What Arrow calls the units of Spark's `date_trunc`."""


def date_trunc(unit: Any, value: Any, zone: str | None) -> Any:
    """The last moment of a unit that is not after each; without a zone by the value's own clock."""
    name = unit.as_py() if isinstance(unit, pa.Scalar) else None
    if not isinstance(name, str) or name.lower() not in _UNITS:
        raise UsageError(
            f"'date_trunc' takes a unit, {', '.join(map(repr, dict.fromkeys(_UNITS.values())))}, "
            f"and then a time; found {'a column' if name is None else repr(name)}"
        )
    of_arrow: Any = _UNITS[name.lower()]
    if pa.types.is_null(value.type):
        return value
    if pa.types.is_date(value.type):
        value = pc.cast(value, _CLOCK)
    if zone is None and is_zoned(value.type):
        own: Any = value.type
        return pc.cast(date_trunc(unit, value, own.tz), pa.timestamp("us", own.tz))
    if zone is None:
        return pc.floor_temporal(value, unit=of_arrow)
    moments = value if is_zoned(value.type) else moments_at(value, zone)
    clocks = pc.floor_temporal(clock_times(moments, zone), unit=of_arrow)
    is_within_a_day = of_arrow not in ("year", "quarter", "month", "week")
    return moments_at(clocks, zone, moments if is_within_a_day else None)


def _clock_part(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part of the time of day, which a date begins."""

    def part(value: Any) -> Any:
        return function(pc.cast(value, _CLOCK) if pa.types.is_date(value.type) else value)

    return part


PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "dayofweek": lambda value: pc.day_of_week(value, count_from_zero=False, week_start=7),
    "weekday": lambda value: pc.day_of_week(value, count_from_zero=True, week_start=1),
    "weekofyear": pc.iso_week,
    "hour": _clock_part(pc.hour),
    "minute": _clock_part(pc.minute),
    "second": _clock_part(pc.second),
}
"""The parts of dates and times, by the names of Spark's functions."""


def part_of(function: str, value: Any, zone: str | None) -> Any:
    """A part of dates or times; of moments in a zone what its clocks show."""
    if pa.types.is_null(value.type):
        return value
    if zone is not None and is_zoned(value.type):
        value = clock_times(value, zone)
    return PARTS[function](value)
