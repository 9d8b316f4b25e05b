"""Local clustering coefficients: how many of a vertex's neighbours are neighbours.

The edges between neighbours of a vertex are the opposite edges of its triangles. A
triangle a, b, c is found once, with its vertices in order of their degrees, where b
is: the owner of a sends its list of higher neighbours to the owners of these, once
each, and intersects it itself with those of its own.

    round 0  degrees are published   round 2  lists are intersected, counts of ghosts sent
    round 1  lists are sent          round 3  counts are added up

Source: D. J. Watts, S. H. Strogatz, 1998; directed as in LDBC Graphalytics; the order
by degree of N. Chiba, T. Nishizeki, 1985.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.graph_partition import SLOT, VALUE, Direction, GraphPartition, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import TO, Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import Ints, Numbers, group, numbers_of, positions, tally
from pointstamp.kernels.sorting import sort_numbers
from pointstamp.kernels.triads import Marks, count_triads
from pointstamp.operators.stream import Stream

COEFFICIENT = "coefficient"
COUNT = "count"

_NO_SLOT = -1


def local_clustering(
    edges: Stream[Any], vertices: Stream[Any] | None = None, *, directed: bool = False
) -> Stream[Any]:
    """The local clustering coefficient of each vertex.

    Of a vertex with d neighbours, in either direction, the share of the d (d - 1)
    ordered pairs of different neighbours that are edges; 0 if d is less than 2. Loops
    are dropped, and edges that repeat count once.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    vertices : Stream, optional
        Vertices that may have no edges, as for `pagerank`.
    directed : bool
        If not, each edge counts in both directions.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        Columns `vertex`, int64, and `coefficient`, float64; each vertex once.

    Notes
    -----
    Work of the order of m^(3/2) at most, for m edges. A worker is sent at most the
    higher neighbours of all vertices that have edges to its own, 15 bytes for each.
    Memory at its peak, beside that and the edges that come in: four and a half times
    what these take as two int64 columns.

    Examples
    --------
    Of the three neighbours of 3, only 1 and 2 are neighbours: 2 of 6 ordered pairs.

    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return local_clustering(scope.to_stream([(1, 2), (2, 3), (3, 1), (3, 4)]))
    >>> [(v, round(c, 3)) for _, (v, c) in ps.testing.collect(build)]
    [(1, 1.0), (2, 1.0), (3, 0.333), (4, 0.0)]
    """
    directions: list[Direction] = ["in", "out"] if directed else ["both"]
    parts = partitions(edges, vertices, directions, "pull")
    return solve(parts, _Triads, _Triads.result, "Clustering")


def triangle_counts(edges: Stream[Any], vertices: Stream[Any] | None = None) -> Stream[Any]:
    """The number of triangles that each vertex is in.

    Directions are ignored, loops dropped, and edges that repeat, in either
    direction, count once.

    Parameters
    ----------
    edges, vertices : Stream
        As for `local_clustering`, which says what it costs.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `count`; each vertex once.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return triangle_counts(scope.to_stream([(1, 2), (2, 3), (3, 1), (3, 4)]))
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, 1), (2, 1), (3, 1), (4, 0)]
    """
    parts = partitions(edges, vertices, ["both"], "pull")
    return solve(parts, _Triads, _Triads.triangles, "Triangles")


class _Triads:
    """How many edges there are between the neighbours of each vertex.

    Lists are of the higher neighbours of each row, as places; the marks with them
    say in how many directions there is an edge.
    """

    def __init__(self, partition: GraphPartition) -> None:
        self._partition = partition
        self._tails, self._heads, self._marks = _neighbours(partition)
        self._degrees = np.zeros(partition.n_places, np.int64)
        self._degrees[: partition.n] = tally(self._tails, partition.n)
        self._counts = np.zeros(partition.n_places, np.int64)
        self._starts = np.zeros(partition.n + 1, np.int64)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """One of the four rounds that the head of this module lists."""
        partition = self._partition
        if round == 0:
            degrees = self._degrees
            return [partition.publish(vertex=np.zeros(partition.n, np.int64), value=degrees)], True
        if round == 1:
            if messages:
                self._degrees[partition.places_of_messages(messages)] = value_of(messages)
            self._keep_higher()
            self._intersect(np.arange(partition.n), self._starts, self._heads, self._marks)
            return [self._lists()], True
        if round == 2:
            if messages:
                self._take_lists(messages)
            return [self._ghost_counts()], False
        rows = numbers_of(partition.vertices, value_of(messages, VERTEX))
        np.add.at(self._counts, rows, value_of(messages))
        return [], False

    def _keep_higher(self) -> None:
        """Drop the neighbours of lower degree; of equal degree, those with lower ids."""
        degrees, ids = self._degrees, self._partition.ids
        tails, heads = self._tails, self._heads
        higher = degrees[heads] > degrees[tails]
        equal = degrees[heads] == degrees[tails]
        higher |= equal & (ids[heads] > ids[tails])
        self._tails = tails[higher]
        self._heads, self._marks = contiguous(heads[higher]), contiguous(self._marks[higher])
        np.cumsum(tally(self._tails, self._partition.n), out=self._starts[1:])

    def _intersect(self, tails: Ints, starts: Ints, heads: Numbers, marks: Marks) -> None:
        """Find the triangles of lists, ours or others', with our own."""
        count_triads(
            contiguous(tails.astype(np.int32)),
            contiguous(starts[:-1]),
            contiguous(starts[1:]),
            contiguous(heads),
            contiguous(marks),
            contiguous(self._starts[:-1]),
            contiguous(self._starts[1:]),
            self._heads,
            self._marks,
            self._counts,
        )

    def _lists(self) -> Arrays:
        """The list of each row, for the owners of the ghosts in it."""
        partition = self._partition
        rows, to, slots = partition.listeners
        away = self._heads >= partition.n
        owners = partition.ghost_owners[self._heads[away] - partition.n]
        wanted = np.zeros((partition.n, partition.peers), np.bool_)
        wanted[self._tails[away], owners] = True
        chosen = wanted[rows, to]
        rows, to, slots = rows[chosen], to[chosen], slots[chosen]
        begins, ends = self._starts[rows], self._starts[rows + 1]
        members = positions(begins, ends)
        return Arrays(
            {
                TO: np.repeat(to, ends - begins),
                SLOT: np.repeat(slots, ends - begins),
                VERTEX: partition.ids[self._heads[members]],
                VALUE: self._marks[members].astype(np.int64),
            }
        )

    def _take_lists(self, messages: list[Arrays]) -> None:
        partition = self._partition
        places = partition.places_of(value_of(messages, VERTEX))
        # A vertex that is not named here is no neighbour of any of ours.
        named = places >= 0
        slots, places = value_of(messages, SLOT)[named], places[named]
        n_ghosts = len(partition.ghosts)
        starts, heads = group(slots, n_ghosts, places)
        _, marks = group(slots, n_ghosts, value_of(messages)[named].astype(np.int8))
        self._intersect(np.arange(partition.n, partition.n_places), starts, heads, marks)

    def _ghost_counts(self) -> Arrays:
        """What was counted here at others' vertices, for their owners."""
        partition = self._partition
        counts = self._counts[partition.n :]
        ghosts = np.flatnonzero(counts)
        ghosts = ghosts[np.argsort(partition.ghost_owners[ghosts], kind="stable")]
        return Arrays(
            {
                TO: partition.ghost_owners[ghosts],
                SLOT: np.full(len(ghosts), _NO_SLOT, np.int32),
                VERTEX: partition.ghosts[ghosts],
                VALUE: counts[ghosts],
            }
        )

    def triangles(self) -> Any:
        """Vertices and their triangles, of whose opposite edges each counts in both directions."""
        counts = self._counts[: self._partition.n] // 2
        return to_arrow(Arrays({VERTEX: self._partition.vertices, COUNT: counts}))

    def result(self) -> Any:
        """Vertices and their coefficients."""
        n = self._partition.n
        degrees = self._degrees[:n]
        pairs = degrees * (degrees - 1)
        coefficients = self._counts[:n] / np.maximum(pairs, 1)
        return to_arrow(
            Arrays({VERTEX: self._partition.vertices, COEFFICIENT: coefficients.astype(np.float64)})
        )


def _neighbours(partition: GraphPartition) -> tuple[Numbers, Numbers, npt.NDArray[np.int8]]:
    """Row and place of each pair of neighbours, and in how many directions it is an edge."""
    rows = np.arange(partition.n, dtype=np.int32)
    tails = np.concatenate([np.repeat(rows, links.sizes) for links in partition.links])
    heads = np.concatenate([links.others for links in partition.links])
    if len(partition.links) == 1:  # undirected: an edge is one in both
        return tails, heads, np.full(len(tails), 2, np.int8)
    packed = tails.astype(np.int64)
    packed *= partition.n_places
    packed += heads
    sort_numbers(packed)
    first = np.ones(len(packed), np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    begins = np.flatnonzero(first)
    tails, heads = (part.astype(np.int32) for part in np.divmod(packed[begins], partition.n_places))
    return tails, heads, np.diff(begins, append=len(packed)).astype(np.int8)
