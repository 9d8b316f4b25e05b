"""Cliques of an undirected graph, each once."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.errors import UsageError
from pointstamp.graph.motif_search import count_as_arrow
from pointstamp.graph.orient import undirected
from pointstamp.joins.generic_join import GenericJoin
from pointstamp.joins.plan import Plan, make_plan
from pointstamp.operators.stream import Stream

MAX_CLIQUE = 26
"""As many columns as there are letters; work grows with the size long before."""


def cliques(edges: Stream[Any], k: int) -> Stream[Any]:
    """Find every clique of `k` vertices: sets in which all vertices are neighbours.

    Directions are ignored, loops dropped, and edges that repeat, in either
    direction, count once.

    Parameters
    ----------
    edges : Stream
        As for `motifs`.
    k : int
        How many vertices, at least 2 (an edge) and at most 26.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        int64 columns `a`, `b`, `c`, ...; in each record `a < b < c < ...`, and each
        clique is in one record.

    Raises
    ------
    UsageError
        If `k` is not an integer from 2 to 26. When it is built.

    Notes
    -----
    Edges are turned from lower to higher degree, so the work is of the order of
    m * d^(k - 2), where m is the number of edges, with those that repeat, and d at most
    sqrt(2 m).

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     pairs = [(1, 2), (3, 1), (2, 3), (4, 1), (4, 2), (4, 3), (4, 5)]
    ...     return cliques(scope.to_stream(pairs), 4)
    >>> ps.testing.collect(build)
    [(0, (1, 2, 3, 4))]
    """
    plan = _plan(k)
    found = GenericJoin(undirected(edges), plan, range(k)).matches()
    return found.map_batches(lambda batch: to_arrow(_ascending(batch)))


def count_cliques(edges: Stream[Any], k: int) -> Stream[Any]:
    """The number of cliques that `cliques` would find, without materializing them.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        For each time that has edges other than loops one record, `count`, on one of
        the workers, when the time is complete; and one, 0, for a stream that ends at its
        first time without any.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return count_cliques(scope.to_stream([(1, 2), (2, 3), (3, 1), (1, 3)]), 2)
    >>> ps.testing.collect(build)
    [(0, (3,))]
    """
    return GenericJoin(undirected(edges), _plan(k)).count(count_as_arrow)


def _plan(k: int) -> Plan:
    if not isinstance(k, int) or isinstance(k, bool) or not 2 <= k <= MAX_CLIQUE:
        raise UsageError(f"a clique has from 2 to {MAX_CLIQUE} vertices; {k!r} were asked for")
    return make_plan(k, [(i, j) for j in range(k) for i in range(j)])


def _ascending(batch: Arrays) -> Arrays:
    """The records with their vertices in order, in columns `a`, `b`, ..."""
    table = np.stack([values for _, values in batch.items()])
    table.sort(axis=0)
    return Arrays(dict(zip(string.ascii_lowercase, table, strict=False)))
