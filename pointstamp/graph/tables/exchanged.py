"""Graphs of records that are spread over workers: the dataflows of questions and searches.

    edges    --> numbers of both ends ---> the question's dataflow --> answers by vertex
    vertices --> numbers ----------------> attached to the vertices, ids put back

For a search, numbers and what conditions name go to all workers. All other attributes do so, too,
if they are small; if not, they stay where they are, and what is found goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.containers.conform import conform
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Pipeline
from pointstamp.dataflow.stash import Stash, in_memory
from pointstamp.errors import GraphError
from pointstamp.graph.tables.answer_values import as_values
from pointstamp.graph.tables.attached import (
    NumberedTable,
    PlacesOfNumbers,
    attached,
    check_unique,
    numbered_tables,
)
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.frame_columns import struct_of, with_column
from pointstamp.graph.tables.hashed_ids import NUMBER, hashed_ids, numbered_ends, with_numbers
from pointstamp.graph.tables.list_searches import with_ids
from pointstamp.graph.tables.numbered_graph import NumberedGraph
from pointstamp.graph.tables.path_search import LengthTask, PathEnds
from pointstamp.graph.tables.search_task import CountTask, FindTask, SearchTask, searched
from pointstamp.graph.tables.small_tables import chosen_by_size, sizes_of
from pointstamp.graph.tables.sql_text import names_in
from pointstamp.graph.tables.vertex_question import VertexQuestion
from pointstamp.graph.vertex_columns import VERTEX
from pointstamp.joins.join_operators import SOURCE, TARGET
from pointstamp.operators.scope import Scope
from pointstamp.operators.stream import Stream

ID = "id"
_ID_OF_ANSWER = "_pointstamp_id"


@dataclass(frozen=True, eq=False)
class AnswerFlow:
    """The dataflow of a question: from records of vertices and edges to the vertices, answered.

    Attributes
    ----------
    question : VertexQuestion
    landmarks : pyarrow.Array
        Their ids, if there are any.
    schema : pyarrow.Schema
        Of the vertices with what is answered.
    ends_are_vertices : bool
        Whether that is known of all edges. Otherwise an edge to or from what is no vertex is
        left out, as in a join, which costs two exchanges of the edges more.
    """

    question: VertexQuestion
    landmarks: Any
    schema: Any
    ends_are_vertices: bool = False

    def __call__(self, scope: Scope, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """Lay it out; gives the vertices with what is answered."""
        question = self.question
        records = vertices.map_batches(lambda batch: with_numbers(batch, ID))
        ends = edges.map_batches(
            lambda batch: numbered_ends(batch, question.weight, question.weighted, question.signed)
        )
        of_vertices = records.map_batches(
            lambda batch: pa.RecordBatch.from_arrays([batch.column(NUMBER)], names=[VERTEX])
        )
        if not self.ends_are_vertices:
            known = numbered_tables(records.map_batches(lambda batch: batch.select([NUMBER])))
            for end in (SOURCE, TARGET):
                ends = attached(ends, end, known, _of_vertices, f"Edges with a vertex as {end}")
        answers = question.build(ends, of_vertices)
        for value in [column.name for column in question.columns if column.kind == "id"]:
            tables = numbered_tables(records)
            answers = attached(answers, value, tables, _put_back(value), "Put ids back")
        numbered = answers.map_batches(_by_number)
        tables = numbered_tables(numbered)
        found = attached(records, NUMBER, tables, self._with_answers, "Attach answers")
        names = self.schema.names  # not of an attribute whose place an answer takes
        return _checked(found).map_batches(lambda b: conform(b.select(names), self.schema))

    def _with_answers(self, records: Any, table: Any, at: Any) -> Any:
        for column in self.question.columns:
            if table is None:
                values = pa.nulls(records.num_rows)
            else:
                values = as_values(column.kind, table.column(column.name).take(at), self.landmarks)
            records = with_column(records, column.becomes, values)
        return records


def _of_vertices(edges: Any, table: Any, at: Any) -> Any:
    """The edges of which an end is a vertex."""
    return edges.filter(at.is_valid())


def _put_back(name: str) -> Callable[[Any, Any, Any], Any]:
    """Replace numbers by the ids of the vertices that have them."""

    def attach(records: Any, table: Any, at: Any) -> Any:
        if records.num_rows and (table is None or at.null_count):
            raise GraphError(
                "an edge has an end that is no vertex, though vertices and edges are of the same "
                "DataFrames: these give other records each time that Spark computes them; "
                "cache() or checkpoint() them before they are a graph"
            )
        ids = pa.nulls(records.num_rows) if table is None else _taken(table.column(ID), at)
        return with_column(records, name, ids)

    return attach


def _taken(column: Any, at: Any) -> Any:
    found = column.take(at)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _by_number(answers: Any) -> Any:
    names = [NUMBER if name == VERTEX else name for name in answers.schema.names]
    return answers.rename_columns(names)


def _checked(records: Stream[Any]) -> Stream[Any]:
    """The records, by vertex, without their numbers; refuses ids that repeat."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)

        def logic(input: Input, output: Output) -> None:
            stash.take(input)
            for cap, batches in stash:
                found = in_memory(batches)
                NumberedTable(pa.Table.from_batches(found).select([ID, NUMBER]), ID)
                with output.session(cap) as session:
                    for batch in found:
                        session.give_batch(batch.drop_columns([NUMBER]))

        return logic

    return records.unary_frontier(Pipeline(), "Check ids", build)


# Searches.


def _both_numbered(
    scope: Scope, vertices: Stream[Any], edges: Stream[Any]
) -> tuple[Stream[Any], Stream[Any]]:
    """Vertices and edges with their numbers."""
    of_vertices = vertices.map_batches(lambda batch: with_numbers(batch, ID))
    return of_vertices, edges.map_batches(_EdgeNumbers(scope.index, scope.peers))


@dataclass(frozen=True, eq=False)
class SearchFlow:
    """The dataflow of searches: from records of vertices and edges to matches, with attributes.

    Attributes
    ----------
    searches : list of ElementSearch
    columns : dict
        The names of the elements of all of them, and their kinds.
    schema : pyarrow.Schema
        Of the matches.
    """

    searches: Sequence[ElementSearch]
    columns: dict[str, str]
    schema: Any

    def __call__(self, scope: Scope, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """Lay it out."""
        of_vertices, of_edges = _both_numbered(scope, vertices, edges)
        of_vertices_here, of_edges_here = self._attributes
        sizes = sizes_of(of_vertices, of_vertices_here).concat(sizes_of(of_edges, of_edges_here))
        few_vertices, few_edges = _asked(self.searches)
        graphs = graphs_of(
            chosen_by_size(of_vertices, sizes, _columns(few_vertices, of_vertices_here, NUMBER)),
            chosen_by_size(of_edges, sizes, _columns(few_edges, of_edges_here, *_ENDS, NUMBER)),
        )
        large_edges = chosen_by_size(of_edges, sizes, _unless_small).map_batches(_without_ends)
        tables = {
            "vertex": numbered_tables(chosen_by_size(of_vertices, sizes, _unless_small), ID),
            "edge": numbered_tables(large_edges),
        }
        found = [
            records
            for search in self.searches
            for records in (
                self._with_attributes(search, graphs),
                self._with_structs(search, graphs, tables),
            )
        ]
        return scope.concatenate(found)

    @cached_property
    def _attributes(self) -> tuple[list[str], list[str]]:
        """The columns of vertices and of edges that matches have, and ids, which are checked."""
        of_vertices, of_edges = (
            [
                field.name
                for name, of_kind in self.columns.items()
                if of_kind == kind
                for field in self.schema.field(name).type
            ]
            for kind in ("vertex", "edge")
        )
        return list(dict.fromkeys([*of_vertices, ID])), list(dict.fromkeys(of_edges))

    def _with_attributes(self, search: ElementSearch, graphs: Stream[Any]) -> Stream[Any]:
        """The matches where the graphs have all attributes."""
        found = searched(graphs, _TaskWithAttributes(search, self._attributes))
        return found.map_batches(partial(self._named, search))

    def _with_structs(
        self, search: ElementSearch, graphs: Stream[Any], tables: dict[str, Stream[Any]]
    ) -> Stream[Any]:
        """The matches where they have not."""
        found = searched(graphs, _WholeTask(FindTask(search), self._attributes))
        for name, (kind, column) in _elements(search).items():
            found = attached(found, column, tables[kind], _struct(name), f"Attach {name}")
        return found.map_batches(partial(self._named, search))

    def _named(self, search: ElementSearch, batch: Any) -> Any:
        n, elements = batch.num_rows, _elements(search)
        result = {
            name: batch.column(f"struct {name}")
            if name in elements
            else pa.nulls(n, self.schema.field(name).type)
            for name in self.columns
        }
        if search.pattern.hop:
            result["_hop"] = pa.array([search.pattern.hop] * n, pa.int64())
            result["_pattern"] = pa.array([search.pattern.text] * n, pa.string())
            result["_direction"] = pa.array([search.pattern.direction] * n, pa.string())
        found = pa.RecordBatch.from_arrays(list(result.values()), names=list(result))
        return conform(found, self.schema)


def _elements(search: ElementSearch) -> dict[str, tuple[str, str]]:
    """By name, the kind of each element and its column in what is found."""
    return {name: (kind, f"{kind[0]}{i}") for name, kind, i in search.pattern.columns}


def _columns(few: list[str], more: list[str], *always: str) -> Callable[[Any, bool], Any]:
    """The columns that go to all workers: few, and those of matches where tables are small."""

    def choose(batch: Any, small: bool) -> Any:
        return batch.select(
            list(dict.fromkeys([*more, *few, *always] if small else [*few, *always]))
        )

    return choose


def _unless_small(batch: Any, small: bool) -> Any:
    return None if small else batch


@dataclass(frozen=True, eq=False)
class CountFlow:
    """The dataflow that counts the matches of searches: a record with `count` at each worker."""

    searches: Sequence[ElementSearch]

    def __call__(self, scope: Scope, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """Lay it out."""
        of_vertices, of_edges = _both_numbered(scope, vertices, edges)
        graphs = whole_graphs(of_vertices, of_edges, *_asked(self.searches))
        return scope.concatenate(
            [searched(graphs, _WholeTask(CountTask(search))) for search in self.searches]
        )


@dataclass(frozen=True, eq=False)
class LengthFlow:
    """The dataflow that finds how long the shortest paths are: a record at the first worker."""

    ends: PathEnds

    def __call__(self, scope: Scope, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """Lay it out."""
        of_vertices, of_edges = _both_numbered(scope, vertices, edges)
        ends = self.ends
        asked = {name.parts[0] for tree in (ends.begin, ends.end) for name in names_in(tree)}
        of_edge = {name.parts[0] for name in names_in(ends.edge)} if ends.edge else set()
        graphs = whole_graphs(of_vertices, of_edges, sorted(asked), sorted(of_edge))
        return searched(graphs, _WholeTask(LengthTask(ends)))


@dataclass(frozen=True, eq=False)
class ListFlow:
    """The dataflow of a search for lists of vertices, in which ids are put back at each worker."""

    task: SearchTask

    def __call__(self, scope: Scope, vertices: Stream[Any], edges: Stream[Any]) -> Stream[Any]:
        """Lay it out."""
        of_vertices, of_edges = _both_numbered(scope, vertices, edges)
        return searched(whole_graphs(of_vertices, of_edges, [ID], []), _ListTask(self.task))


@dataclass(frozen=True, eq=False)
class _ListTask:
    """A search for lists in a `_WholeGraph`."""

    task: SearchTask

    def pieces(self, whole: Any, index: int, peers: int) -> Iterator[Any]:
        """What the task finds."""
        if whole.graph.n:
            ids = whole.graph.vertices.column(ID).combine_chunks()
            for batch in self.task.pieces(whole.graph, index, peers):
                yield with_ids(batch, ids)


def _asked(searches: Sequence[ElementSearch]) -> tuple[list[str], list[str]]:
    """The columns of vertices and of edges that conditions name."""
    asked: dict[str, set[str]] = {"vertex": set(), "edge": set()}
    for search in searches:
        kinds = {name: kind for name, kind, _ in search.pattern.columns}
        for condition in search.conditions:
            for name in names_in(condition):
                if name.parts[0] in kinds:
                    asked[kinds[name.parts[0]]].add(name.parts[1])
    return sorted(asked["vertex"]), sorted(asked["edge"])


class _EdgeNumbers:
    """Gives each edge a number of its own: those of a worker are as many apart as there are."""

    def __init__(self, index: int, peers: int) -> None:
        self._next, self._peers = index, peers

    def __call__(self, batch: Any) -> Any:
        n = batch.num_rows
        found = self._next + self._peers * np.arange(n)
        self._next += self._peers * n
        ends = [hashed_ids(batch.column(c), f"{c!r} of the edges") for c in (SOURCE, TARGET)]
        for name, column in zip(_ENDS, ends, strict=True):
            batch = batch.append_column(name, arrow_array(column))
        return batch.append_column(NUMBER, arrow_array(found))


_ENDS = ("_pointstamp_source", "_pointstamp_target")


def _without_ends(batch: Any) -> Any:
    return batch.drop_columns(list(_ENDS))


def _struct(name: str) -> Callable[[Any, Any, Any], Any]:
    """Attach the records of a table as structs."""

    def attach(records: Any, table: Any, at: Any) -> Any:
        if table is None:
            structs = pa.nulls(records.num_rows)
        else:
            structs = struct_of(pa.table(table.drop_columns([NUMBER]))).take(at)
        return records.append_column(f"struct {name}", structs)

    return attach


# The whole graph at each worker.


@dataclass(frozen=True, eq=False)
class _WholeGraph:
    """A graph of which every worker has all, and what its numbers stand for."""

    graph: NumberedGraph
    vertices: Any
    edges: Any

    def has(self, of_vertices: list[str], of_edges: list[str]) -> bool:
        """Whether these columns of all vertices and edges are here."""
        given = (self.graph.vertices, of_vertices), (self.graph.edges, of_edges)
        return all(table is None or {*names} <= {*table.schema.names} for table, names in given)


@dataclass(frozen=True, eq=False)
class _WholeTask:
    """A search in a `_WholeGraph`, whose matches are named by what the numbers stand for.

    Attributes
    ----------
    task : SearchTask
    unless : the columns of vertices and of edges with which another task finds the same
    """

    task: Any
    unless: tuple[list[str], list[str]] | None = None

    def pieces(self, whole: Any, index: int, peers: int) -> Iterator[Any]:
        """What the task finds."""
        if self.unless is not None and whole.has(*self.unless):
            return
        stand_for = {"v": whole.vertices, "e": whole.edges}
        for batch in self.task.pieces(whole.graph, index, peers):
            columns = [
                column
                if name not in _numbered(name)
                else arrow_array(stand_for[name[0]][numbers(column)])
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


@dataclass(frozen=True, eq=False)
class _TaskWithAttributes:
    """A search in a `_WholeGraph` that has all attributes, whose matches are structs of these."""

    search: ElementSearch
    attributes: tuple[list[str], list[str]]

    def pieces(self, whole: Any, index: int, peers: int) -> Iterator[Any]:
        """The matches; none where attributes are elsewhere."""
        if not whole.graph.n or not whole.has(*self.attributes):
            return
        check_unique(whole.vertices, whole.graph.vertices.column(ID))
        elements = _elements(self.search)
        kinds = {kind for kind, _ in elements.values()}
        tables = zip(
            ("vertex", "edge"),
            (whole.graph.vertices, whole.graph.edges),
            self.attributes,
            strict=True,
        )
        structs = {
            kind: struct_of(table.select(names))
            for kind, table, names in tables
            if kind in kinds and table is not None
        }
        for found in self.search.matches(whole.graph, index, peers):
            columns = {
                f"struct {name}": structs[kind].take(arrow_array(found[column]))
                for name, (kind, column) in elements.items()
            }
            yield pa.RecordBatch.from_pydict(columns)


def _numbered(name: str) -> tuple[str, ...]:
    """The name alone if it is one of a vertex or an edge of a pattern."""
    return (name,) if name[0] in "ve" and name[1:].isdigit() else ()


def whole_graphs(
    vertices: Stream[Any], edges: Stream[Any], of_vertices: list[str], of_edges: list[str]
) -> Stream[Any]:
    """The graph of each time, at every worker, with the columns that are named of both.

    Refuses ids that repeat: of a vertex that is there twice one record alone would have the edges.
    """
    return graphs_of(
        vertices.map_batches(lambda batch: batch.select([*of_vertices, NUMBER])),
        edges.map_batches(lambda batch: batch.select([*of_edges, *_ENDS, NUMBER])),
        _check_numbers,
    )


def graphs_of(
    vertices: Stream[Any], edges: Stream[Any], check: Callable[[_WholeGraph], None] | None = None
) -> Stream[Any]:
    """The graph of each time, at every worker, with all columns that are given of both."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)

        def logic(of_vertices: Input, of_edges: Input, output: Output) -> None:
            stash.take(of_vertices, of_edges)
            for cap, batches in stash:
                whole = _whole(*map(in_memory, batches))
                if check is not None:
                    check(whole)
                output.session(cap).give(whole)

        return logic

    return vertices.binary_frontier(edges, Broadcast(), Broadcast(), "Graph", build)


def _whole(vertices: list[Any], edges: list[Any]) -> _WholeGraph:
    """Put the graph together: in the order of the numbers, so that all workers have the same."""
    people = _in_order(vertices)
    links = _in_order(edges)
    none = np.empty(0, np.int64)
    if people is None:
        return _WholeGraph(NumberedGraph(0, none, none), none, none)
    ids = numbers(people.column(NUMBER).combine_chunks())
    if links is None:
        return _WholeGraph(NumberedGraph(len(ids), none, none, people), ids, none)
    ends = [numbers(links.column(name).combine_chunks()) for name in _ENDS]
    of_numbers = PlacesOfNumbers(ids)
    places = [of_numbers.of(column) for column in ends]
    # An edge to what is no vertex is none, as in a join.
    kept = (places[0] >= 0) & (places[1] >= 0)
    links = links.filter(pa.array(kept)).combine_chunks()
    source, target = (place[kept] for place in places)
    rows = numbers(links.column(NUMBER).combine_chunks())
    return _WholeGraph(NumberedGraph(len(ids), source, target, people, links), ids, rows)


def _check_numbers(whole: _WholeGraph) -> None:
    """Refuse vertices of which two have one number; which ids those are may not be here."""
    table = whole.graph.vertices
    if table is not None and ID in table.schema.names:
        check_unique(whole.vertices, table.column(ID))
    n_repeated = int((whole.vertices[1:] == whole.vertices[:-1]).sum())
    if n_repeated:
        raise GraphError(
            f"{n_repeated} vertices have an id that another one has, or the same hash of 64 bits: "
            "validate() names one of the ids that repeat"
        )


def _in_order(batches: list[Any]) -> Any:
    if not batches:
        return None
    table = pa.Table.from_batches(batches)
    return table.take(pc.sort_indices(table.column(NUMBER))).combine_chunks()
