"""Distances to landmarks: how many edges away each of some vertices is, from every vertex."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.errors import UsageError
from pointstamp.graph.edges import check_list
from pointstamp.graph.graph_partition import GraphPartition, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.graph.vertex_lists import with_lists
from pointstamp.kernels.reach import expand
from pointstamp.operators.stream import Stream

DISTANCES = "distances"


def landmark_distances(
    edges: Stream[Any],
    landmarks: Sequence[int],
    vertices: Stream[Any] | None = None,
    *,
    directed: bool = True,
) -> Stream[Any]:
    """The distance in edges from each vertex to each landmark, along the edges.

    Parameters
    ----------
    edges, vertices : Stream
        As for `bfs`.
    landmarks : sequence of int
        Which; those that the graph does not have are reached from nowhere.
    directed : bool
        If not, edges lead both ways.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        Columns `vertex`, int64, and `distances`, lists of an int64 for each landmark, in their
        order: -1 where there is no way. Each vertex once.

    Notes
    -----
    A round for each level, for all landmarks together: as many searches as there are landmarks,
    over one copy of the edges.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return landmark_distances(scope.to_stream([(1, 2), (2, 3), (4, 2)]), [3, 1])
    >>> [record for _, record in ps.testing.collect(build)]
    [(1, [2, 0]), (2, [1, -1]), (3, [0, -1]), (4, [2, -1])]
    """
    landmarks = check_list("landmark_distances", "landmark", landmarks)
    if not landmarks:
        raise UsageError("distances need at least one landmark")
    parts = partitions(edges, vertices, ["out" if directed else "both"], "push")
    start = partial(_LandmarkLevels, landmarks=landmarks)
    return solve(parts, start, _LandmarkLevels.result, "Landmarks")


class _LandmarkLevels:
    """The levels of a worker's vertices, int64[k, n], a row for each landmark."""

    def __init__(self, partition: GraphPartition, landmarks: tuple[int, ...]) -> None:
        self._partition = partition
        self._levels = np.full((len(landmarks), partition.n), -1, np.int64)
        self._fresh = [partition.rows_of(landmark) for landmark in landmarks]
        for levels, fresh in zip(self._levels, self._fresh, strict=True):
            levels[fresh] = 0

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """In round r + 1 from the vertices of level r, ours and others', to level r + 1."""
        if round > 0:
            self._expand(round, messages)
        while self._partition.is_alone and any(map(len, self._fresh)):
            round += 1
            self._expand(round, [])
        n = self._partition.n
        batches = [
            self._partition.publish(fresh, value=np.full(n, j, np.int64))
            for j, fresh in enumerate(self._fresh)
            if len(fresh)
        ]
        return batches, bool(batches)

    def _expand(self, round: int, messages: list[Arrays]) -> None:
        links = self._partition.links[0]
        places = numbers = np.empty(0, np.int64)
        if messages:
            places, numbers = self._partition.places_of_messages(messages), value_of(messages)
        for j, fresh in enumerate(self._fresh):
            tails = np.concatenate([fresh, places[numbers == j].astype(np.int32)])
            levels = self._levels[j]
            self._fresh[j] = expand(links.begins, links.ends, links.others, tails, levels, round)

    def result(self) -> Any:
        """Vertices and their distances."""
        return with_lists({VERTEX: self._partition.vertices}, DISTANCES, self._levels.T)
