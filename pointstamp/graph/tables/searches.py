"""What can be looked for in a graph of tables: patterns, paths, cycles, walks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic, TypeVar

from pointstamp.errors import ColumnError, PatternError
from pointstamp.graph.tables.algorithms import Frame
from pointstamp.graph.tables.argument_checks import seed_of, share, whole_number
from pointstamp.graph.tables.element_pattern import ElementPattern, parse_elements
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.path_search import PathEnds, path_search
from pointstamp.graph.tables.search_task import SearchTask
from pointstamp.graph.tables.sql_text import Tree, conjuncts, names_in

Condition = TypeVar("Condition")
"""As what conditions are given."""


class GraphSearches(ABC, Generic[Frame, Condition]):
    """Searches for patterns, whose results have whole vertices and edges."""

    @abstractmethod
    def _condition(self, given: Condition) -> Tree:
        """A condition, as it is given, as a tree."""

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
        where: Condition | None = None,
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
        where : str, or a Column on Spark, optional
            A condition on attributes, in SQL's words: `"e.amount > 5 and a.kind = 'bank'"`. Its
            parts that `and` puts together are tested by themselves, inside the search, as soon as
            what they name is bound; one that names one element makes the edges fewer before.
        distinct : bool
            Whether vertices of different names must be different, and those without names too.
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
            common that make too many matches; on Spark, if it has names that differ only in upper
            and lower case, which are one column's there.
        ColumnError
            If a condition names what is not there.
        SchemaError
            If values in a condition do not go together, such as text and numbers.
        UsageError
            If the condition cannot be understood.
        """
        searches = self._searches(pattern, where, distinct)
        if not searches[0].pattern.columns:
            raise PatternError(
                f"the pattern names nothing, so its matches have no columns: {pattern!r}; name a "
                "vertex or an edge, or use count"
            )
        if limit is not None:
            limit = min(whole_number(limit, "a limit"), 2**63 - 1)
        return self._found([replace(search, limit=limit) for search in searches], limit)

    def count(self, pattern: str, where: Condition | None = None, *, distinct: bool = False) -> int:
        """The number of matches that `find` would return; the last step is not materialized."""
        return self._counted(self._searches(pattern, where, distinct))

    # Paths.

    @abstractmethod
    def _path_length(self, ends: PathEnds) -> int:
        """How long the shortest paths are; -1 if there are none. This runs."""

    @abstractmethod
    def _beside(self, frame: Frame, name: str, other: str) -> Frame:
        """A table with its column `name` once more, as `other`."""

    def bfs(
        self,
        from_expr: Condition,
        to_expr: Condition,
        edge_filter: Condition | None = None,
        max_path_length: int = 10,
    ) -> Frame:
        """The shortest paths from vertices that satisfy one condition to those satisfying another.

        Parameters
        ----------
        from_expr, to_expr : str, or a Column on Spark
            Conditions on the columns of the vertices: where paths begin, and where they end.
        edge_filter : the same, optional
            One on those of the edges: by which paths may lead.
        max_path_length : int
            So many edges they have at most.

        Returns
        -------
        table
            All paths of the least length that there is between any two such vertices, with whole
            vertices and edges: `from`, `e0`, `v1`, `e1`, ..., `to`. Where one vertex is both,
            `from` and `to`. How long paths are is found by this call, on Spark by a job.
        """
        max_path_length = whole_number(max_path_length, "max_path_length of bfs")
        begin, end = self._condition(from_expr), self._condition(to_expr)
        edge = None if edge_filter is None else self._condition(edge_filter)
        for tree, kind in ((begin, "vertex"), (end, "vertex"), (edge, "edge")):
            check_columns(tree, kind, self._attributes)
        ends = PathEnds(begin, end, edge, max_path_length)
        length = self._path_length(ends)
        found = self._found([path_search(ends, abs(length))], None)
        return found if length else self._beside(found, "from", "to")

    # Lists of vertices.

    @abstractmethod
    def _lists(self, task: SearchTask, name: str) -> Frame:
        """What a task finds: a column of lists of ids."""

    def detect_cycles(self, max_length: int | None = None) -> Frame:
        """All simple cycles, once each: `found_cycles`, a list of ids that ends where it begins.

        Parameters
        ----------
        max_length : int, optional
            So many edges a cycle has at most. There may be exponentially many without.
        """
        if max_length is not None:
            max_length = whole_number(max_length, "max_length of a cycle", 1)
        from pointstamp.graph.tables.list_searches import CYCLES, CycleTask

        return self._lists(CycleTask(max_length), CYCLES)

    def random_walks(
        self,
        num_walks: int = 5,
        length: int = 10,
        *,
        restart_probability: float = 0.0,
        seed: int = 42,
    ) -> Frame:
        """Random walks along the edges, `num_walks` from each vertex: `walk`, a list of ids.

        Parameters
        ----------
        length : int
            So many steps, or fewer where no edge leads on.
        restart_probability : float
            How likely a step leads back to where the walk began.
        seed : int
            The same one gives the same walks, on any number of workers.

        Notes
        -----
        For embeddings, as what a model of words takes for sentences.
        """
        from pointstamp.graph.tables.list_searches import WALK, WalkTask

        task = WalkTask(
            whole_number(num_walks, "num_walks of random_walks", 1),
            whole_number(length, "length of random_walks"),
            share(restart_probability, "restart_probability"),
            seed_of(seed),
        )
        return self._lists(task, WALK)

    def _searches(
        self, pattern: str, where: Condition | None, distinct: bool
    ) -> list[ElementSearch]:
        patterns = parse_elements(pattern)
        conditions = () if where is None else tuple(conjuncts(self._condition(where)))
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


def check_columns(tree: Tree | None, kind: str, attributes: dict[str, list[str]]) -> None:
    """Refuse names that are no column of a kind of element."""
    for name in [] if tree is None else names_in(tree):
        if name.parts[0] not in attributes[kind]:
            raise ColumnError(
                f"{'vertices' if kind == 'vertex' else 'edges'} have no column {name.parts[0]!r}, "
                f"only {', '.join(map(repr, attributes[kind]))}"
            )


def all_columns(patterns: list[ElementPattern]) -> dict[str, str]:
    """The names of the elements of some patterns, and their kinds; the longest pattern first."""
    longest = sorted(patterns, key=lambda pattern: -pattern.hop)
    return {name: kind for pattern in longest for name, kind, _ in pattern.columns}
