"""The tracker against brute force: follow every pointstamp along every path."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointstamp.errors import BuildError, CycleError
from pointstamp.progress.antichain import Antichain
from pointstamp.progress.reachability import Tracker
from pointstamp.progress.step import Step
from pointstamp.progress.timestamp import Advance, Both, Int, Product, summary_less_equal
from pointstamp.progress.topology import Edge, Node, Topology
from tests.conftest import examples

NESTED = Product(Int, Int)


def paths(*summaries: Any) -> Antichain:
    return Antichain(summary_less_equal, summaries)


def implied(topology: Topology, outstanding: dict[tuple[int, Any], int]) -> list[set[Any]]:
    """Per location, the minimal times that outstanding pointstamps can lead to."""
    kind = topology.timestamp
    reached: list[set[Any]] = [set() for _ in topology.ports]
    work = [place for place, count in outstanding.items() if count > 0]
    while work:
        location, time = work.pop()
        if any(kind.less_equal(known, time) for known in reached[location]):
            continue
        reached[location] = {t for t in reached[location] if not kind.less_equal(time, t)}
        reached[location].add(time)
        for to, summary in topology.steps[location]:
            later = time if summary is None else summary.results_in(time)
            if later is not None:
                work.append((to, later))
    return reached


@st.composite
def graphs(draw: Any) -> Topology:
    """Random operators, streams forward at will, and backward from feedbacks only."""
    summaries = st.builds(
        Both,
        st.builds(Advance, st.integers(0, 1)),
        st.builds(Advance, st.integers(0, 2), st.none() | st.integers(3, 5)),
    )
    n_nodes = draw(st.integers(1, 5))
    nodes = [Node("outside", draw(st.integers(0, 2)), draw(st.integers(0, 2)), ())]
    for index in range(1, n_nodes + 1):
        inputs, outputs = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        table = [
            {output: paths(*draw(st.lists(summaries, max_size=2))) for output in range(outputs)}
            for _ in range(inputs)
        ]
        nodes.append(Node(f"op{index}", inputs, outputs, table))
    loops = range(n_nodes + 1, n_nodes + 1 + draw(st.integers(0, 2)))
    round_ = Both(Advance(0), Advance(1))
    nodes.extend(Node(f"loop{i}", 1, 1, [{0: paths(round_)}]) for i in loops)
    sources = [(i, p) for i, node in enumerate(nodes) for p in range(node.outputs)]
    targets = [(i, p) for i, node in enumerate(nodes) for p in range(node.inputs)]
    edges = []
    for source in sources:
        for target in targets:
            forward = target[0] > source[0] or target[0] == 0 or source[0] in loops
            if source[0] in loops and target[0] in loops:
                forward = False
            if forward and draw(st.booleans()):
                edges.append(Edge(source, target))
    return Topology(NESTED, nodes, edges)


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_implied_times_are_what_brute_force_finds(data: Any) -> None:
    topology = data.draw(graphs())
    topology.check_cycles()
    tracker = Tracker(topology, topology.summaries_to_outputs())
    if not topology.ports:
        return
    times = st.tuples(st.integers(0, 2), st.integers(0, 3))
    places = st.tuples(st.integers(0, len(topology.ports) - 1), times)
    outstanding: Counter[tuple[int, Any]] = Counter()
    told: list[Counter[Any]] = [Counter() for _ in topology.ports]
    at_outputs: list[Counter[Any]] = [Counter() for _ in range(topology.nodes[0].inputs)]
    for _ in range(data.draw(st.integers(1, 6))):
        for place, change in data.draw(
            st.lists(st.tuples(places, st.sampled_from([-1, 1, 2])), max_size=5)
        ):
            outstanding[place] += change
            tracker.update(*place, change)
        tracker.propagate()
        for (location, time), change in tracker.drain_frontier_changes():
            told[location][time] += change
        reached = implied(topology, outstanding)
        for location, (_, _, is_target) in enumerate(topology.ports):
            assert set(tracker.frontier(location)) == reached[location]
            if is_target:
                assert {t for t, n in told[location].items() if n} == reached[location]
        inside = {
            place: count for place, count in outstanding.items() if topology.ports[place[0]][0]
        }
        assert tracker.is_idle() == (not any(inside.values()))
        reached = implied(topology, inside)
        for output, batch in enumerate(tracker.output_changes):
            for time, change in batch.drain():
                at_outputs[output][time] += change
            counted = [time for time, count in at_outputs[output].items() if count > 0]
            assert set(Antichain(NESTED.less_equal, counted)) == reached[topology.target(0, output)]


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_ports_that_share_their_ways_imply_what_those_with_ways_of_their_own_do(data: Any) -> None:
    inputs, outputs = data.draw(st.integers(10, 14)), data.draw(st.integers(10, 14))
    ways = st.sampled_from([paths(Both(Advance(a), Advance(b))) for a in (0, 1) for b in (0, 1)])
    row = data.draw(st.dictionaries(st.integers(0, outputs - 1), ways, min_size=outputs - 1))
    n_shared = data.draw(st.integers(inputs - 1, inputs))
    nodes = [
        Node("outside", 0, 0, ()),
        Node("many", inputs, outputs, [row] * n_shared + [dict(row)] * (inputs - n_shared)),
        Node("loop", 1, 1, [{0: paths(Both(Advance(0), Advance(1)))}]),
    ]
    edges = [Edge((1, outputs - 1), (2, 0)), Edge((2, 0), (1, 0)), Edge((2, 0), (1, 1))]
    shared = Topology(NESTED, nodes, edges)
    nodes[1] = Node("many", inputs, outputs, [dict(row) for _ in range(inputs)])
    plain = Topology(NESTED, nodes, edges)
    assert len(plain.ports) < len(shared.ports)
    assert sum(map(len, shared.steps)) < sum(map(len, plain.steps))
    assert plain.nodes_in_loops() == shared.nodes_in_loops()
    summaries = [each.summaries_around(1) for each in (plain, shared)]
    assert len({str(rows) for rows in summaries}) == 1
    trackers = [Tracker(plain), Tracker(shared)]
    times = st.tuples(st.integers(0, 2), st.integers(0, 2))
    places = st.integers(0, len(plain.ports) - 1)
    for updates in data.draw(
        st.lists(st.lists(st.tuples(places, times, st.sampled_from([-1, 1, 2]))), max_size=6)
    ):
        moved = []
        for tracker in trackers:
            for update in updates:
                tracker.update(*update)
            tracker.propagate()
            moved.append(dict(tracker.drain_frontier_changes()))
        assert moved[0] == moved[1]
        for place in range(len(plain.ports)):
            assert {*trackers[0].frontier(place)} == {*trackers[1].frontier(place)}


def test_pairs_too_large_for_64_bits_are_passed_on_among_others() -> None:
    later = [{0: paths(Both(Advance(0), Advance(1)))}]
    nodes = [Node("outside", 1, 1, ()), Node("later", 1, 1, later), Node("again", 1, 1, later)]
    edges = [Edge((0, 0), (1, 0)), Edge((1, 0), (2, 0)), Edge((2, 0), (0, 0))]
    tracker = Tracker(Topology(NESTED, nodes, edges))
    for base in (0, 2**62 - 3, 2**80):
        times = [(outer, base + 20 - outer) for outer in range(20)]
        for time in times[::-1]:
            tracker.update(tracker.topology.source(0, 0), time, 1)
        tracker.propagate()
        end = tracker.topology.target(0, 0)
        assert {*tracker.frontier(end)} == {(outer, inner + 2) for outer, inner in times}
        for time in times:
            tracker.update(tracker.topology.source(0, 0), time, -1)
        tracker.propagate()
        assert tracker.frontier(end) == []


def test_a_loop_through_ports_that_share_their_ways_is_named_without_more_places() -> None:
    row = {output: paths(Advance(0)) for output in range(9)}
    nodes = [
        Node("outside", 1, 1, ()),
        Node("many", 9, 9, [row] * 9),
        Node("back", 1, 1, [{0: paths(Advance(0))}]),
    ]
    graph = Topology(Int, nodes, [Edge((1, 4), (2, 0)), Edge((2, 0), (1, 7))])
    with pytest.raises(CycleError, match=r": 'back' \[2\] -> 'many' \[1\] -> 'back' \[2\];"):
        graph.check_cycles()
    through = Topology(Int, nodes[:2], [Edge((0, 0), (1, 2)), Edge((1, 8), (0, 0))])
    assert through.describe_way(0, 0, lambda summary: True) == "'many' [1]"


def chain(*summaries: Any) -> Topology:
    """outside -> 1 -> 2 ... -> outside, each with one summary."""
    nodes = [Node("outside", 1, 1, ())]
    nodes.extend(Node(f"op{i}", 1, 1, [{0: paths(s)}]) for i, s in enumerate(summaries, 1))
    edges = [Edge((i, 0), ((i + 1) % len(nodes), 0)) for i in range(len(nodes))]
    return Topology(Int, nodes, edges)


def test_summaries_to_outputs_compose_along_the_way() -> None:
    graph = chain(Advance(1), Advance(0), Advance(2, 6))
    found = graph.summaries_to_outputs()
    assert found[graph.source(0, 0)] == [(0, Advance(3, 6))]
    assert found[graph.target(3, 0)] == [(0, Advance(2, 6))]
    assert found[graph.source(3, 0)] == [(0, Advance(0))]


def test_paths_around_an_operator_do_not_pass_through_it() -> None:
    # 1 -> 2 -> 1, where 2 adds one; around 1 it is +1, around 2 it is 1's own 0.
    nodes = [
        Node("outside", 0, 0, ()),
        Node("body", 1, 1, [{0: paths(Advance(0))}]),
        Node("loop", 1, 1, [{0: paths(Advance(1))}]),
    ]
    graph = Topology(Int, nodes, [Edge((1, 0), (2, 0)), Edge((2, 0), (1, 0))])
    graph.check_cycles()
    assert list(graph.summaries_around(1)[0][0]) == [Advance(1)]
    assert list(graph.summaries_around(2)[0][0]) == [Advance(0)]
    assert graph.nodes_in_loops() == {1, 2}


def test_a_loop_that_stays_is_refused_with_its_path() -> None:
    nodes = [Node("outside", 0, 0, ())]
    nodes += [Node(name, 1, 1, [{0: paths(Advance(0))}]) for name in ("first", "second")]
    graph = Topology(Int, nodes, [Edge((1, 0), (2, 0)), Edge((2, 0), (1, 0))])
    with pytest.raises(CycleError, match=r"'first' \[1\] -> 'second' \[2\] -> 'first' \[1\]"):
        graph.check_cycles()


def test_one_staying_way_around_is_enough_to_refuse_a_loop() -> None:
    nodes = [
        Node("outside", 0, 0, ()),
        Node("either", 1, 1, [{0: paths(Both(Advance(0), Advance(0)))}]),
        Node(
            "loop", 1, 1, [{0: paths(Both(Advance(1), Advance(0)), Both(Advance(0), Advance(0)))}]
        ),
    ]
    # The second summary is the lesser one and replaces the first in the antichain.
    graph = Topology(NESTED, nodes, [Edge((1, 0), (2, 0)), Edge((2, 0), (1, 0))])
    with pytest.raises(CycleError):
        graph.check_cycles()


def test_a_port_that_is_not_there_is_named() -> None:
    with pytest.raises(BuildError, match=r"'op1' .* has no input 3"):
        chain(Advance(0)).target(1, 3)


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_a_time_that_moves_is_implied_where_it_leads_to(data: Any) -> None:
    topology = data.draw(graphs())
    topology.check_cycles()
    if not topology.ports:
        return
    tracker = Tracker(topology)
    steps = st.tuples(st.integers(0, 1), st.integers(0, 2))
    location = data.draw(st.integers(0, len(topology.ports) - 1))
    told: list[Counter[Any]] = [Counter() for _ in topology.ports]
    time = (0, 0)
    tracker.update(location, time, 1)
    for outer, inner in data.draw(st.lists(steps, min_size=1, max_size=4)):
        tracker.propagate()
        tracker.update(location, time, -1)
        time = (time[0] + outer, time[1] + inner)
        tracker.update(location, time, 1)
    for change in (0, -1):
        tracker.update(location, time, change)
        tracker.propagate()
        for (target, moved), n in tracker.drain_frontier_changes():
            told[target][moved] += n
        reached = implied(topology, {(location, time): 1 + change})
        for place, (_, _, is_target) in enumerate(topology.ports):
            assert set(tracker.frontier(place)) == reached[place]
            if is_target:
                assert {t for t, n in told[place].items() if n} == reached[place]
    assert tracker.is_idle()


def test_what_comes_and_goes_before_it_is_counted_moves_nothing() -> None:
    nodes = [Node("outside", 0, 0, ()), Node("a", 0, 1, []), Node("b", 1, 0, [{}])]
    for kind, time in ((Int, 5), (NESTED, (5, 2)), (Int, 2**70)):
        tracker = Tracker(Topology(kind, nodes, [Edge((1, 0), (2, 0))]))
        target = tracker.topology.target(2, 0)
        for change, left in ((10, 10), (-10, 0), (4, 4), (3, 7), (-6, 1)):
            tracker.update(target, time, change)
            assert tracker.outstanding() == [(target, time, left)] * bool(left)
        tracker.propagate()
        assert tracker.frontier(target) == [time]
        tracker.update(target, time, 2)
        tracker.update(target, time, -2)
        tracker.propagate()
        assert tracker.drain_frontier_changes() == [((target, time), 1)]
        tracker.update(target, time, -1)
        tracker.propagate()
        assert tracker.drain_frontier_changes() == [((target, time), -1)]
        assert tracker.is_idle()


def test_letting_go_in_a_loop_ends() -> None:
    """A capability goes away while its own echo around the loop is still counted."""
    nodes = [
        Node("outside", 0, 0, ()),
        Node("body", 1, 1, [{0: paths(Advance(0))}]),
        Node("loop", 1, 1, [{0: paths(Advance(1))}]),
    ]
    graph = Topology(Int, nodes, [Edge((1, 0), (2, 0)), Edge((2, 0), (1, 0))])
    tracker = Tracker(graph)
    tracker.update(graph.source(1, 0), 3, +1)
    tracker.propagate()
    assert tracker.frontier(graph.target(1, 0)) == [4]
    tracker.update(graph.source(1, 0), 3, -1)
    tracker.propagate()
    assert tracker.frontier(graph.target(1, 0)) == []
    assert tracker.is_idle()


def test_a_count_is_covered_by_what_is_earlier_or_upstream_only() -> None:
    graph = chain(Advance(0), Advance(0))
    tracker = Tracker(graph)
    first, second = graph.target(1, 0), graph.target(2, 0)
    tracker.update(second, 5, +2)
    tracker.propagate()
    assert not tracker.is_covered(second, 5)
    assert tracker.is_covered(second, 6)
    tracker.update(first, 5, +1)
    tracker.propagate()
    assert tracker.is_covered(second, 5)
    assert not tracker.is_covered(first, 5)


ADVANCES = st.builds(Advance, st.integers(0, 3), st.none() | st.integers(4, 6))


@given(ADVANCES, ADVANCES, st.integers(0, 6), st.integers(0, 6))
def test_a_summary_that_was_shortened_gives_what_it_gave(outer, inner, epoch, round_):
    for summary, time in (
        (inner, round_),
        (Both(outer, inner), (epoch, round_)),
        (Both(Both(outer, inner), inner), ((epoch, round_), round_)),
    ):
        assert Step(0, summary).arrives(time) == summary.results_in(time)


class Doubled:
    """A user's summary, with a `shift` that is its own business."""

    advances = True
    shift = 7

    def results_in(self, time: int) -> int:
        return 2 * time + 1


def test_only_our_own_summaries_are_shortened() -> None:
    assert Step(0, Doubled()).arrives(5) == 11
