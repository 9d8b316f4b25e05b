"""Triangles of an undirected graph, each once: the cliques of three."""

from __future__ import annotations

from typing import Any

from pointstamp.graph.clique_search import cliques, count_cliques
from pointstamp.operators.stream import Stream


def triangles(edges: Stream[Any]) -> Stream[Any]:
    """Find every triangle of an undirected graph: `cliques(edges, 3)`.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return triangles(scope.to_stream([(1, 2), (3, 2), (3, 1), (2, 1), (4, 1)]))
    >>> ps.testing.collect(build)
    [(0, (1, 2, 3))]
    """
    return cliques(edges, 3)


def count_triangles(edges: Stream[Any]) -> Stream[Any]:
    """The number of triangles of an undirected graph: `count_cliques(edges, 3)`.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     return count_triangles(scope.to_stream([(1, 2), (3, 2), (3, 1), (2, 1), (4, 1)]))
    >>> ps.testing.collect(build)
    [(0, (1,))]
    """
    return count_cliques(edges, 3)
