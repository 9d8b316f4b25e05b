"""`pointstamp.spark.graph` on a real session: against Spark SQL's joins, and the local graph."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.functions import coalesce, col, expr, least, lit, soundex, transform, when
from pyspark.sql.functions import min as sql_min
from pyspark.sql.functions import sum as sql_sum

import pointstamp.spark
from pointstamp.errors import (
    ColumnError,
    GraphError,
    PatternError,
    SchemaError,
    UsageError,
    WorkerError,
)
from pointstamp.graph import Graph

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VERTICES = "id string, kind string, age long"
EDGES = "src string, dst string, amount long, sort string"


def rows_of(seed, n=14, m=40):
    """Vertices and edges: text as ids, nulls, edges that repeat, loops, vertices without edges."""
    chosen = random.Random(seed)
    names = [f"vertex {i}" if i % 2 else f"é{i}" for i in range(n)]
    chosen.shuffle(names)
    kinds, amounts = ["bank", "shop", None], [None, 0, 1, 2, 3, 4]
    vertices = [(name, chosen.choice(kinds), chosen.choice(amounts)) for name in names]
    ends = names[: n - 2]
    edges = [
        (chosen.choice(ends), chosen.choice(ends), chosen.choice(amounts), chosen.choice(kinds))
        for _ in range(m)
    ]
    return vertices, edges


@pytest.fixture(scope="module")
def graphs(spark):
    """A graph of DataFrames, on two workers, and the same of tables."""
    vertices, edges = rows_of(2)
    frames = spark.createDataFrame(vertices, VERTICES), spark.createDataFrame(edges, EDGES)
    tables = [
        pa.table({c: [row[i] for row in rows] for i, c in enumerate(frame.columns)})
        for rows, frame in zip((vertices, edges), frames, strict=True)
    ]
    for name, frame in zip(("graph_vertices", "graph_edges"), frames, strict=True):
        frame.createOrReplaceTempView(name)
    return pointstamp.spark.graph(*frames, workers=2), Graph(*tables)


def plain(value):
    """A value of Spark or Arrow as Python's."""
    if hasattr(value, "asDict"):
        return {k: plain(v) for k, v in value.asDict().items()}
    return value


def records(found):
    """The records of a DataFrame or a table, in some order that both have."""
    rows = found.to_pylist() if isinstance(found, pa.Table) else map(plain, found.collect())
    return sorted(repr(sorted((k, _ordered(v)) for k, v in row.items())) for row in rows)


def _ordered(value):
    """Maps, which Arrow gives as pairs, in order."""
    value = plain(value)
    if isinstance(value, dict) and not {"id", "src"} & set(value):
        return sorted(value.items())
    return sorted(value) if isinstance(value, list) else value


ASKED = {
    "page_rank": lambda g: g.page_rank(max_iter=5),
    "personal": lambda g: g.parallel_personalized_page_rank(source_ids=["é0", "é2"], max_iter=4),
    "shortest_paths": lambda g: g.shortest_paths(["é0", "vertex 1"]),
    "sssp": lambda g: g.filter_edges("amount is not null").sssp("é0", "amount"),
    "triangle_count": lambda g: g.triangle_count(),
    "k_core": lambda g: g.k_core(),
    "clustering": lambda g: g.clustering(),
    "power": lambda g: g.filter_edges("amount >= 0").power_iteration_clustering(3, 4, "amount"),
    "triplets": lambda g: g.triplets,
    "degrees": lambda g: g.degrees,
    "in_degrees": lambda g: g.in_degrees,
    "out_degrees": lambda g: g.out_degrees,
    "type_degree": lambda g: g.type_degree("sort"),
    "type_in_degree": lambda g: g.type_in_degree("amount"),
    "type_out_degree": lambda g: g.type_out_degree("sort", ["bank", None, "none of them"]),
    "vertices": lambda g: g.filter_vertices("age > 1").edges,
    "edges": lambda g: g.filter_edges("sort = 'bank'").drop_isolated_vertices().vertices,
    "undirected": lambda g: g.as_undirected().edges,
    "reverse": lambda g: g.reverse().edges,
    "bfs": lambda g: g.bfs("kind = 'bank' and age > 2", "age = 0", "amount is not null"),
    "messages": lambda g: g.aggregate_messages(
        ["sum(msg) as total", "count(msg) as n"], "dst.age + edge.amount", "src.age"
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_answers_are_those_of_the_graph_of_tables(graphs, name):
    on_spark, local = (ASKED[name](graph) for graph in graphs)
    if name in ("page_rank", "personal"):
        found = {row.id: row[3] for row in on_spark.collect()}
        for vertex, value in zip(local.column("id"), local.columns[-1], strict=True):
            assert found[vertex.as_py()] == pytest.approx(value.as_py())
        assert len(found) == local.num_rows
    else:
        assert records(on_spark) == records(local)


def test_what_a_graph_of_tables_can_be_asked_this_can_and_is_named_in_plans(graphs, capsys):
    asked = [{name for name in dir(type(graph)) if not name.startswith("_")} for graph in graphs]
    assert asked[0] == asked[1]
    with pytest.raises(AttributeError, match="SparkGraph has no 'aggregateNeighbors', which"):
        graphs[0].aggregateNeighbors()
    with pytest.raises(AttributeError, match="'svdPlusPlus': it is called 'svd_plus_plus' here"):
        graphs[0].svdPlusPlus()
    graphs[0].k_core().explain()
    assert "MapInArrow pointstamp: kcore of a graph, " in capsys.readouterr().out


def test_vertices_without_isolated_ones_have_their_columns_in_order(spark):
    vertices = spark.createDataFrame([("Ann", 1), ("Bob", 2), ("Cy", 3)], "name string, id long")
    edges = spark.createDataFrame([(2, 1)], "src long, dst long")
    kept = pointstamp.spark.graph(vertices, edges).drop_isolated_vertices().vertices
    assert sorted(map(tuple, kept.collect())) == [("Ann", 1), ("Bob", 2)]


def test_ids_with_a_collation_are_refused(spark):
    edges = spark.sql("select 'A' collate UTF8_LCASE as src, 'a' collate UTF8_LCASE as dst")
    with pytest.raises(
        SchemaError, match=r"ids are string collate UTF8_LCASE, in which texts that"
    ):
        pointstamp.spark.graph(edges)
    with pytest.raises(SchemaError, match="collate UTF8_LCASE"):
        pointstamp.spark.graph(edges.selectExpr("struct(src) as src", "struct(dst) as dst"))
    plain = edges.selectExpr("lower(src) collate UTF8_BINARY src", "dst collate UTF8_BINARY dst")
    found = pointstamp.spark.graph(plain, workers=1).connected_components().collect()
    assert [tuple(row) for row in found] == [("a", "a")]


def test_conditions_on_text_with_a_collation_are_refused(spark):
    vertices = spark.sql("select 1 id, 'a' collate UTF8_LCASE name union all select 2, null")
    edges = spark.sql("select 1 src, 2 dst, named_struct('x', 'B' collate UNICODE_CI) of")
    graph = pointstamp.spark.graph(vertices, edges, workers=1)
    message = r"'a.name' is string collate UTF8_LCASE, .* such as lower\(name\) collate"
    for condition in ("a.id = 1 and a.name = 'A'", col("a.name") == "A"):
        with pytest.raises(SchemaError, match=message):
            graph.find("(a)-[e]->(b)", condition)
    with pytest.raises(
        SchemaError, match=r"'e.of.x' is struct<x:string collate UNICODE_CI>.*lower\(of.x\)"
    ):
        graph.count("(a)-[e]->(b)", "e.of.x in ('b', 'c')")
    with pytest.raises(SchemaError, match=r"'vertex.name' is string collate"):
        graph.bfs("name = 'A'", "id = 2")
    for columns, sent in (
        ({"n": ("name", "least(n, msg)")}, "src.n"),
        ({"n": ("'a'", "name")}, "src.n"),
        ({"n": ("'a'", "least(n, msg)")}, "src.name"),
        ({"n": ("'a'", "least(n, msg)")}, "edge.of.x"),
    ):
        with pytest.raises(SchemaError, match=r"in which texts that differ may be equal"):
            graph.pregel(columns, "min(msg)", send_to_dst=sent)
    begun = "if(name is null, 'z', 'a')"
    found = graph.pregel({"name": (begun, "least(name, msg)")}, "min(msg)", send_to_dst="src.name")
    assert sorted(found.collect()) == [(1, "a"), (2, "a")]
    assert graph.count("(a)-[e]->(b)", "b.name is null and a.name is not null and a.id = 1") == 1
    [match] = graph.find("(a)-[e]->(b)", "a.id = 1").filter("a.name = 'A'").collect()
    assert match.e.of.x == "B"


def test_ids_that_arrow_has_no_type_for_are_refused(spark):
    edges = spark.sql("select make_ym_interval(1) as src, make_ym_interval(2) as dst")
    with pytest.raises(SchemaError, match="ids are interval year to month, which Arrow has no"):
        pointstamp.spark.graph(edges)


def test_weights_that_are_no_numbers_are_refused_by_the_call(spark):
    edges = spark.sql("select 1L as src, 2L as dst, '1' as text, 1.5BD as exact")
    graph = pointstamp.spark.graph(edges, workers=1)
    for name, kind in {"text": "string", "exact": r"decimal\(2,1\)"}.items():
        with pytest.raises(SchemaError, match=f"in the column '{name}', not {kind}: cast them"):
            graph.sssp(1, name)


def test_a_model_of_ratings_has_the_loss_that_it_says_on_any_number_of_workers(spark):
    rows = [(f"user {u}", f"é{i}", float(u * i % 6)) for u in range(6) for i in range(4)]
    edges = spark.createDataFrame(rows, "src string, dst string, stars double")
    ids = sorted({end for row in rows for end in row[:2]} | {"x"})
    vertices = spark.createDataFrame([(one,) for one in ids], "id string")
    found = []
    for workers in (1, 2):
        graph = pointstamp.spark.graph(vertices, edges, workers=workers)
        model = graph.svd_plus_plus(3, 20, weight="stars")
        assert model.columns[1:5] == ["factors", "implicit_factors", "bias", "norm"]
        found.append({row.id: row.asDict() for row in model.collect()})
    one, two = found
    assert set(one.pop("x").values()) == {"x", None}
    for vertex, of_vertex in one.items():
        for name, value in of_vertex.items():
            assert name == "id" or two[vertex][name] == pytest.approx(value, rel=1e-9)
    errors = []
    for user, item, stars in rows:
        product = np.dot(one[user]["implicit_factors"], one[item]["factors"])
        predicted = one[user]["mean_rating"] + one[user]["bias"] + one[item]["bias"] + product
        errors.append(stars - np.clip(predicted, 0, 5))
    assert np.mean(np.square(errors)) == pytest.approx(one["é1"]["loss"])
    assert one["é1"]["loss"] < np.var([stars for *_, stars in rows])
    with pytest.raises(ColumnError, match="edges have no column 'weight' of weights, only"):
        pointstamp.spark.graph(edges).svd_plus_plus()
    back = pointstamp.spark.graph(edges.selectExpr("src", "src as dst"), workers=2)
    with pytest.raises(Exception, match="users and items ids that differ"):
        back.svd_plus_plus(weight=None).collect()


def test_components_are_those_of_the_graph_of_tables_under_names_of_their_own(graphs):
    for ask in ("connected_components", "strongly_connected_components"):
        on_spark, local = (getattr(graph, ask)() for graph in graphs)
        found = {row.id: row.component for row in on_spark.collect()}
        expected = dict(zip(*local.select(["id", "component"]).to_pydict().values(), strict=True))
        pairs = {(found[vertex], expected[vertex]) for vertex in expected}
        assert len(pairs) == len(set(found.values())) == len(set(expected.values()))
        assert all(found[component] == component for component in found.values())


def test_an_independent_set_is_independent_and_maximal(graphs):
    found = {row.id: row.selected for row in graphs[0].maximal_independent_set().collect()}
    near = {vertex: set() for vertex in found}
    for source, target in zip(
        *graphs[1].edges.select(["src", "dst"]).to_pydict().values(), strict=True
    ):
        if source != target:
            near[source].add(target)
            near[target].add(source)
    for vertex, selected in found.items():
        others = [found[other] for other in near[vertex]]
        assert not any(others) if selected else any(others)


def test_cycles_and_walks_are_those_of_the_graph_of_tables_wherever_they_begin(graphs):
    found = [row.found_cycles for row in graphs[0].detect_cycles(4).collect()]
    expected = graphs[1].detect_cycles(4).column("found_cycles").to_pylist()
    assert sorted(map(_rotated, found)) == sorted(map(_rotated, expected)) != []
    pairs = set(zip(*graphs[1].edges.select(["src", "dst"]).to_pydict().values(), strict=True))
    walks = [row.walk for row in graphs[0].random_walks(3, 4).collect()]
    assert len(walks) == 3 * graphs[1].vertices.num_rows
    assert {step for walk in walks for step in itertools.pairwise(walk)} <= pairs


def _rotated(cycle):
    least = cycle.index(min(cycle))
    return [*cycle[least:-1], *cycle[:least]]


def test_paths_of_no_edge_are_vertices(graphs):
    found = graphs[0].bfs("age = 0", "age < 2").collect()
    assert found
    assert all(row["from"] == row["to"] and row.to.age == 0 for row in found)
    assert graphs[0].bfs("age = 0", "id = 'nobody'").collect() == []
    assert records(graphs[0].bfs("age = 0", "age < 2", "amount > 1")) == sorted(
        repr(sorted((k, plain(v)) for k, v in row.asDict().items())) for row in found
    )


JOINS = {
    ("(a)-[e1]->(b); (b)-[e2]->(c)", "e1.amount < e2.amount and a.kind = 'bank'"): """
        select struct(a.*) a, struct(e1.*) e1, struct(b.*) b, struct(e2.*) e2, struct(c.*) c
        from graph_edges e1 join graph_edges e2 on e1.dst = e2.src
        join graph_vertices a on a.id = e1.src join graph_vertices b on b.id = e1.dst
        join graph_vertices c on c.id = e2.dst
        where e1.amount < e2.amount and a.kind = 'bank'""",
    ("(a)-[e]->(b); (b)-[]->(c); (c)-[]->(a)", "a.age + b.age > c.age or e.sort is null"): """
        select struct(a.*) a, struct(e.*) e, struct(b.*) b, struct(c.*) c
        from graph_edges e join graph_edges f on e.dst = f.src
        join graph_edges g on f.dst = g.src and g.dst = e.src
        join graph_vertices a on a.id = e.src join graph_vertices b on b.id = e.dst
        join graph_vertices c on c.id = f.dst
        where a.age + b.age > c.age or e.sort is null""",
    ("(a)-[e]->(b); !(b)-[]->(a)", None): """
        select struct(a.*) a, struct(e.*) e, struct(b.*) b from graph_edges e
        join graph_vertices a on a.id = e.src join graph_vertices b on b.id = e.dst
        where not exists (select 1 from graph_edges f where f.src = e.dst and f.dst = e.src)""",
    ("(a); (b)", "a.kind = b.kind and a.age in (1, 2)"): """
        select struct(a.*) a, struct(b.*) b from graph_vertices a join graph_vertices b
        where a.kind = b.kind and a.age in (1, 2)""",
}


@pytest.mark.parametrize(
    ("asked", "query"), JOINS.items(), ids=["rising", "triangle", "absent", "product"]
)
def test_matches_are_those_of_spark_s_joins(spark, graphs, asked, query):
    graph = graphs[0]
    for name, frame in (("graph_vertices", graph.vertices), ("graph_edges", graph.edges)):
        frame.createOrReplaceTempView(name)
    expected = records(spark.sql(query))
    assert len(expected) > 1
    assert records(graph.find(*asked)) == expected
    assert graph.count(*asked) == len(expected)
    assert graph.find(*asked, limit=2).count() == 2


def test_chains_of_several_lengths_are_those_of_the_graph_of_tables(graphs):
    on_spark, local = (g.find("(a)-[e*1..2]-(c)", "a.kind = 'shop'") for g in graphs)
    assert on_spark.columns == local.schema.names
    assert records(on_spark) == records(local)


def test_ids_may_be_integers_dates_and_structs(spark):
    for values in ("1, 2, 3", "date'2020-01-01', date'2020-01-02', date'2020-01-03'",
                   "named_struct('x', 1), named_struct('x', 2), named_struct('x', 3)"):  # fmt: skip
        ids = spark.sql(f"select explode(array({values})) id")
        first, second, third = [row.id for row in ids.collect()]
        edges = spark.createDataFrame(
            [(first, second)], "src {0}, dst {0}".format(ids.dtypes[0][1])
        )
        graph = pointstamp.spark.graph(ids, edges, workers=2)
        found = {row.id: row.component for row in graph.connected_components().collect()}
        assert found[first] == found[second] in (first, second)
        assert found[third] == third


def test_chains_have_null_edges_where_ids_have_no_nulls(spark):
    vertices = spark.range(4)
    edges = spark.range(3).selectExpr("id as src", "id + 1 as dst")
    assert not vertices.schema["id"].nullable
    found = pointstamp.spark.graph(vertices, edges, workers=2).find("(a)-[e*1..2]->(b)")
    rows = {(row.a.id, row.b.id, row._e2 and row._e2.src) for row in found.collect()}
    assert rows == {(0, 1, None), (1, 2, None), (2, 3, None), (0, 2, 1), (1, 3, 2)}


def test_an_edge_with_an_end_that_is_no_vertex_is_none_to_an_algorithm(spark):
    names = ["a", "b", "c", "d", "e"]
    edges = [("a", "b"), ("c", "d"), *((name, f"{name} is none") for name in names)]
    edges += [("none", "a"), ("none", "e"), ("x", "y")]
    vertices = spark.createDataFrame([(name,) for name in names], "id string")
    graph = pointstamp.spark.graph(
        vertices, spark.createDataFrame(edges, "src string, dst string"), workers=2
    )
    local = Graph({"id": names}, {"src": ["a", "c"], "dst": ["b", "d"]})
    components = {row.id: row.component for row in graph.connected_components().collect()}
    for pair in ("ab", "cd", "ee"):
        assert components[pair[0]] == components[pair[1]] in set(pair)
    for asked in (lambda g: g.page_rank(max_iter=5), lambda g: g.k_core()):
        assert records(asked(graph)) == records(asked(local))
    fewer, of_local = (g.filter_vertices("id != 'e'").k_core() for g in (graph, local))
    assert records(fewer) == records(of_local)


def test_attributes_may_have_any_name(spark):
    vertices = spark.createDataFrame([(1, 5), (2, 6)], "id long, `a.b` long")
    edges = spark.createDataFrame([(1, 2, 7, 8)], "src long, dst long, `c.d` long, `e``f` long")
    graph = pointstamp.spark.graph(vertices, edges, workers=1)
    (found,) = map(plain, graph.as_undirected().filter_vertices("id > 0").triplets.collect()[:1])
    assert {"a.b", "c.d", "e`f"} <= {name for part in found.values() for name in part}
    assert [tuple(row) for row in graph.reverse().edges.collect()] == [(2, 1, 7, 8)]
    assert graph.filter_vertices("id < 2").edges.columns == edges.columns
    [match] = graph.find("(a)-[e]->(b)", "a.`a.b` < e.`c.d`", limit=2**40).collect()
    assert (match.b["a.b"], match.e["e`f"]) == (6, 8)
    for condition in ("e.`e``f` = 8 and e.`c.d` = 7", col("e.`e``f`") == 8):
        assert graph.count("(a)-[e]->(b)", condition) == 1


def test_a_graph_without_edges_has_vertices(spark):
    vertices = spark.createDataFrame([("a",), ("b",)], "id string")
    edges = spark.createDataFrame([], "src string, dst string, amount long")
    graph = pointstamp.spark.graph(vertices, edges, workers=2)
    assert {row.component for row in graph.connected_components().collect()} == {"a", "b"}
    assert graph.find("(a)-[e]->(b)", "e.amount > 1").collect() == []
    assert graph.count("(a); (b)") == 4


def test_what_is_no_graph_is_refused(spark):
    vertices = spark.createDataFrame([("a",), ("a",)], "id string")
    edges = spark.createDataFrame([("a", "x")], "src string, dst string")
    with pytest.raises(GraphError, match="'a' is that of 2 vertices"):
        pointstamp.spark.graph(vertices, edges).validate()
    with pytest.raises(GraphError, match="'dst' that is no vertex: 'x'"):
        pointstamp.spark.graph(vertices.distinct(), edges).validate()
    with pytest.raises(ColumnError, match="need the columns 'id'"):
        pointstamp.spark.graph(edges, edges)
    with pytest.raises(SchemaError, match="edges have a column '_pointstamp_source': names that"):
        pointstamp.spark.graph(vertices, edges.selectExpr("*", "1 as _pointstamp_source"))
    graph = pointstamp.spark.graph(edges)
    with pytest.raises(ColumnError, match="'e' has no attribute 'amount'"):
        graph.find("(a)-[e]->(b)", "e.amount > 1")
    with pytest.raises(PatternError, match="an edge was expected"):
        graph.find("(a)->(b)")
    with pytest.raises(GraphError, match="ids are string"):
        graph.sssp(7, None)
    with pytest.raises(Exception, match="have an id that another one has, such as 'a'"):
        pointstamp.spark.graph(vertices, edges, workers=2).k_core().collect()


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("a.n > 'x'", "^'>' cannot be computed of int64, string"),
        ("a.n + 1", "^a condition is true or false, and this is int64"),
        ("_e2.n = true", "^'=' cannot be computed of int64, bool"),
    ],
)
def test_a_condition_that_cannot_be_computed_is_refused_before_anything_runs(
    spark, condition, says
):
    vertices = spark.sql("select 1L as id, 2L as n, timestamp'2020-01-01 00:00:00Z' as at")
    edges = spark.sql("select 1L as src, 1L as dst, 3L as n")
    graph = pointstamp.spark.graph(vertices, edges, workers=2)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    chain = "(a)-[e*1..2]->(b)"
    of_vertices = condition.replace("a.", "")
    for asked in (graph.find, graph.count):
        with pytest.raises(SchemaError, match=says):
            asked(chain, condition)
    if "_e2" not in condition:
        with pytest.raises(SchemaError, match=says):
            graph.bfs("id = 1", of_vertices)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == jobs
    assert graph.count(chain, "a.n = 2 and a.at = timestamp '2020-01-01 00:00:00Z'") == 2


@pytest.mark.parametrize("ids", ["'a', 'a', 'b'", "7, 7, 8", "1.5D, 1.5D, 2.5D"])
def test_ids_that_repeat_are_refused_whatever_is_asked(spark, ids):
    vertices = spark.sql(f"select explode(array({ids})) as id").selectExpr("id", "id as n")
    first, _, other = ids.split(", ")
    edges = spark.sql(f"select {first} as src, {other} as dst")
    graph = pointstamp.spark.graph(vertices, edges, workers=2)
    for ask in (
        lambda: graph.find("(a)-[e]->(b)").collect(),
        lambda: graph.count("(a)-[e]->(b)"),
        lambda: graph.count("(a)", f"a.n = {first.strip('D')}"),
        lambda: graph.bfs(f"n = {other.strip('D')}", f"n = {other.strip('D')}"),
        lambda: graph.detect_cycles().collect(),
        lambda: graph.random_walks(1, 1).collect(),
        lambda: graph.k_core().collect(),
    ):
        with pytest.raises(WorkerError, match=r"1 vertices have an id that another one has"):
            ask()


def test_conditions_may_be_columns(spark, graphs):
    graph = graphs[0]
    amounts = col("e1.amount") < col("e2.amount")
    two = "(a)-[e1]->(b); (b)-[e2]->(c)"
    text = "e1.amount < e2.amount and a.kind = 'bank'"
    expected = records(graph.find(two, text))
    assert len(expected) > 1
    assert records(graph.find(two, amounts & (col("a")["kind"] == "bank"))) == expected
    assert graph.count(two, expr(text)) == graph.count(two, amounts & (col("a.kind") == "bank"))
    found = graph.bfs(col("kind") == "bank", "id = 'é6'", col("amount").isNotNull())
    assert records(found) == records(graph.bfs("kind = 'bank'", "id = 'é6'", "amount is not null"))
    with pytest.raises(UsageError, match=r"belongs to a DataFrame, of .*: conditions are made of"):
        graph.find(two, graph.edges["amount"] > 1)
    with pytest.raises(UsageError, match="there is no function 'soundex'"):
        graph.find(two, soundex(col("a.id")) == "x")
    with pytest.raises(ColumnError, match="edges have no column 'x'"):
        graph.bfs("age = 0", "age = 1", col("x") == 1)
    with pytest.raises(UsageError, match=r"a condition is text such as .* not 7"):
        graph.count(two, 7)


def test_what_would_find_nothing_is_refused_before_anything_runs(spark):
    vertices = spark.createDataFrame([("1",), ("2",)], "id string")
    edges = spark.createDataFrame([(1, 2)], "src long, dst long")
    with pytest.raises(SchemaError, match="'src' of the edges: ids are string, and these are big"):
        pointstamp.spark.graph(vertices, edges)
    graph = pointstamp.spark.graph(edges)
    for given in (["min(msg)", "min(msg)"], ["sum(msg) as s", "min(msg) as s"]):
        with pytest.raises(SchemaError, match="have a name twice"):
            graph.aggregate_messages(given, send_to_dst="src.id")
    with pytest.raises(UsageError, match="max_iter of label_propagation"):
        graph.label_propagation("3")


def test_times_that_collect_gave_are_ids_again(spark):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        times = "timestamp'2020-01-01 00:00:00', timestamp'2020-01-02 00:00:00'"
        first, second = spark.sql(f"select explode(array({times})) id").collect()
        edges = spark.createDataFrame([(first.id, second.id)], "src timestamp, dst timestamp")
        found = pointstamp.spark.graph(edges, workers=1).sssp(first.id, None).collect()
        assert {row.id: row.distance for row in found} == {first.id: 0.0, second.id: 1.0}
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize("zone", ["America/New_York", "+05:30", "GMT-3"])
def test_a_time_without_a_zone_is_in_that_of_the_session_as_in_spark(spark, zone):
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    spark.conf.set(key, zone)
    try:
        hours = "timestamp '2026-06-30 20:00:00' + make_interval(0, 0, 0, 0, id)"
        edges = spark.range(9).selectExpr("id as src", "id + 1 as dst", f"{hours} as at")
        assert edges.schema["at"].dataType.typeName() == "timestamp"
        graph = pointstamp.spark.graph(edges, workers=1)
        for condition in (
            "{} >= timestamp '2026-07-01 00:00:00'",
            "{} between timestamp '2026-06-30 21:00:00' and timestamp '2026-06-30 23:00:00+00:00'",
            "{} in (timestamp '2026-06-30 22:00:00', timestamp '2026-07-01 01:00:00')",
            "{} > date '2026-07-01'",
            "coalesce({}, timestamp '2020-01-01 00:00:00') > timestamp '2026-06-30 23:00:00'",
            "cast({} as timestamp) >= timestamp '2026-06-30 23:00:00'",
        ):
            expected = edges.filter(condition.format("at")).count()
            assert graph.count("(a)-[e]->(b)", condition.format("e.at")) == expected
        of_chains = "_e1.at > timestamp '2026-07-01 02:30:00' or _e2.at > date '2027-01-01'"
        assert graph.count("(a)-[e*1..2]->(b)", of_chains) == 2 + 1
        paths = graph.bfs("id = 0", "id = 2", "at < timestamp '2026-06-30 22:00:00'")
        assert paths.count() == 1
        paths = graph.bfs("id = 0", "id = 2", "at < timestamp '2026-06-30 21:00:00'")
        assert paths.count() == 0
    finally:
        spark.conf.set(key, before)


def ages_of_edges(batch):
    """What an edge sends, by a function: the age of its source and its own amount, if it has one.

    Here it says what it gets: structs with all attributes, and of vertices the program's columns.
    """
    assert batch.schema.names == ["src", "edge", "dst"]
    assert batch.schema.field("edge").type.names == ["src", "dst", "amount", "sort"]
    assert batch.schema.field("dst").type.names[:3] == ["id", "kind", "age"]
    ages, amounts = (
        pc.struct_field(batch.column(name), attribute)
        for name, attribute in (("src", "age"), ("edge", "amount"))
    )
    return pc.add(ages, amounts)


def added(batch):
    return pc.add(batch.column("total"), pc.fill_null(batch.column("msg"), 1))


LEAST = {"label": ("id", "least(label, coalesce(msg, label))"), "n": ("age", "n + 1")}


def by_columns():
    label, said = col("label"), col("msg")
    return {
        "label": (col("id"), least(label, coalesce(said, label))),
        "n": (col("age"), col("n") + 1),
    }


PROGRAMS = {
    "text": lambda: (LEAST, "min(msg)", {"send_to_src": "dst.label", "send_to_dst": "src.label"}),
    "columns": lambda: (
        by_columns(),
        sql_min("msg").alias("first"),
        {"send_to_src": col("dst.label"), "send_to_dst": col("src")["label"]},
    ),
    "sums": lambda: (
        {"total": (lit(0), when(col("msg").isNull(), col("total")).otherwise(expr("total + msg")))},
        "sum(msg)",
        {"send_to_dst": col("edge.amount") + coalesce(col("src.age"), lit(1))},
    ),
    "functions": lambda: (
        {"total": ("0", added)},
        "sum(msg)",
        {"send_to_dst": ages_of_edges, "send_to_src": "dst.total"},
    ),
}  # fmt: skip
"""The same program on Spark may be in Columns; on tables it is in text, or in functions."""

AS_TEXT = {
    "columns": PROGRAMS["text"],
    "sums": lambda: (
        {"total": ("0", "case when msg is null then total else total + msg end")},
        "sum(msg)",
        {"send_to_dst": "edge.amount + coalesce(src.age, 1)"},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_vertex_program_is_that_of_the_graph_of_tables(graphs, name):
    found, expected = (
        graph.pregel(columns, aggregate, max_iter=6, **sent)
        for graph, (columns, aggregate, sent) in zip(
            graphs, (PROGRAMS[name](), AS_TEXT.get(name, PROGRAMS[name])()), strict=True
        )
    )
    assert found.columns == expected.schema.names
    assert records(found) == records(expected)


def test_functions_send_messages_that_spark_puts_together(graphs):
    on_spark, local = graphs
    of_text = local.aggregate_messages("sum(msg) as s", "dst.age", "src.age + edge.amount")
    found = on_spark.aggregate_messages(
        sql_sum("msg").alias("s"), col("dst.age"), send_to_dst=ages_of_edges
    )
    assert records(found) == records(of_text) != []
    with pytest.raises(SchemaError, match="messages to sources have no type"):
        on_spark.aggregate_messages("sum(msg) as s", send_to_src=lambda batch: [1] * len(batch))


def test_the_least_id_of_a_component_is_networkx_s_and_ranks_are_its_too(graphs):
    on_spark, local = graphs
    pairs = list(zip(*local.edges.select(["src", "dst"]).to_pydict().values(), strict=True))
    whole = nx.MultiDiGraph(pairs)
    whole.add_nodes_from(local.vertices.column("id").to_pylist())
    sent = {"send_to_src": "dst.label", "send_to_dst": "src.label"}
    found = on_spark.pregel(by_columns(), "min(msg)", max_iter=20, **sent).collect()
    of = {row.id: row.label for row in found}
    for members in nx.weakly_connected_components(whole):
        assert {of[member] for member in members} == {min(members, key=str.encode)}
    degrees = on_spark.out_degrees
    vertices = on_spark.vertices.join(degrees, "id", "left")
    ranks = pointstamp.spark.graph(vertices, on_spark.edges, workers=2).pregel(
        {"rank": (lit(1.0), 0.15 + 0.85 * coalesce(col("msg"), lit(0.0)))},
        sql_sum("msg"),
        send_to_dst=col("src.rank") / col("src.out_degree"),
        max_iter=40,
    )
    expected = dict.fromkeys(whole, 1.0)
    for _ in range(40):
        expected = {
            name: 0.15
            + 0.85 * sum(expected[s] / whole.out_degree(s) for s, _ in whole.in_edges(name))
            for name in whole
        }
    assert {row.id: row["rank"] for row in ranks.collect()} == pytest.approx(expected)


def test_a_program_that_arrow_cannot_evaluate_is_refused_before_anything_runs(spark, graphs):
    graph = graphs[0]
    running = spark.sparkContext.statusTracker()
    before = running.getJobIdsForGroup(None)
    wrong = {
        "'src' has no attribute 'x'": (ColumnError, LEAST, "min(msg)", "src.x"),
        "'n' begins as int64, and a round makes double": (
            SchemaError, {"n": ("age", "n / msg")}, "sum(msg)", "src.n"),
        "there is no function 'soundex'": (UsageError, LEAST, "min(msg)", soundex(col("src.id"))),
        "a LambdaFunction of": (
            UsageError, LEAST, "min(msg)", transform(col("src.id"), lambda x: x)),
        "an aggregate of messages is one of": (UsageError, LEAST, col("msg") + 1, "src.id"),
        "'sum' cannot be computed|cannot be put together by sum": (
            SchemaError, LEAST, sql_sum("msg"), "src.id"),
        "'n' begins without a type": (SchemaError, {"n": ("null", "n")}, "min(msg)", "src.n"),
        "function of messages to targets gives a value for each": (
            SchemaError, LEAST, "min(msg)", lambda batch: ["x"]),
    }  # fmt: skip
    for message, (kind, columns, aggregate, sent) in wrong.items():
        with pytest.raises(kind, match=message):
            graph.pregel(columns, aggregate, send_to_dst=sent)
    assert running.getJobIdsForGroup(None) == before
