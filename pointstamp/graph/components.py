"""Connected components by union-find: forests made where edges are, and then merged.

    edges --> forest --> merge, 2 workers to 1 --> merge, 2 of these to 1 --> ...

A worker keeps of the edges that it gets only a forest, a pair for each vertex, and
edges never travel. Forests then meet two by two, as in a tournament.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Pact, Pipeline
from pointstamp.dataflow.stash import Stash
from pointstamp.graph.edges import checked_stream, directed
from pointstamp.graph.supersteps import TO, TO_WORKER
from pointstamp.graph.vertex_columns import VERTEX, vertex_column
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.kernels.lists import Ints, distinct, numbers_of
from pointstamp.kernels.unionfind import least_roots
from pointstamp.operators.stream import Stream

COMPONENT = "component"

ROOM = 1 << 20
"""How many pairs may wait, at least, before a forest is made of them."""

_OTHER = "other"


def connected_components(edges: Stream[Any], vertices: Stream[Any] | None = None) -> Stream[Any]:
    """The connected component of each vertex, ignoring directions.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    vertices : Stream, optional
        Batches with an integer column `vertex`, `id`, or else the first; or rows of
        integers. Needed only for vertices without edges.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `vertex` and `component`, the least vertex that it is connected
        with; each vertex once.

    Notes
    -----
    Work of the order of the edges. A worker holds a forest of the vertices it has
    seen and as many edges again, or a million; the first worker holds one of all
    vertices, 16 bytes each. Where that is too much, `components_by_labels` spreads
    the vertices over the workers, and takes rounds instead.

    Source: union-find, R. E. Tarjan, 1975; as a tree of workers, of F. McSherry,
    "Connected components in timely dataflow", whose summaries of edges are forests.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(5, 2), (7, 5), (3, 4)] if scope.index == 0 else [])
    ...     return connected_components(edges)
    >>> [record for _, record in ps.testing.collect(build, workers=2)]
    [(2, 2), (3, 3), (4, 3), (5, 2), (7, 2)]
    """
    pairs = directed(edges).map_batches(lambda batch: _pairs(batch[SOURCE], batch[TARGET]))
    if vertices is not None:
        alone = checked_stream(vertices, "vertices").map_batches(vertex_column)
        pairs = pairs.concat(alone.map_batches(lambda b: _pairs(b[VERTEX], b[VERTEX])))
    forests = _merged(pairs, Pipeline(), 0)
    for level in range((edges.scope.peers - 1).bit_length()):
        forests = _merged(forests, TO_WORKER, level + 1)
    found = forests.map_batches(
        lambda batch: Arrays({VERTEX: batch[VERTEX], COMPONENT: batch[_OTHER]})
    )
    return found.exchange(VERTEX).map_batches(to_arrow)


def _pairs(vertices: Ints, others: Ints, to: int = 0) -> Arrays:
    addresses = np.full(len(vertices), to, np.int16)
    return Arrays({TO: addresses, VERTEX: vertices, _OTHER: others})


def _merged(pairs: Stream[Arrays], pact: Pact, level: int) -> Stream[Arrays]:
    """The forest of each time's pairs here, for the worker that merges two at `level`."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash = Stash(info, _Forest)
        to = info.index & ~((1 << (level + 1)) - 1)

        def logic(input: Input, output: Output) -> None:
            for time, batch in input:
                stash.at(time).add(batch)
            for cap, forest in stash:
                output.session(cap).give_batch(_pairs(*forest.trees(), to))

        return logic

    return pairs.unary_frontier(pact, f"Forest {level}", build)


class _Forest:
    """The pairs of one time, made into a forest whenever there are too many."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Ints, Ints]] = []
        self._n_pairs = 0
        self._room = ROOM

    def add(self, batch: Arrays) -> None:
        self._pairs.append((batch[VERTEX], batch[_OTHER]))
        self._n_pairs += len(batch)
        if self._n_pairs > self._room:
            # As many again may come before the next: so the work is of their order.
            self._n_pairs = len(self.trees()[0])
            self._room = max(ROOM, 2 * self._n_pairs)

    def trees(self) -> tuple[Ints, Ints]:
        """Each vertex and the least that it is connected with, in order; kept as the pairs."""
        forest = forest_of(*(np.concatenate(ends) for ends in zip(*self._pairs, strict=True)))
        self._pairs = [forest]
        return forest


def forest_of(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Each vertex of the edges, and the least vertex that it is connected with.

    left, right : int64[m] · returns (vertices, roots), int64[n] each, vertices sorted

    >>> vertices, roots = forest_of(np.array([5, 7]), np.array([2, 5]))
    >>> vertices.tolist(), roots.tolist()
    ([2, 5, 7], [2, 2, 2])
    """
    vertices = distinct(np.concatenate([left, right]))
    left_numbers, right_numbers = numbers_of(vertices, left), numbers_of(vertices, right)
    return vertices, vertices[least_roots(left_numbers, right_numbers, len(vertices))]
