"""Motifs: all places in a graph where a small pattern of edges is found."""

from __future__ import annotations

from typing import Any

import numpy as np

from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.errors import PatternError
from pointstamp.graph.edges import directed
from pointstamp.graph.patterns import Pattern, parse_pattern
from pointstamp.joins.generic_join import GenericJoin
from pointstamp.joins.plan import Plan, make_plan
from pointstamp.joins.tactics import column
from pointstamp.operators.stream import Stream


def motifs(edges: Stream[Any], pattern: str, distinct: bool = False) -> Stream[Any]:
    """Find every match of a pattern of directed edges.

    The graph of a time is the edges of that time, and its matches are sent once
    all of them are there. Edges that repeat count once.

    Parameters
    ----------
    edges : Stream
        Arrow batches with integer columns `src` and `dst`, or else the
        first two columns; or rows, pairs of integers. On any worker.
    pattern : str
        Edges between named vertices, as for GraphFrames:
        `"(a)-[]->(b); (b)-[]->(c); !(a)-[]->(c)"`. See `pointstamp.graph.patterns`.
    distinct : bool
        Whether vertices of different names must be different. If not (the default,
        and what GraphFrames does), one vertex may stand for several of them.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        An int64 column for each named vertex, in order of first appearance; at most
        65,536 records a batch, in no particular order, on any worker.

    Raises
    ------
    PatternError
        If the pattern cannot be understood, or names no vertex. When it is built.

    Notes
    -----
    A worst-case optimal join: the work is within a logarithm of the largest number
    of matches that a graph with as many edges can have. A worker holds its part of
    the edges, once for each direction that the pattern asks for, and some batches
    of partial matches per vertex of the pattern.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(1, 2), (2, 3), (1, 3), (3, 1)] if scope.index == 0 else [])
    ...     return motifs(edges, "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)")
    >>> ps.testing.collect(build, workers=2)
    [(0, (1, 2, 3))]
    """
    parsed = parse_pattern(pattern)
    if not parsed.outputs:
        raise PatternError(
            f"the pattern names no vertex, so its matches have no columns: {pattern!r}; name one, "
            "as in '(a)', or use count_motifs"
        )
    found = GenericJoin(directed(edges), _plan(parsed), parsed.outputs, distinct).matches()
    names = {column(v): name for v, name in zip(parsed.outputs, parsed.columns, strict=True)}
    return found.map_batches(
        lambda batch: to_arrow(Arrays({new: batch[old] for old, new in names.items()}))
    )


def count_motifs(edges: Stream[Any], pattern: str, distinct: bool = False) -> Stream[Any]:
    """The number of matches that `motifs` would find, without materializing them.

    Returns
    -------
    Stream of pyarrow.RecordBatch
        For each time that has edges one record, `count`, on one of the workers,
        when the time is complete; and one, 0, for a stream that ends at its first time
        without any.

    Examples
    --------
    >>> import pointstamp as ps
    >>> def build(scope):
    ...     edges = scope.to_stream([(1, 2), (2, 3), (3, 1)] if scope.index == 0 else [])
    ...     return count_motifs(edges, "(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)")
    >>> ps.testing.collect(build, workers=2)
    [(0, (3,))]
    """
    join = GenericJoin(directed(edges), _plan(parse_pattern(pattern)), (), distinct)
    return join.count(count_as_arrow)


def _plan(pattern: Pattern) -> Plan:
    return make_plan(len(pattern.names), pattern.edges, pattern.absent)


def count_as_arrow(n: int) -> Any:
    """A number of matches as an Arrow batch of one record, `count`."""
    return to_arrow(Arrays({"count": np.array([n])}))
