"""A graph as searches want it: edges between numbers, in lists by either end, with attributes.

Every worker that searches has the whole of it: 16 bytes for each edge and as many again for each
kind of lists, and the attributes that conditions name. Where that is too much, `motifs` spreads
the edges over the workers, and knows no attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import Numbers, group, starts_of
from pointstamp.kernels.lookups import common_items, equal_ranges

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Span = tuple[Ints, Ints]
"""Where lists begin and end, int64[k] each."""

PIECE = 1 << 16
"""So many records a piece has at most."""

READ = 1 << 22
"""So many items of lists are read in a call, found or not: tens of milliseconds."""

MANY_PARALLEL = 4
"""An edge that repeats is one in searches, where an edge has so many like it in the mean."""

KEPT = 4
"""So many lists of conditions a graph keeps, those that were wanted last, for the next search."""


@dataclass(frozen=True, eq=False)
class EdgeLists:
    """Edges by one end, `keys`, and of each in the order of the other.

    Attributes
    ----------
    starts : int64[n + 1], where the list of each vertex begins
    others : int64[m], the other ends
    rows : int64[m], which edge it is
    """

    starts: Ints
    others: Ints
    rows: Ints

    @classmethod
    def of(cls, n: int, keys: Ints, others: Ints, rows: Ints) -> EdgeLists:
        """The lists of edges between `n` vertices."""
        _, order = group(others.astype(np.int32), n, np.arange(len(rows)))
        starts, order = group(keys.astype(np.int32)[order], n, order)
        return cls(starts, others[order], rows[order])

    def spans(self, keys: Ints) -> Span:
        """Where the list of each of some vertices begins and ends, int64[k] each."""
        return self.starts[keys], self.starts[keys + 1]

    def between(self, keys: Ints, others: Ints) -> tuple[Ints, Ints]:
        """Where the edges of each pair begin and end, int64[k] each."""
        return self.found(self.spans(keys), others)

    def found(self, span: Span, others: Ints) -> Span:
        """Where in each list one of the other ends begins and ends."""
        return equal_ranges(self.others, *span, contiguous(others), self.marks())

    @cached_property
    def once(self) -> ParallelEdges | None:
        """With parallel edges as one; None where few are, which cost less where they are."""
        first = np.ones(len(self.others), np.bool_)
        first[1:] = self.others[1:] != self.others[:-1]
        first[self.starts[:-1][np.diff(self.starts) > 0]] = True
        begins = np.append(np.flatnonzero(first), len(first))
        sizes = np.diff(begins).astype(np.float64)
        if (sizes * sizes).sum() <= MANY_PARALLEL * len(first):
            return None
        places = np.arange(len(sizes))
        lists = EdgeLists(np.searchsorted(begins, self.starts), self.others[begins[:-1]], places)
        return ParallelEdges(lists, begins, self.rows)

    def marks(self) -> Numbers:
        """A mark for each vertex, none of which is set: memory that is touched where one is."""
        return np.zeros(len(self.starts), np.int32)


@dataclass(frozen=True, eq=False)
class ParallelEdges:
    """Edges, those of the same ends as one.

    Attributes
    ----------
    lists : EdgeLists
        In which each is once, and its row is its place, 0 to k - 1.
    begins : int64[k + 1], where in `rows` the edges of each begin
    rows : int64[m], which edges they are
    """

    lists: EdgeLists
    begins: Ints
    rows: Ints

    def spans(self, places: Ints) -> Span:
        """Where in `rows` the edges of each of some places begin and end."""
        return self.begins[places], self.begins[places + 1]


def spread(begins: Ints, ends: Ints, piece: int = PIECE) -> Iterator[tuple[Ints, Ints]]:
    """The items of lists, `piece` at a time: of which list each is, and where.

    >>> [(of.tolist(), at.tolist()) for of, at in spread(np.array([5, 9]), np.array([7, 10]))]
    [([0, 0, 1], [5, 6, 9])]
    """
    before = starts_of(ends - begins)
    offsets, n = begins - before[:-1], int(before[-1])
    for low in range(0, n, piece):
        high = min(low + piece, n)
        first, last = np.searchsorted(before, low, "right") - 1, np.searchsorted(before, high)
        bounds = before[first : last + 1].clip(low, high)
        of = np.repeat(np.arange(first, last), np.diff(bounds))
        yield of, offsets[of] + np.arange(low, high)


def common(
    lists: EdgeLists, span: Span, other_lists: EdgeLists, other_span: Span
) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """Which other ends are in both lists of each of k pairs, some `PIECE` at a time.

    Yields of which pair each is, where it is in the first list, and where its like begin and end
    in the other. The arrays are views, filled anew for the next ones.
    """
    room = np.empty((4, PIECE), np.int64)
    for found in _in_calls(lists, span, other_lists, other_span, False, room):
        of, where, firsts, lasts = room[:, :found]
        yield of, where, firsts, lasts


def count_common(lists: EdgeLists, span: Span, other_lists: EdgeLists, other_span: Span) -> int:
    """How many edges of the first list of each pair meet how many of the second, in all."""
    none = np.empty((4, 0), np.int64)
    return sum(_in_calls(lists, span, other_lists, other_span, True, none))


def _in_calls(
    lists: EdgeLists,
    span: Span,
    other_lists: EdgeLists,
    other_span: Span,
    counting: bool,
    room: Any,
) -> Iterator[int]:
    marks, marked = lists.marks(), np.zeros(2, np.int64)
    at, resume = 0, -1
    while at < len(span[0]):
        found, at, resume = common_items(
            lists.others,
            *span,
            other_lists.others,
            *other_span,
            marks,
            marked,
            at,
            resume,
            READ,
            counting,
            *room,
        )
        yield found


@dataclass(eq=False)
class NumberedGraph:
    """Edges between the numbers 0 to n - 1, and what conditions may ask of both.

    Attributes
    ----------
    sources, targets : int64[m]
    vertices, edges : pyarrow.Table
        Attributes: the records in the order of the numbers, and in that of the edges.
    """

    n: int
    sources: Ints
    targets: Ints
    vertices: Any = None
    edges: Any = None
    _lists: dict[Any, EdgeLists] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def lists(
        self,
        key: Any,
        by_target: bool,
        undirected: bool,
        edges: Bools | None = None,
        at_source: Bools | None = None,
        at_target: Bools | None = None,
    ) -> EdgeLists:
        """Lists of the edges that masks allow, by source or by target; made once for a `key`.

        Those of all edges, of the key (), are kept, of which there are four at most; of others the
        last few, because each condition has its own: a search holds those that it needs.
        """
        whole = (key, by_target, undirected)
        with self._lock:  # or workers that are threads would make them once each
            found = self._lists.pop(whole, None)
            if found is None:
                sources, targets, rows = self.allowed(undirected, edges, at_source, at_target)
                keys, others = (targets, sources) if by_target else (sources, targets)
                found = EdgeLists.of(self.n, keys, others, rows)
            self._lists[whole] = found
            of_conditions = [kept for kept in self._lists if kept[0] != ()]
            for oldest in of_conditions[:-KEPT]:
                del self._lists[oldest]
        return found

    def allowed(
        self,
        undirected: bool,
        edges: Bools | None,
        at_source: Bools | None,
        at_target: Bools | None,
    ) -> tuple[Ints, Ints, Ints]:
        """The ends of the edges that masks allow, and which these are; either way if undirected."""
        rows = np.arange(len(self.sources)) if edges is None else np.flatnonzero(edges)
        sources, targets = self.sources[rows], self.targets[rows]
        if undirected:
            turned = sources != targets
            sources, targets, rows = (
                np.concatenate([sources, targets[turned]]),
                np.concatenate([targets, sources[turned]]),
                np.concatenate([rows, rows[turned]]),
            )
        kept = np.ones(len(rows), np.bool_)
        if at_source is not None:
            kept &= at_source[sources]
        if at_target is not None:
            kept &= at_target[targets]
        return sources[kept], targets[kept], rows[kept]

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in self.__dict__.items() if name not in ("_lists", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lists={}, _lock=Lock())
