"""Times that are a finite lattice, on paths that some times never pass.

The times are the subsets of three members, by inclusion. A path may add members, and
may be closed to times that have some already: a loop that adds a member to those that
lack it advances each time that passes, and passes each only so often. So a loop may go
without a limit, and what the frontiers say is a matter of what never arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointstamp.errors import TimestampError
from pointstamp.progress.timestamp import SAME, Refinement, Stay, Timestamp, Unit

MEMBERS = range(3)


@dataclass(frozen=True)
class Join:
    """Adds the members of `mask` to the times that have none of those in `barred`.

    >>> Join(0b010, barred=0b001).results_in(0b100)
    6
    >>> Join(0b010, barred=0b001).results_in(0b101) is None
    True
    """

    mask: int
    barred: int = 0

    @property
    def advances(self) -> bool:
        """Whether a member that is added was lacking, in every time that passes."""
        return bool(self.mask & self.barred)

    def results_in(self, time: int) -> int | None:
        """The union, or None if the way is barred."""
        return None if time & self.barred else time | self.mask

    def followed_by(self, other: Join) -> Join | None:
        """Both unions; None if this adds what bars the other."""
        if self.mask & other.barred:
            return None
        return Join(self.mask | other.mask, self.barred | other.barred)

    def less_equal(self, other: Join) -> bool:
        """Adds no more, and lets every time through that `other` does."""
        return _is_within(self.mask, other.mask) and _is_within(self.barred, other.barred)


@dataclass(frozen=True)
class Subsets(Timestamp):
    """Subsets of {0, 1, 2}, as bit masks, by inclusion; inside a scope without times, too."""

    name = "Subsets"
    minimum = 0

    @property
    def identity(self) -> Join:
        """Adds nothing, and bars nothing."""
        return Join(0)

    def less_equal(self, a: int, b: int) -> bool:
        """Inclusion."""
        return _is_within(a, b)

    def check(self, time: Any) -> int:
        """One of the eight."""
        if type(time) is int and time in range(8):
            return time
        raise TimestampError(f"a time of type Subsets is an int in range(8); found {time!r}")

    def summary(self, value: Any) -> Join:
        """A `Join`, or the mask of one that bars nothing."""
        return value if isinstance(value, Join) else Join(value)

    def refines(self, outer: Timestamp) -> Refinement | None:
        """Itself, as a region; and a scope without times."""
        if outer == Unit:
            return InNoTime()
        return SAME if outer == self else None


@dataclass(frozen=True)
class InNoTime:
    """Subsets inside a scope whose one time is `()`."""

    def to_inner(self, time: tuple[()]) -> int:
        """The empty set."""
        return 0

    def to_outer(self, time: int) -> tuple[()]:
        """The one time."""
        return ()

    def summarize(self, summary: Any) -> Stay:
        """Nothing advances outside."""
        return Stay()


def once(member: int) -> Join:
    """Adds a member to the times that lack it."""
    return Join(1 << member, barred=1 << member)


def _is_within(a: int, b: int) -> bool:
    return a & b == a
