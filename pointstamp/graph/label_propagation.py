"""Communities by label propagation: every vertex takes the label that most neighbours have."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.edges import check_count
from pointstamp.graph.graph_partition import Direction, GraphPartition, Links, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.votes import common_labels
from pointstamp.operators.stream import Stream

COMMUNITY = "community"


def communities(
    edges: Stream[Any],
    vertices: Stream[Any] | None = None,
    *,
    rounds: int = 10,
    directed: bool = True,
) -> Stream[Any]:
    """The community of each vertex, by a number of rounds of label propagation.

    Labels are the vertices themselves at first. In a round all vertices at once take
    the label that is the most frequent among their neighbours, and of those that are
    as frequent the least; a vertex without neighbours keeps its own. Edges that
    repeat count once, loops not at all.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    vertices : Stream, optional
        Vertices that may have no edges, as for `pagerank`.
    rounds : int
        At least 0. Fewer are done when no label changes any more.
    directed : bool
        If so, in- and out-neighbours both vote, and what is both votes twice. If not,
        each neighbour votes once.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `community`; each vertex once.

    Raises
    ------
    UsageError
        If `rounds` is less than 0. When it is built.

    Notes
    -----
    Work per round of the order of d log d for each vertex with d neighbours; only
    labels that have changed are published. Memory at its peak, beside the edges that come in:
    one and a half times what they take as two int64 columns, two and a quarter if
    undirected.

    Source: U. N. Raghavan, R. Albert, S. Kumara, "Near linear time algorithm to detect
    community structures", 2007; in the deterministic form of LDBC Graphalytics (CDLP).

    Examples
    --------
    Two triangles. Vertex 2 takes the 1 that, of its neighbours' 1 and 3, is less.

    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = [(1, 2), (2, 3), (3, 1), (7, 8), (8, 9), (9, 7)]
    ...     return communities(scope.to_stream(edges), rounds=2, directed=False)
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, 1), (2, 1), (3, 1), (7, 7), (8, 7), (9, 7)]
    """
    check_count("communities", "its rounds", rounds, 0)
    directions: list[Direction] = ["in", "out"] if directed else ["both"]
    parts = partitions(edges, vertices, directions, "pull")
    return solve(parts, partial(_Votes, rounds=rounds), _Votes.result, "Communities")


class _Votes:
    """The labels of a worker's vertices, and of those that it hears of."""

    def __init__(self, partition: GraphPartition, rounds: int) -> None:
        self._partition = partition
        self._rounds = rounds
        self._labels = partition.ids.copy()
        none = Links(np.zeros(partition.n, np.int64), np.zeros(partition.n, np.int64), _NO_VERTEX)
        self._links = partition.links if len(partition.links) == 2 else [*partition.links, none]

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Vote, and publish the labels that have changed."""
        partition = self._partition
        if messages:
            self._labels[partition.places_of_messages(messages)] = value_of(messages)
        if round >= self._rounds:
            return [], False
        labels = self._vote()
        changed = np.flatnonzero(labels != self._labels[: partition.n]).astype(np.int32)
        self._labels[: partition.n] = labels
        # Where no label has changed, here and in the messages, none would change next time.
        return [partition.publish(changed, value=labels)], len(changed) > 0

    def _vote(self) -> Any:
        first, second = self._links
        return common_labels(
            first.begins,
            first.ends,
            first.others,
            contiguous(second.begins),
            contiguous(second.ends),
            contiguous(second.others),
            contiguous(self._labels),
        )

    def result(self) -> Any:
        """Vertices and their labels."""
        labels = self._labels[: self._partition.n]
        return to_arrow(Arrays({VERTEX: self._partition.vertices, COMMUNITY: labels}))


_NO_VERTEX = np.empty(0, np.int32)
