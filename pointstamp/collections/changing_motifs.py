"""Motifs on changing graphs: the matches of a pattern that come and go as edges do.

A pattern is a join of the edges with themselves, an atom for each of its edges, so what
changes is found by a delta query for each: a change of an edge is taken for each edge of the
pattern in turn, and the other vertices are bound one after the other, each to those that all
edges to it agree on. All read two arrangements, of the edges by either end.

Source: `dogsdogsdogs/examples/motif.rs` in differential-dataflow; the grammar is that of
`pointstamp.graph.motif_search`.
"""

from __future__ import annotations

from typing import Any, overload

from pointstamp.collections.collection import Collection
from pointstamp.collections.delta_plan import Atom, generic_query
from pointstamp.collections.expression import col
from pointstamp.collections.join_queries import JoinedRelation, join_by_plans
from pointstamp.collections.schema import Column, Schema
from pointstamp.errors import PatternError, SchemaError
from pointstamp.graph.motif_search import motifs as motifs_of_stream
from pointstamp.graph.patterns import Pattern, parse_pattern
from pointstamp.operators.stream import Stream


@overload
def motifs(edges: Collection, pattern: str, distinct: bool = False) -> Collection: ...


@overload
def motifs(edges: Stream[Any], pattern: str, distinct: bool = False) -> Stream[Any]: ...


def motifs(edges: Any, pattern: str, distinct: bool = False) -> Any:
    """Every match of a pattern of directed edges, kept up to date as edges come and go.

    Of a stream of edges, as `pointstamp.graph.motifs` has it, they are the matches of each time.

    Parameters
    ----------
    edges : Collection, or Stream
        A collection of two columns of one type: where an edge begins and where it ends. Edges
        that repeat count once; one with a null is none.
    pattern : str
        Edges between named vertices: `"(a)-[]->(b); (b)-[]->(c); !(a)-[]->(c)"`; see
        `pointstamp.graph.patterns`.
    distinct : bool
        Whether vertices of different names must be different.

    Returns
    -------
    Collection
        A column for each named vertex, in order of first appearance. A match is there once for
        each way to choose the vertices without a name.

    Raises
    ------
    PatternError
        If the pattern cannot be understood, or names no vertex.
    SchemaError
        If the edges have not two columns of one type.

    Notes
    -----
    The work of a change is within a logarithm of the most matches that it can bring or take
    (worst-case optimal). What is kept is the edges, arranged by either end. In a loop the edges of
    a pattern meet one after the other, and what they give on the way is kept.

    >>> import pointstamp as ps
    >>> triangle = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"
    >>> view = ps.View(lambda scope, e: ps.motifs(e, triangle), e="src long, dst long")
    >>> view.insert("e", [(1, 2), (2, 3), (1, 3)])
    >>> view.advance()
    [((1, 2, 3), 1)]
    >>> view.delete("e", [(2, 3)])
    >>> view.advance()
    [((1, 2, 3), -1)]
    """
    if not isinstance(edges, Collection):
        return motifs_of_stream(edges, pattern, distinct)
    return _changing(edges, parse_pattern(pattern), distinct, "Motifs")


def _changing(edges: Collection, parsed: Pattern, distinct: bool, name: str) -> Collection:
    if not parsed.outputs:
        raise PatternError(
            f"the pattern names no vertex, so its matches have no columns: {parsed.text!r}; name "
            "one, as in '(a)'"
        )
    columns = edges.schema.columns
    if len(columns) != 2 or columns[0].type != columns[1].type:
        raise SchemaError(
            f"operator {name!r} is given edges of ({edges.schema}), and needs two columns of one "
            "type, where an edge begins and where it ends; select them"
        )
    source, target = edges.schema.names
    for column in columns:
        if column.nullable:
            edges = edges.filter(col(column.name).is_not_null())
    schema = Schema(tuple(Column(column.name, column.type) for column in columns))
    edges = edges.as_schema(schema, name).distinct(name=f"{name}Edges")
    vertices = [called or f"the vertex {number}" for number, called in enumerate(parsed.names)]
    relations = []
    for begin, end in (*parsed.edges, *parsed.absent):
        absent = (begin, end) in parsed.absent
        what = f"{vertices[begin]} to {vertices[end]}"
        if begin == end:
            loops = edges.filter(col(source) == col(target)).select(source)
            found = {vertices[begin]: source}
            relations.append(JoinedRelation(loops, found, Atom(what, tuple(found), absent)))
        else:
            found = {vertices[begin]: source, vertices[end]: target}
            relations.append(JoinedRelation(edges, found, Atom(what, tuple(found), absent)))
    outputs = [vertices[number] for number in parsed.outputs]
    return join_by_plans(relations, generic_query, outputs, name, distinct)
