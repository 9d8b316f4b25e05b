"""The edges of a graph without directions, each turned to lead from lower to higher degree.

    edges --+--> count ends --> degrees, at their owners --> to all --+
            +---------------------------------------------------------+--> orient -->

So turned, no vertex has more than sqrt(2 m) out-neighbours, of m edges, however many
neighbours it has, which is what bounds the work of finding cliques.

Any order of the vertices would find each clique once, so a degree need not be exact, if
only all workers go by the same: edges that repeat count as often as they come, and nothing
has to be kept for that. And only the highest degrees are sent to all workers, as many as
`KNOWN_VERTICES`; the other vertices come before those, by their ids. Each of them has
fewer neighbours than any that is known, so that of k known ones the bound is the greater
of sqrt(2 m) and 2 m / k.

Why not ask the vertices' owners for degrees? Then each edge would go to the owner of the one end,
and with its degree to that of the other, before it goes where its list is: on two workers that
took four times as long, and edges are many more than vertices.

Source: the order by degree is of N. Chiba, T. Nishizeki, "Arboricity and subgraph
listing algorithms", SIAM J. Comput. 1985.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pipeline
from pointstamp.dataflow.stash import Stash, in_memory
from pointstamp.graph.edges import checked_stream, joined, proper_columns, proper_edges
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.joins.join_operators import SOURCE, TARGET, Logic, PieceQueue, with_graph
from pointstamp.joins.tactics import Pieces
from pointstamp.kernels.lists import DenseIds, counted, distinct
from pointstamp.kernels.turn import turn
from pointstamp.operators.stream import Stream

Ints = npt.NDArray[np.int64]

_DEGREE = "degree"

KNOWN_VERTICES = 1 << 22
"""How many degrees each worker knows at most: some 100 MB in the largest graphs."""


def undirected(edges: Stream[Any]) -> Stream[Arrays]:
    """The edges, each turned to lead from lower to higher degree.

    edges : as users give them
    returns a stream of `Arrays` of `src` and `dst`, on any worker

    Loops are dropped. Edges that repeat, in either direction, are turned alike and still
    repeat. Of vertices of equal degree, the lower id comes first.
    """
    if checked_stream(edges, "edges").scope.peers == 1:
        return edges.unary_frontier(Pipeline(), "Orient", _orient_all)
    proper = proper_edges(edges)
    degrees, nothing = _degrees(proper), _Degrees.nothing
    return with_graph(proper, degrees, Pipeline(), "Orient", _oriented, nothing=nothing)


def _orient_all(capability: Capability, info: OperatorInfo) -> Logic:
    """A worker that is alone has all edges, and so their degrees."""
    capability.drop()
    stash: Stash[list[Arrays]] = Stash(info)
    work = PieceQueue()

    def logic(input: Input, output: Output) -> bool:
        for time, batch in input:
            if (proper := proper_columns(batch)) is not None:
                stash.add(time, proper)
        while (held := stash.next_complete()) is not None:
            work.add(held, _all_oriented(joined(in_memory(stash.value))))
        return work.give_next(output)

    return logic


def _all_oriented(batches: list[Arrays]) -> Pieces:
    """Turn edges by the degrees that they give their ends; each batch is let go of behind it."""
    degrees = _Degrees.of_ends(batches)
    if len(degrees.degrees) > KNOWN_VERTICES:
        degrees = _Degrees.of_parts([degrees.highest(KNOWN_VERTICES)])
    while batches:
        yield from _oriented(degrees, batches.pop())


@dataclass(frozen=True, eq=False)
class _Degrees:
    """How many edges end at each of some vertices.

    Attributes
    ----------
    numbering : of the vertices
    degrees : int64[n], by number
    """

    numbering: DenseIds
    degrees: Ints

    @classmethod
    def nothing(cls, index: int = 0, peers: int = 1) -> _Degrees:
        """What a worker knows where there is no edge."""
        return cls(DenseIds.of(distinct()), np.empty(0, np.int64))

    @classmethod
    def of_ends(cls, edges: list[Arrays]) -> _Degrees:
        """Of the vertices that are at either end of some edges, as far as these go."""
        ends = [batch[end] for batch in edges for end in (SOURCE, TARGET)]
        ids, degrees = counted(*ends)
        return cls(DenseIds.of(ids), degrees)

    @classmethod
    def of_parts(cls, parts: list[Arrays]) -> _Degrees:
        """Of what several have found, each of some of the edges: see `part`."""
        numbering = DenseIds.of(distinct(*(part[VERTEX] for part in parts)))
        degrees = np.zeros(len(numbering.ids), np.int64)
        for part in parts:
            np.add.at(degrees, numbering.numbers_of(part[VERTEX]), part[_DEGREE])
        return cls(numbering, degrees)

    def part(self) -> Arrays:
        """The vertices and their degrees, to be added to those of others."""
        return Arrays({VERTEX: self.numbering.ids, _DEGREE: self.degrees})

    def highest(self, n: int) -> Arrays:
        """The same of at most `n` vertices: those of the highest degrees, and of two at least.

        Of those that are not in it none has a higher degree than one that is.
        """
        least = 2
        if n < len(self.degrees):
            least = max(least, int(np.partition(self.degrees, -n - 1)[-n - 1]) + 1)
        chosen = np.flatnonzero(self.degrees >= least)
        return Arrays({VERTEX: self.numbering.ids[chosen], _DEGREE: self.degrees[chosen]})


def _degrees(edges: Stream[Arrays]) -> Stream[_Degrees]:
    """The degrees that all workers know of the graph of each time, at every worker."""
    peers = edges.scope.peers

    def count(batches: list[Arrays], session: Any) -> None:
        session.give_batch(_Degrees.of_ends(joined(batches)).part())

    def add_up(batches: list[Arrays], session: Any) -> None:
        session.give_batch(_Degrees.of_parts(batches).highest(KNOWN_VERTICES // peers))

    def learn(batches: list[Arrays], session: Any) -> None:
        session.give(_Degrees.of_parts(batches))

    counts = edges.unary_frontier(Pipeline(), "Count ends", partial(_when_complete, count))
    own = counts.unary_frontier(Exchange(VERTEX), "Degrees", partial(_when_complete, add_up))
    return own.unary_frontier(Broadcast(), "All degrees", partial(_when_complete, learn))


def _when_complete(
    answer: Callable[[list[Any], Any], None], capability: Capability, info: OperatorInfo
) -> Logic:
    """An operator that answers each time when all of it is there."""
    capability.drop()
    stash: Stash[list[Any]] = Stash(info)

    def logic(input: Input, output: Output) -> bool:
        stash.take(input)
        for cap, batches in stash:
            with output.session(cap) as session:
                answer(batches, session)
        return False

    return logic


def _oriented(degrees: _Degrees, edges: Arrays) -> Pieces:
    """Turn the edges whose `dst` comes before their `src`."""
    low, high = turn(degrees.numbering, degrees.degrees, edges[SOURCE], edges[TARGET])
    yield Arrays({SOURCE: low, TARGET: high})
