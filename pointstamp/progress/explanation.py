"""What holds a time back: every pointstamp that could still lead to it, with its path.

A tracker says *that* a time is still possible at a place; here it is asked *why*.
All scopes of a dataflow are laid out as one graph, and every pointstamp is followed
along it to the place in question. Values in, values out: what is outstanding is read
once, and a search of the graph does the rest.

Progress is exchanged as sums, so a worker knows how much is held where and not by
which worker, but for what it holds itself (`Own`). What is left over after that is held by a
peer, or under way.

Theory of operation. A scope's tracker has pointstamps of two sorts. *Real* ones are
records at a plain operator's input and capabilities at its output. The others are
*implied*: capabilities of a scope as its parent counts them, which stand for what is
inside, and those of the world outside as a scope counts them. The search follows real
ones into scopes and out of them, so implied ones add nothing, unless a report is still
under way: then they are all there is to show, and are shown.

Cost: for each pointstamp, the part of the dataflow that it can reach. This is for a
reader that waits, not for each step.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pointstamp.progress.operate import Operate
from pointstamp.progress.subgraph import Subgraph
from pointstamp.progress.timestamp import Refinement
from pointstamp.progress.topology import Topology

Place = tuple[int, int]
"""(scope, location): the scope by its place in the list of `layouts`."""


class HolderKind(Enum):
    """What it is that holds a time back."""

    INPUT = "an input that is open"
    CAPABILITY = "a capability"
    RECORDS = "records that wait, or are under way"
    SCOPE = "something in a scope, or around it, of which no more is known"
    UNBUILT = "a worker that has not built the dataflow yet"
    NOT_YET_SEEN = "nothing: the change has not come to the place in question yet"
    UNREPORTED = "something that was let go, and that no step has reported yet"


@dataclass(frozen=True)
class Holder:
    """One pointstamp that could still lead to a time at a place.

    >>> print(Holder(HolderKind.INPUT, 0, 2, True, "'edges' [1]", (1,), 0, 3, 1, 4,
    ...              ("'edges' [1]", "'Probe' [2]")))
    this worker (0) has not advanced input 'edges' [1] beyond 3: 4 at 'Probe' [2], \
by 'edges' [1] -> 'Probe' [2]
    """

    what: HolderKind
    worker: int | None
    """Whose it is; None if it is a peer's, and there are several, or if it is under way."""
    peers: int
    """How many workers there are."""
    is_here: bool
    """Whether it is held by the worker that was asked."""
    operator: str
    """In words: the scopes that it is in and its name, then its address."""
    address: tuple[int, ...]
    port: int
    time: Any
    count: int
    """How many capabilities, or records."""
    arrives: Any
    """The earliest time that it could lead to at the place in question."""
    path: tuple[str, ...]
    """The operators on a way there, from its own to the last."""

    @property
    def holder(self) -> str:
        """The worker in words."""
        if self.worker is None:
            return "another worker"
        return f"this worker ({self.worker})" if self.is_here else f"worker {self.worker}"

    def __str__(self) -> str:
        said = self._said()
        if len(self.path) < 2:
            return said
        return f"{said}: {self.arrives} at {self.path[-1]}, by {' -> '.join(self.path)}"

    def _said(self) -> str:
        if self.what is HolderKind.INPUT:
            return f"{self.holder} has not advanced input {self.operator} beyond {self.time}"
        if self.what is HolderKind.CAPABILITY:
            what = "a capability" if self.count == 1 else f"{self.count} capabilities"
            return f"{self.holder} holds {what} at {self.time} for output {self.port} of " + (
                self.operator
            )
        if self.what is HolderKind.RECORDS:
            is_one = self.count == 1
            what = "1 record" if is_one else f"{self.count} records"
            where, wait = f"input {self.port} of {self.operator}", "waits" if is_one else "wait"
            if self.is_here:
                return f"{what} at {self.time} {wait} at {where} of {self.holder}"
            # A peer that took them reports it when that may move a frontier, and not before.
            return (
                f"{what} at {self.time} {'is' if is_one else 'are'} under way to {where}, or "
                f"{wait} there at a peer, as far as peers have reported"
            )
        if self.what is HolderKind.UNBUILT:
            return f"{self.holder} has not built dataflow {self.operator} yet"
        if self.what is HolderKind.NOT_YET_SEEN:
            return f"nothing holds {self.time} back, which {self.operator} sees in the next step"
        if self.what is HolderKind.UNREPORTED:
            return (
                f"{self.holder} has let go of {self.time} at output {self.port} of "
                f"{self.operator}, and has not reported it yet; step it"
            )
        return f"{self.operator} may still give something at {self.time}; its report is under way"


@dataclass(frozen=True)
class Layout:
    """One scope of a dataflow: its graph, where it sits, and what is outstanding in it."""

    subgraph: Subgraph
    names: tuple[str, ...]
    """Of the scopes that it is in, without the dataflow itself, and its own."""
    address: tuple[int, ...]
    parent: int
    """The place of the scope around it in the list; -1 for the dataflow."""
    node: int
    """Which operator of that scope it is."""

    @property
    def topology(self) -> Topology:
        """Its graph."""
        return self.subgraph.topology

    @property
    def refinement(self) -> Refinement:
        """How its times sit in those around it."""
        refinement: Refinement = self.subgraph.refinement
        return refinement

    def label(self, node: int) -> str:
        """An operator in words."""
        name = "/".join((*self.names, self.topology.nodes[node].name))
        return f"{name!r} {[*self.address, node]}"


@dataclass
class Own:
    """What a worker knows of itself, which is in no sum: by place, and time, how many."""

    held: dict[Place, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    """Capabilities it holds, and records that wait for it."""
    pending: dict[Place, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    """Changes that no tracker has counted yet."""
    inputs: set[Place] = field(default_factory=set)
    """Outputs that the program drives from outside, on every worker."""


def layouts(root: Subgraph) -> list[Layout]:
    """All scopes of a dataflow, each after the one around it."""
    found = [Layout(root, (), (), -1, 0)]
    for index, outer in enumerate(found):  # which grows meanwhile
        found.extend(
            Layout(scope, (*outer.names, scope.name), (*outer.address, node), index, node)
            for node, child in enumerate(outer.subgraph.children, start=1)
            if (scope := _scope_of(child)) is not None
        )
    return found


def _scope_of(child: Operate) -> Subgraph | None:
    """The scope that a child is, also where a log stands in its place; None of an operator."""
    scope = getattr(child, "logged", child)
    return scope if isinstance(scope, Subgraph) else None


def explain(
    scopes: list[Layout], own: Own, target: Place, time: Any, index: int, peers: int
) -> list[Holder]:
    """Everything outstanding that could still lead to `time`, or one before it, at `target`.

    Parameters
    ----------
    scopes : list of Layout
        The whole dataflow.
    own : Own
        What this worker knows of itself.
    target : Place
        The place in question.
    time
        A time of that place's scope.
    index, peers : int
        The worker that is asked, and how many there are.

    Returns
    -------
    list of Holder
        What this worker holds comes first. Empty if nothing can come, as far as known.
    """
    graph = _Graph(scopes)
    is_before = scopes[target[0]].topology.timestamp.less_equal
    within = graph.leading_to(target)

    def wanted(place: Place, reached: Any) -> bool:
        # Times never go back: in its own scope, a later one cannot get there in time.
        return place in within and (place[0] != target[0] or is_before(reached, time))

    found: list[Holder] = []
    followed: list[Ways] = []
    for stamp in _stamps(graph, own):
        if not wanted(stamp.place, stamp.time):
            continue
        if stamp.is_implied and any(_is_reached(graph, ways, stamp) for ways in followed):
            continue
        ways = graph.ways([(stamp.place, stamp.time)], wanted)
        followed.append(ways)
        if target in ways:
            found += _holders(scopes, own, stamp, index, peers, ways[target][0])
    return sorted(found, key=lambda holder: not holder.is_here)


def causes(scopes: list[Layout], own: Own, index: int, peers: int) -> list[Holder]:
    """What keeps a dataflow from its end: what is outstanding and follows from nothing else."""
    graph = _Graph(scopes)
    stamps = _least(scopes, _stamps(graph, own))
    # A pointstamp does not lead to itself in time, so one search from the places next to
    # all of them finds those that follow from another.
    ways = graph.ways(
        [
            (to, reached)
            for stamp in stamps
            for to, advance in graph.steps[stamp.place]
            if (reached := advance(stamp.time)) is not None
        ]
    )
    found: list[Holder] = []
    for stamp in stamps:
        if not _is_reached(graph, ways, stamp):
            found += _holders(scopes, own, stamp, index, peers, None)
    return sorted(found, key=lambda holder: not holder.is_here)


# The graph of all scopes.


@dataclass(frozen=True)
class _Trace:
    """A time that a search has brought to a place, and where from."""

    place: Place
    time: Any
    before: _Trace | None


Ways = dict[Place, list[_Trace]]
Step = tuple[Place, Callable[[Any], Any]]


class _Graph:
    """The places of all scopes, with the steps between them."""

    def __init__(self, scopes: list[Layout]) -> None:
        self.scopes = scopes
        self._inner = {(scope.parent, scope.node): i for i, scope in enumerate(scopes)}
        self.steps: dict[Place, list[Step]] = {
            (index, location): list(self._steps(index, location))
            for index, scope in enumerate(scopes)
            for location in range(len(scope.topology.ports))
        }

    def is_implied(self, place: Place) -> bool:
        """Whether pointstamps there only stand for others, of another scope."""
        index, location = place
        node, _, is_target = self.scopes[index].topology.ports[location]
        return node == 0 or (not is_target and (index, node) in self._inner)

    def leading_to(self, target: Place) -> set[Place]:
        """All places from which there is a way to `target`."""
        backwards: dict[Place, list[Place]] = defaultdict(list)
        for place, steps in self.steps.items():
            for to, _ in steps:
                backwards[to].append(place)
        found, work = {target}, [target]
        while work:
            for place in backwards[work.pop()]:
                if place not in found:
                    found.add(place)
                    work.append(place)
        return found

    def ways(
        self,
        starts: Iterable[tuple[Place, Any]],
        wanted: Callable[[Place, Any], bool] = lambda place, time: True,
    ) -> Ways:
        """The minimal times that those of `starts` can lead to, at each place.

        Ends, because every cycle leads to later times, which an earlier one at the
        same place keeps out.
        """
        ways: Ways = {}
        work: deque[_Trace] = deque()

        def reach(place: Place, time: Any, before: _Trace | None) -> None:
            less_equal = self.scopes[place[0]].topology.timestamp.less_equal
            others = ways.get(place, [])
            if not any(less_equal(other.time, time) for other in others):
                trace = _Trace(place, time, before)
                kept = [other for other in others if not less_equal(time, other.time)]
                ways[place] = [*kept, trace]
                work.append(trace)

        for place, time in starts:
            reach(place, time, None)
        while work:
            trace = work.popleft()
            for to, advance in self.steps[trace.place]:
                reached = advance(trace.time)
                if reached is not None and wanted(to, reached):
                    reach(to, reached, trace)
        return ways

    def _steps(self, index: int, location: int) -> Iterator[Step]:
        scope = self.scopes[index]
        node, port, is_target = scope.topology.ports[location]
        if node == 0 and is_target:
            # What runs outside is followed there, step by step.
            if scope.parent >= 0:
                outer = self.scopes[scope.parent].topology
                yield (scope.parent, outer.source(scope.node, port)), scope.refinement.to_outer
            return
        inner = self._inner.get((index, node))
        if node and is_target and inner is not None:
            entered = self.scopes[inner]
            yield (inner, entered.topology.source(0, port)), entered.refinement.to_inner
            return
        for to, summary in scope.topology.steps[location]:
            yield (index, to), _stay if summary is None else summary.results_in


def _stay(time: Any) -> Any:
    return time


# What is outstanding.


@dataclass(frozen=True)
class _Stamp:
    """A pointstamp with its counts: as the trackers have it, with what is pending, and ours."""

    place: Place
    time: Any
    counted: int
    total: int
    mine: int
    is_implied: bool


def _is_reached(graph: _Graph, ways: Ways, stamp: _Stamp) -> bool:
    less_equal = graph.scopes[stamp.place[0]].topology.timestamp.less_equal
    return any(less_equal(trace.time, stamp.time) for trace in ways.get(stamp.place, ()))


def _stamps(graph: _Graph, own: Own) -> list[_Stamp]:
    """All pointstamps; implied ones last, the outermost first."""
    return sorted(_each_stamp(graph, own), key=lambda stamp: stamp.is_implied)


def _each_stamp(graph: _Graph, own: Own) -> Iterator[_Stamp]:
    for index, scope in enumerate(graph.scopes):
        counts: dict[int, Counter[Any]] = defaultdict(Counter)
        for location, time, count in scope.subgraph.pointstamps():
            counts[location][time] += count
        for location in range(len(scope.topology.ports)):
            place = (index, location)
            is_implied = graph.is_implied(place)
            pending = own.pending.get(place, _NONE)
            held = own.held.get(place, _NONE)
            for time in {**counts[location], **pending, **held}:
                counted = counts[location][time]
                total = counted + pending[time]
                if is_implied and counted > 0:
                    yield _Stamp(place, time, counted, counted, 0, True)
                elif not is_implied and max(counted, total, held[time]) > 0:
                    yield _Stamp(place, time, counted, total, held[time], False)


def _least(scopes: list[Layout], stamps: list[_Stamp]) -> list[_Stamp]:
    """Of each place, the pointstamps before which there is none at the same place."""
    by_place: dict[Place, list[_Stamp]] = defaultdict(list)
    for stamp in stamps:
        by_place[stamp.place].append(stamp)
    found = []
    for (index, _), there in by_place.items():
        timestamp = scopes[index].topology.timestamp
        kept: list[_Stamp] = []
        for stamp in sorted(there, key=lambda stamp: timestamp.key(stamp.time)):
            if not any(timestamp.less_equal(other.time, stamp.time) for other in kept):
                kept.append(stamp)
        found += kept
    return found


_NONE: Counter[Any] = Counter()


def _holders(
    scopes: list[Layout],
    own: Own,
    stamp: _Stamp,
    index: int,
    peers: int,
    arrival: _Trace | None,
) -> Iterable[Holder]:
    """The pointstamp as what this worker has of it, and what others have."""
    scope = scopes[stamp.place[0]]
    node, port, is_target = scope.topology.ports[stamp.place[1]]
    if stamp.is_implied:
        what = HolderKind.SCOPE
    elif is_target:
        what = HolderKind.RECORDS
    else:
        what = HolderKind.INPUT if stamp.place in own.inputs else HolderKind.CAPABILITY
    label = scope.label(node) if node else f"what is outside of scope {scope.names[-1]!r}"
    path = _path(scopes, arrival) if arrival is not None else (label,)
    arrives = stamp.time if arrival is None else arrival.time

    def holder(what: HolderKind, worker: int | None, is_here: bool, count: int) -> Holder:
        address = (*scope.address, node)
        return Holder(
            what, worker, peers, is_here, label, address, port, stamp.time, count, arrives, path
        )

    if stamp.is_implied:
        yield holder(what, None, False, stamp.counted)
        return
    others = stamp.total - stamp.mine
    if stamp.mine > 0:
        yield holder(what, index, True, stamp.mine)
    if others > 0 and peers > 1:
        # Of two workers it is the other one; but records may as well be on their way here.
        worker = 1 - index if peers == 2 and not is_target else None
        yield holder(what, worker, False, others)
    elif stamp.mine <= 0:
        yield holder(HolderKind.UNREPORTED, index, True, stamp.counted)


def _path(scopes: list[Layout], arrival: _Trace) -> tuple[str, ...]:
    """The operators that a search went through, in order."""
    inner = {(scope.parent, scope.node) for scope in scopes}
    labels: list[str] = []
    trace: _Trace | None = arrival
    while trace is not None:
        index, location = trace.place
        node = scopes[index].topology.ports[location][0]
        if node and (index, node) not in inner:
            label = scopes[index].label(node)
            if not labels or labels[-1] != label:
                labels.append(label)
        trace = trace.before
    return tuple(reversed(labels))
