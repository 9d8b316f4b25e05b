"""`graph`: vertices and edges in DataFrames, asked as `pointstamp.graph.Graph` is.

What Spark does well is Spark's: joins, filters and sums of the tables. What takes rounds, or
searches, is one barrier job each, by `run`: ids are numbered inside, and put back before records
leave it. All results are DataFrames, and nothing runs before an action, but where a number is
asked for (`count`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from pointstamp.errors import GraphError, SchemaError, UsageError
from pointstamp.graph.tables.algorithms import GraphAlgorithms
from pointstamp.graph.tables.argument_checks import check_edge_column, check_names
from pointstamp.graph.tables.condition_types import (
    check_conditions,
    check_ends,
    ends_in_zone,
    searches_in_zone,
)
from pointstamp.graph.tables.edge_types import (
    MOST_TYPES,
    array_of_types,
    names_of_types,
)
from pointstamp.graph.tables.element_search import ElementSearch
from pointstamp.graph.tables.ends_of_edges import ends_of
from pointstamp.graph.tables.exchanged import (
    AnswerFlow,
    CountFlow,
    LengthFlow,
    ListFlow,
    SearchFlow,
)
from pointstamp.graph.tables.hashed_ids import hashed_ids
from pointstamp.graph.tables.messages import PregelProgram
from pointstamp.graph.tables.path_search import PathEnds, prefixed
from pointstamp.graph.tables.search_task import SearchTask
from pointstamp.graph.tables.searches import GraphSearches, all_columns
from pointstamp.graph.tables.sql_text import Tree, parse_sql
from pointstamp.graph.tables.vertex_ids import array_of_ids
from pointstamp.graph.tables.vertex_program import ProgramFlow, named_of
from pointstamp.graph.tables.vertex_question import VertexQuestion
from pointstamp.spark.actions import whole
from pointstamp.spark.arrow_schemas import arrow_schema_of
from pointstamp.spark.call_sites import call_site, called_at
from pointstamp.spark.collations import check_collations, check_program
from pointstamp.spark.column_trees import OF_CONDITIONS, aggregate_tree, is_column, tree_of
from pointstamp.spark.frame_checks import (
    ID,
    SOURCE,
    TARGET,
    check_all_names,
    check_columns,
    check_elements,
    check_one_name,
    check_types,
    check_weights,
    minds_case,
    names_as_in,
    types_of_aggregates,
)
from pointstamp.spark.known_schemas import known
from pointstamp.spark.mapped_columns import column_of
from pointstamp.spark.run import run
from pointstamp.spark.sent_messages import sent_by

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    Given = str | Column | Callable[[Any], Any]


def graph(
    vertices: DataFrame, edges: DataFrame | None = None, *, workers: int | None = None
) -> SparkGraph:
    """Make a graph of DataFrames: vertices with a column `id`, edges with `src` and `dst`.

    Parameters
    ----------
    vertices, edges : DataFrame
        With any other columns, which are attributes. Ids are of any type that Spark can group by
        and that has a stable hash, which text with a collation has not. With one argument those
        are the edges, and the vertices are their ends.
    workers : int, optional
        How many tasks a barrier job has; all slots of the session if not given.

    Returns
    -------
    SparkGraph
        With the methods of `pointstamp.graph.Graph`, whose results are DataFrames; through Spark
        Connect, too.

    Raises
    ------
    ColumnError
        If `id`, `src` or `dst` are not there.
    UsageError
        If one of them is no DataFrame.

    Examples
    --------
    The pairs of payments of a rising amount, with all columns of both and of the accounts::

        accounts = pointstamp.spark.graph(vertices, edges)
        accounts.find("(a)-[e1]->(b); (b)-[e2]->(c)", "e1.amount < e2.amount").show()
    """
    return SparkGraph(vertices, edges, workers=workers)


class SparkGraph(GraphAlgorithms["DataFrame"], GraphSearches["DataFrame", "str | Column"]):
    """A graph of two DataFrames; made by `graph`."""

    def __init__(
        self, vertices: DataFrame, edges: DataFrame | None, *, workers: int | None
    ) -> None:
        from pyspark.sql.types import StructType

        self._ends_are_vertices = edges is None
        self._vertices_are_ends = False
        if edges is None:
            edges = vertices
            check_columns(edges, [SOURCE, TARGET], "edges")
            ends = edges.selectExpr(f"{SOURCE} as {ID}")
            vertices = ends.union(edges.selectExpr(f"{TARGET} as {ID}")).distinct()
            of_id = _type_of_ends(edges)
            if of_id is not None:
                vertices = known(vertices, StructType().add(ID, of_id))
                self._vertices_are_ends = _is_found_by_workers(of_id)
        check_columns(vertices, [ID], "vertices")
        check_columns(edges, [SOURCE, TARGET], "edges")
        check_types(vertices, edges)
        self._vertices = vertices
        self._edges = edges
        self._workers = workers

    def __repr__(self) -> str:
        of_vertices, of_edges = self._vertices.columns, self._edges.columns
        return f"SparkGraph(v: [{', '.join(of_vertices)}], e: [{', '.join(of_edges)}])"

    # What there is, and other graphs: by Spark.

    @property
    def vertices(self) -> DataFrame:
        """The vertices."""
        return self._vertices

    @property
    def edges(self) -> DataFrame:
        """The edges."""
        return self._edges

    @property
    def triplets(self) -> DataFrame:
        """Each edge with both its vertices: structs `src`, `edge` and `dst`."""
        from pyspark.sql.functions import col, struct

        def in_struct(frame: DataFrame, name: str) -> DataFrame:
            return frame.select(struct(*map(column_of, frame.columns)).alias(name))

        check_all_names(self._vertices, "vertices")
        check_all_names(self._edges, "edges")
        vertices, edges = self._vertices, in_struct(self._edges, "edge")
        found = edges.join(in_struct(vertices, SOURCE), col("edge.src") == col("src.id"))
        found = found.join(in_struct(vertices, TARGET), col("edge.dst") == col("dst.id"))
        return found.select(SOURCE, "edge", TARGET)

    @property
    def degrees(self) -> DataFrame:
        """How many edges each vertex has, at either end: `id` and `degree`, of those with any."""
        return self._degrees([SOURCE, TARGET], "degree")

    @property
    def in_degrees(self) -> DataFrame:
        """How many edges lead to each vertex: `id` and `in_degree`, of those with any."""
        return self._degrees([TARGET], "in_degree")

    @property
    def out_degrees(self) -> DataFrame:
        """How many edges lead from each vertex: `id` and `out_degree`, of those with any."""
        return self._degrees([SOURCE], "out_degree")

    def type_degree(self, edge_type_col: str, edge_types: Sequence[Any] | None = None) -> DataFrame:
        """How many edges of each type each vertex has: `id` and the struct `degrees`.

        As `pointstamp.graph.Graph.type_degree`. Without `edge_types` this call runs a job, which
        finds them.
        """
        return self._type_degrees([SOURCE, TARGET], "degrees", edge_type_col, edge_types)

    def type_in_degree(
        self, edge_type_col: str, edge_types: Sequence[Any] | None = None
    ) -> DataFrame:
        """As `type_degree`, of the edges to each vertex: `id` and `in_degrees`."""
        return self._type_degrees([TARGET], "in_degrees", edge_type_col, edge_types)

    def type_out_degree(
        self, edge_type_col: str, edge_types: Sequence[Any] | None = None
    ) -> DataFrame:
        """As `type_degree`, of the edges from each vertex: `id` and `out_degrees`."""
        return self._type_degrees([SOURCE], "out_degrees", edge_type_col, edge_types)

    def _type_degrees(
        self, ends: Sequence[str], name: str, column: str, edge_types: Sequence[Any] | None
    ) -> DataFrame:
        from pyspark.sql.functions import col, count_if, lit, struct
        from pyspark.sql.pandas.types import to_arrow_type

        check_edge_column(column, self._edges.columns, "types")
        check_one_name(self._edges, column, "edges")
        kind = self._edges.schema[column].dataType
        types = column_of(column).alias("type")
        if edge_types is None:
            with self._called("type_degree"):
                found = self._edges.select(types).distinct().sort("type").take(MOST_TYPES + 1)
            edge_types = [record[0] for record in found]
        else:
            array_of_types(edge_types, to_arrow_type(kind, timezone="UTC"))
        names = names_of_types(edge_types)
        counts = [
            count_if(col("type").eqNullSafe(lit(value).cast(kind))).alias(f"n{i}")
            for i, value in enumerate(edge_types)
        ]
        fields = [col(f"n{i}").alias(field) for i, field in enumerate(names)]
        return (
            self._at(ends, types).groupBy(ID).agg(*counts).select(ID, struct(*fields).alias(name))
        )

    def _degrees(self, ends: Sequence[str], name: str) -> DataFrame:
        return self._at(ends).groupBy(ID).count().withColumnRenamed("count", name)

    def _at(self, ends: Sequence[str], *columns: Column) -> DataFrame:
        """The vertex at each of some ends of each edge, `id`, with columns of the edge."""
        frames = [self._edges.select(column_of(end).alias(ID), *columns) for end in ends]
        return reduce(lambda one, other: one.union(other), frames)

    def filter_vertices(self, condition: str | Column) -> SparkGraph:
        """The graph of the vertices for which a condition is true, and the edges between them."""
        check_all_names(self._edges, "edges")
        with names_as_in(self._vertices, "vertices"):
            kept = self._vertices.filter(condition)
            found = self._with(kept, self._between(kept))
        found._ends_are_vertices = True
        return found

    def filter_edges(self, condition: str | Column) -> SparkGraph:
        """The graph of all vertices and of the edges for which a condition is true."""
        with names_as_in(self._edges, "edges"):
            return self._with(self._vertices, self._edges.filter(condition))

    def drop_isolated_vertices(self) -> SparkGraph:
        """The graph without the vertices that no edge has as an end."""
        check_all_names(self._vertices, "vertices")
        kept = self._vertices.join(self.degrees.select(ID), ID, "left_semi")
        # Spark has the columns that it joined by first.
        kept = kept.select(*map(column_of, self._vertices.columns))
        return self._with(kept, self._edges)

    def as_undirected(self) -> SparkGraph:
        """The graph with each edge in both directions, with the same attributes."""
        both = self._edges.unionByName(self.reverse().edges)
        return self._with(self._vertices, both, same_ends=True)

    def reverse(self) -> SparkGraph:
        """The graph with each edge the other way round."""
        check_all_names(self._edges, "edges")
        turned = {SOURCE: TARGET, TARGET: SOURCE}
        columns = [column_of(turned.get(c, c)).alias(c) for c in self._edges.columns]
        return self._with(self._vertices, self._edges.select(*columns), same_ends=True)

    def aggregate_messages(
        self,
        agg_col: str | Column | Sequence[str | Column],
        send_to_src: Given | None = None,
        send_to_dst: Given | None = None,
    ) -> DataFrame:
        """What messages along all edges come to at the vertices that get any, by Spark.

        Parameters
        ----------
        agg_col : str, Column, or several
            Aggregates of what comes, the column `msg`.
        send_to_src, send_to_dst : str, Column or callable, optional
            What each edge sends to either end, over the structs `src`, `edge` and `dst`; nothing
            where it is null. At least one. A function gets record batches with these three, and
            gives a column of each: Arrow's, NumPy's or a list. It is called with a batch without
            records by this call, which has to have the type.
        """
        from pyspark.sql.functions import expr

        def column(given: Any) -> Column:
            return expr(given) if isinstance(given, str) else given

        def messages_to(end: str, given: Given) -> DataFrame:
            if callable(given) and not is_column(given):
                return sent_by(self.triplets, end, given)
            return self.triplets.select(column(f"{end}.id").alias(ID), column(given).alias("msg"))

        sent = [
            messages_to(end, given)
            for end, given in ((SOURCE, send_to_src), (TARGET, send_to_dst))
            if given is not None
        ]
        if not sent:
            raise UsageError("messages are sent to somewhere: give send_to_src or send_to_dst")
        messages = sent[0] if len(sent) == 1 else sent[0].union(sent[1])
        aggregates: list[Any] = [agg_col]
        if isinstance(agg_col, Sequence) and not isinstance(agg_col, str):
            aggregates = list(agg_col)
        if not aggregates:
            raise UsageError("messages come to an aggregate, such as 'sum(msg) as total'; give one")
        with types_of_aggregates(messages, aggregates):
            found = messages.filter("msg is not null").groupBy(ID).agg(*map(column, aggregates))
            names = found.columns
        check_names(names[1:], "aggregates of messages")
        for name in names:
            check_one_name(found, name, "aggregates of messages")
        return found

    def pregel(
        self,
        columns: Mapping[str, tuple[Given, Given]],
        aggregate: str | Column,
        *,
        send_to_src: Given | None = None,
        send_to_dst: Given | None = None,
        max_iter: int = 10,
        early_stopping: bool = True,
    ) -> DataFrame:
        """A vertex program in rounds, all in one barrier job; see `pointstamp.graph.Graph.pregel`.

        Parameters
        ----------
        columns, aggregate, send_to_src, send_to_dst, max_iter, early_stopping
            As there: expressions, as text or as a Column, of names such as `col("src.age")`; or
            functions of record batches, which travel to the workers. Arrow evaluates them, with
            the functions that `docs/graphs_of_tables.md` has.

        Returns
        -------
        DataFrame
            The vertices, with the program's columns.

        Raises
        ------
        ColumnError, SchemaError, UsageError
            For what Arrow cannot evaluate, and a column that begins without a type; by this call,
            before anything runs.

        Notes
        -----
        This call tries the program on no record, and so calls functions with batches of none.

        An edge of which an end is no vertex is none. Sums of floats are in an order of the
        workers, so that their last digits depend on how many there are.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        put_together: Any = aggregate_tree(aggregate) if is_column(aggregate) else aggregate
        program = PregelProgram.of(
            _trees_of(columns),
            put_together,
            _tree_of(send_to_src),
            _tree_of(send_to_dst),
            max_iter,
            early_stopping=early_stopping,
        ).in_zone(self._zone)
        named = named_of(program, "edge", self._edges.columns)
        kept = [name for name in self._edges.columns if name in (SOURCE, TARGET, *named)]
        for name in kept:
            check_one_name(self._edges, name, "edges")
        for name in program.columns:
            names = [*self._vertices.columns, *program.columns]
            check_one_name(self._vertices, name, "vertices of the program", names)
        edges = _selected(self._edges, kept)
        of_vertices, of_edges = _arrow(self._vertices.schema), _arrow(edges.schema)
        arrow = program.schema_of(of_vertices, _arrow(self._edges.schema))
        check_program(program, self._structs)
        try:
            schema = from_arrow_schema(arrow)
        except Exception as error:
            raise SchemaError(f"Spark has no type for a column of the program: {error}") from error
        return self._run(
            "program on a graph", ProgramFlow(program, of_vertices, of_edges, arrow), edges, schema
        )

    def _between(self, vertices: DataFrame) -> DataFrame:
        edges = self._edges
        for end in (SOURCE, TARGET):
            ids = vertices.selectExpr(f"{ID} as {end}").distinct()
            edges = edges.join(ids, end, "left_semi")
        return edges.select(*map(column_of, self._edges.columns))

    def _with(
        self, vertices: DataFrame, edges: DataFrame, *, same_ends: bool = False
    ) -> SparkGraph:
        found = SparkGraph(vertices, edges, workers=self._workers)
        found._ends_are_vertices = self._ends_are_vertices
        found._vertices_are_ends = self._vertices_are_ends and same_ends
        return found

    def validate(self) -> None:
        """Check that the DataFrames are a graph. Runs jobs.

        Raises
        ------
        GraphError
            If an id is null or repeats, or an end of an edge is no vertex.
        """
        with self._called("validate"):
            self._check_ids()

    def _check_ids(self) -> None:
        ids = self._vertices.select(ID)
        repeated = ids.groupBy(ID).count().filter(f"count > 1 or {ID} is null").take(1)
        if repeated:
            raise GraphError(
                f"the id {repeated[0][0]!r} is that of {repeated[0][1]} vertices; ids are not "
                "null, and do not repeat"
            )
        for end in (SOURCE, TARGET):
            of_edges = self._edges.selectExpr(f"{end} as {ID}")
            missing = of_edges.join(ids, ID, "left_anti").take(1)
            if missing:
                raise GraphError(f"an edge has a {end!r} that is no vertex: {missing[0][0]!r}")

    # Algorithms and searches: a job each.

    def _numbers(self, ids: Sequence[Any]) -> list[int]:
        return [int(number) for number in hashed_ids(self._ids(ids), "ids")]

    def _ids(self, ids: Sequence[Any]) -> Any:
        """Ids as an Arrow array of the type that they have in Spark."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type
        from pyspark.sql.types import TimestampType

        kind = self._vertices.schema[ID].dataType
        if isinstance(kind, TimestampType):  # to PySpark a time without a zone is local
            ids = [one.astimezone() if isinstance(one, datetime) else one for one in ids]
        try:
            return array_of_ids(ids, to_arrow_type(kind, timezone="UTC"))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise GraphError(f"ids are {kind.simpleString()}, and {list(ids)!r} are not") from error

    def _answered(self, question: VertexQuestion) -> DataFrame:
        if question.weight is not None:
            check_edge_column(question.weight, self._edges.columns, "weights")
            check_one_name(self._edges, question.weight, "edges")
            check_weights(self._edges, question.weight)
        needed = [SOURCE, TARGET, *([question.weight] if question.weight else [])]
        edges = _selected(self._edges, needed)
        schema = self._schema_of_answers(question)
        landmarks = self._ids(question.landmarks)
        what = f"{question.column.becomes} of a graph"
        flow = AnswerFlow(question, landmarks, _arrow(schema), self._ends_are_vertices)
        return self._run(what, flow, edges, schema)

    def _schema_of_answers(self, question: VertexQuestion) -> StructType:
        from pyspark.sql import types

        of_id = self._vertices.schema[ID].dataType
        kinds: dict[str, DataType] = {
            "long": types.LongType(),
            "double": types.DoubleType(),
            "boolean": types.BooleanType(),
            "id": of_id,
            "only": types.DoubleType(),
            "doubles": types.ArrayType(types.DoubleType()),
            "distances": types.MapType(of_id, types.LongType()),
        }
        fields = [types.StructField(c.becomes, kinds[c.kind]) for c in question.columns]
        names = {field.name for field in fields}
        kept = [field for field in self._vertices.schema if field.name not in names]
        alike = [field for field in kept if field.name.lower() in names]
        if alike and not minds_case(self._vertices):  # as withColumn replaces it
            kept = [field for field in kept if field not in alike]
        return types.StructType(kept + fields)

    def _condition(self, given: str | Column) -> Tree:
        text: Any = given
        return tree_of(given, OF_CONDITIONS) if is_column(given) else parse_sql(text)

    @property
    def _attributes(self) -> dict[str, list[str]]:
        return {"vertex": self._vertices.columns, "edge": self._edges.columns}

    @property
    def _structs(self) -> dict[str, StructType]:
        return {"vertex": self._vertices.schema, "edge": self._edges.schema}

    @property
    def _arrow_schemas(self) -> dict[str, Any]:
        return {kind: _arrow(schema) for kind, schema in self._structs.items()}

    def _found(self, searches: list[ElementSearch], limit: int | None) -> DataFrame:
        from pyspark.sql import types

        searches = self._checked(searches)
        columns = all_columns([search.pattern for search in searches])
        structs = self._structs
        fields = [types.StructField(name, structs[kind]) for name, kind in columns.items()]
        if searches[0].pattern.hop:
            fields.append(types.StructField("_hop", types.LongType()))
            fields += [
                types.StructField(name, types.StringType()) for name in ("_pattern", "_direction")
            ]
        schema = types.StructType(fields)
        check_elements(self._vertices, schema.names)
        flow = SearchFlow(searches, columns, _arrow(schema))
        found = self._run("matches in a graph", flow, self._edges, schema)
        return found if limit is None else found.limit(min(limit, 2**31 - 1))  # Spark's most

    def _checked(self, searches: list[ElementSearch]) -> list[ElementSearch]:
        """The searches, whose conditions can be computed, as Spark would read them."""
        searches = searches_in_zone(searches, self._zone)
        check_conditions(searches, self._arrow_schemas)
        structs = self._structs
        for search in searches:
            of = {name: structs[kind] for name, kind, _ in search.pattern.columns}
            for condition in search.conditions:
                check_collations(condition, of)
        return searches

    @property
    def _zone(self) -> str:
        return str(self._vertices.sparkSession.conf.get("spark.sql.session.timeZone"))

    def _counted(self, searches: list[ElementSearch]) -> int:
        flow = CountFlow(self._checked(searches))
        counts = self._run("count of matches in a graph", flow, self._edges, "count long")
        with self._called("count"):
            return sum(row[0] for row in whole(counts).collect())

    def _path_length(self, ends: PathEnds) -> int:
        ends = ends_in_zone(ends, self._zone)
        check_ends(ends, self._arrow_schemas)
        for tree, kind in ((ends.begin, "vertex"), (ends.end, "vertex"), (ends.edge, "edge")):
            if tree is not None:
                check_collations(prefixed(tree, kind), self._structs)
        what = "length of paths in a graph"
        lengths = self._run(what, LengthFlow(ends), self._edges, "length long")
        with self._called("bfs"):
            found = whole(lengths).collect()
        return int(found[0][0]) if found else -1

    def _beside(self, frame: DataFrame, name: str, other: str) -> DataFrame:
        return frame.withColumn(other, frame[name])

    def _lists(self, task: SearchTask, name: str) -> DataFrame:
        from pyspark.sql import types

        kind = types.ArrayType(self._vertices.schema[ID].dataType)
        schema = types.StructType([types.StructField(name, kind)])
        return self._run(f"{name} of a graph", ListFlow(task), self._edges, schema)

    def _called(self, method: str) -> AbstractContextManager[None]:
        """Have Spark show the jobs inside as asked for where the program calls a method."""
        return called_at(self._vertices.sparkSession, call_site(method))

    def _run(self, what: str, flow: Any, edges: DataFrame, schema: str | StructType) -> DataFrame:
        def of_edges(scope: Any, edges: Any) -> Any:
            return flow(scope, ends_of(edges), edges)

        def of_both(scope: Any, vertices: Any, edges: Any) -> Any:
            return flow(scope, vertices, edges)

        build: Any = of_both
        inputs = {"vertices": self._vertices, "edges": edges}
        if self._vertices_are_ends:
            build, inputs = of_edges, {"edges": edges}
        build.__qualname__ = what  # as which Spark's UI has it
        return run(build, inputs, schema, self._workers)


def _selected(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Some columns, which are known as those of `frame` are."""
    struct = type(frame.schema)([frame.schema[name] for name in names])
    return known(frame.select(*map(column_of, names)), struct)


def _tree_of(given: Any) -> Any:
    """A Column as the tree of an expression; all else as it is."""
    return tree_of(given) if is_column(given) else given


def _trees_of(columns: Any) -> Any:
    if not isinstance(columns, Mapping):
        return columns  # which is refused where programs are read
    return {
        name: tuple(map(_tree_of, given)) if isinstance(given, tuple | list) else given
        for name, given in columns.items()
    }


def _arrow(schema: StructType) -> Any:
    return arrow_schema_of(schema, "what the graph needs")


def _is_found_by_workers(of_id: DataType) -> bool:
    """Whether ids that differ have different records: not -0.0, or text that is compared otherwise.

    Of such ids the workers find the ends of edges themselves, so that edges are read once and no
    shuffle of Spark is needed for the vertices.
    """
    name: str = of_id.simpleString()
    return name in _EXACT or name.startswith("decimal(")


_EXACT = {
    *("tinyint", "smallint", "int", "bigint", "string", "binary", "boolean", "date"),
    *("timestamp", "timestamp_ntz"),
}


def _type_of_ends(edges: DataFrame) -> DataType | None:
    """Of what type the union of both ends is; None if that is Spark's to say."""
    from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

    source, target = (edges.schema[name].dataType for name in (SOURCE, TARGET))
    if source == target:
        return source
    integers: list[DataType] = [ByteType(), ShortType(), IntegerType(), LongType()]
    if source in integers and target in integers:
        return max(source, target, key=integers.index)
    if source.simpleString() != target.simpleString():
        raise SchemaError(
            f"{SOURCE!r} of the edges is {source.simpleString()}, and {TARGET!r} "
            f"{target.simpleString()}: cast one to the type of the other"
        )
    return None  # some of its parts may be null at one end alone
