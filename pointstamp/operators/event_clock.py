"""Event clocks: how far event time has come, and so which windows are complete.

A record may lie up to `lateness` behind the clock, and as far ahead of it as it likes. What lies
further behind is *late*, and is in no window. A window is complete when the clock, less
`lateness`, reaches its end: then no record that is on time can be in it any more. So the same
number says which records are late and when windows are released, and no record is lost between
the two. There are two clocks.

By timestamps (`TimestampClock`, and where windows are of integers the default): the timestamp
of the dataflow is, or maps to, event time. A window is released at the timestamp that stands
for `end + lateness`.

By records (`EventClock`, and where windows are of timedelta the default): the clock is at the
largest event time of all records of the epochs before, of all workers. It moves when an epoch is
complete, and not when a record comes, so that answers do not depend on the number of workers or
on timing; within an epoch no record makes another one late. A window is released at the
epoch that moved the clock past it, and what is open when the input ends at the last epoch that was
seen to begin: of several that have no records, any, as they are not held back for a record that may
never come. Of several streams the slowest counts.

A clock by records stands still while there are none. With `idle_after` the system's clock then
moves it on, from where it was when the last record came.

Sources: Bytewax `operators/windowing.py`, its `EventClock`; Flink `WatermarkStrategy` with its
`withIdleness`. Their clocks move with each record.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from pointstamp.containers import hash_key, kind_of
from pointstamp.containers.event_times import (
    INTEGER,
    EventTimes,
    from_number,
    kind_of_time,
    to_number,
)
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Pipeline
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError, UsageError
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

_US_PER_S = 1_000_000


@dataclass(frozen=True)
class TimestampClock:
    """An event-time clock that follows timestamps: converts timestamps to event times.

    Attributes
    ----------
    event_time : callable
        The event time that a timestamp stands for; monotone. It is an integer, or, for windows
        of timedelta, a `datetime` or a `timedelta`.
    timestamp : callable
        The least timestamp that stands for an event time or a later one, so that
        `event_time(t) >= e` if and only if `t >= timestamp(e)`.
    """

    event_time: Callable[[Any], Any]
    timestamp: Callable[[Any], Any]


@dataclass(frozen=True)
class EventClock:
    """An event-time clock advanced by records, and optionally by the system's clock while idle.

    Attributes
    ----------
    idle_after : datetime.timedelta, optional
        When no record has come for so long, the clock goes on as the system's does, from where
        it was when the last one came. So does that of each side of a join, whose clock is at the
        earlier of the two; a side that has had no record at all is left out after that time. For
        windows of timedelta. Where the system's clock has moved it on, which records are late
        depends on when they come, as it must.

    Raises
    ------
    UsageError
        If `idle_after` is no positive timedelta.
    """

    idle_after: datetime.timedelta | None = None

    def __post_init__(self) -> None:
        after = self.idle_after
        if after is not None and (
            not isinstance(after, datetime.timedelta) or after <= datetime.timedelta()
        ):
            raise UsageError(f"idle_after is a positive timedelta; found {after!r}")


IDENTITY_CLOCK = TimestampClock(lambda timestamp: timestamp, lambda event_time: event_time)
"""Timestamps are event times."""


class NumberedClock:
    """A `TimestampClock` of event times as engines count them.

    >>> clock = NumberedClock(IDENTITY_CLOCK, "an example", is_calendar=False)
    >>> clock.event_time(3), clock.timestamp(3)
    (3, 3)
    """

    def __init__(self, clock: TimestampClock, operator: str, *, is_calendar: bool) -> None:
        self._clock = clock
        self._operator = operator
        self._is_calendar = is_calendar
        self.kind: str | None = None
        """Of the event times of the clock."""

    def event_time(self, timestamp: Any) -> int:
        """The event time that a timestamp stands for."""
        found = self._clock.event_time(timestamp)
        kind = kind_of_time(found)
        if kind is None or (kind == INTEGER) == self._is_calendar:
            wanted = "datetimes or timedeltas" if self._is_calendar else "integers"
            raise DataError(
                f"operator {self._operator!r} has windows of {wanted}, and its clock gave "
                f"{found!r} as the event time of {timestamp!r}: give one that gives {wanted}"
            )
        self.kind = kind
        return to_number(found)

    def timestamp(self, number: int) -> Any:
        """The least timestamp for that event time or a later one."""
        try:
            event_time = from_number(number, self.kind)
        except OverflowError as error:
            raise DataError(
                f"operator {self._operator!r} has a window that ends, its lateness included, where "
                f"{self.kind} have no times any more, so that no timestamp stands for its end: "
                "drop such records first, or have the records advance the clock (ps.EventClock())"
            ) from error
        return self._clock.timestamp(event_time)


class Watermark:
    """How far a clock by records has come; numbers in, numbers out.

    Parameters
    ----------
    n_streams : int
        Each has a clock, which is at its largest event time; together they are at the least.
    idle_after_s : float, optional
        See `EventClock`; event times are in microseconds then.

    >>> watermark = Watermark(1, idle_after_s=2.0)
    >>> watermark.value(now_s=0.0)
    >>> watermark.advance(0, 5_000_000, now_s=10.0)
    >>> watermark.value(now_s=11.9), watermark.value(now_s=12.5)
    (5000000, 7500000)
    """

    def __init__(self, n_streams: int, idle_after_s: float | None = None) -> None:
        self._clocks: list[_StreamClock | None] = [None] * n_streams
        self._idle_after_s = idle_after_s
        self._value: int | None = None
        self._first_s = 0.0
        """When the first record came."""

    def advance(self, stream: int, event_time: int, now_s: float) -> None:
        """Records of a complete epoch came, the latest of them of `event_time`."""
        if not any(self._clocks):
            self._first_s = now_s
        self._value = self.value(now_s)
        known = self._clocks[stream]
        # Not back to where it was before the system's clock moved it.
        at = event_time if known is None else max(event_time, known.value(now_s))
        self._clocks[stream] = _StreamClock(at, now_s, self._idle_after_s)
        self._value = self.value(now_s)

    def value(self, now_s: float) -> int | None:
        """Where the clock is; None before all streams have had records, or are idle."""
        known = [clock for clock in self._clocks if clock is not None]
        if not known or (len(known) < len(self._clocks) and self._seconds_to_idle(now_s) > 0):
            return self._value
        least = min(clock.value(now_s) for clock in known)
        return least if self._value is None else max(self._value, least)

    def seconds_until(self, event_time: int, now_s: float) -> float | None:
        """How long until the system's clock brings it to `event_time`; None: it does not."""
        if self._idle_after_s is None or not any(self._clocks):
            return None
        seconds = (
            self._seconds_to_idle(now_s)
            if clock is None
            else clock.seconds_until(event_time, now_s)
            for clock in self._clocks
        )
        return max(0.0, *seconds)

    def _seconds_to_idle(self, now_s: float) -> float:
        """How long one that has had no record is waited for."""
        if self._idle_after_s is None:
            return math.inf
        return self._first_s + self._idle_after_s - now_s


@dataclass(frozen=True)
class _StreamClock:
    """How far the event time of one stream has come."""

    at: int
    """When its last record came, which was at `last_s`."""
    last_s: float
    idle_after_s: float | None

    def value(self, now_s: float) -> int:
        """Where it is; it goes on by itself when the stream has been silent for long enough."""
        silent_s = now_s - self.last_s
        if self.idle_after_s is None or silent_s < self.idle_after_s:
            return self.at
        return self.at + int(silent_s * _US_PER_S)

    def seconds_until(self, event_time: int, now_s: float) -> float:
        """How long until it is there if no record comes; not more than 0 if it is there."""
        if self.idle_after_s is None or self.at >= event_time:
            return 0.0
        # One microsecond more, as what is measured in seconds is rounded.
        distance_s = (event_time - self.at + 1) / _US_PER_S
        return self.last_s + max(distance_s, self.idle_after_s) - now_s


def largest_event_times(stream: StreamCore[Any], times: EventTimes, name: str) -> Stream[Any]:
    """The largest event time of the records of each time, as often as a worker has some.

    Where the dataflow is durable, what was the largest before it was restarted comes first.
    """
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, Pipeline(), Interest.NEVER)
    is_durable = builder.states.durable_state is not None
    result: Stream[Any] = builder.new_output(initial=is_durable)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        largest = info.state("largest")
        # One that comes back to this worker: of two values that a key has either would count.
        own = next(key for key in count() if hash_key(key) % info.peers == info.index)

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            if capabilities:
                with capabilities.pop() as first:
                    outputs[0].session(first).give_many(list(largest.values()))
            found: dict[Any, int] = {}
            for at, batch in inputs[0]:
                if kind_of(batch).length(batch):
                    last = int(times.read(batch).max())
                    found[at.time] = max(last, found.get(at.time, last))
            for time, last in found.items():
                outputs[0].at(time).give(last)
                if is_durable:
                    largest[own] = max(last, largest.get(own, last))

        return logic

    builder.build(make_logic)
    return result
