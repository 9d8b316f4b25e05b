"""Single-source shortest paths: the least sum of weights from a source to each vertex.

Each worker runs Dijkstra's algorithm from whatever it hears has come nearer, over
all its edges, and then sends the others which of its vertices have: so one worker
needs one round, and several as many as a shortest way changes between workers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.edges import check_integers
from pointstamp.graph.graph_partition import GraphPartition, followed, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.lists import Numbers
from pointstamp.kernels.reach import shorten
from pointstamp.operators.stream import Stream

DISTANCE = "distance"


def sssp(
    edges: Stream[Any],
    source: int,
    vertices: Stream[Any] | None = None,
    *,
    directed: bool = True,
) -> Stream[Any]:
    """Single-source shortest paths: the weighted distance of each reachable vertex.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst` and a column
        `weight` of numbers, or else the first three columns; or rows, triples. Of
        edges that repeat the lightest counts. On any worker.
    source : int
        Where to begin; its distance is 0. If the graph of a time does not have it,
        nothing is reached in it.
    vertices : Stream, optional
        Vertices that may have no edges (as for `pagerank`): a source may be one.
    directed : bool
        If not, edges lead both ways.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        Columns `vertex`, int64, and `distance`, float64, of the vertices that are
        reached. The same on any number of workers, to the last bit: a distance is
        added up from the source on.

    Raises
    ------
    SchemaError
        If a weight is null, NaN, less than 0, above 1e290, or an integer above 2^53.

    Notes
    -----
    On one worker the work is of the order of m log n, for m edges and n vertices; on
    several, a vertex may come nearer several times. Memory at its peak,
    beside the edges that come in: about as much as they take as three columns of 8
    bytes, one and a half times if undirected.

    Source: E. W. Dijkstra, 1959; for working to the end between rounds, W. Fan et al.,
    "Parallelizing sequential graph computations", SIGMOD 2017.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(1, 2, 5.0), (1, 3, 1.0), (3, 2, 1.5), (4, 1, 1.0)])
    ...     return sssp(edges, 1)
    >>> ps.testing.collect(build)
    [(0, (1, 0.0)), (0, (2, 2.5)), (0, (3, 1.0))]
    """
    check_integers("sssp", "its source", [source])
    parts = partitions(edges, vertices, [followed(directed)], "push", weighted=True)
    return solve(parts, partial(_Distances, source=source), _Distances.result, "ShortestPaths")


class _Distances:
    """The distances of a worker's vertices, as far as they are known."""

    def __init__(self, partition: GraphPartition, source: int) -> None:
        self._partition = partition
        self._distances = np.full(partition.n_places, np.inf)
        self._heap = np.empty(partition.n_places, np.int32)
        self._position = np.full(partition.n_places, -1, np.int32)
        self._source = partition.rows_of(source)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """From what has come nearer to all that does so because of it."""
        nearer = self._source
        if round == 0:
            self._distances[nearer] = 0.0
        else:
            nearer = self._partition.places_of_messages(messages).astype(np.int32)
            self._distances[nearer] = value_of(messages)
        changed = self._shorten(nearer)
        if round == 0:
            changed = np.union1d(changed, self._source)
        return [self._partition.publish(changed, value=self._distances)], False

    def _shorten(self, fresh: Numbers) -> Numbers:
        links = self._partition.links[0]
        weights = np.empty(0) if links.weights is None else links.weights
        return shorten(
            links.begins,
            links.ends,
            links.others,
            weights,
            self._distances,
            fresh,
            self._heap,
            self._position,
        )

    def result(self) -> Any:
        """The vertices that were reached, and their distances."""
        distances = self._distances[: self._partition.n]
        reached = np.isfinite(distances)
        return to_arrow(
            Arrays({VERTEX: self._partition.vertices[reached], DISTANCE: distances[reached]})
        )
