"""What can be asked of a graph, and its dataflow: the same on this machine and on Spark."""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import partial
from typing import Any

from pointstamp.cli.progress import ProgressReporter
from pointstamp.cli.request import Query, Wanted
from pointstamp.cli.top_matches import top_columns, top_matches
from pointstamp.errors import UsageError
from pointstamp.formats.vertices import check_vertices
from pointstamp.graph.clique_search import MAX_CLIQUE, cliques, count_cliques
from pointstamp.graph.motif_search import count_motifs, motifs
from pointstamp.graph.patterns import parse_pattern
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream


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


@dataclass(frozen=True)
class Search:
    """A question, and what is wanted of its matches; builds its dataflow where it is called."""

    query: Query
    wanted: Wanted

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the result, all of them int64."""
        if self.wanted == "count":
            return ["count"]
        columns = self.query.columns
        return top_columns(len(columns)) if self.wanted == "first" else list(columns)

    def __call__(self, scope: Scope, edges: Stream[Any]) -> Stream[Any]:
        """What is wanted, as record batches; the work is counted and reported.

        Of a "count", numbers to be added up; of the "first", the least matches of each worker.
        """
        reporter = ProgressReporter(scope.index)
        scope.environment.observers.append(reporter.note)

        def take(time: Any, batch: Any) -> None:
            check_vertices(batch, "the graph")  # what Spark scanned by itself is not checked yet
            reporter.note("edges", batch.num_rows)

        def find(time: Any, batch: Any) -> None:
            counting = self.wanted == "count"
            reporter.note("found", total(batch) if counting else batch.num_rows)

        def see(times: list[Any]) -> None:
            if not times:
                reporter.finish()

        edges = edges.inspect_batch(take)
        search = self.query.count if self.wanted == "count" else self.query.find
        found: Stream[Any] = search(edges).inspect_batch(find)
        if self.wanted == "first":
            found = top_matches(found, len(self.query.columns))
        return found.inspect_frontier(see, name="Report")


def total(batch: Any) -> int:
    """The sum of the one column of a batch of counts."""
    return int(batch.column(0).to_numpy().sum())
