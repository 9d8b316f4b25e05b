"""Timestamps and summaries keep the laws in the head of their module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import TimestampError
from pointstamp.progress.timestamp import (
    Advance,
    Both,
    Int,
    Outside,
    Product,
    Stay,
    Timestamp,
    Unit,
    followed_by,
)

NESTED = Product(Int, Int)
DEEP = Product(NESTED, Int)

ints = st.integers(0, 6)
advances = st.builds(Advance, st.integers(0, 3), st.none() | st.integers(4, 9))


@dataclass(frozen=True)
class Subsets(Timestamp):
    """A finite lattice as times: subsets of {0, 1, 2}, as bit masks, by inclusion."""

    name = "Subsets"
    minimum = 0

    @property
    def identity(self) -> Any:
        return Add(0)

    def less_equal(self, a: int, b: int) -> bool:
        return a & b == a

    def check(self, time: Any) -> int:
        return int(time)

    def summary(self, value: Any) -> Any:
        return value if isinstance(value, Add) else Add(value)


@dataclass(frozen=True)
class Add:
    """Adds the members of `mask`; never strictly advances the full set."""

    mask: int

    @property
    def advances(self) -> bool:
        return False

    def results_in(self, time: int) -> int:
        return time | self.mask

    def followed_by(self, other: Any) -> Add:
        return Add(self.mask | other.mask)

    def less_equal(self, other: Any) -> bool:
        return bool(self.mask & other.mask == self.mask)


TYPES = [
    pytest.param(Int, ints, advances, id="Int"),
    pytest.param(Unit, st.just(()), st.just(Stay()), id="Unit"),
    pytest.param(NESTED, st.tuples(ints, ints), st.builds(Both, advances, advances), id="Product"),
    pytest.param(
        DEEP,
        st.tuples(st.tuples(ints, ints), ints),
        st.builds(Both, st.builds(Both, advances, advances), advances),
        id="Product of product",
    ),
    pytest.param(Subsets(), st.integers(0, 7), st.builds(Add, st.integers(0, 7)), id="lattice"),
]


@pytest.mark.parametrize(("kind", "times", "summaries"), TYPES)
@given(data=st.data())
def test_less_equal_is_a_partial_order_with_a_minimum(
    kind: Any, times: Any, summaries: Any, data: Any
) -> None:
    a, b, c = (data.draw(times) for _ in range(3))
    assert kind.less_equal(kind.minimum, a)
    assert kind.less_equal(a, a)
    if kind.less_equal(a, b) and kind.less_equal(b, a):
        assert a == b
    if kind.less_equal(a, b) and kind.less_equal(b, c):
        assert kind.less_equal(a, c)
    assert kind.less_than(a, b) == (kind.less_equal(a, b) and a != b)
    if kind.total:
        assert kind.less_equal(a, b) or kind.less_equal(b, a)


@pytest.mark.parametrize(("kind", "times", "summaries"), TYPES)
@given(data=st.data())
def test_the_key_extends_the_partial_order(
    kind: Any, times: Any, summaries: Any, data: Any
) -> None:
    a, b = data.draw(times), data.draw(times)
    if kind.less_than(a, b):
        assert kind.key(a) < kind.key(b)
    assert (kind.key(a) == kind.key(b)) == (a == b)
    if kind.natural:
        assert (a < b) == (kind.key(a) < kind.key(b))


@pytest.mark.parametrize(("kind", "times", "summaries"), TYPES)
@given(data=st.data())
def test_summaries_never_go_back_and_are_monotone(
    kind: Any, times: Any, summaries: Any, data: Any
) -> None:
    a, b, s = data.draw(times), data.draw(times), data.draw(summaries)
    after_a, after_b = s.results_in(a), s.results_in(b)
    if after_a is not None:
        assert kind.less_equal(a, after_a)
        assert not (s.advances and after_a == a)
    if kind.less_equal(a, b) and after_b is not None:
        assert after_a is not None
        assert kind.less_equal(after_a, after_b)
    assert kind.identity.results_in(a) == a


@pytest.mark.parametrize(("kind", "times", "summaries"), TYPES)
@given(data=st.data())
def test_followed_by_is_one_after_the_other(
    kind: Any, times: Any, summaries: Any, data: Any
) -> None:
    time, first, second = data.draw(times), data.draw(summaries), data.draw(summaries)
    between = first.results_in(time)
    step_by_step = None if between is None else second.results_in(between)
    both = first.followed_by(second)
    assert (None if both is None else both.results_in(time)) == step_by_step


@pytest.mark.parametrize(("kind", "times", "summaries"), TYPES)
@given(data=st.data())
def test_a_lesser_summary_is_never_later(kind: Any, times: Any, summaries: Any, data: Any) -> None:
    time, first, second = data.draw(times), data.draw(summaries), data.draw(summaries)
    if first.less_equal(second) and second.results_in(time) is not None:
        assert kind.less_equal(first.results_in(time), second.results_in(time))


@given(
    st.tuples(ints, ints),
    advances,
    st.builds(Both, advances, advances),
    st.builds(Both, advances, advances),
)
def test_a_path_outside_leaves_and_enters_again(
    time: tuple[int, int], around: Advance, before: Both, after: Both
) -> None:
    refinement = NESTED.refines(Int)
    assert refinement is not None
    outside = Outside(refinement, around, NESTED.identity)
    path = followed_by(before, outside)
    path = path and followed_by(path, after)
    expected = before.outer.results_in(time[0])
    for summary in (around, after.outer):
        expected = None if expected is None else summary.results_in(expected)
    inner = after.inner.results_in(0)
    if path is None:
        assert expected is None or inner is None
    elif expected is None or inner is None:
        assert path.results_in(time) is None
    else:
        assert path.results_in(time) == (expected, inner)


def test_a_region_refines_its_own_type_and_a_product_its_outer_one() -> None:
    nested = NESTED.refines(Int)
    assert nested is not None
    assert (nested.to_inner(4), nested.to_outer((4, 2))) == ((4, 0), 4)
    same = NESTED.refines(NESTED)
    assert same is not None
    assert same.to_inner((4, 2)) == (4, 2)
    assert NESTED.refines(Unit) is None
    assert Int.refines(NESTED) is None


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(Int, "3"), (Int, -1), (Int, True), (Int, 1.0), (Unit, 0), (NESTED, 3), (NESTED, (1, "a"))],
)
def test_a_time_of_the_wrong_type_is_named(kind: Any, wrong: Any) -> None:
    with pytest.raises(TimestampError, match=r"type (Int|Unit|Product)"):
        kind.check(wrong)


def test_a_bounded_summary_counts_the_limit_from_the_end() -> None:
    # Times below 5 after +1, then below 6 after another +2: so t + 3 < 6.
    both = Advance(1, 5).followed_by(Advance(2, 6))
    assert both == Advance(3, 6)
    assert Advance(4, 5).followed_by(Advance(3, 7)) is None
