"""The search for a pattern of vertices and edges with attributes, one element after the other.

A step binds a vertex by the edges that lead to it from those that are bound: of the lists of
these that of the fewest edges is gone through, prefix by prefix, and the others are looked up in
(the generic join). Edges are found with the vertices, each by itself, so that one that repeats is
several matches. Where many do, they are one until all is bound, and several then.

Conditions on one element are masks, and made the lists shorter before the search begins; one on
several is tested as soon as all that it names is bound.

    first    all edges of the term with the fewest, shared out to the workers
    extend   a vertex, by all terms between it and what is bound
    close    an edge between vertices that are bound
    combine  all edges of a term, or all vertices, with nothing in common with what is bound

Each step makes pieces of a limited size of each piece, and pieces go through all steps before the
next one is made: memory is some pieces for each step. Work is within a logarithm of the largest
number of matches, where edges that repeat are in no condition on several elements. Source: as of
`joins.generic_join`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.errors import InternalError, PatternError
from pointstamp.graph.tables.element_pattern import ANYWHERE, EdgeTerm, ElementPattern
from pointstamp.graph.tables.frame_columns import taken
from pointstamp.graph.tables.numbered_graph import (
    PIECE,
    Bools,
    EdgeLists,
    Ints,
    NumberedGraph,
    ParallelEdges,
    Span,
    common,
    count_common,
    spread,
)
from pointstamp.graph.tables.sql_text import Computed, Named, Tree, names_in
from pointstamp.graph.tables.sql_values import field_of, holds

MAX_COMBINED = 10_000_000
"""So many records a worker makes of parts that have nothing in common, where there is no limit."""

MUCH_LONGER = 8
"""A list this many times longer than another one is not read from end to end in its place."""

_FEW, _WAITING = 1 << 13, 64
"""Of pieces with fewer matches, so many are put together: each goes through operators by itself."""

Prefixes = dict[str, Ints]
"""What is bound: numbers for each vertex, `v0`, and for each edge that is asked for, `e0`."""

Step = Callable[[Prefixes], Iterator[Prefixes]]


@dataclass(frozen=True, eq=False)
class ElementSearch:
    """What is looked for.

    Attributes
    ----------
    pattern : ElementPattern
    conditions : tuple of Tree
        All must hold; names are of elements of the pattern and their attributes.
    distinct : bool
        Whether vertices of the pattern must be different.
    limit : int, optional
        So many matches are enough, of each worker.
    masks : dict
        By the number of a vertex of the pattern, which vertices may stand for it, bool[n].
    known : names that are no element of this pattern, but of another one of the same text
    """

    pattern: ElementPattern
    conditions: tuple[Tree, ...] = ()
    distinct: bool = False
    limit: int | None = None
    masks: Mapping[int, Bools] | None = None
    known: frozenset[str] = frozenset()

    def matches(self, graph: NumberedGraph, index: int, peers: int) -> Iterator[Prefixes]:
        """This worker's matches, some at a time: the numbers of what has a name."""
        wanted = [_column(kind, number) for _, kind, number in self.pattern.columns]
        left = self.limit
        waiting: list[Prefixes] = []
        n_waiting = 0
        for piece in _SearchSteps(self, graph, index, peers).pieces():
            if left is not None:
                piece = {name: column[:left] for name, column in piece.items()}
                left -= _length(piece)
            waiting.append({name: piece[name] for name in wanted})
            n_waiting += _length(piece)
            if left == 0:
                break
            if len(waiting) == _WAITING or n_waiting >= _FEW:
                yield _put_together(waiting)
                waiting, n_waiting = [], 0
        if waiting:
            yield _put_together(waiting)

    def count(self, graph: NumberedGraph, index: int, peers: int) -> int:
        """How many matches this worker has, the last of which are counted and not made."""
        return _SearchSteps(self, graph, index, peers).count()


def _put_together(pieces: list[Prefixes]) -> Prefixes:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in first}


def _column(kind: str, number: int) -> str:
    return f"{kind[0]}{number}"


def _ends(term: EdgeTerm) -> list[str]:
    """The columns of its ends, but for one that is anywhere."""
    return [f"v{end}" for end in (term.source, term.target) if end != ANYWHERE]


def _vertices(columns: set[str]) -> list[str]:
    return sorted(column for column in columns if column[0] == "v")


def _length(prefixes: Prefixes) -> int:
    return len(next(iter(prefixes.values())))


def _taken(prefixes: Prefixes, found: npt.NDArray[Any]) -> Prefixes:
    """The prefixes that are found, by their places or by flags.

    Columns are never changed, so that those of which all are taken are not copied: a long path has
    thousands of them, and gets one more at a time.
    """
    if found.dtype == np.bool_:  # numbers, or each column would be gone through flag by flag
        found = np.flatnonzero(found)
    if prefixes and len(found) == _length(prefixes) and (np.diff(found, prepend=-1) == 1).all():
        return dict(prefixes)
    return {name: column[found] for name, column in prefixes.items()}


@dataclass(frozen=True, eq=False)
class _Link:
    """A term by which a vertex is reached: its lists, and the columns of edges and of one end."""

    lists: EdgeLists
    edge: str
    key: str


class _SearchSteps:
    """A search at one worker: what each step does, laid out."""

    def __init__(self, search: ElementSearch, graph: NumberedGraph, index: int, peers: int) -> None:
        self._search = search
        self._pattern = search.pattern
        self._graph = graph
        self._index, self._peers = index, peers
        self._combined = 0
        self._elements = {name: _column(kind, i) for name, kind, i in self._pattern.columns}
        several = self._masks_of_conditions()
        self._kept_edges = {c for c in self._elements.values() if c[0] == "e"}
        self._tested_edges = {c for condition in several for c in self._needs(condition)}
        self._parallel: dict[str, tuple[str, ParallelEdges]] = {}
        """By the column of places of edges that are one, that of the edges, and these."""
        self._steps: list[Step] = []
        self._counts: list[Callable[[Prefixes], int] | None] = []
        """By step, what counts what it would make, if nothing else is to be done with that."""
        self._bound: set[str] = set()
        self._untested = [*several]
        self._unchecked = [*self._pattern.absent]
        self._lay_out()

    def pieces(self) -> Iterator[Prefixes]:
        pieces = self._through(self._steps, {})
        return self._apart(pieces) if self._parallel else pieces

    def count(self) -> int:
        if self._parallel:
            return sum(map(self._n_apart, self._through(self._steps, {})))
        last = self._counts[-1]
        if last is None:
            return sum(map(_length, self.pieces()))
        if len(self._steps) == 1:
            return last({})
        return sum(map(last, self._through(self._steps[:-1], {})))

    def _through(self, steps: Sequence[Step], prefixes: Prefixes) -> Iterator[Prefixes]:
        """What the last step makes; without recursion, because paths may have many steps."""
        if not steps:
            yield prefixes
            return
        running = [steps[0](prefixes)]
        while running:
            piece = next(running[-1], None)
            if piece is None:
                running.pop()
            elif not _length(piece):
                continue
            elif len(running) == len(steps):
                yield piece
            else:
                running.append(steps[len(running)](piece))

    # Parallel edges that were one.

    def _apart(self, pieces: Iterator[Prefixes]) -> Iterator[Prefixes]:
        """The prefixes once for each of the edges that were one."""
        for name in self._parallel:
            pieces = self._each_of(name, pieces)
        return pieces

    def _each_of(self, name: str, pieces: Iterator[Prefixes]) -> Iterator[Prefixes]:
        edge, parallel = self._parallel[name]
        for piece in pieces:
            others = {other: column for other, column in piece.items() if other != name}
            for of, at in spread(*parallel.spans(piece[name])):
                found = _taken(others, of)
                if edge in self._kept_edges:
                    found[edge] = parallel.rows[at]
                yield found

    def _n_apart(self, prefixes: Prefixes) -> int:
        """How many that makes, which may be more than 64 bits can say."""
        n: Any = 1
        for name, (_, parallel) in self._parallel.items():
            begins, ends = parallel.spans(prefixes[name])
            n = n * (ends - begins).astype(object)
        return int(n.sum())

    # Conditions.

    def _masks_of_conditions(self) -> list[Tree]:
        """Make masks of the conditions on one element; which are on several."""
        self._of_element: dict[str, list[Tree]] = {}
        several = []
        for condition in self._search.conditions:
            elements = {self._element(name) for name in names_in(condition)} - {""}
            if len(elements) == 1:
                self._of_element.setdefault(elements.pop(), []).append(condition)
            else:
                several.append(condition)
        return several

    def _element(self, name: Named) -> str:
        """The column of the element that a name is of; "" if only another pattern has it."""
        first = name.parts[0]
        if first in self._elements and len(name.parts) > 1:
            return self._elements[first]
        if first in self._search.known:
            return ""
        raise InternalError(f"{'.'.join(name.parts)!r} should have been refused")

    def _values(self, name: Named, prefixes: Prefixes, n: int) -> Any:
        element = self._element(name)
        if not element:
            return pa.nulls(n)
        column = self._attribute(element, name)
        return taken(column, prefixes[element]) if element in prefixes else column

    def _attribute(self, element: str, name: Named) -> Any:
        table = self._graph.vertices if element[0] == "v" else self._graph.edges
        if table is None:  # there is not one record, and no schema
            return pa.nulls(0)
        _, attribute, *inner = name.parts
        return field_of(table.column(attribute), inner, ".".join(name.parts[:2]))

    def _mask(self, element: str) -> Bools | None:
        """For which vertices, or edges, all conditions on one element hold."""
        is_vertex = element[0] == "v"
        n = self._graph.n if is_vertex else len(self._graph.sources)
        given = (self._search.masks or {}).get(int(element[1:])) if is_vertex else None
        conditions = self._of_element.get(element, [])
        if not conditions:
            return given
        # As one, so that each guards those after it.
        whole = reduce(lambda one, other: Computed("and", (one, other)), conditions)
        found = holds(whole, lambda name: self._values(name, {}, n), n)
        return found if given is None else given & found

    @cached_property
    def _masks(self) -> dict[str, Bools | None]:
        vertices = [f"v{i}" for i in range(len(self._pattern.vertices))]
        edges = [f"e{i}" for i in range(len(self._pattern.terms))]
        return {element: self._mask(element) for element in (*vertices, *edges)}

    def _tests(self) -> list[Callable[[Prefixes], Prefixes]]:
        """What can be tested now that it is bound, and was not yet."""
        tests: list[Callable[[Prefixes], Prefixes]] = []
        ready = [c for c in self._untested if self._needs(c) <= self._bound]
        self._untested = [c for c in self._untested if c not in ready]
        tests += [self._condition(condition) for condition in ready]
        checked = [t for t in self._unchecked if set(_ends(t)) <= self._bound]
        self._unchecked = [t for t in self._unchecked if t not in checked]
        return tests + [self._absence(term) for term in checked]

    def _needs(self, condition: Tree) -> set[str]:
        return {self._element(name) for name in names_in(condition)} - {""}

    def _condition(self, condition: Tree) -> Callable[[Prefixes], Prefixes]:
        def test(prefixes: Prefixes) -> Prefixes:
            n = _length(prefixes)
            return _taken(
                prefixes, holds(condition, lambda name: self._values(name, prefixes, n), n)
            )

        return test

    def _absence(self, term: EdgeTerm) -> Callable[[Prefixes], Prefixes]:
        # Of an edge from or to anywhere, the one end that is bound has no list.
        lists = self._graph.lists((), term.source == ANYWHERE, term.undirected)

        def test_of_end(prefixes: Prefixes) -> Prefixes:
            keys = prefixes[_ends(term)[0]]
            return _taken(prefixes, lists.starts[keys] == lists.starts[keys + 1])

        def test(prefixes: Prefixes) -> Prefixes:
            begins, ends = lists.between(prefixes[f"v{term.source}"], prefixes[f"v{term.target}"])
            return _taken(prefixes, begins == ends)

        return test_of_end if ANYWHERE in (term.source, term.target) else test

    # The order.

    def _lay_out(self) -> None:
        """Choose steps until all is bound: the most constrained vertex, or the fewest edges."""
        order = _Unbound(self._pattern)
        while order.terms or order.near:
            if order.closed:
                number = order.closed[0]
                self._add(self._close(number, order.taken(number)))
                continue
            vertex, by = order.nearest()
            if by:
                self._add(self._extend(vertex, [(i, order.taken(i)) for i in by]))
                order.bind(vertex)
            elif order.terms:
                first = min(order.terms, key=self._n_edges)
                term = order.taken(first)
                self._add(self._all_edges(first, term))
                order.bind(term.source, term.target)
            else:
                self._add(self._all_vertices(vertex))
                order.bind(vertex)

    def _add(self, made: tuple[Step, Callable[[Prefixes], int] | None, set[str]]) -> None:
        step, count, bound = made
        # Not of each step of a search that does not ask for it: a path has thousands of vertices.
        before = set(self._bound) if self._search.distinct else set()
        self._bound |= bound
        tests = self._tests()
        if self._search.distinct and (fresh := _vertices(bound - before)):
            tests.insert(0, _different(fresh, _vertices(before)))
        if tests:
            self._steps.append(lambda prefixes: _tested(step(prefixes), tests))
        else:
            self._steps.append(step)
        self._counts.append(None if tests else count)

    # Steps.

    def _lists(self, number: int, term: EdgeTerm, by_target: bool) -> tuple[EdgeLists, str]:
        """The lists of a term, and the column of its edges, or of places of those that are one."""
        lists, edge = self._all_lists(number, term, by_target), f"e{number}"
        once = None if edge in self._tested_edges else lists.once
        if once is None:
            return lists, edge
        place = f"p{number}"
        self._parallel[place] = edge, once
        return once.lists, place

    def _all_lists(self, number: int, term: EdgeTerm, by_target: bool) -> EdgeLists:
        names = (f"e{number}", f"v{term.source}", f"v{term.target}")
        masks = [self._masks[name] for name in names]
        is_open = all(mask is None for mask in masks)
        key = (
            ()
            if is_open
            else tuple(None if m is None else blake2b(m.tobytes()).digest() for m in masks)
        )
        return self._graph.lists(key, by_target, term.undirected, *masks)

    def _n_edges(self, number: int) -> int:
        """How many edges a term has, with the conditions on each of its elements."""
        term = self._pattern.terms[number]
        masks = [self._masks[name] for name in (f"e{number}", f"v{term.source}", f"v{term.target}")]
        return len(self._graph.allowed(term.undirected, *masks)[0])

    def _all_edges(self, number: int, term: EdgeTerm) -> Any:
        lists, edge = self._lists(number, term, False)
        keys = np.repeat(np.arange(self._graph.n), np.diff(lists.starts))
        positions = np.arange(len(keys))
        if term.source == term.target:
            positions = positions[keys == lists.others]
        is_first = not self._bound
        if is_first:
            positions = positions[self._index :: self._peers]
        columns = {
            f"v{term.source}": keys[positions],
            f"v{term.target}": lists.others[positions],
        }
        if edge in self._kept_edges or edge in self._parallel:
            columns[edge] = lists.rows[positions]
        return self._combine(columns, len(positions), is_first)

    def _all_vertices(self, vertex: int) -> Any:
        mask = self._masks[f"v{vertex}"]
        found = np.arange(self._graph.n) if mask is None else np.flatnonzero(mask)
        is_first = not self._bound
        if is_first:
            found = found[self._index :: self._peers]
        return self._combine({f"v{vertex}": found}, len(found), is_first)

    def _combine(self, columns: Prefixes, n: int, is_first: bool) -> Any:
        def first(prefixes: Prefixes) -> Iterator[Prefixes]:
            for low in range(0, n, PIECE):
                yield {name: column[low : low + PIECE] for name, column in columns.items()}

        def combine(prefixes: Prefixes) -> Iterator[Prefixes]:
            k = _length(prefixes)
            self._check_combined(k * n)
            for of, at in spread(np.zeros(k, np.int64), np.full(k, n)):
                yield {**_taken(prefixes, of), **_taken(columns, at)}

        bound = set(columns)
        if is_first:
            return first, lambda prefixes: n, bound
        return combine, lambda prefixes: _length(prefixes) * n, bound

    def _check_combined(self, n: int) -> None:
        self._combined += n
        if self._search.limit is None and self._combined > MAX_COMBINED:
            raise PatternError(
                "the pattern has parts with no vertex in common, and combining the matches of each "
                f"with those of the other makes more than {MAX_COMBINED:,} records; connect the "
                "parts, give conditions that leave fewer, or a limit="
            )

    def _extend(self, vertex: int, by: list[tuple[int, EdgeTerm]]) -> Any:
        links = []
        for number, term in by:
            from_target = term.source == vertex
            key = term.target if from_target else term.source
            links.append(_Link(*self._lists(number, term, from_target), f"v{key}"))
        name = f"v{vertex}"

        def extend(prefixes: Prefixes) -> Iterator[Prefixes]:
            for chosen, (link, span), others in _by_shortest(prefixes, links):
                # Found before columns are taken: of what the first list has, most is not there.
                for of, at, found in _in_all(link, span, others):
                    fresh = {name: link.lists.others[at]}
                    self._note_edge(fresh, link, at)
                    yield from self._with_edges(prefixes, chosen[of], fresh, found)

        def count(prefixes: Prefixes) -> int:
            return sum(
                _n_in_all(link, span, others)
                for _, (link, span), others in _by_shortest(prefixes, links)
            )

        return extend, count, {name, *(link.edge for link in links)}

    def _note_edge(self, prefixes: Prefixes, link: _Link, at: Ints) -> None:
        if link.edge in self._kept_edges or link.edge in self._parallel:
            prefixes[link.edge] = link.lists.rows[at]

    def _with_edges(
        self, prefixes: Prefixes, of: Ints, fresh: Prefixes, others: list[_Found]
    ) -> Iterator[Prefixes]:
        """The prefixes `of` with the columns that are fresh, once for each of parallel edges."""
        if not others:
            yield {**_taken(prefixes, of), **fresh}
            return
        (link, firsts, lasts), *rest = others
        if (lasts - firsts == 1).all():
            self._note_edge(fresh, link, firsts)
            yield from self._with_edges(prefixes, of, fresh, rest)
            return
        for rows, at in spread(firsts, lasts):
            columns = _taken(fresh, rows)
            self._note_edge(columns, link, at)
            yield from self._with_edges(prefixes, of[rows], columns, _chosen(rest, rows))

    def _close(self, number: int, term: EdgeTerm) -> Any:
        link = _Link(*self._lists(number, term, False), f"v{term.source}")
        name = f"v{term.target}"

        def count(prefixes: Prefixes) -> int:
            begins, ends = link.lists.between(prefixes[link.key], prefixes[name])
            return int((ends - begins).sum())

        def close(prefixes: Prefixes) -> Iterator[Prefixes]:
            firsts, lasts = link.lists.between(prefixes[link.key], prefixes[name])
            there = np.flatnonzero(firsts < lasts)
            found = link, firsts[there], lasts[there]
            yield from self._with_edges(prefixes, there, {}, [found])

        return close, count, {link.edge}


_Found = tuple[_Link, Ints, Ints]
"""Where the edges of a link begin and end, int64[k] each, in its lists."""


_Lists = tuple[_Link, Span]
"""Of a link, where the list of each of some prefixes begins and ends."""


def _by_shortest(
    prefixes: Prefixes, links: list[_Link]
) -> Iterator[tuple[Ints, _Lists, list[_Lists]]]:
    """The prefixes in which a link has the fewest edges, their lists by it, and by the others.

    The link whose lists change least from prefix to prefix comes first only where its list is much
    the shortest, and is the first of the others elsewhere: it is looked up by marks.
    """
    keys = [prefixes[link.key] for link in links]
    lists = [(link, link.lists.spans(k)) for link, k in zip(links, keys, strict=True)]
    if len(links) == 1:
        yield np.arange(len(keys[0])), lists[0], []
        return
    steadiest = min(range(len(keys)), key=lambda j: np.count_nonzero(np.diff(keys[j])))
    sizes = np.stack([ends - begins for _, (begins, ends) in lists])
    sizes[steadiest] *= MUCH_LONGER
    shortest = sizes.argmin(axis=0)
    order = sorted(range(len(links)), key=lambda j: j != steadiest)
    for j in order:
        chosen = np.flatnonzero(shortest == j)
        if len(chosen):
            first, *others = (
                (link, (begins[chosen], ends[chosen]))
                for link, (begins, ends) in (lists[i] for i in sorted(order, key=lambda i: i != j))
            )
            yield chosen, first, others


def _in_all(
    link: _Link, span: Span, others: list[_Lists]
) -> Iterator[tuple[Ints, Ints, list[_Found]]]:
    """What is in the list of a link and in those of others: of which, where, and where there."""
    if not others:
        for of, at in spread(*span):
            yield of, at, []
        return
    (second, span_there), *more = others
    for of, at, firsts, lasts in common(link.lists, span, second.lists, span_there):
        found = [(second, firsts, lasts)]
        for other, (begins, ends) in more:
            vertices = link.lists.others[at]
            firsts, lasts = other.lists.found((begins[of], ends[of]), vertices)
            there = np.flatnonzero(firsts < lasts)
            of, at = of[there], at[there]
            found = [*_chosen(found, there), (other, firsts[there], lasts[there])]
        yield of, at, found


def _n_in_all(link: _Link, span: Span, others: list[_Lists]) -> int:
    """How many there are, once for each of parallel edges."""
    if not others:
        begins, ends = span
        return int((ends - begins).sum())
    if len(others) == 1:
        [(second, span_there)] = others
        return count_common(link.lists, span, second.lists, span_there)
    return sum(
        int(np.prod([lasts - firsts for _, firsts, lasts in found], axis=0).sum())
        for _, _, found in _in_all(link, span, others)
    )


def _chosen(found: list[_Found], rows: Ints) -> list[_Found]:
    return [(link, firsts[rows], lasts[rows]) for link, firsts, lasts in found]


class _Unbound:
    """What of a pattern is not bound yet, as vertices become so: each term is looked at twice.

    Attributes
    ----------
    terms : dict
        The terms that are left, by their numbers.
    near : dict
        By each vertex that is free, the terms by which it is reached from those that are bound.
    closed : list of int
        Terms between vertices that are bound, in order.
    """

    def __init__(self, pattern: ElementPattern) -> None:
        self.terms = dict(enumerate(pattern.terms))
        self.near: dict[int, list[int]] = {v: [] for v in range(len(pattern.vertices))}
        self.closed: list[int] = []
        self._reached: set[int] = set()
        self._of_vertex: dict[int, list[int]] = {v: [] for v in self.near}
        for number, term in self.terms.items():
            for end in {term.source, term.target}:
                self._of_vertex[end].append(number)

    def taken(self, number: int) -> EdgeTerm:
        if number in self.closed:
            self.closed.remove(number)
        return self.terms.pop(number)

    def nearest(self) -> tuple[int, list[int]]:
        """The free vertex that most terms lead to, the first of those, and the terms."""
        if not self.near:
            return -1, []
        # Of those that no term leads to only the first is looked at: a path has thousands.
        found = min(self._reached, key=lambda v: (-len(self.near[v]), v), default=None)
        vertex = next(iter(self.near)) if found is None else found
        return vertex, sorted(self.near[vertex])

    def bind(self, *vertices: int) -> None:
        for vertex in dict.fromkeys(vertices):
            del self.near[vertex]
            self._reached.discard(vertex)
            for number in self._of_vertex[vertex]:
                if number in self.terms:
                    self._seen_from(vertex, number, self.terms[number])
        self.closed.sort()

    def _seen_from(self, vertex: int, number: int, term: EdgeTerm) -> None:
        other = term.target if term.source == vertex else term.source
        if other in self.near:
            self.near[other].append(number)
            self._reached.add(other)
        else:
            self.closed.append(number)


def _different(fresh: list[str], older: list[str]) -> Callable[[Prefixes], Prefixes]:
    """Keep where what was bound last differs from all else."""

    def test(prefixes: Prefixes) -> Prefixes:
        kept = np.ones(_length(prefixes), np.bool_)
        for i, one in enumerate(fresh):
            for other in (*older, *fresh[:i]):
                kept &= prefixes[one] != prefixes[other]
        return _taken(prefixes, kept)

    return test


def _tested(
    pieces: Iterator[Prefixes], tests: list[Callable[[Prefixes], Prefixes]]
) -> Iterator[Prefixes]:
    for piece in pieces:
        for test in tests:
            if _length(piece):
                piece = test(piece)
        yield piece
