"""The whole grammar of motifs, as GraphFrames has it: text in, vertices and edges out.

    pattern  =  part (";" part)*
    part     =  vertex | ["!"] vertex edge vertex
    vertex   =  "(" [name] ")"
    edge     =  ("-[" | "<-[") [name] ["*" number [".." number]] ("]->" | "]-")

A vertex or an edge with a name is a column of the matches, with all its attributes; what has the
same name is the same vertex. What has no name is part of the match all the same, so that a match
appears once for each way to fill it, and so does one of edges that repeat.

- `(a)<-[e]-(b)` leads from b to a, `(a)-[e]-(b)` either way (a loop counts once), and
  `(a)<-[e]->(b)` are two edges, `e1` there and `e2` back.
- `(a)-[e*2]->(c)` is a chain of edges `_e1`, `_e2` with a vertex `_ac1` between them.
- `(a)-[e*1..3]->(c)` is a chain of one, two or three, a pattern of its own for each: what one has
  and another has not is null there, and `_hop`, `_pattern` and `_direction` say which it was. Where
  no direction is given, chains lead all one way or all the other.
- `!(a)-[]->(b)` is no edge there. A vertex that is only in such parts is any vertex; one without
  a name is all of them: `!(a)-[]->()` is no edge from a to anywhere.
- Parts that have nothing in common are combined, each match of the one with each of the other.

Knows no graph, and not how matches are found. Source: the user guide of GraphFrames, "Motif
finding"; what it forbids and we do not: chains beside other parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from pointstamp.errors import PatternError

MAX_ELEMENTS = 32
"""So many vertices and edges a pattern has at most, chains taken apart."""

_VERTEX = re.compile(r"\s*\(\s*(\w*)\s*\)\s*", re.ASCII)
_EDGE = re.compile(
    r"\s*(<?)-\s*\[\s*(\w*)\s*(\*\s*(\d*)\s*(\.\.\s*(\d*))?)?\s*\]\s*-(>?)\s*", re.ASCII
)
_SPACE = re.compile(r"\s*")

ANYWHERE = -1
"""Stands for the end of an edge that is not there, whatever vertex that would be."""

OF_CHAINS = ("_hop", "_pattern", "_direction")
"""The columns that say which chain of variable length a match has."""

ElementKind = Literal["vertex", "edge"]


@dataclass(frozen=True)
class EdgeTerm:
    """An edge between two vertices of a pattern, by their numbers; either way if `undirected`.

    Of a term that must not be one number may be `ANYWHERE`.
    """

    source: int
    target: int
    name: str = ""
    undirected: bool = False


@dataclass(frozen=True)
class ElementPattern:
    """A pattern of vertices and edges, of which those with names are wanted.

    Attributes
    ----------
    vertices : tuple of str, "" for those without names
    terms : tuple of EdgeTerm, that must be edges
    absent : tuple of EdgeTerm, that must not be
    columns : tuple of (name, kind, number)
        What has a name, in order of first appearance; numbers count vertices, or `terms`.
    hop, text, direction : of a chain of variable length
    """

    vertices: tuple[str, ...]
    terms: tuple[EdgeTerm, ...]
    absent: tuple[EdgeTerm, ...]
    columns: tuple[tuple[str, ElementKind, int], ...]
    hop: int = 0
    text: str = ""
    direction: str = ""


@dataclass(frozen=True)
class _PatternPart:
    """A part as it is written; `low` and `high` are the lengths of its chain."""

    at: int
    absent: bool
    source: str
    edge: tuple[str, str, str] | None = None
    target: str = ""
    low: int = 1
    high: int = 1
    is_chain: bool = False
    is_range: bool = False


def parse_elements(text: str) -> list[ElementPattern]:
    """The patterns that a text stands for: one, or one for each length of a chain.

    Raises
    ------
    PatternError
        If it cannot be understood; it shows the text with a caret under the character at fault.

    Examples
    --------
    >>> [pattern] = parse_elements("(a)-[e]->(b); !(b)-[]->(a)")
    >>> pattern.columns
    (('a', 'vertex', 0), ('e', 'edge', 0), ('b', 'vertex', 1))
    >>> pattern.absent
    (EdgeTerm(source=1, target=0, name='', undirected=False),)
    >>> [p.hop for p in parse_elements("(a)-[e*1..2]->(b)")]
    [1, 2]
    """
    if not isinstance(text, str):
        raise PatternError(f"a pattern is text such as '(a)-[e]->(b)', not {text!r}")
    reader = _PatternReader(text)
    parts = reader.parts()
    ranges = [part for part in parts if part.is_range]
    if not ranges:
        return [_PatternBuilder(reader, parts).pattern()]
    if len(ranges) > 1:
        reader.fail("only one edge of a pattern may have a variable length", ranges[1].at)
    [one] = ranges
    assert one.edge is not None
    left, name, right = one.edge
    ways = [("out", "", ">"), ("in", "<", "")] if left == right else [("out", left, right)]
    found = []
    for hop in range(one.low, one.high + 1):
        for direction, begin, end in ways:
            chain = replace(
                one, edge=(begin, name, end), low=hop, high=hop, is_chain=True, is_range=False
            )
            pattern = _PatternBuilder(reader, [chain if p is one else p for p in parts]).pattern()
            shown = f"({one.source}){begin}-[{name}*{hop}]-{end}({one.target})"
            for column, _, _ in pattern.columns:
                if column in OF_CHAINS:
                    reader.fail(f"{column!r} says what a chain is; give another name", one.at)
            found.append(replace(pattern, hop=hop, text=shown, direction=direction))
    return found


class _PatternReader:
    """Reads a text into parts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0

    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        """Raise, with the line of the pattern that has the fault and a caret under it."""
        at = self._at if at is None else at
        begin = self.text.rfind("\n", 0, at) + 1
        line = self.text[begin:].split("\n")[0].replace("\t", " ")
        raise PatternError(f"{problem}\n    {line}\n    {' ' * (at - begin)}^")

    def parts(self) -> list[_PatternPart]:
        found = [self._part()]
        while self._at < len(self.text):
            if self.text[self._at] != ";":
                self.fail("';' was expected here, between two parts, or the end of the pattern")
            self._at += 1
            if not self.text[self._at :].strip():
                break
            found.append(self._part())
        return found

    def _part(self) -> _PatternPart:
        self._skip_space()
        at = self._at
        absent = self.text.startswith("!", self._at)
        self._at += absent
        source = self._vertex("to begin a vertex, as in '(a)'")
        if self._at == len(self.text) or self.text[self._at] == ";":
            if absent:
                self.fail("an edge was expected here: only edges can be absent")
            if not source:
                self.fail("a vertex alone needs a name", at)
            return _PatternPart(at, False, source)
        edge_at = self._at
        found = _EDGE.match(self.text, self._at)
        if found is None:
            self.fail("an edge was expected here, such as '-[e]->', '<-[]-' or '-[e*2]->'")
        self._at = found.end()
        target = self._vertex("after an edge, for the vertex at its other end")
        left, name, star, low, dots, high, right = found.groups()
        part = _PatternPart(at, absent, source, (left, name, right), target)
        return self._with_length(part, edge_at, star, low, dots, high)

    def _with_length(
        self,
        part: _PatternPart,
        at: int,
        star: str | None,
        low: str,
        dots: str | None,
        high: str | None,
    ) -> _PatternPart:
        assert part.edge is not None
        left, name, right = part.edge
        both_ways = bool(left) and bool(right)
        if part.absent and (name or star or both_ways):
            self.fail("an absent edge has no name, no length and one direction or none", at)
        if part.absent and not (part.source or part.target):
            self.fail("an absent edge needs a vertex with a name, at one end", part.at)
        if star is None:
            return part
        if not low or (dots and not high):
            self.fail("a chain needs its lengths: '*2', or from and to, '*1..3'", at)
        least, most = int(low), int(high) if high else int(low)
        if not 1 <= least <= most or most > MAX_ELEMENTS // 2:
            self.fail(f"lengths are from 1 to {MAX_ELEMENTS // 2}, the lesser first", at)
        if both_ways:
            self.fail("a chain leads one way; write two", at)
        is_range = bool(dots) or left == right
        return replace(part, low=least, high=most, is_chain=True, is_range=is_range)

    def _vertex(self, where: str) -> str:
        found = _VERTEX.match(self.text, self._at)
        if found is None:
            self._skip_space()
            self.fail(f"'(', a name or none, and ')' were expected here, {where}")
        self._at = found.end()
        return found[1]

    def _skip_space(self) -> None:
        found = _SPACE.match(self.text, self._at)
        self._at = found.end() if found else self._at


class _PatternBuilder:
    """Makes a pattern of parts, whose chains have one length each."""

    def __init__(self, reader: _PatternReader, parts: list[_PatternPart]) -> None:
        self._reader = reader
        self._parts = parts
        self._vertices: list[str] = []
        self._numbers: dict[str, int] = {}
        self._terms: list[EdgeTerm] = []
        self._absent: list[EdgeTerm] = []
        self._columns: dict[str, tuple[str, ElementKind, int]] = {}
        self._inner: set[str] = set()
        """The names of vertices inside chains."""

    def pattern(self) -> ElementPattern:
        for part in self._parts:
            self._add(part)
        if len(self._vertices) + len(self._terms) > MAX_ELEMENTS:
            self._reader.fail(f"a pattern has at most {MAX_ELEMENTS} vertices and edges", 0)
        columns = tuple(self._columns.values())
        return ElementPattern(
            tuple(self._vertices), tuple(self._terms), tuple(self._absent), columns
        )

    def _add(self, part: _PatternPart) -> None:
        if part.edge is None:
            self._vertex(part.source, part.at)
            return
        left, name, right = part.edge
        if left and right:
            there, back = (f"{name}1", f"{name}2") if name else ("", "")
            at = self._vertex(part.source, part.at)  # each end once, though it has no name
            other = self._linked(part, at, part.target, there, False)
            self._name(part, back)
            self._terms.append(EdgeTerm(other, at, back, False))
            return
        source, target = (part.target, part.source) if left else (part.source, part.target)
        if not part.is_chain:
            self._edge(part, source, target, name, not left and not right)
            return
        inner = f"_{source}{target}" if source or target else ""
        between = [f"{inner}{i}" if inner else "" for i in range(1, part.low)]
        taken = sorted(self._inner.intersection(between))
        if taken:
            # Two chains would have to meet there, which neither of them says.
            problem = f"{taken[0]!r} is a vertex inside another chain; write this one as edges"
            self._reader.fail(problem, part.at)
        self._inner.update(filter(None, between))
        at = self._vertex(source, part.at)
        for i, following in enumerate([*between, target], 1):
            at = self._linked(part, at, following, f"_{name}{i}" if name else "", False)

    def _edge(
        self, part: _PatternPart, source: str, target: str, name: str, undirected: bool
    ) -> None:
        if part.absent:
            begin, end = (self._vertex(v, part.at) if v else ANYWHERE for v in (source, target))
            self._absent.append(EdgeTerm(begin, end, "", undirected))
            return
        at = self._vertex(source, part.at)
        self._linked(part, at, target, name, undirected)

    def _linked(self, part: _PatternPart, at: int, target: str, name: str, undirected: bool) -> int:
        """An edge to a vertex of that name, which comes behind it; its number."""
        self._name(part, name)
        other = self._vertex(target, part.at)
        self._terms.append(EdgeTerm(at, other, name, undirected))
        return other

    def _name(self, part: _PatternPart, name: str) -> None:
        """Give the next edge a column, if it has a name."""
        if not name:
            return
        if name in self._columns:
            problem = f"the name {name!r} is taken already; give each edge its own"
            self._reader.fail(problem, part.at)
        self._columns[name] = (name, "edge", len(self._terms))

    def _vertex(self, name: str, at: int) -> int:
        if name in self._numbers:
            return self._numbers[name]
        if self._columns.get(name, ("", "vertex", 0))[1] == "edge":
            self._reader.fail(f"{name!r} names an edge and cannot name a vertex as well", at)
        number = len(self._vertices)
        self._vertices.append(name)
        if name:
            self._numbers[name] = number
            self._columns[name] = (name, "vertex", number)
        return number
