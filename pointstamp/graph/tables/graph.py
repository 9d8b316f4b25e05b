"""`Graph`: vertices and edges in tables of Arrow, on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.communication.target import check_workers
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.errors import GraphError
from pointstamp.graph.tables.algorithms import GraphAlgorithms
from pointstamp.graph.tables.answer_values import as_values, type_of
from pointstamp.graph.tables.argument_checks import check_edge_column
from pointstamp.graph.tables.edge_types import degrees_by_type
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.frame_columns import (
    mask_of,
    struct_of,
    table_of,
    taken,
    typed_ids,
    with_column,
)
from pointstamp.graph.tables.list_searches import with_ids
from pointstamp.graph.tables.local_run import LocalRun
from pointstamp.graph.tables.messages import (
    Given,
    PregelProgram,
    Triplets,
    aggregated,
    parse_aggregates,
    parse_sent,
)
from pointstamp.graph.tables.numbered_graph import NumberedGraph
from pointstamp.graph.tables.path_search import LengthTask, PathEnds
from pointstamp.graph.tables.search_task import CountTask, FindTask, SearchTask, searched
from pointstamp.graph.tables.searches import GraphSearches, all_columns
from pointstamp.graph.tables.sql_text import Tree, parse_sql
from pointstamp.graph.tables.vertex_ids import (
    VertexIds,
    array_of_ids,
    cast_ids,
    check_valid,
    one_type,
    plain_type,
)
from pointstamp.graph.tables.vertex_question import ValueColumn, VertexQuestion
from pointstamp.graph.vertex_columns import VERTEX, WEIGHT, weighted_columns
from pointstamp.joins.join_operators import SOURCE, TARGET

Ints = npt.NDArray[np.int64]

ID = "id"


class Graph(GraphAlgorithms["pa.Table"], GraphSearches["pa.Table", str]):
    """A graph of two tables: vertices with a column `id`, edges with `src` and `dst`.

    Ids are of any type that Arrow has, text foremost. They are numbered once, inside, when they
    are first needed; what comes out has ids. All other columns are attributes, which conditions
    can name, and which come with what is found.

    Parameters
    ----------
    vertices, edges : pyarrow.Table or RecordBatch, data frame of pandas or polars, or dict
        With one argument those are the edges, and the vertices are their ends.
    workers, threads : int, bool
        How many workers of this machine the algorithms run on, as for `pointstamp.execute`.

    Raises
    ------
    ColumnError
        If `id`, `src` or `dst` are not there.
    GraphError
        If an id is null or repeats, or an end of an edge is no vertex: when ids are numbered.
        `validate` says so at once.

    Notes
    -----
    Names and columns are GraphFrames', in snake case; `docs/graphs_of_tables.md` has them side by
    side. Results are tables of Arrow.

    Examples
    --------
    >>> people = {"id": ["a", "b", "c"], "age": [34, 36, 30]}
    >>> follows = {"src": ["a", "b", "c"], "dst": ["b", "c", "b"]}
    >>> graph = Graph(people, follows)
    >>> graph.strongly_connected_components().to_pydict()
    {'id': ['a', 'b', 'c'], 'age': [34, 36, 30], 'component': ['a', 'b', 'b']}
    """

    def __init__(
        self, vertices: Any, edges: Any = None, *, workers: int = 1, threads: bool = False
    ) -> None:
        check_workers(workers)
        self._run = LocalRun(workers, threads)
        if edges is None:
            self._edges = table_of(vertices, [SOURCE, TARGET], "edges")
            self._vertices = pa.table({ID: self._ids_of_ends().values})
        else:
            self._vertices = table_of(vertices, [ID], "vertices")
            found = table_of(edges, [SOURCE, TARGET], "edges")
            self._edges = typed_ids(found, [SOURCE, TARGET], self._vertices.schema.field(ID).type)
            of_ends = self._edges.schema.field(SOURCE).type
            self._vertices = typed_ids(self._vertices, [ID], of_ends)

    def __repr__(self) -> str:
        of_vertices, of_edges = self._vertices.schema.names, self._edges.schema.names
        return f"Graph(v: [{', '.join(of_vertices)}], e: [{', '.join(of_edges)}])"

    # What there is.

    @property
    def vertices(self) -> Any:
        """The vertices, a `pyarrow.Table`."""
        return self._vertices

    @property
    def edges(self) -> Any:
        """The edges, a `pyarrow.Table`."""
        return self._edges

    @property
    def triplets(self) -> Any:
        """Each edge with both its vertices: structs `src`, `edge` and `dst`."""
        vertices = struct_of(self._vertices)
        rows = [self._rows[ends] for ends in self._ends]
        source, target = (taken(vertices, found) for found in rows)
        return pa.table({SOURCE: source, "edge": struct_of(self._edges), TARGET: target})

    @property
    def degrees(self) -> Any:
        """The number of edges at each vertex that has any: `id` and `degree`."""
        return self._degrees(self._ends, "degree")

    @property
    def in_degrees(self) -> Any:
        """The number of edges to each vertex that has any: `id` and `in_degree`."""
        return self._degrees(self._ends[1:], "in_degree")

    @property
    def out_degrees(self) -> Any:
        """The number of edges from each vertex that has any: `id` and `out_degree`."""
        return self._degrees(self._ends[:1], "out_degree")

    def type_degree(self, edge_type_col: str, edge_types: Sequence[Any] | None = None) -> Any:
        """The number of edges of each type at each vertex that has any: `id` and `degrees`.

        Parameters
        ----------
        edge_type_col : str
            The column of the edges that says of which type each is: of text or numbers.
        edge_types : sequence, optional
            The types that are counted; all, in order, if not given.

        Returns
        -------
        pyarrow.Table
            `degrees` is a struct with a field for each type, called as it; "null" is that of edges
            without a type.

        Raises
        ------
        ColumnError, SchemaError
            If there is no such column, or it is of lists or structs.
        GraphError
            If `edge_types` are not of the column's type.
        UsageError
            If there are no types, or more than 1,000, or two are called alike.

        >>> edges = {"src": [1, 1, 2], "dst": [2, 3, 1], "kind": ["friend", "follow", "friend"]}
        >>> Graph(edges).type_degree("kind", ["friend"]).to_pylist()
        [{'id': 1, 'degrees': {'friend': 2}}, {'id': 2, 'degrees': {'friend': 2}}, \
{'id': 3, 'degrees': {'friend': 0}}]
        """
        return self._type_degrees(self._ends, "degrees", edge_type_col, edge_types)

    def type_in_degree(self, edge_type_col: str, edge_types: Sequence[Any] | None = None) -> Any:
        """As `type_degree`, of the edges to each vertex: `id` and `in_degrees`."""
        return self._type_degrees(self._ends[1:], "in_degrees", edge_type_col, edge_types)

    def type_out_degree(self, edge_type_col: str, edge_types: Sequence[Any] | None = None) -> Any:
        """As `type_degree`, of the edges from each vertex: `id` and `out_degrees`."""
        return self._type_degrees(self._ends[:1], "out_degrees", edge_type_col, edge_types)

    def _type_degrees(
        self, ends: Sequence[Ints], name: str, column: str, edge_types: Sequence[Any] | None
    ) -> Any:
        check_edge_column(column, self._edges.schema.names, "types")
        types = self._edges.column(column)
        found, counts = degrees_by_type(ends, len(self._ids), types, edge_types)
        return pa.table({ID: self._ids.take(found), name: counts})

    def _degrees(self, ends: Sequence[Ints], name: str) -> Any:
        counts = np.bincount(np.concatenate(ends), minlength=len(self._ids))
        found = np.flatnonzero(counts)
        return pa.table({ID: self._ids.take(found), name: arrow_array(counts[found])})

    # Other graphs.

    def filter_vertices(self, condition: Any) -> Graph:
        """The graph of the vertices that satisfy a condition, and of the edges between them.

        condition : SQL text over the columns of the vertices, or a `pyarrow.compute.Expression`

        >>> graph = Graph({"id": [1, 2, 3], "age": [34, 36, 30]}, {"src": [1, 2], "dst": [2, 3]})
        >>> graph.filter_vertices("age > 30").edges.to_pydict()
        {'src': [1], 'dst': [2]}
        """
        kept = mask_of(condition, self._vertices, "vertices")
        numbers_kept = np.zeros(len(self._ids), np.bool_)
        numbers_kept[self._numbers_of_rows[kept]] = True
        source, target = self._ends
        edges = self._edges.filter(pa.array(numbers_kept[source] & numbers_kept[target]))
        return self._with(self._vertices.filter(pa.array(kept)), edges)

    def filter_edges(self, condition: Any) -> Graph:
        """The graph of all vertices, and of the edges that satisfy a condition."""
        kept = mask_of(condition, self._edges, "edges")
        return self._with(self._vertices, self._edges.filter(pa.array(kept)))

    def drop_isolated_vertices(self) -> Graph:
        """The graph without vertices that have no edges."""
        has_edges = np.zeros(len(self._ids), np.bool_)
        for ends in self._ends:
            has_edges[ends] = True
        kept = self._vertices.filter(pa.array(has_edges[self._numbers_of_rows]))
        return self._with(kept, self._edges)

    def as_undirected(self) -> Graph:
        """The graph with each edge in both directions, with equal attributes."""
        edges, turned = self._with_ends_of_one_type(), self.reverse()._with_ends_of_one_type()
        # Of columns that cannot be null `reverse` makes some that can.
        both = pa.concat_tables([edges, turned], promote_options="default")
        return self._with(self._vertices, both)

    def _with_ends_of_one_type(self) -> Any:
        """The edges, with both ends of the type of the ids where they are of two types."""
        kinds = {self._edges.schema.field(name).type for name in (SOURCE, TARGET)}
        edges = self._edges
        for name in (SOURCE, TARGET) if len(kinds) > 1 else ():
            kind = plain_type(self._vertices.schema.field(ID).type)
            ends = cast_ids(edges.column(name), kind, f"{name!r} of the edges")
            edges = with_column(edges, name, ends)
        return edges

    def reverse(self) -> Graph:
        """The graph with each edge the other way round."""
        source, target = (self._edges.column(name) for name in (SOURCE, TARGET))
        turned = with_column(with_column(self._edges, SOURCE, target), TARGET, source)
        return self._with(self._vertices, turned.select(self._edges.schema.names))

    def _with(self, vertices: Any, edges: Any) -> Graph:
        return type(self)(vertices, edges, workers=self._run.workers, threads=self._run.threads)

    def validate(self) -> None:
        """Check that the tables make a valid graph.

        Raises
        ------
        GraphError
            If an id is null or repeats, or an end of an edge is no vertex.
        SchemaError
            If the ends of edges are not of the type of the ids.
        """
        _ = self._ends

    # Messages.

    def aggregate_messages(
        self,
        agg_col: str | Sequence[str],
        send_to_src: Given | None = None,
        send_to_dst: Given | None = None,
    ) -> Any:
        """Aggregate messages along all edges at the vertices that receive any.

        Parameters
        ----------
        agg_col : str or sequence of str
            Aggregates of what comes, `msg`: `"sum(msg) as total"`.
        send_to_src, send_to_dst : str or callable, optional
            What each edge sends to its source and to its target, expressions over `src`, `edge`
            and `dst`: `"dst.age"`. Where it is null nothing is sent. At least one. A function gets
            record batches of edges, of at most 65,536, with columns of structs `src`, `edge` and
            `dst`, and gives a column of each: Arrow's, NumPy's or a list.

        Returns
        -------
        pyarrow.Table
            `id`, and a column for each aggregate.

        Examples
        --------
        >>> people = {"id": ["a", "b", "c"], "age": [34, 36, None]}
        >>> graph = Graph(people, {"src": ["a", "b", "c"], "dst": ["b", "c", "b"]})
        >>> graph.aggregate_messages("sum(msg) as ages", send_to_dst="src.age").to_pydict()
        {'id': ['b', 'c'], 'ages': [34, 36]}
        """
        parsed = parse_aggregates(agg_col)
        to, sent = self._triplets.sent(*parse_sent(send_to_src, send_to_dst))
        of, found = aggregated(to, sent, parsed)
        ids = taken(self._vertices.column(ID), of)
        return found.add_column(0, ID, ids)

    def pregel(
        self,
        columns: Mapping[str, tuple[Given, Given]],
        aggregate: str,
        *,
        send_to_src: Given | None = None,
        send_to_dst: Given | None = None,
        max_iter: int = 10,
        early_stopping: bool = True,
    ) -> Any:
        """Run a vertex program in supersteps: messages along edges, which update columns.

        Parameters
        ----------
        columns : dict
            By the name of each column of the vertices that the program has: how it begins, over
            the columns of the vertices, and what a round makes of it, over these, the program's
            own, and `msg`, what came, which is null where nothing did. Expressions, or functions of
            record batches of vertices with these columns, as for `aggregate_messages`.
        aggregate : str
            What makes one of the messages to a vertex: `"sum(msg)"`.
        send_to_src, send_to_dst : str, optional
            As for `aggregate_messages`; the program's columns are attributes too.
        max_iter : int
            So many rounds at most.
        early_stopping : bool
            Whether it ends when no message is sent.

        Returns
        -------
        pyarrow.Table
            The vertices, with the program's columns.

        Notes
        -----
        Whole columns at a time, by Arrow, in this process: `workers` change nothing.

        Examples
        --------
        The least id that leads to each vertex:

        >>> graph = Graph({"src": [3, 1, 2], "dst": [4, 2, 1]})
        >>> least = {"least": ("id", "least(least, coalesce(msg, least))")}
        >>> graph.pregel(least, "min(msg)", send_to_dst="src.least").to_pydict()
        {'id': [1, 2, 3, 4], 'least': [1, 1, 3, 3]}
        """
        program = PregelProgram.of(
            columns, aggregate, send_to_src, send_to_dst, max_iter, early_stopping=early_stopping
        )
        triplets = self._triplets
        return program.run(triplets.vertices, triplets.edges, triplets.ends)

    @cached_property
    def _triplets(self) -> Triplets:
        source, target = (self._rows[ends] for ends in self._ends)
        return Triplets(self._vertices, self._edges, (source, target))

    # From ids to numbers and back.

    def _ids_of_ends(self) -> VertexIds:
        ends = [self._edges.column(name) for name in (SOURCE, TARGET)]
        for name, column in zip((SOURCE, TARGET), ends, strict=True):
            check_valid(column, f"{name!r} of the edges")
        kind = one_type([plain_type(column.type) for column in ends])
        cast = [
            cast_ids(column, kind, f"{name!r} of the edges")
            for name, column in zip((SOURCE, TARGET), ends, strict=True)
        ]
        return VertexIds.of(*cast)

    @cached_property
    def _ids(self) -> VertexIds:
        column = self._vertices.column(ID)
        check_valid(column, "'id' of the vertices")
        ids = VertexIds.of(column)
        if len(ids) < len(column):
            rows = ids.numbers_of(column, "vertices")
            repeated = ids.take(np.flatnonzero(np.bincount(rows) > 1))
            raise GraphError(
                f"{len(column) - len(ids)} of {len(column)} vertices have an id that another one "
                f"has: {_shown(repeated)}"
            )
        return ids

    @cached_property
    def _numbers_of_rows(self) -> Ints:
        """The number of each record of the vertices."""
        return self._ids.numbers_of(self._vertices.column(ID), "vertices")

    @cached_property
    def _rows(self) -> Ints:
        """The record of each number."""
        rows = np.empty(len(self._ids), np.int64)
        rows[self._numbers_of_rows] = np.arange(len(rows))
        return rows

    @cached_property
    def _ends(self) -> tuple[Ints, Ints]:
        """The numbers of the sources and of the targets of the edges, int64[m] each."""
        source, target = (self._ends_of(name) for name in (SOURCE, TARGET))
        return source, target

    def _ends_of(self, name: str) -> Ints:
        column = self._edges.column(name)
        check_valid(column, f"{name!r} of the edges")
        found = self._ids.numbers_of(column, f"{name!r} of the edges")
        missing = found < 0
        if missing.any():
            unknown = pc.unique(column.filter(pa.array(missing)))
            raise GraphError(
                f"{int(missing.sum())} of {len(found)} edges have a {name!r} that is no vertex: "
                f"{_shown(unknown)}; give the vertices that are missing, or the edges alone"
            )
        return found

    def _numbers(self, ids: Sequence[Any]) -> list[int]:
        try:
            column = array_of_ids(ids, self._ids.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise GraphError(f"ids are {self._ids.type}, and {list(ids)!r} are not") from error
        found = self._ids.numbers_of(column, "ids")
        missing = [one for one, number in zip(ids, found, strict=True) if number < 0]
        if missing:
            raise GraphError(f"no vertex has the id {missing[0]!r}")
        return [int(number) for number in found]

    # Algorithms.

    def _answered(self, question: VertexQuestion) -> Any:
        edges: dict[str, Any] = dict(zip((SOURCE, TARGET), self._ends, strict=True))
        if question.weighted:
            edges[WEIGHT] = self._weights(question.weight, question.signed)
        found = self._run.answers_of(question.build, edges, len(self._ids))
        answered = self._vertices
        for column in question.columns:
            if found is None:
                values = pa.nulls(len(self._rows), type_of(column.kind, self._ids.type))
            else:
                values = self._in_rows(question, column, found)
            answered = with_column(answered, column.becomes, values)
        return answered

    def _weights(self, name: str | None, signed: bool) -> npt.NDArray[np.float64]:
        if name is None:
            return np.ones(self._edges.num_rows)
        check_edge_column(name, self._edges.schema.names, "weights")
        source, target = map(arrow_array, self._ends)
        weight = self._edges.column(name).combine_chunks()
        # By its own name, which errors have.
        names = [SOURCE, TARGET, WEIGHT if name in (SOURCE, TARGET) else name]
        batch = pa.RecordBatch.from_arrays([source, target, weight], names=names)
        return weighted_columns(batch, signed=signed)[WEIGHT]

    def _in_rows(self, question: VertexQuestion, column: ValueColumn, found: Any) -> Any:
        """The values of the answers in the order of the vertices, null where there is none."""
        at = np.full(len(self._ids), -1, np.int64)
        at[numbers(found.column(VERTEX).combine_chunks())] = np.arange(found.num_rows)
        values = taken(found.column(column.name), at[self._numbers_of_rows])
        if column.kind == "id":
            return self._ids.values.take(values.combine_chunks())
        landmarks = pa.array(question.landmarks, self._ids.type)
        return as_values(column.kind, values, landmarks)

    # Searches.

    def _condition(self, given: str) -> Tree:
        return parse_sql(given)

    @cached_property
    def _numbered(self) -> NumberedGraph:
        """The graph as searches want it, with all attributes."""
        source, target = self._ends
        in_order = self._vertices.take(arrow_array(self._rows)).combine_chunks()
        return NumberedGraph(len(self._ids), source, target, in_order, self._edges.combine_chunks())

    @property
    def _attributes(self) -> dict[str, list[str]]:
        return {"vertex": self._vertices.schema.names, "edge": self._edges.schema.names}

    def _searched(self, task: SearchTask) -> Any:
        graph = self._numbered
        return self._run.rows_of(lambda scope: searched(scope.to_stream([graph]), task))

    def _found(self, searches: list[ElementSearch], limit: int | None) -> Any:
        columns = all_columns([search.pattern for search in searches])
        tables = [self._matches(search, columns) for search in searches]
        table = pa.concat_tables(tables)
        return table if limit is None else table.slice(0, limit)

    def _matches(self, search: ElementSearch, columns: dict[str, str]) -> Any:
        """The matches of a search as structs; null for what is only in another pattern."""
        found = self._searched(FindTask(search))
        numbers_of = {name: f"{kind[0]}{i}" for name, kind, i in search.pattern.columns}
        n = 0 if found is None else found.num_rows
        result: dict[str, Any] = {}
        for name, kind in columns.items():
            structs = self._structs[kind]
            if name in numbers_of and n:
                # Chunk by chunk: all may be more text than an array has room for.
                rows = found.column(numbers_of[name]).chunks
                result[name] = pa.chunked_array([structs.take(some) for some in rows])
            else:
                result[name] = pa.nulls(n, structs.type)
        if search.pattern.hop:
            result["_hop"] = pa.array([search.pattern.hop] * n, pa.int64())
            result["_pattern"] = pa.array([search.pattern.text] * n, pa.string())
            result["_direction"] = pa.array([search.pattern.direction] * n, pa.string())
        return pa.table(result)

    def _counted(self, searches: list[ElementSearch]) -> int:
        found = [self._searched(CountTask(search)) for search in searches]
        # By Python: what workers count together may be more than 64 bits can say.
        return sum(n for table in found for n in table.column("count").to_pylist())

    def _path_length(self, ends: PathEnds) -> int:
        found = self._searched(LengthTask(ends))
        return int(found.column("length")[0].as_py())

    def _beside(self, frame: Any, name: str, other: str) -> Any:
        return frame.append_column(other, frame.column(name))

    def _lists(self, task: SearchTask, name: str) -> Any:
        found = self._searched(task)
        if found is None:
            return pa.table({name: pa.array([], pa.list_(self._ids.type))})
        return with_ids(found, self._ids.values)

    @cached_property
    def _structs(self) -> dict[str, Any]:
        """The vertices, in the order of their numbers, and the edges, as structs."""
        graph = self._numbered
        return {"vertex": struct_of(graph.vertices), "edge": struct_of(graph.edges)}


def _shown(ids: Any) -> str:
    """A few of the ids."""
    few = ", ".join(repr(one) for one in ids[:3].to_pylist())
    return few if len(ids) <= 3 else f"{few} and {len(ids) - 3} more"
