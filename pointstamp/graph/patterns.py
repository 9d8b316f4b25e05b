"""The grammar of motifs: text in, vertices and edges out.

A motif is written as GraphFrames users write it, a list of edges between named
vertices: `"(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"`. This module reads that and
refuses what is not a motif, pointing at the character. It knows nothing of how
a motif is found, nor of any graph.

    pattern  =  term (";" term)*
    term     =  ["!"] vertex "-[" [name] "]->" vertex
    vertex   =  "(" [name] ")"
    name     =  letters, digits and underscores

What the grammar leaves open, and what we chose:

- A vertex without a name, `()`, is a vertex of its own each time. It takes part
  in the match, so a motif appears once for each way to fill it, and has no column.
- An edge may have a name, as in `(a)-[e]->(b)`; it names nothing in the output,
  whose columns are vertices.
- `!(a)-[]->(b)` says that there is no such edge. Both its vertices must be bound
  by other terms, for otherwise it would speak of all vertices there are.
- `(a)-[]->(a)` is an edge from a vertex to itself. It may be one of the terms, but
  not all of them: a motif of one vertex joins nothing, it is a filter over edges,
  and is refused with the advice to write that.

Source: the user guide of GraphFrames, "Motif finding".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from pointstamp.errors import PatternError

MAX_VERTICES = 8
"""Eight vertices bind eight columns; more is a mistake more often than a wish."""

_NAME = re.compile(r"\w*", re.ASCII)
_SPACE = re.compile(r"\s*")

Edge = tuple[int, int]


@dataclass(frozen=True)
class Pattern:
    """A parsed motif: directed edges between vertices numbered from 0.

    Attributes
    ----------
    text : str
        What was parsed.
    names : tuple of (str or None)
        Of each vertex, in order of first appearance; None where it has no name.
    edges : tuple of (int, int)
        Pairs (source, target) of vertex numbers that must be edges, no pair twice.
    absent : tuple of (int, int)
        Pairs of vertex numbers that must not be edges.
    """

    text: str
    names: tuple[str | None, ...]
    edges: tuple[Edge, ...]
    absent: tuple[Edge, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the named vertices: the columns of the output."""
        return tuple(name for name in self.names if name is not None)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The numbers of the named vertices, in the order of `columns`."""
        return tuple(i for i, name in enumerate(self.names) if name is not None)


def parse_pattern(text: str) -> Pattern:
    """Parse a motif, such as `(a)-[]->(b); (b)-[]->(a)`.

    Parameters
    ----------
    text : str
        The pattern, in the grammar at the head of this module.

    Raises
    ------
    PatternError
        If it cannot be parsed, has fewer than two or more than eight vertices,
        is not connected, or names an edge twice. The message shows the pattern
        with a caret under the character at fault.

    Examples
    --------
    >>> triangle = parse_pattern("(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)")
    >>> triangle.columns
    ('a', 'b', 'c')
    >>> triangle.edges
    ((0, 1), (1, 2), (0, 2))
    >>> parse_pattern("(a)-[]->(b); (b)-[]>(c)")
    Traceback (most recent call last):
    pointstamp.errors.PatternError: '->' was expected here, after an edge's ']'
        (a)-[]->(b); (b)-[]>(c)
                           ^
    """
    if not isinstance(text, str):
        raise PatternError(f"a pattern is text such as '(a)-[]->(b)', not {text!r}")
    return _Parser(text).pattern()


@dataclass(frozen=True)
class _Term:
    """One edge as written, and where."""

    at: int
    absent: bool
    source: int
    target: int
    edge_name: str
    edge_at: int


class _Parser:
    """Reads left to right; `_at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._names: list[str | None] = []
        self._first_seen: list[int] = []
        self._numbers: dict[str, int] = {}

    def pattern(self) -> Pattern:
        terms = self._terms()
        self._check_names(terms)
        self._check_twice(terms)
        self._check_absent(terms)
        self._check_size()
        self._check_connected(terms)
        return Pattern(
            self._text,
            tuple(self._names),
            tuple((t.source, t.target) for t in terms if not t.absent),
            tuple((t.source, t.target) for t in terms if t.absent),
        )

    # Reading.

    def _terms(self) -> list[_Term]:
        terms = [self._term()]
        while not self._at_end():
            self._expect(";", "between two edges, or the end of the pattern")
            terms.append(self._term())
        return terms

    def _term(self) -> _Term:
        self._skip_space()
        at = self._at
        absent = self._take("!")
        source = self._vertex()
        if self._peek("<-"):
            self._fail("edges are written from source to target: turn this one round")
        self._expect("-[", "after the source of an edge")
        self._skip_space()
        edge_at = self._at
        edge_name = self._name()
        self._expect("]", "after the name of an edge, or '[]' for one without")
        if self._peek("-(") or self._peek("- ("):
            self._fail(
                "motifs have directed edges: write '->' here, and a second edge back if need be"
            )
        self._expect("->", "after an edge's ']'")
        target = self._vertex()
        return _Term(at, absent, source, target, edge_name, edge_at)

    def _vertex(self) -> int:
        self._expect("(", "to begin a vertex")
        self._skip_space()
        at = self._at
        name = self._name()
        self._expect(")", "to end a vertex")
        if name in self._numbers:
            return self._numbers[name]
        number = len(self._names)
        self._names.append(name or None)
        self._first_seen.append(at)
        if name:
            self._numbers[name] = number
        return number

    def _name(self) -> str:
        found = _NAME.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return found.group()

    def _expect(self, token: str, where: str) -> None:
        if not self._take(token):
            self._fail(f"{token!r} was expected here, {where}")

    def _take(self, token: str) -> bool:
        if not self._peek(token):
            return False
        self._at += len(token)
        return True

    def _peek(self, token: str) -> bool:
        self._skip_space()
        return self._text.startswith(token, self._at)

    def _at_end(self) -> bool:
        self._skip_space()
        return self._at == len(self._text)

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        """Raise, with the line of the pattern that has the fault and a caret under it."""
        at = self._at if at is None else at
        begin = self._text.rfind("\n", 0, at) + 1
        end = self._text.find("\n", at)
        line = self._text[begin:] if end < 0 else self._text[begin:end]
        shown = line.replace("\t", " ")
        raise PatternError(f"{problem}\n    {shown}\n    {' ' * (at - begin)}^")

    # What a list of well-formed edges must fulfil to be a motif.

    def _check_names(self, terms: list[_Term]) -> None:
        seen: set[str] = set()
        for term in terms:
            name = term.edge_name
            if name and name in seen:
                self._fail(
                    f"edge name {name!r} is used twice; give each edge its own", term.edge_at
                )
            if name in self._numbers:
                self._fail(f"{name!r} names a vertex and cannot name an edge as well", term.edge_at)
            seen.add(name)

    def _check_twice(self, terms: list[_Term]) -> None:
        seen: dict[Edge, _Term] = {}
        for term in terms:
            pair = (term.source, term.target)
            if pair in seen:
                what = f"the edge from {self._shown(pair[0])} to {self._shown(pair[1])}"
                both = seen[pair].absent != term.absent
                problem = "is both demanded and denied" if both else "is named twice"
                self._fail(f"{what} {problem}; remove one of the two", term.at)
            seen[pair] = term

    def _check_absent(self, terms: list[_Term]) -> None:
        bound = {v for t in terms if not t.absent for v in (t.source, t.target)}
        for term in terms:
            for vertex in (term.source, term.target):
                if term.absent and vertex not in bound:
                    self._fail(
                        f"{self._shown(vertex)} occurs only in an edge that must be absent; "
                        "an edge without '!' has to bind it",
                        term.at,
                    )

    def _check_size(self) -> None:
        n = len(self._names)
        if n < 2:
            self._fail(
                "a motif has at least two vertices, and this has one: no join is needed for the "
                "edges whose source is their target, keep those by a filter",
                self._first_seen[0],
            )
        if n > MAX_VERTICES:
            self._fail(
                f"a motif has at most {MAX_VERTICES} vertices, and this has {n}; "
                "here is the first one too many",
                self._first_seen[MAX_VERTICES],
            )

    def _check_connected(self, terms: list[_Term]) -> None:
        reached = {0}
        rest = [t for t in terms if not t.absent]
        while near := [t for t in rest if t.source in reached or t.target in reached]:
            reached.update(v for t in near for v in (t.source, t.target))
            rest = [t for t in rest if t not in near]
        if rest:
            self._fail(
                "the pattern is not connected: nothing leads from what comes before to this edge",
                rest[0].at,
            )

    def _shown(self, vertex: int) -> str:
        return f"({self._names[vertex] or ''})"
