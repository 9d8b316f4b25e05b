"""A timestamp type as a user may write it: pairs of event time and processing time.

A partial order whose times Python itself cannot compare, with a key and summaries
of its own. Random dataflows run on it, so that nothing relies on integers or tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointstamp.errors import TimestampError
from pointstamp.progress.timestamp import Timestamp


@dataclass(frozen=True)
class Moment:
    """A time of `EventProcessing`; Python cannot compare two of them by `<`."""

    event: int
    processing: int


@dataclass(frozen=True)
class Shift:
    """Advances a moment in both coordinates."""

    event: int
    processing: int

    @property
    def advances(self) -> bool:
        """Whether either coordinate does."""
        return self.event + self.processing > 0

    def results_in(self, time: Moment) -> Moment:
        """The moment so much later."""
        return Moment(time.event + self.event, time.processing + self.processing)

    def followed_by(self, other: Shift) -> Shift:
        """The sum."""
        return Shift(self.event + other.event, self.processing + other.processing)

    def less_equal(self, other: Shift) -> bool:
        """In both coordinates."""
        return self.event <= other.event and self.processing <= other.processing


@dataclass(frozen=True)
class EventProcessing(Timestamp):
    """Pairs of event time and processing time, a partial order of the user's own."""

    name = "EventProcessing"
    minimum = Moment(0, 0)

    @property
    def identity(self) -> Shift:
        """No shift."""
        return Shift(0, 0)

    def less_equal(self, a: Moment, b: Moment) -> bool:
        """In both coordinates."""
        return a.event <= b.event and a.processing <= b.processing

    def key(self, time: Moment) -> tuple[int, int]:
        """By the sum, then the event time."""
        return (time.event + time.processing, time.event)

    def join(self, a: Moment, b: Moment) -> Moment:
        """The later one in both coordinates."""
        return Moment(max(a.event, b.event), max(a.processing, b.processing))

    def check(self, time: Any) -> Moment:
        """Moments only."""
        if isinstance(time, Moment):
            return time
        raise TimestampError(f"a time of type EventProcessing is a Moment; found {time!r}")

    def summary(self, value: Any) -> Shift:
        """A shift, or an int: of processing time."""
        return value if isinstance(value, Shift) else Shift(0, value)
