"""Antichains and their counted form, against definitions spelled out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.timestamp import Int, Product

NESTED = Product(Int, Int)
_few = st.integers(0, 2)
TYPES = [
    pytest.param(Int, st.integers(0, 6), id="Int"),
    pytest.param(NESTED, st.tuples(st.integers(0, 3), st.integers(0, 3)), id="Product"),
    pytest.param(Product(NESTED, Int), st.tuples(st.tuples(_few, _few), _few), id="of a Product"),
]


def minimal(kind: Any, times: Any) -> set[Any]:
    return {t for t in times if not any(kind.less_than(u, t) for u in times)}


@pytest.mark.parametrize(("kind", "times"), TYPES)
@given(data=st.data())
def test_an_antichain_keeps_the_minimal_elements(kind: Any, times: Any, data: Any) -> None:
    given_times = data.draw(st.lists(times))
    antichain = Antichain(kind.less_equal, given_times)
    assert set(antichain) == minimal(kind, given_times)
    probe = data.draw(times)
    assert antichain.less_equal(probe) == any(kind.less_equal(t, probe) for t in given_times)


@pytest.mark.parametrize(("kind", "times"), TYPES)
@given(data=st.data())
def test_the_frontier_is_the_minimal_positive_counts_and_changes_add_up(
    kind: Any, times: Any, data: Any
) -> None:
    updates = data.draw(st.lists(st.tuples(times, st.sampled_from([-2, -1, 1, 2])), max_size=30))
    counted, recount, seen = MutableAntichain(kind), Counter[Any](), Counter[Any]()
    for time, change in updates:
        recount[time] += change
        for element, difference in counted.update(time, change):
            seen[element] += difference
        wanted = minimal(kind, [t for t, n in recount.items() if n > 0])
        assert set(counted.frontier) == wanted
        assert {t for t, n in seen.items() if n} == wanted
        assert all(n in (0, 1) for n in seen.values())
        counted.check()
        assert len(counted) == sum(n != 0 for n in recount.values())


@pytest.mark.parametrize(("kind", "times"), TYPES)
@given(data=st.data())
def test_questions_to_a_frontier_follow_from_its_elements(kind: Any, times: Any, data: Any) -> None:
    counted = MutableAntichain(kind, [(time, 1) for time in data.draw(st.lists(times))])
    time = data.draw(times)
    assert counted.less_equal(time) == any(kind.less_equal(t, time) for t in counted.frontier)
    assert counted.less_than(time) == any(kind.less_than(t, time) for t in counted.frontier)


def test_a_negative_count_is_kept_until_its_positive_comes() -> None:
    counted = MutableAntichain(Int)
    assert counted.update(4, -1) == []
    assert counted.is_empty()
    assert counted.update(4, +1) == []
    assert len(counted) == 0


def test_a_time_that_comes_and_goes_leaves_nothing_behind() -> None:
    counted = MutableAntichain(Int, [(0, 1)])
    for _ in range(1_000):
        counted.update(5, 1)
        counted.update(5, -1)
    assert len(counted._times) <= 2


@pytest.mark.parametrize("width", [1, 2, 5, 100])
def test_times_that_go_as_others_come_take_no_more_room(width: int) -> None:
    counted = MutableAntichain(Int, [(time, 1) for time in range(width)])
    for time in range(500):
        assert counted.update(time + width, 1) == []
        assert counted.update(time, -1) == [(time, -1), (time + 1, 1)]
        counted.check()
        assert len(counted) == width
    assert len(counted._times) <= 2 * width + 100
    late = list(range(500, 500 + width))
    for time in late:
        counted.change(time, -1)
    assert counted.is_empty()
    assert len(counted) == 0
    assert counted.update(7, 1) == [(7, 1)]


def test_times_between_and_after_others_find_their_places() -> None:
    counted, times = MutableAntichain(Int), [5, 9, 1, 7, 3, 8, 2]
    for time in times:
        counted.change(time, 1)
    for gone, frontier in ((1, [2]), (7, [2]), (2, [3]), (9, [3]), (3, [5])):
        counted.change(gone, -1)
        counted.check()
        assert counted.frontier == frontier
    for time in (4, 6, 10):
        counted.change(time, 1)
        counted.check()
    assert [time for time, _ in counted] == [4, 5, 6, 8, 10]


@pytest.mark.parametrize("what", [(), (1,), (1, 2, 3), [], 3, None], ids=repr)
def test_a_question_about_what_is_no_pair_is_an_error(what: Any) -> None:
    # Compiled, an index that is not checked would read what lies behind the tuple.
    counts = MutableAntichain(NESTED, [((0, 0), 1)])
    for question in (counts.less_equal, counts.less_than):
        with pytest.raises((TypeError, ValueError)):
            question(what)
