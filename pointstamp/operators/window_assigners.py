"""Window assigners: in which windows of event time a record is.

A record's *event time* is when it happened: an integer in a unit of the program's, or a time of
the calendar (`event_times.py`). The sizes of windows are of the same scale: integers, or
`timedelta`s. Windows of a timedelta begin at whole multiples of it from 1970 on, in UTC
where times have a zone.

When a window is complete, and which records are late, is said in `event_clock.py`.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from pointstamp.containers.event_times import MICROSECOND, Ints
from pointstamp.errors import UsageError

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

Span = int | datetime.timedelta
"""A length of event time."""


@dataclass(frozen=True)
class Sliding:
    """Sliding windows `[k * slide + offset, k * slide + offset + size)`, for every integer k.

    They overlap where `slide` is less than `size`. Where it is more there are gaps between
    them, and a record in a gap is in no window and is not sent: that is sampling, as Flink
    has it, and has to be asked for with `has_gaps=True`.

    Raises
    ------
    UsageError
        If sizes are not positive, or integers and timedeltas are mixed, or `slide` is more
        than `size` and gaps were not asked for.

    >>> Sliding(10, 5).windows_of(np.array([12, 3]))
    (array([0, 1, 0, 1]), array([10,  0,  5, -5]))
    """

    size: Span
    slide: Span
    offset: Span = 0
    has_gaps: bool = False

    def __post_init__(self) -> None:
        is_calendar = _check_positive("a window's size", self.size)
        if _check_positive("a window's slide", self.slide) != is_calendar:
            raise _mixed("a window's size and its slide", self.size, self.slide)
        if type(self.offset) is not int and not isinstance(self.offset, datetime.timedelta):
            raise UsageError(
                f"a window's offset is an integer or a timedelta; found {self.offset!r}"
            )
        if self.offset and isinstance(self.offset, datetime.timedelta) != is_calendar:
            raise _mixed("a window's size and its offset", self.size, self.offset)
        if span_number(self.slide) > span_number(self.size) and not self.has_gaps:
            raise UsageError(
                f"windows of size {self.size} every {self.slide} leave gaps, and records between "
                "them would be in no window; if that is wanted, as a sample, say has_gaps=True"
            )
        _check_width(self, self.size, self.slide, self.offset)

    def __repr__(self) -> str:
        is_tumbling = self.slide == self.size and not self.has_gaps
        given = {"size": self.size}
        if not is_tumbling:
            given["slide"] = self.slide
        if self.offset:
            given["offset"] = self.offset
        if self.has_gaps:
            given["has_gaps"] = True
        said = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{'Tumbling' if is_tumbling else 'Sliding'}({said})"

    @property
    def is_calendar(self) -> bool:
        """Whether sizes are timedeltas."""
        return isinstance(self.size, datetime.timedelta)

    @property
    def resolution(self) -> int:
        """What all bounds are multiples of."""
        return math.gcd(*map(span_number, (self.size, self.slide, self.offset)))

    def outermost(self, first: int, last: int) -> tuple[int, int]:
        """The first start and the last end of the windows of all times from `first` to `last`.

        >>> Sliding(10, 5).outermost(3, 12)
        (-5, 20)
        """
        size, slide, offset = map(span_number, (self.size, self.slide, self.offset))
        start = ((first - offset - size) // slide + 1) * slide + offset
        return start, (last - offset) // slide * slide + offset + size

    def windows_of(self, times: Ints) -> tuple[Ints, Ints]:
        """Each window of each record: (number of the record, start), both int64[m]."""
        size, slide, offset = map(span_number, (self.size, self.slide, self.offset))
        latest = times - (times % slide - offset) % slide  # nothing of which is too large
        steps = range(-(-size // slide))
        starts = np.concatenate([latest - step * slide for step in steps])
        records = np.tile(np.arange(len(times)), len(steps))
        within = starts + size > times[records]
        return records[within], starts[within]


def Tumbling(size: Span, offset: Span = 0) -> Sliding:  # noqa: N802  (it is a kind of window)
    """Tumbling windows `[k * size + offset, (k + 1) * size + offset)`: each record is in one.

    >>> Tumbling(10), Sliding(10, 5, offset=2)
    (Tumbling(size=10), Sliding(size=10, slide=5, offset=2))
    """
    return Sliding(size, size, offset)


@dataclass(frozen=True)
class Sessions:
    """Session windows: records of a key, each less than `gap` after the one before it.

    A session is `[first, last + gap)`, of event times.
    """

    gap: Span

    def __post_init__(self) -> None:
        _check_positive("a session's gap", self.gap)
        _check_width(self, self.gap)

    @property
    def is_calendar(self) -> bool:
        """Whether the gap is a timedelta."""
        return isinstance(self.gap, datetime.timedelta)

    @property
    def resolution(self) -> int:
        """What all lengths are multiples of."""
        return span_number(self.gap)

    def outermost(self, first: int, last: int) -> tuple[int, int]:
        """As of `Sliding`."""
        return first, last + span_number(self.gap)


class Window(NamedTuple, Generic[K, R]):
    """A complete window of a stream of rows, with its records."""

    key: K
    start: Any
    end: Any
    """The first event time after it."""
    records: list[R]
    """In no particular order."""


class WindowResult(NamedTuple, Generic[K, V]):
    """The result of a complete window for one key, with its `value`."""

    key: K
    start: Any
    end: Any
    """The first event time after it."""
    value: V


def span_number(span: Span) -> int:
    """A length of event time as engines count it; see `event_times`.

    >>> span_number(5), span_number(datetime.timedelta(seconds=5))
    (5, 5000000)
    """
    return span // MICROSECOND if isinstance(span, datetime.timedelta) else span


def check_lateness(lateness: Any, windows: Sliding | Sessions) -> int:
    """`lateness` as a number.

    Raises
    ------
    UsageError
        If it is negative, or not of the scale of the windows.
    """
    is_timedelta = isinstance(lateness, datetime.timedelta)
    if (type(lateness) is not int and not is_timedelta) or span_number(lateness) < 0:
        raise UsageError(f"lateness is an integer or a timedelta of at least 0; found {lateness!r}")
    if lateness and is_timedelta != windows.is_calendar:
        raise _mixed("windows and lateness", windows, lateness)
    return span_number(lateness)


def _check_width(windows: Any, *spans: Span) -> None:
    if any(abs(span_number(span)) >= 2**62 for span in spans):
        raise UsageError(f"{windows} is too wide for event times, which are counted in 63 bits")


def _check_positive(what: str, value: Any) -> bool:
    """Whether a length is a timedelta."""
    is_timedelta = isinstance(value, datetime.timedelta)
    if (type(value) is not int and not is_timedelta) or span_number(value) <= 0:
        raise UsageError(
            f"{what} is a positive integer, in the unit of event times, or a positive timedelta, "
            f"such as timedelta(seconds=10); found {value!r}"
        )
    return is_timedelta


def _mixed(what: str, one: Any, other: Any) -> UsageError:
    return UsageError(
        f"{what} are to be all integers or all timedeltas; found {one!r} and {other!r}"
    )
