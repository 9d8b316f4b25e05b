"""Windows of event time: which there are, and how event time relates to timestamps.

A record's *event time* is when it happened, an integer in a unit of the program's. Its
*timestamp* is the dataflow's. They are related by a promise: the timestamp is (or maps
to) event time, and a record may lie up to `lateness` behind it.

- A record is *on time* if its event time is at least that of its timestamp, less
  `lateness`; it may lie ahead as far as it likes. Else it is *late*. So the record and
  its timestamp decide whether it is late, and not the order of arrival.
- A window is complete when no timestamp may come any more of which a record could be
  on time and in the window: when the frontier, less `lateness`, reaches the window's
  end. It is released then, at the timestamp `end + lateness`: later than that of each of
  its records, and the same however many workers there are.

Where timestamps are not event times themselves, a `EventClock` maps them, monotonically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pointstamp.errors import UsageError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sliding:
    """Windows `[k * slide + offset, k * slide + offset + size)`, for every integer k.

    They overlap where `slide` is less than `size`, and leave gaps where it is more; a
    record in a gap is in no window.

    >>> Sliding(10, 5).windows_of(np.array([12, 3]))
    (array([0, 1, 0, 1]), array([10,  0,  5, -5]))
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        _check_positive("a window's size", self.size)
        _check_positive("a window's slide", self.slide)

    def windows_of(self, times: Ints) -> tuple[Ints, Ints]:
        """Each window of each record: (number of the record, start), both int64[m]."""
        latest = (times - self.offset) // self.slide * self.slide + self.offset
        steps = range(-(-self.size // self.slide))
        starts = np.concatenate([latest - step * self.slide for step in steps])
        records = np.tile(np.arange(len(times)), len(steps))
        within = starts + self.size > times[records]
        return records[within], starts[within]


def Tumbling(size: int, offset: int = 0) -> Sliding:  # noqa: N802  (it is a kind of window)
    """Windows `[k * size + offset, (k + 1) * size + offset)`: each record is in one.

    >>> Tumbling(10)
    Sliding(size=10, slide=10, offset=0)
    """
    return Sliding(size, size, offset)


@dataclass(frozen=True)
class Sessions:
    """Records of a key as long as each comes less than `gap` after the one before it.

    A session is `[first, last + gap)`, of event times.
    """

    gap: int

    def __post_init__(self) -> None:
        _check_positive("a session's gap", self.gap)


class Window(NamedTuple):
    """A complete window, of a stream of rows."""

    key: Any
    start: int
    end: int
    """The first event time after it."""
    records: list[Any]
    """In no particular order."""


@dataclass(frozen=True)
class EventClock:
    """How timestamps relate to event times, where they are not the same.

    Attributes
    ----------
    event_time : callable
        The event time (an integer) that a timestamp stands for; monotone.
    timestamp : callable
        The least timestamp that stands for an event time or a later one, so that
        `event_time(t) >= e` if and only if `t >= timestamp(e)`.
    """

    event_time: Callable[[Any], int]
    timestamp: Callable[[int], Any]


IDENTITY_CLOCK = EventClock(lambda timestamp: int(timestamp), lambda event_time: event_time)
"""Timestamps are event times."""


def _check_positive(what: str, value: Any) -> None:
    if type(value) is not int or value <= 0:
        raise UsageError(
            f"{what} is a positive integer, in the unit of event times; found {value!r}"
        )
