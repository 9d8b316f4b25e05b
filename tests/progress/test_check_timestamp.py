"""`check_timestamp`: types that keep the laws pass, and each law has one that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import TimestampError, UsageError
from pointstamp.progress.timestamp import Advance, Both, Nested, Product, Stay, Timestamp
from pointstamp.testing import LawError, check_timestamp
from pointstamp.testing import timestamps as checks
from tests.simulation.moments import EventProcessing, Moment, Shift
from tests.simulation.subsets import Join, Subsets

ints = st.integers(0, 6)
advances = st.builds(Advance, st.integers(0, 3), st.none() | st.integers(4, 9))
pairs = st.builds(Both, advances, advances)
joins = st.builds(Join, st.integers(0, 7), st.integers(0, 7))


@pytest.fixture
def drawn_by_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is drawn than the profile says: of what runs twice, the second time a quarter."""
    monkeypatch.setattr(checks, "N_DRAWN", min(checks.N_DRAWN, settings.default.max_examples))


@pytest.mark.usefixtures("drawn_by_profile")
@pytest.mark.parametrize(
    ("kind", "times", "summaries", "outer"),
    [
        pytest.param(ps.Int, ints, advances, [], id="Int"),
        pytest.param(ps.Unit, st.just(()), st.just(Stay()), [], id="Unit"),
        pytest.param(Product(ps.Int, ps.Int), st.tuples(ints, ints), pairs, [ps.Int], id="Product"),
        pytest.param(
            Product(Product(Product(ps.Int, ps.Int), ps.Int), ps.Int),
            st.tuples(st.tuples(st.tuples(ints, ints), ints), ints),
            st.builds(Both, st.builds(Both, pairs, advances), advances),
            [Product(Product(ps.Int, ps.Int), ps.Int)],
            id="three deep",
        ),
        pytest.param(
            EventProcessing(),
            st.builds(Moment, ints, ints),
            st.builds(Shift, ints, ints),
            [],
            id="event and processing time",
        ),
        pytest.param(Subsets(), range(8), joins, [ps.Unit], id="lattice"),
        pytest.param(
            Product(ps.Int, Subsets()),
            st.tuples(ints, st.integers(0, 7)),
            st.builds(Both, advances, joins),
            [ps.Int],
            id="lattice in epochs",
        ),
    ],
)
def test_the_types_that_are_here_keep_the_laws(
    kind: Any, times: Any, summaries: Any, outer: Any
) -> None:
    check_timestamp(kind, times, summaries, outer=outer)


# A sound type to break, one law at a time.


@dataclass(frozen=True)
class Plus:
    """Adds `by`."""

    by: int

    @property
    def advances(self) -> bool:
        return self.by > 0

    def results_in(self, time: Any) -> Any:
        return time + self.by

    def followed_by(self, other: Any) -> Any:
        return Plus(self.by + other.by)

    def less_equal(self, other: Any) -> bool:
        return self.by <= other.by


@dataclass(frozen=True)
class Whole(Timestamp):
    """Integers, as a user would write it."""

    name = "Whole"
    minimum = 0

    @property
    def identity(self) -> Any:
        return Plus(0)

    def less_equal(self, a: Any, b: Any) -> bool:
        return bool(a <= b)

    def check(self, time: Any) -> Any:
        if isinstance(time, int):
            return time
        raise TimestampError(f"no Whole: {time!r}")

    def summary(self, value: Any) -> Any:
        return value if isinstance(value, Plus) else Plus(value)


class Flat(Whole):
    """0, and after it all others side by side."""

    def less_equal(self, a: Any, b: Any) -> bool:
        return a in (0, b)


class Loose(int):
    """Equal as integers are, with hashes of its own."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # that is what is wrong with it


class Forgetful(int):
    """Arrives as 0."""

    def __reduce__(self) -> Any:
        return (int, (0,))


class Lonely(Whole):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Unlike(Plus):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def kind(base: type = Whole, **overrides: Any) -> Any:
    """A type like `base`, but for what is replaced."""
    return type("Broken", (base,), overrides)()


def path(by: int = 1, **overrides: Any) -> Any:
    """A summary like `Plus(by)`, but for what is replaced."""
    return type("BrokenPlus", (Plus,), overrides)(by)


def nested(**overrides: Any) -> Any:
    """A product whose refinement of `Int` is the right one, but for what is replaced."""
    crossing = type("BrokenNested", (Nested,), overrides)(0)

    def refines(self: Any, outer: Any) -> Any:
        return crossing if outer == ps.Int else Product.refines(self, outer)

    return type("BrokenProduct", (Product,), {"refines": refines})(ps.Int, ps.Int)


@dataclass(frozen=True)
class Composed(Plus):
    """What two steps make; it loses a third."""

    def followed_by(self, other: Any) -> Any:
        return self


@dataclass(frozen=True)
class Broken:
    """A type that breaks a law, and values with which to see it."""

    timestamp: Any
    times: Sequence[Any] = (1, 2, 3)
    summaries: Sequence[Any] = (1,)
    outer: Sequence[Any] = ()


PAIRS = ((1, 0), (1, 1), (2, 1))


BROKEN: dict[str, Callable[[], Broken]] = {
    "a type refines itself, and the types given": lambda: Broken(
        kind(refines=lambda self, outer: None)
    ),
    "check rejects what is no time, with a TimestampError": lambda: Broken(
        kind(check=lambda self, time: time)
    ),
    "less_equal is reflexive": lambda: Broken(kind(less_equal=lambda self, a, b: a < b)),
    "less_equal is antisymmetric": lambda: Broken(
        kind(less_equal=lambda self, a, b: a // 2 <= b // 2)
    ),
    "less_equal is transitive": lambda: Broken(kind(less_equal=lambda self, a, b: b - a in (0, 1))),
    "less_than is less_equal of different times": lambda: Broken(
        kind(less_than=lambda self, a, b: a <= b)
    ),
    "the minimum is below every time": lambda: Broken(kind(minimum=1), times=(0, 1, 2)),
    "total says whether any two times are ordered": lambda: Broken(kind(Flat, total=True)),
    "the key extends the order": lambda: Broken(kind(key=lambda self, time: -time)),
    "different times have different keys, which are ordered": lambda: Broken(
        kind(Flat, key=lambda self, time: min(time, 1))
    ),
    "natural says whether Python orders times as their keys": lambda: Broken(
        kind(Flat, natural=True, key=lambda self, time: -time if time else -100)
    ),
    "equal times have equal hashes": lambda: Broken(kind(), times=(Loose(1), Loose(1))),
    "a time arrives at another worker as it was sent": lambda: Broken(
        kind(), times=(Forgetful(3),)
    ),
    "check accepts times, and gives them back": lambda: Broken(
        kind(check=lambda self, time: Whole.check(self, time) + 1)
    ),
    "the type is a value, equal to its copy": lambda: Broken(Lonely()),
    "a summary reads as itself": lambda: Broken(
        kind(summary=lambda self, value: Plus(getattr(value, "by", 0) + 1))
    ),
    "the identity leaves times as they are": lambda: Broken(
        kind(identity=property(lambda self: Plus(1)))
    ),
    "what results is a time": lambda: Broken(
        kind(), summaries=[path(results_in=lambda self, time: time + 0.5)]
    ),
    "a summary never goes back": lambda: Broken(
        kind(), summaries=[path(results_in=lambda self, time: max(time - 1, 0))]
    ),
    "results_in is monotone": lambda: Broken(
        kind(), summaries=[path(results_in=lambda self, time: time or 9)]
    ),
    "advances says that every result is strictly later": lambda: Broken(
        kind(), summaries=[path(0, advances=True)]
    ),
    "the identity, before or after, changes no summary": lambda: Broken(
        kind(), summaries=[path(followed_by=lambda self, other: other)]
    ),
    "followed_by is one after the other": lambda: Broken(
        kind(), summaries=[path(followed_by=lambda self, other: Plus(max(self.by, other.by)))]
    ),
    "followed_by is associative": lambda: Broken(
        kind(), summaries=[path(followed_by=lambda self, other: Composed(self.by + other.by))]
    ),
    "a lesser summary is never later": lambda: Broken(
        kind(), summaries=[path(less_equal=lambda self, other: True)]
    ),
    "a path is less or equal to itself, and to a longer one": lambda: Broken(
        kind(), summaries=[path(less_equal=lambda self, other: self.by == other.by)]
    ),
    "a summary is a value, equal to its copy": lambda: Broken(kind(), summaries=[Unlike(1)]),
    "what enters and leaves is as it was": lambda: Broken(
        nested(to_inner=lambda self, time: (time + 1, 0)), PAIRS, outer=[ps.Int]
    ),
    "what leaves and enters is not later": lambda: Broken(
        nested(to_inner=lambda self, time: (time, 5)), PAIRS, outer=[ps.Int]
    ),
    "to_outer is monotone": lambda: Broken(
        nested(to_outer=lambda self, time: 0 if time[1] else time[0]), PAIRS, outer=[ps.Int]
    ),
    "to_inner is monotone": lambda: Broken(
        nested(to_inner=lambda self, time: (time, time % 2)), ((1, 1), (2, 0)), outer=[ps.Int]
    ),
    "summarize says what a path inside does outside": lambda: Broken(
        nested(summarize=lambda self, summary: Advance(0)), PAIRS, [(1, 0)], [ps.Int]
    ),
}


def caught(broken: Broken, **replaced: Any) -> LawError:
    values = {"times": broken.times, "summaries": broken.summaries} | replaced
    with pytest.raises(LawError) as raised:
        check_timestamp(broken.timestamp, **values, outer=broken.outer)
    return raised.value


@pytest.mark.parametrize("law", BROKEN)
def test_who_breaks_a_law_is_told_which_and_with_what(law: str) -> None:
    broken = BROKEN[law]()
    error = caught(broken)
    assert error.law == law
    assert law in str(error)
    assert repr(broken.timestamp) in str(error)
    assert all(repr(value) in str(error) for value in error.values.values())


def test_there_is_one_that_breaks_each_law() -> None:
    assert {law.sentence for law in checks._LAWS} <= {*BROKEN}


@pytest.mark.usefixtures("drawn_by_profile")
def test_the_type_that_they_break_is_sound() -> None:
    check_timestamp(Whole(), ints, [1, 2])
    check_timestamp(nested(), st.tuples(ints, ints), [1, (1, 0)], outer=[ps.Int])


def test_what_a_strategy_draws_is_made_small() -> None:
    # Only from 4 on does it go wrong.
    error = caught(Broken(kind(key=lambda self, time: min(time, 4))), times=st.integers(0, 1000))
    assert error.law == "the key extends the order"
    assert error.values == {"a": 4, "b": 5}


def test_what_a_law_stumbles_over_is_its_cause() -> None:
    def fail(self: Any, a: Any, b: Any) -> bool:
        raise ZeroDivisionError

    error = caught(Broken(kind(less_equal=fail)))
    assert error.law == "less_equal is reflexive"
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_wrong_values_that_are_accepted_are_named() -> None:
    with pytest.raises(LawError, match=r"check rejects what is no time.*value = True"):
        check_timestamp(Whole(), [1], wrong=["1", True])


def test_a_class_of_times_is_refused_in_place_of_its_instance() -> None:
    for wrong in (Whole, "times"):
        with pytest.raises(UsageError, match=r"an instance of a subclass of ps\.Timestamp"):
            check_timestamp(wrong, [1])  # type: ignore[arg-type]  # that is what is tested
