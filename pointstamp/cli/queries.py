"""What can be asked of a graph, as values that travel to the workers."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pointstamp.errors import UsageError
from pointstamp.graph.cliques import MAX_CLIQUE, cliques, count_cliques
from pointstamp.graph.motifs import count_motifs, motifs
from pointstamp.graph.patterns import parse_pattern
from pointstamp.operators.stream import Stream


@dataclass(frozen=True)
class Query:
    """A question; made only if it can be answered.

    Attributes
    ----------
    title : what is looked for, in the plural
    columns : the names of the columns of the matches
    find : of a stream of edges the matches, as record batches of int64 columns
    count : of a stream of edges their number, as record batches with the one column `count`
    """

    title: str
    columns: tuple[str, ...]
    find: Callable[[Stream[Any]], Stream[Any]]
    count: Callable[[Stream[Any]], Stream[Any]]


def motif_query(pattern: str, distinct: bool = False) -> Query:
    """All matches of a pattern of directed edges.

    >>> motif_query("(x)-[]->(y); (y)-[]->(x)").columns
    ('x', 'y')
    """
    return Query(
        f"matches of {pattern}",
        parse_pattern(pattern).columns,
        partial(motifs, pattern=pattern, distinct=distinct),
        partial(count_motifs, pattern=pattern, distinct=distinct),
    )


def clique_query(k: int) -> Query:
    """All cliques of `k` vertices of the graph without its directions.

    >>> clique_query(3).title, clique_query(4).columns
    ('triangles', ('a', 'b', 'c', 'd'))
    """
    if not 2 <= k <= MAX_CLIQUE:
        raise UsageError(f"a clique has from 2 to {MAX_CLIQUE} vertices, not {k}")
    title = "triangles" if k == 3 else f"cliques of {k}"
    columns = tuple(string.ascii_lowercase[:k])
    return Query(title, columns, partial(cliques, k=k), partial(count_cliques, k=k))
