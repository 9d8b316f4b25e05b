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
from pointstamp.kernels.lists import group
from pointstamp.kernels.peel import peel_in_turn

CYCLES, WALK = "found_cycles", "walk"


@dataclass(frozen=True)
class CycleTask:
    """Every simple cycle once, from its least vertex, as a list that ends where it begins.

    Those of one and of two vertices are loops, and edges both ways. For others paths grow from each
    vertex over greater ones, those of a batch by an edge at a time, and those that lead back are
    cycles. What no cycle can have, because nothing leads to it or from it, or it has one neighbour
    alone, once the vertices before the path's first are gone, is not stepped on: along a road, or
    in a tree, of edges both ways no path grows. There may be exponentially many paths:
    `max_length` bounds their edges.
    """

    max_length: int | None = None

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """This worker's cycles: those from the vertices that it has a share of."""
        n, most = graph.n, np.inf if self.max_length is None else self.max_length
        edges = np.divmod(np.unique(graph.sources * n + graph.targets), max(n, 1))
        for paths in _short(n, *edges)[: int(min(most, 2))]:
            own = paths[index::peers]
            for low in range(0, len(own), PIECE):
                yield with_lists({}, CYCLES, own[low : low + PIECE])
        if most < 3:
            return
        lists, lasts = _peeled(n, *edges)
        begins = np.flatnonzero(lasts == np.arange(graph.n))[index::peers]
        for low in range(0, len(begins), _BEGINS):
            yield from self._grown(lists, lasts, begins[low : low + _BEGINS, None])

    def _grown(self, lists: EdgeLists, lasts: Ints, paths: Ints) -> Iterator[Any]:
        """The cycles of paths, depth first; paths of which all has grown are let go at once."""
        waiting = [_Growing(lists, paths)]
        while waiting:
            growing = waiting[-1]
            found = growing.piece()
            if growing.n_left == 0:
                waiting.pop()
            if found is None:
                continue
            paths, following = found
            closed = following == paths[:, 0]
            if paths.shape[1] > 2 and closed.any():
                yield with_lists({}, CYCLES, _longer(paths[closed], following[closed]))
            if self.max_length is not None and paths.shape[1] >= self.max_length:
                continue
            fresh = lasts[following] >= paths[:, 0]
            fresh &= ~(paths == following[:, None]).any(axis=1)
            if fresh.any():
                waiting.append(_Growing(lists, _longer(paths[fresh], following[fresh])))


_BEGINS = 1 << 10
"""From so many vertices paths grow at a time."""

_CELLS = 1 << 17
"""So many vertices the paths of a piece have together; there is a piece for each length."""


_STEPS = 1 << 22
"""So many steps the walks of a piece have together, where one walk has no more."""


class _Growing:
    """Paths of one length, and what is left of the edges that lead on from their ends."""

    def __init__(self, lists: EdgeLists, paths: Ints) -> None:
        self._lists, self._paths = lists, paths
        begins, ends = lists.starts[paths[:, -1]], lists.starts[paths[:, -1] + 1]
        self.n_left = int((ends - begins).sum())
        self._items = spread(begins, ends, max(1, min(PIECE, _CELLS // paths.shape[1])))

    def piece(self) -> tuple[Ints, Ints] | None:
        """Some of the paths, one for each edge that leads on, and where it leads."""
        of, at = next(self._items, (None, None))
        if of is None or at is None:
            return None
        self.n_left -= len(of)
        return self._paths[of], self._lists.others[at]


def _longer(paths: Ints, following: Ints) -> Ints:
    return np.concatenate([paths, following[:, None]], axis=1)


def _short(n: int, sources: Ints, targets: Ints) -> list[Ints]:
    """The cycles of one vertex, and those of two, of edges that are there once and in order."""
    loops = sources[sources == targets]
    there, back = sources * n + targets, targets * n + sources
    at = np.minimum(np.searchsorted(there, back), max(len(there) - 1, 0))
    both = (sources < targets) & (there[at] == back)
    pairs = sources[both], targets[both], sources[both]
    return [np.stack([loops, loops], axis=1), np.stack(pairs, axis=1)]


def _peeled(n: int, sources: Ints, targets: Ints) -> tuple[EdgeLists, Ints]:
    """The edges that may be on a cycle of three vertices or more; and until when each vertex is.

    sources, targets : of edges that are there once
    The second is int64[n]: a vertex is on no such cycle once those up to that one are gone. -1 for
    those that are on none at all.
    """
    proper = sources != targets
    sources, targets = sources[proper], targets[proper]
    ends = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    around, others = np.divmod(np.unique(ends[0] * n + ends[1]), max(n, 1))
    starts, neighbours = group(around.astype(np.int32), n, others.astype(np.int32))
    # The edges turned round are all but one of each vertex: so one is taken away when it has one
    # neighbour left, and not when it has none.
    of_any = starts[:-1], starts[1:], neighbours, starts[:-1], starts[1:] - 1, neighbours
    lasts = peel_in_turn(*of_any)
    kept = (lasts[sources] >= 0) & (lasts[targets] >= 0)
    sources, targets = sources[kept], targets[kept]
    numbers = sources.astype(np.int32), targets.astype(np.int32)
    starts, heads = group(numbers[0], n, numbers[1])
    back_starts, tails = group(numbers[1], n, numbers[0])
    directed = starts[:-1], starts[1:], heads, back_starts[:-1], back_starts[1:], tails
    lasts = np.minimum(lasts, peel_in_turn(*directed))
    kept = (lasts[sources] >= 0) & (lasts[targets] >= 0)
    sources, targets = sources[kept], targets[kept]
    return EdgeLists.of(n, sources, targets, np.arange(len(sources))), lasts


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
        size = max(1, min(PIECE, _STEPS // (self.length + 1)))
        for low in range(0, len(begins), size):
            part = slice(low, low + size)
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
