"""A graph of edges alone on a real session: the workers find the vertices, or Spark does."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.functions import col, udf

import pointstamp.spark
from pointstamp.errors import PatternError, SchemaError, WorkerError
from pointstamp.graph import Graph
from pointstamp.spark.scanned_inputs import SETTING
from tests.spark.test_graph_of_frames import records

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

NAMES = [f"é{i % 7}" if i % 3 else f"vertex {i % 11}" for i in range(60)]
TABLE = pa.table({"src": NAMES[:-1], "dst": NAMES[1:], "amount": list(range(59))})

ASKED = {
    "k_core": lambda g: g.k_core(),
    "undirected": lambda g: g.as_undirected().triangle_count(),
    "reverse": lambda g: g.reverse().shortest_paths(["é1", "vertex 0"]),
    "fewer edges": lambda g: g.filter_edges("amount < 3").k_core(),
    "fewer vertices": lambda g: g.filter_vertices("id > 'f'").k_core(),
    "find": lambda g: g.find("(a)-[e]->(b); (b)-[]->(a)", "e.amount > 3 and a.id != 'é0'"),
    "pregel": lambda g: g.pregel(
        {"most": ("0", "greatest(most, coalesce(msg, 0))")}, "max(msg)", send_to_dst="edge.amount"
    ),
    "vertices": lambda g: g.vertices,
}


@pytest.fixture(scope="module")
def edges(spark, tmp_path_factory):
    """The same edges in two files, which the workers scan, and as rows, which are dealt to them."""
    folder = str(tmp_path_factory.mktemp("edges") / "edges.parquet")
    rows = spark.createDataFrame(TABLE)
    rows.repartition(2).write.parquet(folder)
    return {"scanned": spark.read.parquet(folder), "dealt": rows.repartition(3)}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("source", ["scanned", "dealt"])
def test_answers_are_those_of_the_graph_of_tables(edges, source, name):
    on_spark = pointstamp.spark.graph(edges[source], workers=2)
    assert records(ASKED[name](on_spark)) == records(ASKED[name](Graph(TABLE)))


@pytest.mark.parametrize("direct", ["true", "false"])
def test_spark_makes_no_vertices_of_edges_for_the_workers(spark, edges, capsys, direct):
    graph = pointstamp.spark.graph(edges["scanned"], workers=2)
    spark.conf.set(SETTING, direct)
    try:
        graph.k_core().explain()
    finally:
        spark.conf.unset(SETTING)
    plan = capsys.readouterr().out
    assert plan.count("FileScan") == (direct == "false")
    assert "Aggregate" not in plan
    assert graph.count("(a)-[]->(b)") == TABLE.num_rows


@pytest.mark.parametrize("kind", ["double", "struct<x: int>", "long", "decimal(9, 2)"])
def test_ends_are_vertices_where_spark_says_that_they_are_the_same(spark, kind):
    pairs = [(0, 1), (1, 2), (3, 4)]
    ends = {
        "double": "cast({0} as double) * -0.0 + {0}",
        "struct<x: int>": "named_struct('x', {0})",
    }.get(kind, f"cast({{0}} as {kind})")
    texts = [f"select {ends.format(a)} src, {ends.format(b)} dst" for a, b in pairs]
    frame = spark.sql(" union all ".join(texts))
    graph = pointstamp.spark.graph(frame, workers=2)
    found = {str(row.id): row.component for row in graph.connected_components().collect()}
    assert len(found) == graph.vertices.count() == 5
    assert len({*map(str, found.values())}) == 2


@pytest.mark.parametrize("direct", ["true", "false"])
@pytest.mark.parametrize("kinds", [("int", "long"), ("long", "int"), ("tinyint", "int")])
def test_ends_are_integers_of_two_widths(spark, tmp_path, kinds, direct):
    text = "cast({0} as {2}) src, cast({1} as {3}) dst"
    pairs = [(0, 1), (1, 2), (3, 4)]
    frame = spark.sql(" union all ".join("select " + text.format(*pair, *kinds) for pair in pairs))
    frame.write.parquet(str(tmp_path / "edges.parquet"))
    frame = spark.read.parquet(str(tmp_path / "edges.parquet"))
    spark.conf.set(SETTING, direct)
    try:
        graph = pointstamp.spark.graph(frame, workers=2)
        found = graph.connected_components()
        assert found.schema["id"].dataType == graph.vertices.schema["id"].dataType
        components = {row.id: row.component for row in found.collect()}
        assert graph.count("(a)-[]->(b); (b)-[]->(c)", "a.id < b.id") == 1
    finally:
        spark.conf.unset(SETTING)
    assert components.keys() == set(range(5))
    assert len({*components.values()}) == 2


def test_an_end_that_is_null_is_refused(spark):
    frame = spark.sql("select 'a' src, cast(null as string) dst")
    with pytest.raises(WorkerError, match="'dst' of the edges"):
        pointstamp.spark.graph(frame, workers=2).k_core().collect()


def test_a_graph_of_no_edges_has_no_vertices(spark):
    frame = spark.createDataFrame([], "src string, dst string")
    graph = pointstamp.spark.graph(frame, workers=2)
    assert graph.page_rank(max_iter=3).collect() == []
    assert graph.count("(a)-[]->(b)") == 0


def test_names_that_are_one_to_spark_are_refused_for_ends_and_ids(spark):
    edges = spark.sql("select 1L as src, 2L as dst, 5L as SRC")
    vertices = spark.sql("select 1L as id, 2L as Id")
    says = "edges have the columns 'src' and 'SRC', which are one name to Spark: rename one"
    with pytest.raises(SchemaError, match=says):
        pointstamp.spark.graph(edges)
    with pytest.raises(SchemaError, match="vertices have the columns 'id' and 'Id'"):
        pointstamp.spark.graph(vertices, spark.sql("select 1L as src, 2L as dst"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = pointstamp.spark.graph(edges, workers=1).find("(a)-[e]->(b)").collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [(row.a.id, tuple(row.e), row.b.id) for row in found] == [(1, (1, 2, 5), 2)]


def test_names_that_are_one_to_spark_are_refused_where_one_is_asked_for(spark):
    edges = spark.sql("select 1L as src, 2L as dst, 5.0D as w, 7.0D as W, 'a' as Kind, 'b' as kind")
    graph = pointstamp.spark.graph(edges, workers=1)
    with pytest.raises(SchemaError, match="edges have the columns 'w' and 'W', which are one name"):
        graph.sssp(1, weight="w")
    with pytest.raises(SchemaError, match="edges have the columns 'Kind' and 'kind'"):
        graph.type_degree("Kind")
    assert graph.degrees.count() == 2
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = graph.sssp(1, weight="W").collect()
        degrees = graph.type_out_degree("Kind").collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [row.distance for row in found if row.id == 2] == [7.0]
    assert [tuple(row[1]) for row in degrees] == [(1,)]


EACH = [
    lambda graph: graph.filter_edges("w > 1"),
    lambda graph: graph.filter_edges(col("W") > 1),
    lambda graph: graph.filter_vertices("id > 0"),
    lambda graph: graph.triplets,
    lambda graph: graph.reverse(),
    lambda graph: graph.as_undirected(),
    lambda graph: graph.aggregate_messages("sum(msg)", send_to_dst="src.id"),
    lambda graph: graph.pregel({"n": ("0.0", "msg")}, "sum(msg)", send_to_dst="edge.w"),
]


@pytest.mark.parametrize("ask", EACH)
def test_edges_with_a_name_twice_to_spark_are_refused_where_it_matters(spark, ask):
    edges = spark.sql("select 1L as src, 2L as dst, 5.0D as w, 7.0D as W")
    graph = pointstamp.spark.graph(edges, workers=1)
    with pytest.raises(SchemaError, match=r"edges have the columns '[wW]' and '[wW]', which are"):
        ask(graph)
    assert graph.filter_edges("src > 0").edges.count() == 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        ask(graph)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_vertices_with_a_name_twice_to_spark_are_refused_where_it_matters(spark):
    vertices = spark.sql("select 1L as id, 7L as age, 8L as Age")
    edges = spark.sql("select 1L as src, 1L as dst")
    graph = pointstamp.spark.graph(vertices, edges, workers=1)
    for ask in (
        lambda: graph.filter_vertices("age > 1"),
        lambda: graph.drop_isolated_vertices(),
        lambda: graph.triplets,
    ):
        with pytest.raises(SchemaError, match="vertices have the columns 'age' and 'Age', which"):
            ask()
    assert graph.filter_vertices("id > 1").vertices.count() == 0


def test_results_with_a_name_twice_to_spark_are_refused(spark):
    edges = spark.sql("select 1L as src, 2L as dst")
    graph = pointstamp.spark.graph(edges, workers=1)
    with pytest.raises(PatternError, match="names 'a' and 'A', which are one name to Spark"):
        graph.find("(a)-[]->(A)")
    with pytest.raises(SchemaError, match="have the columns 'n' and 'N', which are one name"):
        graph.aggregate_messages(["sum(msg) as n", "max(msg) as N"], send_to_dst="src.id")
    with pytest.raises(SchemaError, match="have the columns 'id' and 'ID', which are one name"):
        graph.aggregate_messages("sum(msg) as ID", send_to_dst="src.id")
    with pytest.raises(SchemaError, match="have the columns 'n' and 'N', which are one name"):
        graph.pregel({"n": ("0", "msg"), "N": ("0", "msg")}, "sum(msg)", send_to_dst="src.id")
    assert graph.count("(a)-[]->(A)") == 1  # which has no columns of them
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = graph.find("(a)-[]->(A)").collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert [(row["a"].id, row["A"].id) for row in found] == [(1, 2)]


def test_booleans_are_no_numbers_to_aggregates(spark):
    graph = pointstamp.spark.graph(spark.sql("select 1L as src, 2L as dst, true as new"), workers=1)
    for aggregate in ("sum", "avg", "var_pop"):
        with pytest.raises(SchemaError, match=f"are boolean, .* together by {aggregate}"):
            graph.aggregate_messages(f"{aggregate}(msg) as n", send_to_dst="edge.new")
        with pytest.raises(SchemaError, match=f"are bool .* together by {aggregate}"):
            graph.pregel({"n": ("0.0", "msg")}, f"{aggregate}(msg)", send_to_dst="edge.new")
    found = graph.aggregate_messages("sum(cast(msg as int)) as n", send_to_dst="edge.new").collect()
    assert [tuple(row) for row in found] == [(2, 1)]


def test_an_answer_takes_the_place_of_an_attribute_that_is_called_so_to_spark(spark):
    vertices = spark.sql("select 1L as id, 7L as Component, 8L as more")
    edges = spark.sql("select 1L as src, 1L as dst")
    answered = pointstamp.spark.graph(vertices, edges, workers=1).connected_components()
    assert answered.columns == ["id", "more", "component"]
    assert [tuple(row) for row in answered.select("id", "component").collect()] == [(1, 1)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        answered = pointstamp.spark.graph(vertices, edges, workers=1).connected_components()
        assert answered.columns == ["id", "Component", "more", "component"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_edges_that_are_others_each_time_that_spark_computes_them_are_refused(spark):
    @udf("double")
    def anything():
        import os

        return float(int.from_bytes(os.urandom(6), "big"))

    edges = spark.range(20).select(
        col("id").cast("double").alias("src"), anything.asNondeterministic()().alias("dst")
    )
    graph = pointstamp.spark.graph(edges, workers=2)  # Spark finds the ends of floats
    with pytest.raises(WorkerError, match=r"these give other records each time.*; cache\(\) or"):
        graph.connected_components().collect()
    kept = edges.cache()
    try:
        found = pointstamp.spark.graph(kept, workers=2).connected_components().collect()
    finally:
        kept.unpersist()
    assert len(found) == 40
    assert {row.component for row in found} <= {row.id for row in found}
    # Of ids that workers find the ends of, edges are computed once.
    whole = edges.selectExpr("cast(src as long) as src", "cast(dst as long) as dst")
    found = pointstamp.spark.graph(whole, workers=2).connected_components().collect()
    assert len(found) == 40
    assert {row.component for row in found} <= {row.id for row in found}


def test_the_column_of_a_weight_that_is_none_is_named(spark):
    edges = spark.createDataFrame([(1, 2, None), (2, 3, 1.0)], "src long, dst long, km double")
    graph = pointstamp.spark.graph(edges, workers=1)
    with pytest.raises(WorkerError, match="in the column 'km' are null: drop those edges"):
        graph.sssp(1, "km").collect()
    ratings = graph.filter_edges("km > 0").svd_plus_plus(1, 1, weight="km").collect()
    assert {row.id: row.mean_rating for row in ratings} == {1: None, 2: 1.0, 3: 1.0}
