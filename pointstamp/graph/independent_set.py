"""A maximal independent set: vertices of which no two are neighbours, and none could be added.

Each vertex has a priority, by a hash. It is selected once all neighbours before it are left out,
and is left out once one of them is selected: so it is what taking one vertex after the other, in
the order of priorities, would take, found in a number of rounds that is logarithmic for most
graphs, since a vertex waits for those before it alone.

Source: G. E. Blelloch, J. T. Fineman, J. Shun, "Greedy sequential maximal independent set and
matching are parallel on average", SPAA 2012.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.edges import check_integers
from pointstamp.graph.graph_partition import GraphPartition, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.hashing import hash_ints
from pointstamp.operators.stream import Stream

SELECTED = "selected"

_OPEN, _SELECTED, _LEFT_OUT = 0, 1, 2


def maximal_independent_set(
    edges: Stream[Any], vertices: Stream[Any] | None = None, *, seed: int = 42
) -> Stream[Any]:
    """Whether each vertex is in a maximal independent set: no two neighbours, and no more fit.

    Directions are ignored, loops and edges that repeat change nothing.

    Parameters
    ----------
    edges, vertices : Stream
        As for `connected_components`.
    seed : int
        Another one gives another set; the same one the same, on any number of workers.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `selected`, which is 1 or 0; each vertex once.

    Examples
    --------
    Of a path of three either the middle is selected, or both ends are.

    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return maximal_independent_set(scope.to_stream([(1, 2), (2, 3)]))
    >>> selected = [s for _, (_, s) in ps.testing.collect(build)]
    >>> selected in ([1, 0, 1], [0, 1, 0])
    True
    """
    check_integers("maximal_independent_set", "its seed", [seed])
    parts = partitions(edges, vertices, ["both"], "pull")
    return solve(parts, partial(_Selection, seed=seed), _Selection.result, "IndependentSet")


class _Selection:
    """What is known of the vertices here: the status of each place."""

    def __init__(self, partition: GraphPartition, seed: int) -> None:
        self._partition = partition
        links = partition.links[0]
        rows = np.repeat(np.arange(partition.n, dtype=np.int64), links.sizes)
        places = links.others.astype(np.int64)
        salt = hash_ints(np.array([seed], np.int64))[0]
        priorities = hash_ints((hash_ints(partition.ids) ^ salt).view(np.int64))
        ids = partition.ids
        before = priorities[places] < priorities[rows]
        before |= (priorities[places] == priorities[rows]) & (ids[places] < ids[rows])
        self._rows, self._before = rows[before], places[before]
        self._status = np.zeros(partition.n_places, np.int64)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Decide what can be decided here, and publish it."""
        partition, status = self._partition, self._status
        if messages:
            status[partition.places_of_messages(messages)] = value_of(messages)
        was_open = status[: partition.n] == _OPEN
        while self._decide():
            pass
        decided = np.flatnonzero(was_open & (status[: partition.n] != _OPEN)).astype(np.int32)
        return [partition.publish(decided, value=status)], False

    def _decide(self) -> bool:
        """Decide what those before it allow to; whether anything was."""
        n, status = self._partition.n, self._status
        pending = status[self._rows] == _OPEN  # of what is decided nothing is asked any more
        self._rows, self._before = self._rows[pending], self._before[pending]
        of_before = status[self._before]
        blocked, left_out = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        blocked[self._rows[of_before != _LEFT_OUT]] = True
        left_out[self._rows[of_before == _SELECTED]] = True
        is_open = status[:n] == _OPEN
        status[:n][is_open & left_out] = _LEFT_OUT
        status[:n][is_open & ~blocked] = _SELECTED
        return bool((is_open & (left_out | ~blocked)).any())

    def result(self) -> Any:
        """Vertices, and whether they are selected."""
        selected = (self._status[: self._partition.n] == _SELECTED).astype(np.int64)
        return to_arrow(Arrays({VERTEX: self._partition.vertices, SELECTED: selected}))
