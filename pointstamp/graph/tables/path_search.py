"""Shortest paths between two sets of vertices: breadth-first search, and the chains of its length.

Which vertices are how far from the one set, and from the other against the edges, is found level
by level. A vertex at place i of a path of the least length L is i edges from where paths begin and
L - i from where they end, so those are all that a search for chains of L edges looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pointstamp.containers.convert import to_arrow
from pointstamp.graph.tables.element_pattern import EdgeTerm, ElementKind, ElementPattern
from pointstamp.graph.tables.element_search import ElementSearch, Prefixes
from pointstamp.graph.tables.numbered_graph import Bools, Ints, NumberedGraph
from pointstamp.graph.tables.sql_text import Computed, Constant, Named, Tree
from pointstamp.graph.tables.sql_values import column_of, holds
from pointstamp.kernels.lists import group, positions


@dataclass(frozen=True)
class PathEnds:
    """Where paths begin and end, and by which edges they may lead: conditions on attributes."""

    begin: Tree
    end: Tree
    edge: Tree | None
    max_length: int


@dataclass(frozen=True, eq=False)
class PathSearch(ElementSearch):
    """All paths of a length, of which it is known that none is shorter."""

    ends: PathEnds | None = None

    def matches(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Prefixes]:
        """This worker's paths."""
        assert self.ends is not None
        levels = _levels(graph, self.ends)
        if levels is None or len(levels) != len(self.pattern.vertices):
            return iter(())
        plain = ElementSearch(self.pattern, self.conditions, masks=dict(enumerate(levels)))
        return plain.matches(graph, index, peers)


def path_search(ends: PathEnds, length: int) -> PathSearch:
    """The search for paths of a length: `from`, `e0`, `v1`, `e1`, ..., `to`."""
    if not length:  # no edge is looked at, nor are the columns there that a condition names
        ends = replace(ends, edge=None)
    last = "to" if length else "from"
    vertices = ("from", *(f"v{i}" for i in range(1, length)), *(["to"] if length else []))
    terms = tuple(EdgeTerm(i, i + 1, f"e{i}") for i in range(length))
    columns: list[tuple[str, ElementKind, int]] = []
    for i, name in enumerate(vertices):
        columns.append((name, "vertex", i))
        if i < length:
            columns.append((f"e{i}", "edge", i))
    # Not by the grammar, where a pattern is no longer than what is written by hand.
    pattern = ElementPattern(vertices, terms, (), tuple(columns))
    conditions = [prefixed(ends.begin, "from"), prefixed(ends.end, last)]
    if ends.edge is not None:
        conditions += [prefixed(ends.edge, f"e{i}") for i in range(length)]
    return PathSearch(pattern, tuple(conditions), known=frozenset({"from", "to"}), ends=ends)


def prefixed(tree: Tree, element: str) -> Tree:
    """A condition on the columns of a table as one on an element's attributes."""
    if isinstance(tree, Named):
        return Named((element, *tree.parts))
    if isinstance(tree, Constant):
        return tree
    return Computed(tree.function, tuple(prefixed(part, element) for part in tree.operands))


@dataclass(frozen=True, eq=False)
class LengthTask:
    """The length of the shortest paths: a record with `length`, -1 if there are none."""

    ends: PathEnds

    def pieces(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Any]:
        """The length, at the first worker."""
        if index == 0:
            reached = _Reached.of(graph, self.ends)
            yield to_arrow({"length": np.array([-1 if reached is None else reached.length])})


def _levels(graph: NumberedGraph, ends: PathEnds) -> list[Bools] | None:
    """By the place in a path, the vertices that are on a shortest one there; None if none is."""
    reached = _Reached.of(graph, ends)
    if reached is None:
        return None
    sources, targets, distances = reached.sources, reached.targets, reached.distances
    levels = [(distances == reached.length) & reached.end]
    for place in range(reached.length - 1, -1, -1):
        before = np.zeros(graph.n, np.bool_)
        before[sources[levels[0][targets]]] = True
        levels.insert(0, before & (distances == place))
    return levels


@dataclass(frozen=True, eq=False)
class _Reached:
    """How far vertices are from where paths begin, up to the nearest where they end.

    Attributes
    ----------
    distances : int64[n], -1 for what is farther
    length : int, the distance of the nearest end
    end : bool[n], where paths end
    sources, targets : int64[m], the edges by which they may lead
    """

    distances: Ints
    length: int
    end: Bools
    sources: Ints
    targets: Ints

    @classmethod
    def of(cls, graph: NumberedGraph, ends: PathEnds) -> _Reached | None:
        """What is reached in a graph; None if no end is."""
        if not graph.n:
            return None
        of_vertices = column_of(graph.vertices, "vertices")
        begin, end = (holds(tree, of_vertices, graph.n) for tree in (ends.begin, ends.end))
        sources, targets = graph.sources, graph.targets
        if ends.edge is not None and len(sources):
            kept = holds(ends.edge, column_of(graph.edges, "edges"), len(sources))
            sources, targets = sources[kept], targets[kept]
        # Lists, and not a look at all edges for each level, of which there may be very many.
        starts, heads = group(sources.astype(np.int32), graph.n, targets)
        distances = np.where(begin, 0, -1)
        last, length = np.flatnonzero(begin), 0
        while not end[last].any():
            following = heads[positions(starts[last], starts[last + 1])]
            last = np.unique(following[distances[following] < 0])
            if not len(last) or length == ends.max_length:
                return None
            length += 1
            distances[last] = length
        return cls(distances, length, end, sources, targets)
