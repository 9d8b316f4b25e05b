"""Types of times in one line: integers below zero, durations, dates.

Each is what timely has for the Rust type of that kind: totally ordered, with the least value
that there is as its minimum, and a summary that adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pointstamp.errors import TimestampError
from pointstamp.progress.timestamp import Advance, Timestamp


@dataclass(frozen=True)
class _SignedInt(Timestamp):
    """Signed integers in their usual order; the least is that of 64 bits."""

    name = "SignedInt"
    minimum = -(2**63)
    total = True
    natural = True

    @property
    def identity(self) -> Advance:
        return Advance(0)

    def less_equal(self, a: int, b: int) -> bool:
        return a <= b

    def less_than(self, a: int, b: int) -> bool:
        return a < b

    def check(self, time: Any) -> int:
        if hasattr(time, "__index__") and not isinstance(time, bool):
            found = int(time.__index__())  # NumPy integers, among others
            if found >= self.minimum:
                return found
        raise TimestampError(
            f"a time of type SignedInt is an int, from -2**63 on; found {time!r} "
            f"({type(time).__name__})"
        )

    def summary(self, value: Any) -> Advance:
        if type(value) is int and value >= 0:
            return Advance(value)
        if isinstance(value, Advance) and value.limit is None:
            return value
        raise TimestampError(
            f"a summary for SignedInt is a non-negative int or an Advance without a limit; found "
            f"{value!r}"
        )

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Later:
    """Adds a duration to a time; what the type of times cannot express never arrives.

    >>> Later(timedelta(hours=1)).results_in(datetime(2024, 1, 1, 23))
    datetime.datetime(2024, 1, 2, 0, 0)
    """

    by: timedelta

    @property
    def advances(self) -> bool:
        """Whether `by` is positive."""
        return self.by > timedelta(0)

    def results_in(self, time: Any) -> Any | None:
        """`time + by`, or None after the last time that there is."""
        try:
            return time + self.by
        except OverflowError:
            return None

    def followed_by(self, other: Later) -> Later | None:
        """The sum."""
        try:
            return Later(self.by + other.by)
        except OverflowError:
            return None

    def less_equal(self, other: Later) -> bool:
        """Advances no more."""
        return self.by <= other.by


@dataclass(frozen=True)
class _Calendar(Timestamp):
    """Times that a `timedelta` can be added to, from `minimum` on."""

    name: str
    minimum: Any
    total = True
    natural = True

    @property
    def identity(self) -> Later:
        return Later(timedelta(0))

    def less_equal(self, a: Any, b: Any) -> bool:
        return bool(a <= b)

    def check(self, time: Any) -> Any:
        if isinstance(time, type(self.minimum)):
            found = self._in_zone(time)
            if found is not None and found >= self.minimum:
                return found
        zone = "" if type(self.minimum) is timedelta else f" with tzinfo {self.minimum.tzinfo}"
        raise TimestampError(
            f"a time of type {self.name} is a {type(self.minimum).__name__}{zone}, from "
            f"{self.minimum} on; found {time!r} ({type(time).__name__})"
        )

    def summary(self, value: Any) -> Later:
        if isinstance(value, Later):
            value = value.by
        if value == 0 and type(value) is int:
            value = timedelta(0)
        if isinstance(value, timedelta) and value >= timedelta(0):
            return Later(value)
        raise TimestampError(
            f"a summary for {self.name} is a timedelta that is not negative; found {value!r}"
        )

    def _in_zone(self, time: Any) -> Any:
        """The same moment in the zone of the minimum; None if it is in none, or has to be."""
        if isinstance(time, timedelta):
            return time
        if self.minimum.tzinfo is None:
            return time if time.tzinfo is None else None
        return None if time.tzinfo is None else time.astimezone(self.minimum.tzinfo)

    def __repr__(self) -> str:
        return self.name


SignedInt = _SignedInt()
Duration = _Calendar("Duration", timedelta(0))
DateTime = _Calendar("DateTime", datetime(1, 1, 1))  # noqa: DTZ001  (it is that of no zone)
DateTimeUTC = _Calendar("DateTimeUTC", datetime.min.replace(tzinfo=UTC))
