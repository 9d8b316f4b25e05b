"""The staircase of many pairs against a recount, and that its cost does not follow their number."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.staircase import BEYOND, Staircase
from pointstamp.progress.timestamp import Int, Product
from tests.progress.test_antichain import minimal
from tests.simulation.engines.progress import check_staircase

NESTED = Product(Int, Int)
HUGE = 2**80


class Compared(int):
    """An integer that counts how often it is compared."""

    n = 0

    def _count(self, other: int, answer: bool) -> bool:
        Compared.n += 1
        return answer

    def __lt__(self, other: int) -> bool:
        return self._count(other, int(self) < int(other))

    def __le__(self, other: int) -> bool:
        return self._count(other, int(self) <= int(other))

    def __gt__(self, other: int) -> bool:
        return self._count(other, int(self) > int(other))

    def __ge__(self, other: int) -> bool:
        return self._count(other, int(self) >= int(other))

    def __eq__(self, other: object) -> bool:
        return self._count(0, int(self) == other)

    __hash__ = int.__hash__


@pytest.mark.parametrize("seed", range(40))
def test_many_pairs_are_counted_as_a_recount_says(seed: int) -> None:
    check_staircase(seed)


def test_an_antichain_of_a_thousand_comes_and_goes() -> None:
    counts, n = Staircase(), 1_000
    order = Random(3).sample(range(n), n)
    for i in order:
        assert counts.change((i, n - i), 1)
        assert (counts.gone, counts.came) == ([], [(i, n - i)])
    counts.check()
    assert counts.frontier == [(i, n - i) for i in range(n)]
    assert counts.change((0, 0), 1)
    assert (counts.gone, counts.came) == ([(i, n - i) for i in range(n)], [(0, 0)])
    assert counts.change((0, 0), -1)
    assert (counts.gone, counts.came) == ([(0, 0)], [(i, n - i) for i in range(n)])
    for i in order:
        assert counts.change((i, n - i), -1)
        assert (counts.gone, counts.came) == ([(i, n - i)], [])
    assert not counts.frontier
    assert counts.n_times == 0


def n_compared(width: int, is_antichain: bool) -> int:
    """The comparisons that moving 50 of so many pairs on by a round takes."""
    counts = Staircase()
    for i in range(width):
        counts.change((Compared(i), Compared(width - i if is_antichain else 3)), 1)
    Compared.n = 0
    for i in range(50):
        round_ = width - i if is_antichain else 3
        counts.change((Compared(i), Compared(round_ + 1)), 1)
        counts.change((Compared(i), Compared(round_)), -1)
    n = Compared.n
    counts.check()
    return n


@pytest.mark.interpreted
@pytest.mark.parametrize("is_antichain", [False, True])
def test_what_a_change_costs_grows_little_with_the_number_of_pairs(is_antichain: bool) -> None:
    assert n_compared(3_000, is_antichain) < 2 * n_compared(100, is_antichain)


pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))
wide_pairs = st.tuples(
    *[st.integers(0, 3) | st.integers(BEYOND - 1, BEYOND + 1) | st.just(HUGE)] * 2
)


@given(
    st.lists(st.tuples(pairs | wide_pairs, st.sampled_from([-1, 1, 2])), max_size=30), wide_pairs
)
def test_coordinates_of_any_size_are_counted(updates: list[Any], asked: Any) -> None:
    counted, recount = MutableAntichain(NESTED), Counter[Any]()
    for time, change in updates:
        recount[time] += change
        before = set(counted.frontier)
        changes = counted.update(time, change)
        after = minimal(NESTED, [t for t, n in recount.items() if n > 0])
        assert set(counted.frontier) == after
        assert dict(changes) == {t: (t in after) - (t in before) for t in before ^ after}
        counted.check()
    assert dict(counted) == {t: n for t, n in recount.items() if n}
    assert len(counted) == sum(n != 0 for n in recount.values())
    frontier = set(counted.frontier)
    assert counted.less_equal(asked) == any(NESTED.less_equal(t, asked) for t in frontier)
    assert counted.less_than(asked) == any(NESTED.less_than(t, asked) for t in frontier)
    assert counted.is_minimal(asked) == (asked in frontier)
    assert counted.count(asked) == recount[asked]


def test_a_question_may_be_about_a_time_that_is_later_than_any() -> None:
    counts = MutableAntichain(NESTED, [((2, 3), 1)])
    assert counts.less_equal((2, HUGE))
    assert counts.less_than((HUGE, 3))
    assert not counts.less_equal((1, HUGE))
    assert counts.less_equal((2, float("inf")))
    assert not counts.is_minimal((2, HUGE))
    assert counts.count((2, HUGE)) == 0
