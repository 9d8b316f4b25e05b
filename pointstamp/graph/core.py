"""Cores: how densely connected a graph each vertex is a part of.

The k-core is what is left when vertices with fewer than k neighbours are taken away,
over and over; the core number of a vertex is the largest k whose core it is in. It
is also the largest number that is supported by as many neighbours with at least that
number, which can be worked out from above: begin with the number of neighbours, and
lower what is not supported.

Source: A. Montresor, F. De Pellegrini, D. Miorandi, "Distributed k-core
decomposition", 2013.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.edges import check_count
from pointstamp.graph.graph_partition import GraphPartition, turned, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.lists import Ints, Numbers, positions
from pointstamp.kernels.votes import lower_cores
from pointstamp.operators.stream import Stream

CORE = "core"

_UNHEARD = np.iinfo(np.int64).max


def core_numbers(edges: Stream[Any], vertices: Stream[Any] | None = None) -> Stream[Any]:
    """The core number of each vertex: the largest k such that it is in the k-core.

    Directions are ignored, loops dropped, and edges that repeat, in either
    direction, count once.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    vertices : Stream, optional
        Vertices that may have no edges, as for `pagerank`; their number is 0.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `core`; each vertex once.

    Notes
    -----
    A vertex is looked at again whenever a neighbour that supported its number stops
    doing so, at the cost of a look at all neighbours. Memory at its peak,
    beside the edges that come in: two and a quarter times what they take as two int64
    columns.

    Examples
    --------
    A triangle with a tail: its vertices have two neighbours each that have two.

    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return core_numbers(scope.to_stream([(1, 2), (2, 3), (3, 1), (3, 4)]))
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, 2), (2, 2), (3, 2), (4, 1)]
    """
    return _cores(edges, vertices, 0)


def k_core(edges: Stream[Any], k: int) -> Stream[Any]:
    """The vertices of the k-core (core number at least `k`), with their core numbers.

    Raises
    ------
    UsageError
        If `k` is less than 1. When it is built.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return k_core(scope.to_stream([(1, 2), (2, 3), (3, 1), (3, 4)]), 2)
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, 2), (2, 2), (3, 2)]
    """
    check_count("k_core", "its k", k, 1)
    return _cores(edges, None, k)


def _cores(edges: Stream[Any], vertices: Stream[Any] | None, least: int) -> Stream[Any]:
    parts = partitions(edges, vertices, ["both"], "pull")
    return solve(parts, partial(_Cores, least=least), _Cores.result, "Cores")


class _Cores:
    """What the core numbers of a worker's vertices are at most."""

    def __init__(self, partition: GraphPartition, least: int) -> None:
        self._partition = partition
        self._least = least
        self._pull = partition.links[0]
        self._push = turned(self._pull, partition.n_places)
        self._cores = np.full(partition.n_places, _UNHEARD)
        self._cores[: partition.n] = self._pull.sizes
        self._queue = np.empty(partition.n + 1, np.int32)
        self._queued = np.zeros(partition.n, np.bool_)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Lower what is not supported, and publish what is lower."""
        partition = self._partition
        if round == 0:
            self._lower(np.arange(partition.n, dtype=np.int32))
            return [partition.publish(value=self._cores)], False
        places = partition.places_of_messages(messages)
        self._cores[places] = value_of(messages)
        changed = self._lower(self._unsupported_by(places))
        return [partition.publish(changed, value=self._cores)], False

    def _unsupported_by(self, places: Ints) -> Numbers:
        """The rows that have one of `places` as a neighbour, of a lower number than their own."""
        begins, ends = self._push.begins[places], self._push.ends[places]
        rows = self._push.others[positions(begins, ends)]
        lower = np.repeat(self._cores[places], ends - begins) < self._cores[rows]
        return np.unique(rows[lower])

    def _lower(self, rows: Numbers) -> Numbers:
        pull, push = self._pull, self._push
        return lower_cores(
            pull.begins,
            pull.ends,
            pull.others,
            push.begins,
            push.ends,
            push.others,
            self._cores,
            rows,
            self._queue,
            self._queued,
        )

    def result(self) -> Any:
        """The vertices with at least the least number that is wanted, and their numbers."""
        cores = self._cores[: self._partition.n]
        wanted = cores >= self._least
        return to_arrow(Arrays({VERTEX: self._partition.vertices[wanted], CORE: cores[wanted]}))
