"""The operators of a join: they reason about times and leave arrays to the tactics.

An index is a stream of its own, of one `Adjacency` per time and worker, sent when
all edges of the time are there; `graphs` makes one `IndexedGraph` of those of all
directions. A worker that is alone has all edges, and makes its graph at once (`indexed`).
What asks it takes that stream as a second input and holds prefixes back until the stream
says that no more of it comes. So the graph of a time is the edges of that time, complete.

Each operator keeps the graph of a time until no more prefixes of it come.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays, kind_of
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact, Pipeline
from pointstamp.dataflow.stash import Stash, in_memory
from pointstamp.joins.adjacency import Adjacency, IndexedGraph
from pointstamp.joins.candidates import size
from pointstamp.joins.plan import Direction
from pointstamp.joins.replicated_lists import (
    DIRECTIONS,
    least_bits,
    offers,
    replicated_with,
    sizes_of,
)
from pointstamp.joins.tactics import MATCHES, Pieces
from pointstamp.joins.throttle import Throttle, ThrottleTime, at_end, at_start
from pointstamp.kernels.csr import Pairs
from pointstamp.operators.split_merge import union
from pointstamp.operators.stream import Stream

SOURCE, TARGET = "src", "dst"
"""The columns of a stream of edges."""

_ENDS: dict[Direction, tuple[str, str]] = {
    "forward": (SOURCE, TARGET),
    "reverse": (TARGET, SOURCE),
}
"""The columns of the vertex that has a list, and of what is in it."""

_PIECES_PER_ACTIVATION = 16
_RECORDS_PER_ACTIVATION = 32_768
"""Small batches are done several at a time; beyond this others get their turn.

Then what was made is taken by what waits for it, before more is made.
"""

Logic = Callable[..., bool]


def index(edges: Stream[Any], direction: Direction) -> Stream[Adjacency]:
    """The adjacency of each time, at each worker that owns some of its keys.

    `edges` are `Arrays` with the columns `src` and `dst`, int64.
    """

    def make(found: dict[Direction, Pairs]) -> Adjacency:
        return Adjacency.of(direction, found[direction])

    key, _ = _ENDS[direction]
    return _complete_pairs(edges, Exchange(key), f"Index {direction}", [direction], make)


def indexed(edges: Stream[Any], directions: Sequence[Direction]) -> Stream[IndexedGraph]:
    """The graph of each time, of the same edges, at a worker that is alone."""

    def make(found: dict[Direction, Pairs]) -> IndexedGraph:
        return IndexedGraph(adjacencies=[Adjacency.of(d, pairs) for d, pairs in found.items()])

    return _complete_pairs(edges, Pipeline(), "Index", directions, make)


def _complete_pairs(
    edges: Stream[Any],
    pact: Pact,
    name: str,
    directions: Sequence[Direction],
    make: Callable[[dict[Direction, Pairs]], Any],
) -> Stream[Any]:
    """What `make` gives for the edges of each time here, packed once for each direction."""

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        stash = Stash(info, lambda: {direction: Pairs() for direction in directions})

        def logic(input: Input, output: Output) -> bool:
            for time, batch in input:
                for direction, pairs in stash.at(time).items():
                    key, neighbour = _ENDS[direction]
                    pairs.add(batch[key], batch[neighbour])
            for cap, by_direction in stash:
                output.session(cap).give(make(by_direction))
            return False

        return logic

    return edges.unary_frontier(pact, name, build)


def from_index(indexes: Stream[Any], name: str, tactic: Callable[[Any], Pieces]) -> Stream[Arrays]:
    """What `tactic` makes of each index or graph, a piece at a time."""

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        work = PieceQueue()

        def logic(input: Input, output: Output) -> bool:
            for time, found in input:
                for index in found:
                    work.add(time.retain(), tactic(index))
            return work.give_next(output)

        return logic

    return indexes.unary(Pipeline(), name, build)


class PieceQueue:
    """What is to be sent in pieces, in the order in which it was added."""

    def __init__(self) -> None:
        self._work: deque[tuple[Capability, Pieces]] = deque()

    def add(self, capability: Capability, pieces: Pieces) -> None:
        """Send `pieces` at the time of `capability`, which is dropped behind the last."""
        self._work.append((capability, pieces))

    def give_next(self, output: Output) -> bool:
        """Send the next piece; whether there may be another."""
        if not self._work:
            return False
        capability, pieces = self._work[0]
        for piece in pieces:
            if piece is not None:
                output.session(capability).give_batch(piece)
            return True
        self._work.popleft()[0].drop()
        return bool(self._work)


Tactic = Callable[[Any, Any], Iterator[Any]]
"""From a graph, or whatever stands for one, and a batch, to pieces."""


def graphs(indexes: Sequence[Stream[Adjacency]], replicated_items: int) -> Stream[IndexedGraph]:
    """The graph of each time at each worker, of the indexes of all directions.

    A worker has its own lists in it, and those that are sent to all (`replicated_lists.py`).
    """
    own = union(indexes)
    sizes = own.map_batches(lambda batch: kind_of(Arrays()).concat([*map(sizes_of, batch)]))
    offered = own.binary_frontier(
        sizes, Pipeline(), Broadcast(), "Offer lists", partial(_build_offers, replicated_items)
    )
    return own.binary_frontier(offered, Pipeline(), Broadcast(), "Graph", _build_graphs)


def _build_offers(replicated_items: int, capability: Capability, info: OperatorInfo) -> Logic:
    capability.drop()
    stash: Stash[list[list[Any]]] = Stash(info)

    def logic(own: Input, sizes: Input, output: Output) -> bool:
        stash.take(own, sizes)
        for cap, (adjacencies, of_all) in stash:
            with output.session(cap) as session:
                for adjacency in itertools.chain.from_iterable(adjacencies):
                    bits = least_bits(of_all, adjacency.direction, replicated_items)
                    for piece in offers(adjacency, bits):
                        session.give_batch(piece)
                        output.flush()  # few keys may have many neighbours
        return False

    return logic


def _build_graphs(capability: Capability, info: OperatorInfo) -> Logic:
    capability.drop()
    stash: Stash[list[list[Any]]] = Stash(info)

    def logic(own: Input, offered: Input, output: Output) -> bool:
        stash.take(own, offered)
        for cap, (adjacencies, pieces) in stash:
            graph = _graph_of(info, [*itertools.chain(*adjacencies)], in_memory(pieces))
            output.session(cap).give(graph)
        return False

    return logic


def _graph_of(info: OperatorInfo, own: list[Adjacency], offered: list[Any]) -> IndexedGraph:
    if not offered:
        return IndexedGraph(info.index, info.peers, own)
    by_direction = {adjacency.direction: adjacency for adjacency in own}
    found = {d: replicated_with(by_direction.pop(d, None), offered, d) for d in DIRECTIONS}
    replicated = {direction: least for direction, (_, least) in found.items()}
    return IndexedGraph(info.index, info.peers, [index for index, _ in found.values()], replicated)


def with_graph(
    prefixes: Stream[Any],
    graphs: Stream[Any],
    pact: Pact,
    name: str,
    tactic: Tactic,
    throttle: Throttle | None = None,
    nothing: Callable[[int, int], Any] = IndexedGraph,
    first: Any = None,
) -> Stream[Any]:
    """What `tactic` makes of each batch of `prefixes` and the graph of its time.

    `graphs` has one graph per time, at the workers that have one; `nothing` makes what
    stands for it elsewhere. `first` is a batch to send for each, if it is given.

    Without a `throttle`, some pieces per activation, so that what is made does not wait for
    all that is to be made: for tactics that give at most what they get. A tactic that
    may give more is asked for one turn's pieces per activation, when it is its turn.
    Times have turns if the scope's do.
    """
    has_turns = isinstance(getattr(prefixes.scope.timestamp, "inner", None), ThrottleTime)

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        arrived = _Graphs(partial(nothing, info.index, info.peers), has_turns)
        work = _Work(tactic, throttle, prefixes.scope.environment.note)
        if throttle is not None:
            throttle.wake = info.activate

        def logic(prefixes: Input, graphs: Input, output: Output) -> bool:
            for time in arrived.take(graphs):
                if first is not None:
                    output.session(time).give_batch(first)
            work.take(prefixes)
            again = work.advance(arrived, graphs, output)
            arrived.release(prefixes, work.times)
            return again

        return logic

    return prefixes.binary_frontier(graphs, pact, Pipeline(), name, build)


def watch(stream: Stream[Any], throttle: Throttle) -> None:
    """Let `throttle` know what is under way up to the end of `stream`."""

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        capability.drop()
        watching = False

        def logic(input: Input, output: Output) -> bool:
            nonlocal watching
            if not watching:
                throttle.watch(input.frontier)
                watching = True
            for _ in input:
                pass
            throttle.wake()
            return False

        return logic

    stream.unary_frontier(Pipeline(), "Watch", build)


class _Graphs:
    """The graphs that have arrived, by their time."""

    def __init__(self, nothing: Callable[[], Any], has_turns: bool) -> None:
        self._nothing = nothing
        self._has_turns = has_turns
        self._by_time: dict[Any, Any] = {}

    def take(self, graphs: Input) -> Iterator[InputCapability]:
        """Take what has arrived; the time of each."""
        for time, (graph,) in graphs:
            self._by_time[self._start(time.time)] = graph
            yield time

    def at(self, time: Any) -> Any:
        """The graph of `time`; without edges where none came."""
        start = self._start(time)
        if start not in self._by_time:
            self._by_time[start] = self._nothing()
        return self._by_time[start]

    def release(self, prefixes: Input, times: Iterable[Any]) -> None:
        """Let go of the graphs for which no prefixes are here, at `times`, or may come."""
        if not self._by_time:
            return
        used = {self._start(time) for time in times}
        for start in self._by_time.keys() - used:
            end = at_end(start) if self._has_turns else start
            if not prefixes.frontier.less_equal(end):
                del self._by_time[start]

    def _start(self, time: Any) -> Any:
        return at_start(time) if self._has_turns else time


@dataclass(eq=False)
class _Item:
    """A batch of prefixes, and the pieces that are made of it once it was begun."""

    capability: Capability
    batch: Any
    pieces: Iterator[Any] | None = None


class _Work:
    """Batches that wait or are being worked on, the least time first."""

    def __init__(
        self, tactic: Tactic, throttle: Throttle | None, note: Callable[[str, int], None]
    ) -> None:
        self._tactic = tactic
        self._throttle = throttle
        self._note = note
        self._enough = (
            _RECORDS_PER_ACTIVATION if throttle is None else -(-throttle.batch_records // 2)
        )
        self._by_time: dict[Any, deque[_Item]] = {}

    @property
    def times(self) -> Iterable[Any]:
        """The times of all that is here."""
        return self._by_time.keys()

    def take(self, prefixes: Input) -> None:
        """Take what has arrived."""
        throttle = self._throttle
        if throttle is None:
            for time, batch in prefixes:
                self._add(_Item(time.retain(), batch))
            return
        if not self._by_time:
            throttle.catch_up()
        for time, batch in prefixes:
            self._add(_Item(time.delayed(throttle.now(time.time)), batch))
        throttle.note_waiting(
            sum(len(item.batch) for items in self._by_time.values() for item in items)
        )

    def _add(self, item: _Item) -> None:
        self._by_time.setdefault(item.capability.time, deque()).append(item)

    def advance(self, arrived: _Graphs, graphs: Input, output: Output) -> bool:
        """Do as much as one activation may, or one turn; True if there may be more to do."""
        n_sent = n_pieces = 0
        while (item := self._least(graphs)) is not None:
            if self._throttle is not None and not self._throttle.may_send(item.capability.time):
                break  # we are woken when what is under way has changed
            n_sent += self._next_piece(item, arrived, output)
            n_pieces += 1
            if n_sent >= self._enough or n_pieces >= _PIECES_PER_ACTIVATION:
                break
        if n_sent and self._throttle is not None:
            self._end_turn(self._throttle)
        return item is not None and n_pieces > 0

    def _least(self, graphs: Input) -> _Item | None:
        """The item of the least time, of those whose graph is complete.

        The least, even if another one was begun: `throttle.py` needs that.
        """
        ready = [time for time in self._by_time if not graphs.frontier.less_equal(time)]
        return self._by_time[min(ready)][0] if ready else None

    def _next_piece(self, item: _Item, arrived: _Graphs, output: Output) -> int:
        """Send the next piece of `item`, or be done with it; how many records."""
        if item.pieces is None:
            item.pieces = self._tactic(arrived.at(item.capability.time), item.batch)
        for piece in item.pieces:
            if piece is None:
                return 0
            output.session(item.capability).give_batch(piece)
            return size(piece)
        of_time = self._by_time[item.capability.time]
        of_time.popleft()
        if not of_time:
            del self._by_time[item.capability.time]
        item.capability.drop()
        if self._throttle is not None:
            self._note("prefixes", len(item.batch))
        return 0

    def _end_turn(self, throttle: Throttle) -> None:
        """Nothing more is sent at this turn: say so, by moving all capabilities on."""
        throttle.next_turn()
        items = [item for of_time in self._by_time.values() for item in of_time]
        self._by_time.clear()
        for item in items:
            item.capability.downgrade(throttle.now(item.capability.time))
            self._add(item)


def total(counts: Stream[Arrays], batch_of: Callable[[int], Any]) -> Stream[Any]:
    """The sum of the column `matches` of each complete time, a batch of it, at one worker.

    Of a stream that ends at its first time, with nothing, it is 0.
    """

    def build(capability: Capability, info: OperatorInfo) -> Logic:
        stash: Stash[list[int]] = Stash(info)
        first: Capability | None = capability
        has_come = False
        if info.index:
            capability.drop()
            first = None

        def logic(input: Input, output: Output) -> bool:
            nonlocal first, has_come
            for time, batch in input:
                stash.add(time, int(batch[MATCHES].sum()))
                has_come = True
            if first is not None and not input.frontier.less_equal(first.time):
                if not (has_come or input.frontier.elements):
                    output.session(first).give_batch(batch_of(0))
                first.drop()
                first = None
            for cap, sums in stash:
                output.session(cap).give_batch(batch_of(sum(sums)))
            return False

        return logic

    to_one = Exchange(to=lambda batch: np.zeros(len(batch), np.int64))
    return counts.unary_frontier(to_one, "Total", build)
