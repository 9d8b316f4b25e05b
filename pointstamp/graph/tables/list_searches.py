"""Searches whose results are lists of vertices: cycles, and random walks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.convert import arrow_array
from pointstamp.graph.tables.numbered_graph import (
    PIECE,
    Bools,
    EdgeLists,
    Ints,
    NumberedGraph,
    common,
    spread,
)
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
    `max_length` bounds their edges. The last vertex of the longest cycles is in the lists of both
    ends of a path, which are intersected: most ways on from a path lead to no cycle of that length.
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
        cyclic = _peeled(n, *edges)
        begins = np.flatnonzero(cyclic.lasts == np.arange(graph.n))[index::peers]
        for low in range(0, len(begins), _BEGINS):
            yield from self._grown(cyclic, begins[low : low + _BEGINS, None])

    def _grown(self, cyclic: _CyclicEdges, paths: Ints) -> Iterator[Any]:
        """The cycles of paths, depth first; paths of which all has grown are let go at once."""
        waiting = [_Growing(cyclic.lists, paths)]
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
            fresh = cyclic.are_fresh(paths, following)
            if not fresh.any():
                continue
            longer = _longer(paths[fresh], following[fresh])
            if longer.shape[1] + 1 == self.max_length:
                yield from cyclic.closed(longer)
            else:
                waiting.append(_Growing(cyclic.lists, longer))


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


@dataclass(frozen=True)
class _CyclicEdges:
    """The edges that may be on a cycle of three vertices or more, by either end.

    Attributes
    ----------
    lists, back : EdgeLists, by source and by target
    lasts : int64[n]
        Until when each vertex is on such a cycle: on none once the vertices up to that one are
        gone. -1 for those that are on none at all.
    """

    lists: EdgeLists
    back: EdgeLists
    lasts: Ints

    def are_fresh(self, paths: Ints, following: Ints) -> Bools:
        """Whether each path may go on to a vertex: one after its first, and not on it yet."""
        fresh: Bools = self.lasts[following] >= paths[:, 0]
        fresh &= ~(paths == following[:, None]).any(axis=1)
        return fresh

    def closed(self, paths: Ints) -> Iterator[Any]:
        """The cycles of the vertices of each path alone, [n, k], and those of one more."""
        firsts, ends = paths[:, 0], paths[:, -1]
        if paths.shape[1] > 2:
            begin, end = self.lists.between(ends, firsts)
            closed = begin < end
            if closed.any():
                yield with_lists({}, CYCLES, _longer(paths[closed], firsts[closed]))
        size = max(1, min(PIECE, _CELLS // paths.shape[1]))
        spans = self.lists.spans(ends), self.back.spans(firsts)
        for of, at, _, _ in common(self.lists, spans[0], self.back, spans[1]):
            for low in range(0, len(of), size):
                some, last = paths[of[low : low + size]], self.lists.others[at[low : low + size]]
                fresh = self.are_fresh(some, last)
                if fresh.any():
                    longer = _longer(some[fresh], last[fresh])
                    yield with_lists({}, CYCLES, _longer(longer, longer[:, 0]))


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


def _peeled(n: int, sources: Ints, targets: Ints) -> _CyclicEdges:
    """The edges that may be on a cycle of three vertices or more, of edges that are there once."""
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
    rows = np.arange(len(sources))
    return _CyclicEdges(
        EdgeLists.of(n, sources, targets, rows), EdgeLists.of(n, targets, sources, rows), lasts
    )


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
    columns: list[Any] = []
    for column in batch.columns:
        # Chunk by chunk: ids of all lists together may be more text than an array has room for.
        if isinstance(column, pa.ChunkedArray):
            of_ids: list[Any] = [_with_ids(chunk, ids) for chunk in column.chunks]
            columns.append(pa.chunked_array(of_ids))
        else:
            columns.append(_with_ids(column, ids))
    return type(batch).from_arrays(columns, names=batch.schema.names)


def _with_ids(lists: Any, ids: Any) -> Any:
    return pa.ListArray.from_arrays(lists.offsets, ids.take(lists.values))
