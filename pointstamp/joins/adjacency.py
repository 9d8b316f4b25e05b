"""The neighbours of the vertices that one worker keeps: the index a join asks.

An `Adjacency` has one direction, out-neighbours or in-neighbours, of all edges of
one time whose key this worker owns. A `Graph` is what an operator of the worker
has in hand for a time: one adjacency or two, and room to mark vertices in.

Knows nothing of streams; who owns a vertex is decided by the hash that also
exchanges records, so that a record sent by a vertex arrives where its row is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pointstamp.errors import InternalError
from pointstamp.joins.plan import Direction
from pointstamp.kernels.csr import build_csr, find_spans
from pointstamp.kernels.hashing import hash_ints, settled
from pointstamp.kernels.tables import build_table

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The sorted, distinct neighbours of some vertices; made by `build`.

    Attributes
    ----------
    direction : "forward" or "reverse"
    keys : int64[n], the vertices that have neighbours, sorted
    starts : int64[n + 1], where those of each begin in `values`
    values : int64[m], the neighbours
    table, dense : see `kernels.tables.build_table`
    """

    direction: Direction
    keys: Ints
    starts: Ints
    values: Ints
    table: npt.NDArray[np.int32]
    dense: bool

    @classmethod
    def build(cls, direction: Direction, sources: Ints, targets: Ints) -> Adjacency:
        """Index edges, int64[m] each, in any order; those that repeat count once.

        >>> reverse = Adjacency.build("reverse", np.array([1, 2, 1]), np.array([3, 3, 3]))
        >>> reverse.keys.tolist(), reverse.values.tolist()
        ([3], [1, 2])
        """
        if direction == "reverse":
            sources, targets = targets, sources
        keys, starts, values = build_csr(sources, targets)
        table, dense = build_table(keys)
        return cls(
            direction, settled(keys), settled(starts), settled(values), settled(table), dense
        )

    @property
    def n_edges(self) -> int:
        """How many distinct edges are here."""
        return len(self.values)

    @property
    def n_bytes(self) -> int:
        """How many bytes the index takes."""
        parts = (self.keys, self.starts, self.values, self.table)
        return sum(part.nbytes for part in parts)

    def spans(self, vertices: Ints) -> tuple[Ints, Ints]:
        """Where the neighbours of each of `vertices` begin and end in `values`."""
        return find_spans(self.keys, self.starts, self.table, self.dense, settled(vertices))

    def edges(self, room: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """All edges as (key, neighbour, how many neighbours the key has), `room` at a time."""
        sizes = np.diff(self.starts)
        for start in range(0, self.n_edges, room):
            stop = min(start + room, self.n_edges)
            first = int(np.searchsorted(self.starts, start, "right")) - 1
            last = int(np.searchsorted(self.starts, stop, "left"))
            ends = np.minimum(self.starts[first + 1 : last + 1], stop)
            begins = np.maximum(self.starts[first:last], start)
            rows = np.repeat(np.arange(first, last), ends - begins)
            yield self.keys[rows], self.values[start:stop], sizes[rows]


class Graph:
    """The edges of one time, as far as one of `peers` workers keeps them."""

    def __init__(self, index: int = 0, peers: int = 1) -> None:
        self._index = index
        self._peers = peers
        self._adjacencies: dict[Direction, Adjacency] = {}

    def add(self, adjacency: Adjacency) -> None:
        """Take an index of the graph; each direction comes once."""
        if adjacency.direction in self._adjacencies:
            raise InternalError(f"two {adjacency.direction} indexes of one graph at one worker")
        self._adjacencies[adjacency.direction] = adjacency

    def adjacency(self, direction: Direction) -> Adjacency:
        """The index of that direction; an empty one where this worker got no edges."""
        return self._adjacencies.get(direction) or _EMPTY[direction]

    def owns(self, vertices: Ints) -> Bools:
        """Whether the row of each of `vertices` is here, if there is one."""
        if self._peers == 1:
            return np.ones(len(vertices), np.bool_)
        owners: Bools = hash_ints(vertices) % np.uint64(self._peers) == np.uint64(self._index)
        return owners

    @cached_property
    def low(self) -> int:
        """The least neighbour: what the first mark is for."""
        return min((int(a.values.min()) for a in self._filled), default=0)

    @cached_property
    def marks(self) -> npt.NDArray[np.uint8]:
        """A zero for each vertex from `low` up; none where they are too far apart for that.

        At most four bytes for each edge, for the whole graph's neighbours.
        """
        high = max((int(a.values.max()) for a in self._filled), default=-1)
        span = high - self.low + 1
        room = 4 * sum(a.n_edges for a in self._filled) + 65_536
        return np.zeros(span if span <= room else 0, np.uint8)

    @property
    def _filled(self) -> list[Adjacency]:
        return [a for a in self._adjacencies.values() if a.n_edges]


_NONE = np.empty(0, np.int64)
_EMPTY: dict[Direction, Adjacency] = {
    "forward": Adjacency.build("forward", _NONE, _NONE),
    "reverse": Adjacency.build("reverse", _NONE, _NONE),
}
