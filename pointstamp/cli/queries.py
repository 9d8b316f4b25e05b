"""What can be asked of a graph, as values that travel to the workers."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any, Protocol

from pointstamp.errors import UsageError
from pointstamp.graph.cliques import MAX_CLIQUE, cliques, count_cliques
from pointstamp.graph.motifs import count_motifs, motifs
from pointstamp.graph.patterns import parse_pattern
from pointstamp.operators.stream import Stream


class Query(Protocol):
    """A question; made only if it can be answered."""

    @property
    def title(self) -> str:
        """What is looked for, in the plural."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the matches."""

    def find(self, edges: Stream[Any]) -> Stream[Any]:
        """The matches, as record batches of int64 columns."""

    def count(self, edges: Stream[Any]) -> Stream[Any]:
        """Their number, as record batches with the one column `count`."""


@dataclass(frozen=True)
class MotifQuery:
    """All matches of a pattern of directed edges.

    >>> MotifQuery("(x)-[]->(y); (y)-[]->(x)").columns
    ('x', 'y')
    """

    pattern: str
    distinct: bool = False

    def __post_init__(self) -> None:
        parse_pattern(self.pattern)

    @property
    def title(self) -> str:
        """What is looked for."""
        return f"matches of {self.pattern}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The named vertices of the pattern."""
        return parse_pattern(self.pattern).columns

    def find(self, edges: Stream[Any]) -> Stream[Any]:
        """See `Query`."""
        return motifs(edges, self.pattern, self.distinct)

    def count(self, edges: Stream[Any]) -> Stream[Any]:
        """See `Query`."""
        return count_motifs(edges, self.pattern, self.distinct)


@dataclass(frozen=True)
class CliqueQuery:
    """All cliques of `k` vertices of the graph without its directions.

    >>> CliqueQuery(3).title, CliqueQuery(4).columns
    ('triangles', ('a', 'b', 'c', 'd'))
    """

    k: int

    def __post_init__(self) -> None:
        if not 2 <= self.k <= MAX_CLIQUE:
            raise UsageError(f"a clique has from 2 to {MAX_CLIQUE} vertices, not {self.k}")

    @property
    def title(self) -> str:
        """What is looked for."""
        return "triangles" if self.k == 3 else f"cliques of {self.k}"

    @property
    def columns(self) -> tuple[str, ...]:
        """A letter for each vertex."""
        return tuple(string.ascii_lowercase[: self.k])

    def find(self, edges: Stream[Any]) -> Stream[Any]:
        """See `Query`."""
        return cliques(edges, self.k)

    def count(self, edges: Stream[Any]) -> Stream[Any]:
        """See `Query`."""
        return count_cliques(edges, self.k)
