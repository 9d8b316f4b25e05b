"""What can be asked of a graph, and its dataflow: the same on this machine and on Spark.

What is shown of a result must not depend on which worker found what when; so it is the least
matches, in order of their vertices. Each worker keeps its own few and a count, and a record of
each is all that leaves it.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pointstamp.cli.progress import Report
from pointstamp.containers import Arrays
from pointstamp.containers.convert import to_arrow
from pointstamp.errors import UsageError
from pointstamp.formats.vertices import check_vertices
from pointstamp.graph.clique_search import MAX_CLIQUE, cliques, count_cliques
from pointstamp.graph.motif_search import count_motifs, motifs
from pointstamp.graph.patterns import parse_pattern
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream

Ints = npt.NDArray[np.int64]

N_SHOWN = 10

Wanted = Literal["first", "count", "file"]
"""Of the matches: how many and the first few; how many, without making them; all, in a file."""


@dataclass(frozen=True)
class Search:
    """A question, and what is wanted of its matches; builds its dataflow where it is called.

    Attributes
    ----------
    title : what is looked for, in the plural
    columns : the names of the columns of the matches
    find : of a stream of edges the matches, as record batches of int64 columns
    count : of a stream of edges their number, as record batches with the one column `count`
    """

    title: str
    columns: tuple[str, ...]
    find: Callable[[Any], Any]
    count: Callable[[Any], Any]
    wanted: Wanted = "first"

    @property
    def result_columns(self) -> list[str]:
        """The names of the columns of the result, all of them int64."""
        if self.wanted == "count":
            return ["count"]
        return top_columns(len(self.columns)) if self.wanted == "first" else list(self.columns)

    def __call__(self, scope: Scope, edges: Stream[Any]) -> Stream[Any]:
        """What is wanted, as record batches; the work is counted and reported.

        Of a "count", numbers to be added up; of the "first", the least matches of each worker.
        """
        report = Report(scope.index)
        scope.environment.observers.append(report.note)

        def take(time: Any, batch: Any) -> None:
            check_vertices(batch, "the graph")  # what Spark scanned by itself is not checked yet
            report.note("edges", batch.num_rows)

        def find(time: Any, batch: Any) -> None:
            counting = self.wanted == "count"
            report.note("found", total(batch) if counting else batch.num_rows)

        def see(times: list[Any]) -> None:
            if not times:
                report.finish()

        edges = edges.inspect_batch(take)
        search = self.count if self.wanted == "count" else self.find
        found: Stream[Any] = search(edges).inspect_batch(find)
        if self.wanted == "first":
            found = top_matches(found, len(self.columns))
        return found.inspect_frontier(see, name="Report")


def motif_search(pattern: str, distinct: bool = False) -> Search:
    """All matches of a pattern of directed edges.

    >>> motif_search("(x)-[]->(y); (y)-[]->(x)").columns
    ('x', 'y')
    """
    return Search(
        f"matches of {pattern}",
        parse_pattern(pattern).columns,
        partial(motifs, pattern=pattern, distinct=distinct),
        partial(count_motifs, pattern=pattern, distinct=distinct),
    )


def clique_search(k: int, title: str = "") -> Search:
    """All cliques of `k` vertices of the graph without its directions.

    title : what the summary calls them

    >>> clique_search(3).title, clique_search(4).columns
    ('cliques of 3', ('a', 'b', 'c', 'd'))
    """
    if not 2 <= k <= MAX_CLIQUE:
        raise UsageError(f"a clique has from 2 to {MAX_CLIQUE} vertices, not {k}")
    columns = tuple(string.ascii_lowercase[:k])
    title = title or f"cliques of {k}"
    return Search(title, columns, partial(cliques, k=k), partial(count_cliques, k=k))


def total(batch: Any) -> int:
    """The sum of the one column of a batch of counts."""
    return int(batch.column(0).to_numpy().sum())


def top_columns(n_columns: int) -> list[str]:
    """The names of the columns of a batch of top matches; the last is how many each stands for."""
    return [*(f"v{i}" for i in range(n_columns)), "stands_for"]


def top_matches(matches: Stream[Any], n_columns: int) -> Stream[Any]:
    """The least matches of each worker, as a record batch, at the end.

    The first stands for all those that are not in it, too.
    """

    def take(top: tuple[Ints, int], batch: Any) -> tuple[Ints, int]:
        least, n_matches = top
        rows = _rows(batch)
        if len(least) == N_SHOWN:
            # Most records are out already by their first column, and never sorted.
            rows = rows[rows[:, 0] <= least[-1, 0]]
        return _least(np.concatenate([least, rows])), n_matches + batch.num_rows

    def as_batch(tops: list[tuple[Ints, int]]) -> Any:
        [(least, n_matches)] = tops
        stands_for = np.ones(len(least), np.int64)
        stands_for[0] += n_matches - len(least)
        columns = [*map(np.ascontiguousarray, least.T), stands_for]
        return to_arrow(Arrays(dict(zip(top_columns(n_columns), columns, strict=True))))

    nothing = (np.empty((0, n_columns), np.int64), 0)
    return matches.accumulate(nothing, take, name="TopMatches").map_batches(as_batch)


def merged_top(batches: Iterable[Any], n_columns: int) -> tuple[Ints, int]:
    """The least of all matches, from the batches of the workers, and how many there are."""
    rows = np.concatenate([np.empty((0, n_columns + 1), np.int64), *map(_rows, batches)])
    return _least(rows[:, :-1]), int(rows[:, -1].sum())


def _rows(batch: Any) -> Ints:
    """The columns of a batch, int64[n, n_columns]."""
    return np.stack([column.to_numpy() for column in batch.columns], axis=1)


def _least(rows: Ints) -> Ints:
    """The least rows, in order."""
    return rows[np.lexsort(rows.T[::-1])[:N_SHOWN]]
