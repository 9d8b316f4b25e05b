"""Clusters by power iteration: one number for each vertex, which are near within a cluster.

Each round gives a vertex the mean of its neighbours' numbers, by the weights of the edges, and
scales all so that they add up to 1. In the end all would be the same; long before, they are within
a cluster, and then rounds end and the numbers are grouped.

Sums over all vertices are of integers, and those of a vertex in the order of ids, so that numbers
do not depend on the number of workers, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.edges import check_count
from pointstamp.graph.graph_partition import SLOT, VALUE, Floats, GraphPartition, value_of
from pointstamp.graph.line_clusters import line_clusters
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.graph.weighted_page_rank import in_order
from pointstamp.kernels.lists import starts_of, tally
from pointstamp.kernels.sums import sum_weighted_lists
from pointstamp.operators.stream import Stream

CLUSTER = "cluster"

# What is for all comes in the place of a slot: the largest sum of weights and how many vertices
# have edges, the halves of two sums, and the numbers of vertices at last.
_LARGEST, _COUNT, _HIGH, _LOW, _CHANGE_HIGH, _CHANGE_LOW, _NUMBER = range(-7, 0)

_UNIT = 2.0**52
_HALF = 31


def power_iteration_clusters(
    edges: Stream[Any], vertices: Stream[Any] | None = None, *, k: int, rounds: int
) -> Stream[Any]:
    """The cluster of each vertex that has edges, by power iteration clustering.

    Parameters
    ----------
    edges : Stream
        With weights, as for `sssp`: how similar the ends are. Directions and loops mean nothing;
        the weights of edges that repeat add up.
    vertices : Stream, optional
        As for `pagerank`; those without edges, or with edges of weight 0 alone, have no cluster.
    k : int
        How many clusters, at least 1. There are fewer where numbers are equal.
    rounds : int
        So many at most, 0 or more. Fewer are done when the sum of all changes of a round is that of
        the one before, up to the greater of 1e-8 and 1e-5 over the number of vertices.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `cluster`, from 0 in the order of the numbers.

    Raises
    ------
    UsageError
        If `k` or `rounds` are less than that. When it is built.

    Notes
    -----
    It begins with the sums of the weights of each vertex, as the paper and Spark's mode `degree`
    do: where all of them are equal the numbers are, too, and there is one cluster. The numbers are
    grouped exactly (`line_clusters`), by each worker, which gets all of them.

    Source: F. Lin, W. Cohen, "Power iteration clustering", 2010.

    Examples
    --------
    Four vertices that are all near each other, and a path of two edges.

    >>> import itertools
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     clique = [(a, b, 1.0) for a, b in itertools.combinations([1, 2, 3, 4], 2)]
    ...     edges = scope.to_stream([*clique, (7, 8, 1.0), (8, 9, 1.0)])
    ...     return power_iteration_clusters(edges, k=2, rounds=10)
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, 1), (2, 1), (3, 1), (4, 1), (7, 0), (8, 0), (9, 0)]
    """
    check_count("power_iteration_clusters", "its k", k, 1)
    check_count("power_iteration_clusters", "its rounds", rounds, 0)
    parts = partitions(edges, vertices, ["in", "out"], "push", weighted=True)
    start = partial(_Power, k=k, rounds=rounds)
    return solve(parts, start, _Power.result, "PowerIteration")


class _Power:
    """The numbers of a worker's vertices, float64[n], and of those that it hears of."""

    def __init__(self, partition: GraphPartition, k: int, rounds: int) -> None:
        self._partition = partition
        self._k, self._rounds = k, rounds
        heads, self._tails, self._weights = in_order(partition, *partition.links)
        self._starts = starts_of(tally(heads, partition.n))
        self._sums = np.bincount(heads, self._weights, minlength=partition.n)
        self._numbers: Floats = np.zeros(partition.n)
        self._next: Floats = np.zeros(partition.n_places)
        self._change = np.inf
        self._done = -1
        self._is_over = False
        self._clusters = np.empty(0, np.int64)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Round 0 finds the largest sum, and 1 the first numbers; the last one groups them."""
        if round == 0:
            self._largest = float(self._sums.max(initial=0.0))
            self._count = int((self._sums > 0).sum())
            return self._to_all({_LARGEST: self._largest, _COUNT: self._count}), True
        received = _Received(messages)
        if round == 1:
            self._largest = max(self._largest, received.largest(_LARGEST))
            self._count += int(received.of(_COUNT).sum())
            if not self._largest:
                return [], False
            return self._send(self._sums / self._largest), True
        if self._is_over:
            own = self._sums > 0
            everywhere = np.concatenate([self._numbers[own], received.of(_NUMBER)])
            clusters = line_clusters(everywhere, self._k)
            self._clusters = clusters[: int(own.sum())]
            return [], False
        if self._ends(received):
            self._is_over = True
            return self._numbers_to_all(), True
        self._scale(received)
        # The change of this round is known to all in the next, which may be after the last.
        return self._send(self._means()), True

    def _ends(self, received: _Received) -> bool:
        """Whether the numbers are those to be grouped."""
        if self._done < 1:
            return self._done == self._rounds
        before = self._change
        self._change = (self._changed + received.sum(_CHANGE_HIGH, _CHANGE_LOW)) / _UNIT
        tolerance = max(1e-5 / self._count, 1e-8)
        return self._done == self._rounds or abs(self._change - before) <= tolerance

    def _scale(self, received: _Received) -> None:
        """The numbers that were sent, scaled to add up to 1; how much they have changed."""
        n = self._partition.n
        self._next[n + received.slots] = received.values
        self._next /= (self._total + received.sum(_HIGH, _LOW)) / _UNIT
        self._changed = _exact_sum(np.abs(self._next[:n] - self._numbers))
        self._numbers = self._next[:n].copy()
        self._done += 1

    def _means(self) -> Floats:
        sums = sum_weighted_lists(self._starts, self._tails, self._weights, self._next)
        found: Floats = sums / np.where(self._sums > 0, self._sums, 1.0)
        return found

    def _send(self, numbers: Floats) -> list[Arrays]:
        self._next[: self._partition.n] = numbers
        self._total = _exact_sum(numbers)
        high, low = divmod(self._total, 1 << _HALF)
        of_all: dict[int, float] = {_HIGH: high, _LOW: low}
        if self._done > 0:
            high, low = divmod(self._changed, 1 << _HALF)
            of_all |= {_CHANGE_HIGH: high, _CHANGE_LOW: low}
        return [self._partition.publish(None, value=numbers), *self._to_all(of_all)]

    def _to_all(self, values: Mapping[int, float]) -> list[Arrays]:
        slots = np.array(list(values), np.int32)
        numbers = np.array(list(values.values()), np.float64)
        return self._partition.publish_to_all({SLOT: slots, VALUE: numbers})

    def _numbers_to_all(self) -> list[Arrays]:
        numbers = self._numbers[self._sums > 0]
        slots = np.full(len(numbers), _NUMBER, np.int32)
        return self._partition.publish_to_all({SLOT: slots, VALUE: numbers})

    def result(self) -> Any:
        """Vertices and their clusters, of those that have one."""
        own = self._partition.vertices[self._sums > 0][: len(self._clusters)]
        return to_arrow({VERTEX: own, CLUSTER: self._clusters})


class _Received:
    """What other workers have sent: numbers of ghosts, by slot, and what is for all."""

    def __init__(self, messages: list[Arrays]) -> None:
        none = (np.empty(0, np.int32), np.empty(0))
        slots, values = (value_of(messages, SLOT), value_of(messages)) if messages else none
        own = slots >= 0
        self.slots, self.values = slots[own].astype(np.int64), values[own]
        self._for_all, self._of_all = slots[~own], values[~own]

    def of(self, what: int) -> Floats:
        found: Floats = self._of_all[self._for_all == what]
        return found

    def largest(self, what: int) -> float:
        return float(self.of(what).max(initial=0.0))

    def sum(self, high: int, low: int) -> int:
        """Of whole numbers in halves, each exact as a float."""
        highs, lows = (int(self.of(half).astype(np.int64).sum()) for half in (high, low))
        return (highs << _HALF) + lows


def _exact_sum(values: Floats) -> int:
    """The sum of values from 0 to 2, in units of 2^-52; of halves, which do not overflow."""
    units = np.rint(values * _UNIT).astype(np.int64)
    return (int((units >> _HALF).sum()) << _HALF) + int((units & ((1 << _HALF) - 1)).sum())
