"""Counts of times as numbers against those of times as objects, which they stand for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointstamp.progress.antichain import Antichain, MutableAntichain
from pointstamp.progress.few_counts import BEYOND, FewCounts
from pointstamp.progress.reachability import Tracker
from pointstamp.progress.timestamp import Int, Product, Timestamp, summary_less_equal
from pointstamp.progress.topology import Edge, Node, Topology
from tests.conftest import examples

PAIRS = Product(Int, Int)

CHANGES = st.sampled_from([-2, -1, 1, 1, 1, 3])
FEW = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), CHANGES), max_size=60)
MANY = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), CHANGES), max_size=90)


def time_of(timestamp: Timestamp, outer: int, inner: int) -> Any:
    return (outer, inner) if timestamp.pairs else inner


@pytest.mark.parametrize("timestamp", [Int, PAIRS], ids=str)
@given(updates=FEW | MANY)
def test_few_are_counted_as_any_number_is(
    timestamp: Timestamp, updates: list[tuple[int, int, int]]
) -> None:
    few, any_number = FewCounts(timestamp), MutableAntichain(timestamp)
    for drawn, inner, change in updates:
        outer = drawn if timestamp.pairs else 0
        time = time_of(timestamp, outer, inner)
        sign = few.change(outer, inner, change)
        moved = dict(any_number.update(time, change))
        assert bool(sign) == bool(moved)
        if moved:
            assert moved.pop(time) == sign
            assert set(moved.values()) <= {-sign}
            assert few.others.n == len(moved)
        few.check()
        assert dict(few) == dict(any_number)
        assert few.n_times() == len(any_number)
        assert sorted(few.frontier) == sorted(any_number.frontier)
        for asked in range(4):
            at = (outer, asked)
            asked_time = time_of(timestamp, *at)
            assert few.count(*at) == any_number.count(asked_time)
            assert few.less_equal(*at) == any_number.less_equal(asked_time)
            assert few.less_than(*at) == any_number.less_than(asked_time)


def test_many_become_few_again() -> None:
    counts = FewCounts(Int)
    for time in range(20):
        counts.change(0, time, 1)
    assert counts.many is not None
    for time in range(19):
        assert counts.change(0, time, -1) == -1
    assert counts.many is None
    assert counts.frontier == [19]


class IntObjects(type(Int)):  # type: ignore[misc]  # a base that is computed
    """Integers that nothing takes for numbers."""

    integers = False


class PairObjects(Product):
    """Pairs likewise."""

    pairs = False  # type: ignore[assignment]  # a property there


def ring(timestamp: Timestamp) -> Topology:
    """Two operators in a loop, which advances by one in the second and has a limit in neither."""

    def by(summary: Any) -> list[dict[int, Antichain]]:
        return [{0: Antichain(summary_less_equal, [timestamp.summary(summary)])}]

    nodes = [
        Node("outside", 1, 1, ()),
        Node("first", 2, 1, by(0) * 2),
        Node("second", 1, 1, by(1)),
    ]
    edges = [
        Edge((0, 0), (1, 0)),
        Edge((2, 0), (1, 1)),
        Edge((1, 0), (2, 0)),
        Edge((1, 0), (0, 0)),
    ]
    return Topology(timestamp, nodes, edges)


NUMBERS = st.sampled_from([0, 1, 2, 3, BEYOND - 2, BEYOND - 1, BEYOND, BEYOND + 1, 2**80])


@pytest.mark.parametrize(
    ("numbers", "objects"),
    [(Int, IntObjects()), (PAIRS, PairObjects(Int, Int))],
    ids=["integers", "pairs"],
)
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_what_numbers_imply_is_what_objects_do(
    numbers: Timestamp, objects: Timestamp, data: Any
) -> None:
    """And also when some are too large to be numbers, at first, or on their way round."""
    topologies = [ring(numbers), ring(objects)]
    trackers = [Tracker(graph, graph.summaries_to_outputs()) for graph in topologies]
    assert [tracker.has_numbers for tracker in trackers] == [True, False]
    # The limit of their size does not change what comes out, nor do queries in between.
    n_places = len(topologies[0].ports)
    for _ in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.integers(0, 4))):
            location = data.draw(st.integers(0, n_places - 1))
            outer = data.draw(NUMBERS) if numbers.pairs else 0
            time = time_of(numbers, outer, data.draw(NUMBERS))
            change = data.draw(st.sampled_from([-1, 1, 1, 2]))
            for tracker in trackers:
                tracker.update(location, time, change)
        for tracker in trackers:
            tracker.propagate()
        asked = time_of(numbers, 0, data.draw(NUMBERS))
        found = [
            (
                sorted(tracker.drain_frontier_changes()),
                [sorted(tracker.frontier(location)) for location in range(n_places)],
                sorted(tracker.outstanding()),
                [sorted(batch.drain()) for batch in tracker.output_changes],
                tracker.is_idle(),
                [tracker.is_covered(location, asked) for location in range(n_places)],
                [tracker.is_expected(location, asked) for location in range(n_places)],
            )
            for tracker in trackers
        ]
        assert found[0] == found[1]
