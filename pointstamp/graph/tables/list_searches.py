"""Searches whose results are lists of vertices: cycles, and random walks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.convert import arrow_array
from pointstamp.graph.tables.numbered_graph import PIECE, EdgeLists, Ints, NumberedGraph, spread
from pointstamp.graph.vertex_lists import with_lists
from pointstamp.kernels.hashing import hash_ints

CYCLES, WALK = "found_cycles", "walk"


@dataclass(frozen=True)
class CycleTask:
    """Every simple cycle once, from its least vertex, as a list that ends where it begins.

    Paths grow from each vertex over greater ones, all of a batch by an edge at a time, and those
    that lead back are cycles. What no cycle can have, because nothing leads to it or from it, is
    peeled off before. There may be exponentially many paths: `max_length` bounds their edges.
    """

    max_length: int | None = None

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """This worker's cycles: those from the vertices that it has a share of."""
        lists = _peeled(graph)
        begins = np.flatnonzero(np.diff(lists.starts))[index::peers]
        for low in range(0, len(begins), PIECE):
            yield from self._grown(lists, begins[low : low + PIECE, None])

    def _grown(self, lists: EdgeLists, paths: Ints) -> Iterator[Any]:
        if self.max_length is not None and paths.shape[1] > self.max_length:
            return
        last = paths[:, -1]
        for of, at in spread(lists.starts[last], lists.starts[last + 1]):
            following = lists.others[at]
            grown = np.concatenate([paths[of], following[:, None]], axis=1)
            closed = following == grown[:, 0]
            if closed.any():
                yield with_lists({}, CYCLES, grown[closed])
            fresh = following > grown[:, 0]
            fresh &= ~(grown[:, 1:-1] == following[:, None]).any(axis=1)
            if fresh.any():
                yield from self._grown(lists, grown[fresh])


def _peeled(graph: NumberedGraph) -> EdgeLists:
    """The edges, each once, that are left when vertices without a way in or out are taken away."""
    pairs = np.unique(graph.sources * graph.n + graph.targets)
    sources, targets = np.divmod(pairs, max(graph.n, 1))
    while True:
        has_out, has_in = np.zeros(graph.n, np.bool_), np.zeros(graph.n, np.bool_)
        has_out[sources], has_in[targets] = True, True
        kept = has_in[sources] & has_out[targets]
        if kept.all():
            return EdgeLists.of(graph.n, sources, targets, np.arange(len(sources)))
        sources, targets = sources[kept], targets[kept]


@dataclass(frozen=True)
class WalkTask:
    """Random walks along the edges, some from each vertex: the vertices that they come by.

    Which edge is taken is a hash of the seed, the walk and the step, so that walks do not depend
    on the number of workers. One that comes where no edge leads on ends there; with a probability
    of `restart` a step leads back to the beginning.
    """

    n_walks: int
    length: int
    restart: float
    seed: int

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """The walks from this worker's share of the vertices."""
        rows = np.arange(len(graph.sources))
        lists = graph.lists((), False, False) if len(rows) else None
        begins = np.repeat(np.arange(graph.n)[index::peers], self.n_walks)
        numbers = np.tile(np.arange(self.n_walks), len(begins) // max(self.n_walks, 1))
        for low in range(0, len(begins), PIECE):
            part = slice(low, low + PIECE)
            yield self._walked(lists, begins[part], numbers[part])

    def _walked(self, lists: EdgeLists | None, begins: Ints, numbers: Ints) -> Any:
        places = np.full((len(begins), self.length + 1), -1, np.int64)
        places[:, 0] = begins
        key = hash_ints(begins * self.n_walks + numbers) ^ hash_ints(np.array([self.seed]))[0]
        for step in range(1, self.length + 1):
            if lists is None:
                break
            at = places[:, step - 1]
            chances = hash_ints((key + np.uint64(2 * step)).view(np.int64))
            turns = hash_ints((key + np.uint64(2 * step + 1)).view(np.int64)) / 2.0**64
            n_out = np.where(at >= 0, lists.starts[at + 1] - lists.starts[at], 0)
            chosen = lists.starts[at] + (chances % np.maximum(n_out, 1).astype(np.uint64)).astype(
                np.int64
            )
            moved = n_out > 0
            places[moved, step] = lists.others[chosen[moved]]
            back = (turns < self.restart) & (at >= 0)
            places[back, step] = begins[back]
        is_there = places >= 0
        starts = np.zeros(len(begins) + 1, np.int32)
        np.cumsum(is_there.sum(axis=1), out=starts[1:])
        walks = pa.ListArray.from_arrays(arrow_array(starts), arrow_array(places[is_there]))
        return pa.RecordBatch.from_arrays([walks], names=[WALK])


def with_ids(batch: Any, ids: Any) -> Any:
    """Lists of numbers as lists of the ids that have them, an Arrow array.

    >>> batch = pa.RecordBatch.from_pydict({"walk": [[1, 0], [1]]})
    >>> with_ids(batch, pa.array(["a", "b"])).to_pydict()
    {'walk': [['b', 'a'], ['b']]}
    """
    columns = []
    for column in batch.columns:
        lists: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(lists, pa.ChunkedArray):
            lists = pa.concat_arrays(lists.chunks)
        columns.append(pa.ListArray.from_arrays(lists.offsets, ids.take(lists.values)))
    return type(batch).from_arrays(columns, names=batch.schema.names)
