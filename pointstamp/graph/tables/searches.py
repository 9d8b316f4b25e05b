"""What can be looked for in a graph of tables: patterns, paths, cycles, walks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic

from pointstamp.errors import ColumnError, PatternError, UsageError
from pointstamp.graph.tables.algorithms import Frame
from pointstamp.graph.tables.element_pattern import ElementPattern, parse_elements
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.sql_text import Tree, conjuncts, names_in, parse_sql


class GraphSearches(ABC, Generic[Frame]):
    """Searches for patterns, whose results have whole vertices and edges."""

    @property
    @abstractmethod
    def _attributes(self) -> dict[str, list[str]]:
        """The names of the columns of a "vertex" and of an "edge"."""

    @abstractmethod
    def _found(self, searches: list[ElementSearch], limit: int | None) -> Frame:
        """The matches of searches, of which several are for chains of several lengths."""

    @abstractmethod
    def _counted(self, searches: list[ElementSearch]) -> int:
        """How many matches searches have together."""

    def find(
        self,
        pattern: str,
        where: str | None = None,
        *,
        distinct: bool = False,
        limit: int | None = None,
    ) -> Frame:
        """The matches of a pattern: a column for each named vertex and edge, with all attributes.

        Parameters
        ----------
        pattern : str
            Edges between vertices, as `"(a)-[e]->(b); !(b)-[]->(a)"`; the whole grammar is in
            `pointstamp.graph.tables.element_pattern`.
        where : str, optional
            A condition on attributes, in SQL's words: `"e.amount > 5 and a.kind = 'bank'"`. Its
            parts that `and` puts together are tested by themselves, inside the search, as soon as
            what they name is bound; one that names one element makes the edges fewer before.
        distinct : bool
            Whether vertices of different names must be different.
        limit : int, optional
            So many matches are enough; which is not defined.

        Returns
        -------
        table
            Structs, one for each named element in order of first appearance. Of an edge that
            repeats each is a match.

        Raises
        ------
        PatternError
            If the pattern cannot be understood, names nothing, or has parts with nothing in
            common that make too many matches.
        ColumnError
            If a condition names what is not there.
        UsageError
            If the condition cannot be understood.
        """
        searches = self._searches(pattern, where, distinct)
        if not searches[0].pattern.columns:
            raise PatternError(
                f"the pattern names nothing, so its matches have no columns: {pattern!r}; name a "
                "vertex or an edge, or use count"
            )
        if limit is not None and limit < 0:
            raise UsageError(f"a limit is 0 or more, not {limit}")
        return self._found([replace(search, limit=limit) for search in searches], limit)

    def count(self, pattern: str, where: str | None = None, *, distinct: bool = False) -> int:
        """How many matches `find` would give; the last step of each is counted and not made."""
        return self._counted(self._searches(pattern, where, distinct))

    def _searches(self, pattern: str, where: str | None, distinct: bool) -> list[ElementSearch]:
        patterns = parse_elements(pattern)
        conditions = () if where is None else tuple(conjuncts(parse_sql(where)))
        kinds = all_columns(patterns)
        for condition in conditions:
            check_names(condition, kinds, self._attributes)
        known = frozenset(kinds)
        return [ElementSearch(one, conditions, distinct, known=known) for one in patterns]


def check_names(condition: Tree, kinds: dict[str, str], attributes: dict[str, list[str]]) -> None:
    """Refuse names that are of no attribute of an element."""
    for name in names_in(condition):
        if name.parts[0] not in kinds or len(name.parts) < 2:
            shown = ", ".join(map(repr, kinds)) or "nothing"
            raise ColumnError(
                f"{'.'.join(name.parts)!r} is no attribute of an element; the pattern names "
                f"{shown}, and a condition their attributes, as in 'a.age'"
            )
        known = attributes[kinds[name.parts[0]]]
        if name.parts[1] not in known:
            raise ColumnError(
                f"{name.parts[0]!r} has no attribute {name.parts[1]!r}, only "
                f"{', '.join(map(repr, known))}"
            )


def all_columns(patterns: list[ElementPattern]) -> dict[str, str]:
    """The names of the elements of some patterns, and their kinds; the longest pattern first."""
    longest = sorted(patterns, key=lambda pattern: -pattern.hop)
    return {name: kind for pattern in longest for name, kind, _ in pattern.columns}
