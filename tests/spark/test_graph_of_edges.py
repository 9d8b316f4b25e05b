"""A graph of edges alone on a real session: the workers find the vertices, or Spark does."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pointstamp.spark
from pointstamp.errors import WorkerError
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


def test_an_end_that_is_null_is_refused(spark):
    frame = spark.sql("select 'a' src, cast(null as string) dst")
    with pytest.raises(WorkerError, match="'dst' of the edges"):
        pointstamp.spark.graph(frame, workers=2).k_core().collect()


def test_a_graph_of_no_edges_has_no_vertices(spark):
    frame = spark.createDataFrame([], "src string, dst string")
    graph = pointstamp.spark.graph(frame, workers=2)
    assert graph.page_rank(max_iter=3).collect() == []
    assert graph.count("(a)-[]->(b)") == 0
