"""Connected components by labels: every vertex takes the least label of its neighbours.

Labels spread over a worker's edges until nothing changes there; then those that did
change are published. When no label has changed anywhere, no messages is under way and the
loop is over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.graph.components import COMPONENT
from pointstamp.graph.graph_partition import GraphPartition, value_of
from pointstamp.graph.partitioning import partitions, solve
from pointstamp.graph.supersteps import Sent
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.kernels.lists import Numbers
from pointstamp.kernels.reach import spread_least
from pointstamp.operators.stream import Stream


def components_by_labels(edges: Stream[Any], vertices: Stream[Any] | None = None) -> Stream[Any]:
    """The component of each vertex by label propagation; the result is `connected_components`'.

    Slower than that, and with more memory in all, beside the edges that come in about
    as much as they take as two int64 columns; but spread over the workers. As many rounds
    as a label travels from worker to worker; one on one worker.

    Source: "min-label" propagation, the HCC of U. Kang, C. Tsourakakis, C. Faloutsos,
    "PEGASUS", ICDM 2009.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return components_by_labels(scope.to_stream([(5, 2), (7, 5), (3, 4)]))
    >>> [record for _, record in ps.testing.collect(build)]
    [(2, 2), (3, 3), (4, 3), (5, 2), (7, 2)]
    """
    parts = partitions(edges, vertices, ["both"], "push")
    return solve(parts, _Labels, _Labels.result, "Labels")


class _Labels:
    """The labels of a worker's vertices, and of those that it hears of."""

    def __init__(self, partition: GraphPartition) -> None:
        self._partition = partition
        self._labels = partition.ids.copy()
        self._is_open = np.ones(partition.n, np.bool_)
        self._queue = np.empty(partition.n_places + 1, np.int32)
        self._queued = np.zeros(partition.n_places, np.bool_)

    def step(self, round: int, messages: list[Arrays]) -> Sent:
        """Spread what is new, and publish what has changed."""
        if round == 0:
            fresh: Numbers = np.arange(self._partition.n_places, dtype=np.int32)
        else:
            fresh = self._partition.places_of_messages(messages).astype(np.int32)
            self._labels[fresh] = value_of(messages)
        links = self._partition.links[0]
        changed = spread_least(
            links.begins,
            links.ends,
            links.others,
            self._labels,
            self._is_open,
            fresh,
            self._queue,
            self._queued,
        )
        return [self._partition.publish(changed, value=self._labels)], False

    def result(self) -> Any:
        """Vertices and their labels."""
        labels = self._labels[: self._partition.n]
        return to_arrow(Arrays({VERTEX: self._partition.vertices, COMPONENT: labels}))
