"""The operators of a join: they reason about times and leave arrays to the tactics.

An index is a stream of its own, of one `Adjacency` per time and worker, sent when
all edges of the time are there; whoever asks it takes that stream as a second
input and holds prefixes back until the stream says that no more of it comes.
So the graph of a time is the edges of that time, complete.

Each operator keeps the indexes of a time until no more prefixes of it come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange, Pact, Pipeline
from pointstamp.dataflow.stream import Stream
from pointstamp.joins.adjacency import Adjacency, Graph
from pointstamp.joins.backlog import Backlog
from pointstamp.joins.plan import Direction
from pointstamp.joins.tactics import MATCHES, Pieces

SOURCE, TARGET = "src", "dst"
"""The columns of a stream of edges."""

_PIECES_PER_ACTIVATION = 16
"""Small batches are done several at a time; beyond this others get their turn."""

Logic = Callable[..., bool]


def index(edges: Stream[Any], direction: Direction) -> Stream[Adjacency]:
    """The adjacency of each time, at each worker that owns some of its keys.

    `edges` are `Arrays` with the columns `src` and `dst`, int64.
    """

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        held: dict[Capability, list[Arrays]] = {}

        def logic(input: Input, output: Output) -> bool:
            for time, batch in input:
                held.setdefault(time.retain(), []).append(batch)
            for cap in [c for c in held if not input.frontier.less_equal(c.time)]:
                with cap, output.session(cap) as session:
                    session.give(_adjacency_of(direction, held.pop(cap)))
            return False

        return logic

    key = SOURCE if direction == "forward" else TARGET
    return edges.unary_frontier(Exchange(key), f"Index {direction}", build)


def _adjacency_of(direction: Direction, batches: list[Arrays]) -> Adjacency:
    sources = np.concatenate([batch[SOURCE] for batch in batches])
    targets = np.concatenate([batch[TARGET] for batch in batches])
    batches.clear()  # the edges are twice there; let the first ones go
    return Adjacency.build(direction, sources, targets)


def from_index(
    indexes: Stream[Adjacency], name: str, tactic: Callable[[Adjacency], Pieces]
) -> Stream[Arrays]:
    """What `tactic` makes of each adjacency, a piece at a time."""

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        work: deque[tuple[Capability, Pieces]] = deque()

        def logic(input: Input, output: Output) -> bool:
            for time, adjacencies in input:
                work.extend((time.retain(), tactic(adjacency)) for adjacency in adjacencies)
            if work and not _give_next(output, *work[0]):
                work.popleft()[0].drop()
            return bool(work)

        return logic

    return indexes.unary(Pipeline(), name, build)


def _give_next(output: Output, capability: Capability, pieces: Pieces) -> bool:
    """Send the next piece; whether there was one."""
    for piece in pieces:
        if piece is not None:
            output.session(capability).give_batch(piece)
        return True
    return False


Tactic = Callable[[Graph, Arrays], Pieces]


def with_graph(
    prefixes: Stream[Arrays],
    indexes: Stream[Adjacency],
    pact: Pact,
    name: str,
    tactic: Tactic,
    pace: Pace | None = None,
) -> Stream[Arrays]:
    """What `tactic` makes of each batch of `prefixes` and the graph of its time.

    Without a `pace`, all at once: for tactics that give at most what they get. A
    tactic that may give more is asked for a few pieces per activation, and none
    while the next step has enough to do.
    """

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        graphs = _Graphs(info)
        work = _Work(tactic)

        def logic(prefixes: Input, indexes: Input, output: Output) -> bool:
            before = work.n_records
            graphs.take(indexes)
            for time, batch in prefixes:
                work.add(time.retain(), batch)
            may_work = pace is None or not pace.backlog.must_wait(pace.step)
            again = may_work and work.advance(graphs, indexes, output, pace)
            if pace is not None:
                pace.backlog.change(pace.step, work.n_records - before)
            graphs.release(prefixes, work)
            return again or (not may_work and work.n_records > 0)

        return logic

    return prefixes.binary_frontier(indexes, pact, Pipeline(), name, build)


@dataclass(frozen=True)
class Pace:
    """Which step of a join an operator is, and what tells it to wait."""

    backlog: Backlog
    step: int


class _Graphs:
    """The indexes that have arrived, by time."""

    def __init__(self, info: OperatorInfo) -> None:
        self._info = info
        self._by_time: dict[Any, Graph] = {}

    def take(self, indexes: Input) -> None:
        """Take what has arrived."""
        for time, adjacencies in indexes:
            graph = self.at(time.time)
            for adjacency in adjacencies:
                graph.add(adjacency)

    def at(self, time: Any) -> Graph:
        """The graph of `time`; without edges where no index came."""
        if time not in self._by_time:
            self._by_time[time] = Graph(self._info.index, self._info.peers)
        return self._by_time[time]

    def release(self, prefixes: Input, work: _Work) -> None:
        """Let go of the times for which no prefixes are here or may come."""
        for time in [t for t in self._by_time if not prefixes.frontier.less_equal(t)]:
            if not work.has(time):
                del self._by_time[time]


class _Work:
    """Batches that wait, and the pieces of the one that is being worked on."""

    def __init__(self, tactic: Tactic) -> None:
        self._tactic = tactic
        self._waiting: deque[tuple[Capability, Arrays]] = deque()
        self._current: tuple[Capability, int, Pieces] | None = None
        self.n_records = 0
        """How many prefixes wait or are being worked on."""

    def add(self, capability: Capability, batch: Arrays) -> None:
        """Take a batch; the capability is dropped when it is done."""
        self._waiting.append((capability, batch))
        self.n_records += len(batch)

    def has(self, time: Any) -> bool:
        """Whether there is work at `time`."""
        if self._current is not None and self._current[0].time == time:
            return True
        return any(capability.time == time for capability, _ in self._waiting)

    def advance(
        self, graphs: _Graphs, indexes: Input, output: Output, pace: Pace | None
    ) -> bool:
        """Work until there is none that can be done, or `pace` says it is enough; if so, True."""
        n_sent = n_pieces = 0
        while self._current or self._start(graphs, indexes):
            n_sent += self._next_piece(output)
            n_pieces += 1
            if pace is not None and (
                2 * n_sent >= pace.backlog.limit or n_pieces >= _PIECES_PER_ACTIVATION
            ):
                return True
        return False

    def _start(self, graphs: _Graphs, indexes: Input) -> bool:
        """Begin the first batch of which the graph is complete; whether there was one."""
        for i, (capability, batch) in enumerate(self._waiting):
            if not indexes.frontier.less_equal(capability.time):
                del self._waiting[i]
                pieces = self._tactic(graphs.at(capability.time), batch)
                self._current = (capability, len(batch), pieces)
                return True
        return False

    def _next_piece(self, output: Output) -> int:
        """Send the next piece of the current batch, or end the batch; how many records."""
        assert self._current is not None
        capability, n_records, pieces = self._current
        for piece in pieces:
            if piece is None:
                return 0
            output.session(capability).give_batch(piece)
            return len(piece)
        capability.drop()
        self._current = None
        self.n_records -= n_records
        return 0


def total(counts: Stream[Arrays]) -> Stream[Arrays]:
    """The sum of the column `matches` of each time, at one worker, when it is complete."""

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        sums: dict[Capability, int] = {}

        def logic(input: Input, output: Output) -> bool:
            for time, batch in input:
                cap = time.retain()
                sums[cap] = sums.get(cap, 0) + int(batch[MATCHES].sum())
            for cap in [c for c in sums if not input.frontier.less_equal(c.time)]:
                with cap, output.session(cap) as session:
                    session.give_batch(Arrays({MATCHES: np.array([sums.pop(cap)])}))
            return False

        return logic

    to_one = Exchange(lambda batch: np.zeros(len(batch), np.int64))
    return counts.unary_frontier(to_one, "Total", build)
