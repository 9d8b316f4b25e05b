"""Breadth-first search: how many edges away each vertex is from a source."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.edges import check_integers
from pointstamp.graph.graph_partition import GraphPartition, followed
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.reach import expand
from pointstamp.operators.stream import Stream

LEVEL = "level"


def bfs(
    edges: Stream[Any],
    source: int,
    vertices: Stream[Any] | None = None,
    *,
    directed: bool = True,
) -> Stream[Any]:
    """Breadth-first search: the distance in edges of each reachable vertex from the source.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    source : int
        Where to begin; its level is 0. If the graph of a time does not have it,
        nothing is reached in it.
    vertices : Stream, optional
        Vertices that may have no edges (as for `pagerank`): a source may be one.
    directed : bool
        If not, edges lead both ways.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `level`, of the vertices that are reached.

    Notes
    -----
    A round for each level, where edges lead from one worker to another. Every edge is looked
    at once, and each worker that has edges from a vertex is sent once that it was reached.
    Memory at its peak, beside the edges that come in: about as much as they take as two int64
    columns.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(1, 2), (2, 3), (1, 3), (3, 4), (5, 1)])
    ...     return bfs(edges, 1)
    >>> ps.testing.collect(build)
    [(0, (1, 0)), (0, (2, 1)), (0, (3, 1)), (0, (4, 2))]
    """
    check_integers("bfs", "its source", [source])
    parts = partitions(edges, vertices, [followed(directed)], "push")
    return solve(parts, partial(_Levels, source=source), _Levels.result, "BreadthFirst")


class _Levels:
    """The levels of a worker's vertices."""

    def __init__(self, partition: GraphPartition, source: int) -> None:
        self._partition = partition
        self._levels = np.full(partition.n, -1, np.int64)
        self._fresh = partition.rows_of(source)
        self._levels[self._fresh] = 0

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """In round r + 1 from the vertices of level r, ours and others', to level r + 1."""
        partition, links = self._partition, self._partition.links[0]
        fresh = self._fresh
        if messages:
            fresh = np.concatenate([fresh, partition.places_of_messages(messages).astype(np.int32)])
        if round > 0:
            fresh = expand(links.begins, links.ends, links.others, fresh, self._levels, round)
        while partition.is_alone and len(fresh):
            round += 1
            fresh = expand(links.begins, links.ends, links.others, fresh, self._levels, round)
        self._fresh = fresh
        return [partition.publish(fresh)], len(fresh) > 0

    def result(self) -> Any:
        """The vertices that were reached, and their levels."""
        reached = self._levels >= 0
        return to_arrow(
            Arrays({VERTEX: self._partition.vertices[reached], LEVEL: self._levels[reached]})
        )
