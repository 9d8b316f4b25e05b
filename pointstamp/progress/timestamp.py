"""Timestamps, and the summaries of how they advance along a path.

A time is a plain immutable value (an `int`, a tuple). What it means is said by a
*timestamp type*: an object that knows the least time, the partial order, a total
order that extends it, and how to read a summary. So times stay cheap to make, to
compare and to send, and users add a type of their own by writing one class.

Laws of a timestamp type `T`:

- `less_equal` is a partial order with `minimum` below everything;
- `less_equal(a, b)` and `a != b` imply `key(a) < key(b)`; different times have
  different keys.

Laws of a summary `s`:

- it never goes back: `less_equal(t, s.results_in(t))`, or the result is None,
  which says that `t` never arrives;
- it is monotone: `t <= u` implies `s(t) <= s(u)`, where None counts as the end of
  time (if `s(t)` is None then so is `s(u)`);
- `a.followed_by(b)` does first `a`, then `b`; None says that nothing arrives;
- `s.advances` only if `s(t)` is None or strictly after `t`, for all `t`;
- `a.less_equal(b)` only if `a(t) <= b(t)` for all `t`; and `a.less_equal(a)`, and
  `a.less_equal(a.followed_by(b))`, so that around a loop nothing is new for ever.

Times and summaries are plain values: equal to their copies, with equal hashes where
they are keys. `pointstamp.testing.check_timestamp` looks for values that break a law.

Source: timely-dataflow `progress/timestamp.rs` and `order.rs`. That results and
compositions may be missing is theirs too; bounded loops are built on it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pointstamp.errors import BuildError, TimestampError


class Summary(Protocol):
    """How a time advances along a path; a plain value, compared by value."""

    @property
    def advances(self) -> bool:
        """Whether every time that arrives is strictly later than it was."""

    def results_in(self, time: Any) -> Any | None:
        """The time at the end of the path, or None if it never arrives."""

    def followed_by(self, other: Any) -> Summary | None:
        """This path and then `other`, or None if nothing arrives."""

    def less_equal(self, other: Any) -> bool:
        """Whether this path is, for every time, at least as early as `other`."""


class Refinement(Protocol):
    """How the times of a scope relate to those of the scope around it.

    `to_outer(to_inner(t)) == t`, `to_inner(to_outer(u)) <= u`, both monotone, and
    `to_outer(s(u)) == summarize(s)(to_outer(u))`.
    """

    def to_inner(self, time: Any) -> Any:
        """The time at which something of `time` enters."""

    def to_outer(self, time: Any) -> Any:
        """The time at which something of `time` leaves."""

    def summarize(self, summary: Any) -> Summary:
        """What an inner path does to the outer time."""


class Timestamp(Protocol):
    """A type of times. Subclass it to write your own; see the laws above."""

    name: str
    minimum: Any
    total: bool = False
    """Whether any two times are ordered."""
    natural: bool = False
    """Whether Python's own `<` on times is the total order (`key` is not called)."""
    integers: bool = False
    """Whether times are integers in their order, none below zero."""
    pairs: bool = False
    """Whether times are pairs of integers, ordered in both at once."""

    @property
    def identity(self) -> Summary:
        """The summary of a path that leaves times as they are."""

    def less_equal(self, a: Any, b: Any) -> bool:
        """Whether `a` comes before or at `b` in the partial order."""

    def less_than(self, a: Any, b: Any) -> bool:
        """Whether `a` comes strictly before `b`."""
        return bool(a != b) and self.less_equal(a, b)

    def key(self, time: Any) -> Any:
        """A sort key whose order extends the partial order."""
        return time

    def check(self, time: Any) -> Any:
        """Return `time` if it is one of this type, else raise `TimestampError`."""

    def summary(self, value: Any) -> Summary:
        """Read `value` (a summary, or a short form of one) as a summary."""

    def bounded(self, summary: Any, limit: int) -> Summary:
        """`summary`, but times that would reach `limit` never arrive."""
        raise TimestampError(f"times of type {self!r} have no limit; {limit} was asked for")

    def join(self, a: Any, b: Any) -> Any:
        """The least time that is at or after both; a type that is not a line says which."""
        if self.less_equal(a, b):
            return b
        if self.less_equal(b, a):
            return a
        raise TimestampError(
            f"times of type {self!r} have no join() that says which is the least at or after both "
            f"{a!r} and {b!r}"
        )

    def refines(self, outer: Timestamp) -> Refinement | None:
        """How a scope with this type sits in one with `outer`; None if it cannot."""
        return SAME if self == outer else None


@dataclass(frozen=True)
class Same:
    """The refinement of a region, whose times are those of its parent."""

    def to_inner(self, time: Any) -> Any:
        """Return `time`."""
        return time

    def to_outer(self, time: Any) -> Any:
        """Return `time`."""
        return time

    def summarize(self, summary: Any) -> Summary:
        """Return `summary`."""
        return summary  # type: ignore[no-any-return]  # a summary by contract


SAME = Same()


@dataclass(frozen=True)
class Advance:
    """Adds `by` to an integer time; times that would reach `limit` never arrive.

    >>> Advance(1, limit=3).results_in(1)
    2
    >>> Advance(1, limit=3).results_in(2) is None
    True
    >>> Advance(2).followed_by(Advance(3))
    Advance(by=5, limit=None)
    """

    by: int
    limit: int | None = None

    @property
    def advances(self) -> bool:
        """Whether `by` is positive."""
        return self.by > 0

    @property
    def shift(self) -> int | None:
        """What `results_in` adds, where that is all it does."""
        return self.by if self.limit is None else None

    def results_in(self, time: int) -> int | None:
        """`time + by`, or None from `limit` on."""
        result = time + self.by
        return result if self.limit is None or result < self.limit else None

    def followed_by(self, other: Advance) -> Advance | None:
        """The sum; the tighter of the two limits, both seen from the end."""
        by = self.by + other.by
        ends = [other.limit] if other.limit is not None else []
        if self.limit is not None:
            ends.append(self.limit + other.by)
        limit = min(ends, default=None)
        # Times start at 0: what not even 0 survives, nothing does.
        return None if limit is not None and by >= limit else Advance(by, limit)

    def less_equal(self, other: Advance) -> bool:
        """Advances no more, and lets every time through that `other` does."""
        if self.by > other.by:
            return False
        if self.limit is None:
            return True
        return other.limit is not None and other.limit - other.by <= self.limit - self.by


@dataclass(frozen=True)
class _Int(Timestamp):
    """Non-negative integers, in their order: epochs and rounds."""

    name = "Int"
    minimum = 0
    total = True
    natural = True
    integers = True

    @property
    def identity(self) -> Advance:
        return _STAY

    def less_equal(self, a: int, b: int) -> bool:
        return a <= b

    def less_than(self, a: int, b: int) -> bool:
        return a < b

    def check(self, time: Any) -> int:
        if type(time) is int and time >= 0:
            return time
        if hasattr(time, "__index__") and not isinstance(time, bool) and time >= 0:
            return int(time.__index__())  # NumPy integers, among others
        raise TimestampError(
            f"a time of type Int is a non-negative int; found {time!r} ({type(time).__name__})"
        )

    def summary(self, value: Any) -> Advance:
        if isinstance(value, Advance):
            return value
        if type(value) is int and value >= 0:
            return Advance(value)
        raise TimestampError(
            f"a summary for Int is a non-negative int or an Advance; found {value!r}"
        )

    def bounded(self, summary: Advance, limit: int) -> Advance:
        return Advance(summary.by, limit)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Stay:
    """The one summary of `Unit`: nothing ever advances."""

    @property
    def advances(self) -> bool:
        """False."""
        return False

    def results_in(self, time: Any) -> Any:
        """Return `time`."""
        return time

    def followed_by(self, other: Stay) -> Stay:
        """Return `other`."""
        return other

    def less_equal(self, other: Stay) -> bool:
        """True."""
        return True


@dataclass(frozen=True)
class _Unit(Timestamp):
    """The type with one time, `()`: complete or not."""

    name = "Unit"
    minimum = ()
    total = True
    natural = True

    @property
    def identity(self) -> Stay:
        return Stay()

    def less_equal(self, a: tuple[()], b: tuple[()]) -> bool:
        return True

    def check(self, time: Any) -> tuple[()]:
        if time == ():
            return ()
        raise TimestampError(f"the only time of type Unit is (); found {time!r}")

    def summary(self, value: Any) -> Stay:
        if value in ((), 0, Stay()):
            return Stay()
        raise TimestampError(f"the only summary for Unit is (); found {value!r}")

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Both:
    """Advances the two coordinates of a product, each by its own summary.

    >>> Both(Advance(0), Advance(1)).results_in((3, 4))
    (3, 5)
    """

    outer: Any
    inner: Any

    @property
    def shift(self) -> tuple[int, int, int | None] | None:
        """What `results_in` adds to a pair of integers, and below what the second must stay.

        None if it does something else.
        """
        outer, inner = self.outer, self.inner
        if not isinstance(outer, Advance) or not isinstance(inner, Advance) or outer.shift is None:
            return None
        return (outer.by, inner.by, inner.limit)

    @property
    def advances(self) -> bool:
        """Whether either coordinate strictly advances."""
        return bool(self.outer.advances or self.inner.advances)

    def results_in(self, time: tuple[Any, Any]) -> tuple[Any, Any] | None:
        """Both results, or None if either never arrives."""
        outer = self.outer.results_in(time[0])
        if outer is None:
            return None
        inner = self.inner.results_in(time[1])
        return None if inner is None else (outer, inner)

    def followed_by(self, other: Both) -> Both | None:
        """Coordinate by coordinate."""
        outer = self.outer.followed_by(other.outer)
        inner = self.inner.followed_by(other.inner)
        return None if outer is None or inner is None else Both(outer, inner)

    def less_equal(self, other: Both) -> bool:
        """In both coordinates."""
        return bool(self.outer.less_equal(other.outer) and self.inner.less_equal(other.inner))


@dataclass(frozen=True)
class Product(Timestamp):
    """Pairs `(outer, inner)`, ordered in both coordinates at once.

    The times of a scope nested in one of type `outer`: `(epoch, round)`.

    >>> nested = Product(Int, Int)
    >>> nested.less_equal((1, 2), (2, 2)), nested.less_equal((1, 2), (2, 1))
    (True, False)
    >>> nested.summary(1).results_in((7, 0))
    (7, 1)
    """

    outer: Any
    inner: Any

    total = False

    def __post_init__(self) -> None:
        for part in (self.outer, self.inner):
            if isinstance(part, type) or not hasattr(part, "less_equal"):
                raise BuildError(
                    f"a Product is of two types of times, as ps.Product(ps.Int, ps.Int) is; "
                    f"{part!r} is none"
                )

    @property
    def name(self) -> str:  # type: ignore[override]  # computed, not settable
        """How it was written."""
        return f"Product({self.outer.name}, {self.inner.name})"

    @property
    def minimum(self) -> tuple[Any, Any]:
        """The pair of the two minima."""
        return (self.outer.minimum, self.inner.minimum)

    @property
    def natural(self) -> bool:  # type: ignore[override]  # computed
        """Tuples compare by first coordinate first, which extends the partial order."""
        return bool(self.outer.natural and self.inner.natural)

    @property
    def pairs(self) -> bool:  # type: ignore[override]  # computed
        """So it is for a round in an epoch."""
        return bool(self.outer == Int and self.inner == Int)

    @property
    def identity(self) -> Both:
        """Neither coordinate advances."""
        return Both(self.outer.identity, self.inner.identity)

    def less_equal(self, a: Any, b: Any) -> bool:
        """In both coordinates."""
        return bool(self.outer.less_equal(a[0], b[0]) and self.inner.less_equal(a[1], b[1]))

    def key(self, time: Any) -> Any:
        """By the outer coordinate, then the inner one."""
        return (self.outer.key(time[0]), self.inner.key(time[1]))

    def check(self, time: Any) -> tuple[Any, Any]:
        """A pair of times of the two types."""
        if isinstance(time, tuple) and len(time) == 2:
            return (self.outer.check(time[0]), self.inner.check(time[1]))
        raise TimestampError(f"a time of type {self.name} is a pair; found {time!r}")

    def summary(self, value: Any) -> Both:
        """A `Both`, a pair of summaries, or a summary of the inner coordinate alone."""
        if isinstance(value, Both):
            return value
        if isinstance(value, tuple) and len(value) == 2:
            return Both(self.outer.summary(value[0]), self.inner.summary(value[1]))
        return Both(self.outer.identity, self.inner.summary(value))

    def bounded(self, summary: Both, limit: int) -> Both:
        """The inner coordinate is the one that has a limit."""
        return Both(summary.outer, self.inner.bounded(summary.inner, limit))

    def join(self, a: Any, b: Any) -> tuple[Any, Any]:
        """In both coordinates."""
        return (self.outer.join(a[0], b[0]), self.inner.join(a[1], b[1]))

    def refines(self, outer: Timestamp) -> Refinement | None:
        """A product sits in its outer type, and (as a region) in itself."""
        if self == outer:
            return SAME
        return Nested(self.inner.minimum) if self.outer == outer else None

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Nested:
    """The refinement of a product in its outer type."""

    start: Any

    def to_inner(self, time: Any) -> tuple[Any, Any]:
        """Enter at the least inner coordinate."""
        return (time, self.start)

    def to_outer(self, time: Any) -> Any:
        """Forget the inner coordinate."""
        return time[0]

    def summarize(self, summary: Any) -> Summary:
        """What happens to the outer coordinate."""
        return summary.outer  # type: ignore[no-any-return]  # a Both by contract


@dataclass(frozen=True)
class Outside:
    """A path out of a scope, around in the scope outside, and back in.

    To a scope its outputs may lead back to its inputs. Such a path forgets what
    of the time is the scope's own: `(epoch, round)` leaves as `epoch`, advances
    outside, and enters at round 0. So unlike other summaries it may give a
    time that is not after the one it was given. The scope outside may itself have
    paths outside, so `outer` may be an `Outside`, of the scope around that.
    """

    refinement: Any
    outer: Any
    inner: Any

    @property
    def advances(self) -> bool:
        """Whether the outer time advances; the path outside always does."""
        return bool(self.outer.advances)

    def results_in(self, time: Any) -> Any | None:
        """Leave, advance outside, enter, advance inside."""
        outer = self.outer.results_in(self.refinement.to_outer(time))
        return None if outer is None else self.inner.results_in(self.refinement.to_inner(outer))

    def followed_by(self, other: Any) -> Outside | None:
        """Any path that goes outside at least once forgets the same things."""
        if not isinstance(other, Outside):
            return self._then(self.outer, self.inner.followed_by(other))
        around = followed_by(self.outer, self.refinement.summarize(self.inner))
        return self._then(around and followed_by(around, other.outer), other.inner)

    def preceded_by(self, inner: Any) -> Outside | None:
        """First a path inside, then this one."""
        return self._then(followed_by(self.refinement.summarize(inner), self.outer), self.inner)

    def _then(self, outer: Any, inner: Any) -> Outside | None:
        return None if outer is None or inner is None else Outside(self.refinement, outer, inner)

    def less_equal(self, other: Any) -> bool:
        """Comparable with paths that go outside; others are kept beside it."""
        if not isinstance(other, Outside):
            return False
        return summary_less_equal(self.outer, other.outer) and bool(
            self.inner.less_equal(other.inner)
        )


def followed_by(first: Any, second: Any) -> Any | None:
    """`first.followed_by(second)` where either may go `Outside`."""
    if isinstance(second, Outside) and not isinstance(first, Outside):
        return second.preceded_by(first)
    return first.followed_by(second)


def summary_less_equal(a: Any, b: Any) -> bool:
    """`a.less_equal(b)` where either may go `Outside`."""
    if isinstance(a, Outside) is isinstance(b, Outside):
        return bool(a.less_equal(b))
    return False


_STAY = Advance(0)
Int = _Int()
Unit = _Unit()
