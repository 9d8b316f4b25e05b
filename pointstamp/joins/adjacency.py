"""The neighbours of the vertices that one worker keeps: the index a join asks.

An `Adjacency` has one direction, out-neighbours or in-neighbours, of all edges of
one time whose key this worker owns. An `IndexedGraph` is what all operators of the worker
have in hand for a time: one adjacency or two, and room to mark vertices in.

Knows nothing of streams; which worker owns a vertex is decided by the hash that also
exchanges records, so that a record sent by a vertex arrives where its row is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.errors import InternalError
from pointstamp.joins.plan import Direction
from pointstamp.kernels.csr import Pairs, find_spans
from pointstamp.kernels.hashing import contiguous, hash_ints
from pointstamp.kernels.key_tables import build_table
from pointstamp.kernels.lists import DenseIds, Numbers, copy_lists, distinct, starts_of

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NOTHING: Mapping[Direction, int] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The sorted, distinct neighbours of some vertices; made by `of`, or `build`.

    Attributes
    ----------
    direction : "forward" or "reverse"
    keys : int64[n], the vertices that have neighbours, sorted
    starts : int64[n + 1], where those of each begin in `values`
    values : int64[m], the neighbours; or their numbers in a graph, int32[m]
    table, dense : see `kernels.key_tables.build_table`
    """

    direction: Direction
    keys: Ints
    starts: Ints
    values: npt.NDArray[Any]
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
        pairs = Pairs()
        pairs.add(sources, targets)
        return cls.of(direction, pairs)

    @classmethod
    def of(cls, direction: Direction, pairs: Pairs) -> Adjacency:
        """Index pairs of (key, neighbour), which are used up."""
        return cls._of_rows(direction, *pairs.build())

    @classmethod
    def of_lists(cls, direction: Direction, parts: Sequence[tuple[Ints, Ints, Ints]]) -> Adjacency:
        """Put parts of an index together, each its (keys, starts, values), no key in two.

        >>> parts = [([5], [0, 2], [1, 9]), ([2, 7], [0, 1, 2], [4, 3])]
        >>> index = Adjacency.of_lists("forward", [tuple(map(np.array, p)) for p in parts])
        >>> index.keys.tolist(), index.starts.tolist(), index.values.tolist()
        ([2, 5, 7], [0, 1, 3, 4], [4, 1, 9, 3])
        """
        keys = np.concatenate([keys for keys, _, _ in parts])
        sizes = np.concatenate([np.diff(starts) for _, starts, _ in parts])
        order = np.argsort(keys)
        starts = starts_of(sizes[order])
        places = np.empty_like(keys)
        places[order] = starts[:-1]
        values = np.empty(starts[-1], np.int64)
        before = 0
        for own, own_starts, own_values in parts:
            its = places[before : before + len(own)]
            copy_lists(contiguous(own_values), contiguous(own_starts), its, values)
            before += len(own)
        return cls._of_rows(direction, keys[order], starts, values)

    @classmethod
    def _of_rows(cls, direction: Direction, keys: Ints, starts: Ints, values: Ints) -> Adjacency:
        table, dense = build_table(keys)
        return cls(
            direction,
            contiguous(keys),
            contiguous(starts),
            contiguous(values),
            contiguous(table),
            dense,
        )

    def spans(self, vertices: Ints) -> tuple[Ints, Ints]:
        """Where the neighbours of each of `vertices` begin and end in `values`."""
        return find_spans(self.keys, self.starts, self.table, self.dense, contiguous(vertices))


class IndexedGraph:
    """The edges of one time, as far as one of `peers` workers keeps them.

    Neighbours are *numbers* here, int32 from 0 in the order of their ids, so that a
    list takes half the memory and there is a mark for each, however far ids are apart.
    The numbers are this worker's own; what travels is ids.

    Parameters
    ----------
    index, peers : this worker's number, and how many there are
    adjacencies : at most one of each direction
        The lists of this worker's vertices, and those that all workers know.
    replicated : from which length on all workers have a list, of each direction
        -1, as for one that is not given: they have none.

    Attributes
    ----------
    marks : uint8[n], all 0: room to mark numbers in, for the caller

    Raises
    ------
    InternalError
        If a direction comes twice.
    """

    def __init__(
        self,
        index: int = 0,
        peers: int = 1,
        adjacencies: Iterable[Adjacency] = (),
        replicated: Mapping[Direction, int] = _NOTHING,
    ) -> None:
        self.index = index
        self.peers = peers
        self._replicated = replicated
        by_direction: dict[Direction, Adjacency] = {}
        for adjacency in adjacencies:
            if adjacency.direction in by_direction:
                raise InternalError(f"two {adjacency.direction} indexes of one graph at one worker")
            by_direction[adjacency.direction] = adjacency
        self._numbering = DenseIds.of(distinct(*(a.values for a in by_direction.values())))
        self._adjacencies = {d: self._numbered(a) for d, a in by_direction.items()}
        self.marks = np.zeros(len(self.ids), np.uint8)
        self._longest: dict[Direction, int] = {}

    @property
    def ids(self) -> Ints:
        """The id of each number, int64[n]."""
        return self._numbering.ids

    def _numbered(self, adjacency: Adjacency) -> Adjacency:
        return replace(adjacency, values=contiguous(self.numbers_of(adjacency.values)))

    def numbers_of(self, vertices: Ints) -> Numbers:
        """The number of each vertex, int32; -1 for those that are in no list here."""
        return self._numbering.numbers_of(vertices)

    def adjacency(self, direction: Direction) -> Adjacency:
        """The index of that direction, of numbers; an empty one where this worker has no edges."""
        return self._adjacencies.get(direction) or _EMPTY[direction]

    def owners(self, vertices: Ints) -> Ints:
        """The worker of each vertex, where its lists are if they are anywhere."""
        return (hash_ints(vertices) % np.uint64(self.peers)).astype(np.int64)

    def has(self, direction: Direction, vertices: Ints) -> Bools:
        """Whether the list of each vertex is here, if there is one."""
        if self.peers == 1 or self._replicated.get(direction) == 1:
            return np.ones(len(vertices), np.bool_)
        here: Bools = self.owners(vertices) == self.index
        if self._replicated.get(direction, -1) > 0:
            begins, ends = self.adjacency(direction).spans(vertices)
            here |= ends > begins
        return here

    def has_all(self, directions: Iterable[Direction]) -> bool:
        """Whether all lists of these directions are here."""
        return self.peers == 1 or all(self._replicated.get(d) == 1 for d in directions)

    def longest(self, direction: Direction) -> int:
        """The length of the longest list of that direction that is here."""
        if direction not in self._longest:
            sizes = np.diff(self.adjacency(direction).starts)
            self._longest[direction] = int(sizes.max(initial=0))
        return self._longest[direction]

    def all_have(self, direction: Direction, sizes: Ints) -> Bools:
        """Whether every worker has the lists of that direction that are so long."""
        replicated = self._replicated.get(direction, -1)
        return (sizes >= replicated) & (replicated > 0)


_NONE = np.empty(0, np.int64)


def _empty(direction: Direction) -> Adjacency:
    none = Adjacency.build(direction, _NONE, _NONE)
    return replace(none, values=contiguous(np.empty(0, np.int32)))


_EMPTY: dict[Direction, Adjacency] = {d: _empty(d) for d in ("forward", "reverse")}
