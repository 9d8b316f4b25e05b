"""The algorithms of a graph of tables against networkx, on random graphs with text as ids."""

from __future__ import annotations

import datetime
import itertools

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from pointstamp.errors import ColumnError, GraphError, SchemaError, UsageError
from pointstamp.graph import Graph
from pointstamp.graph.tables.ends_of_edges import SeenIds
from tests.conftest import examples
from tests.graph.tables.graphs_of_text import directed, graphs_of, same, tables, undirected

quick = settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))


def partition_of(values):
    """Which vertices have the same value, and that each value is the least of them."""
    groups = {}
    for vertex, value in values.items():
        groups.setdefault(value, set()).add(vertex)
    for value, members in groups.items():
        assert value == min(members, key=lambda name: name.encode())
    return sorted(map(sorted, groups.values()))


@quick
@given(tables())
def test_components_are_networkx_s(drawn):
    found = partition_of(same(*drawn, lambda graph: graph.connected_components()))
    assert found == sorted(map(sorted, nx.connected_components(undirected(*drawn))))
    found = partition_of(same(*drawn, lambda graph: graph.strongly_connected_components()))
    assert found == sorted(map(sorted, nx.strongly_connected_components(directed(*drawn))))


@quick
@given(tables())
def test_page_rank_to_a_tolerance_is_networkx_s(drawn):
    found = same(*drawn, lambda graph: graph.page_rank(tol=1e-12))
    n = len(found)
    expected = nx_pagerank(directed(*drawn))
    for vertex, rank in found.items():
        assert rank == pytest.approx(expected[vertex] * n, abs=1e-9)
    assert sum(found.values()) == pytest.approx(n)


def nx_pagerank(graph, personalization=None):
    """networkx's own function needs SciPy; this solves the same equations by elimination."""
    nodes = list(graph)
    n = len(nodes)
    matrix = np.zeros((n, n))
    begin = np.full(n, 1.0 / n)
    if personalization is not None:
        begin = np.array([1.0 if node == personalization else 0.0 for node in nodes])
    for j, node in enumerate(nodes):
        out = {t: d["weight"] for _, t, d in graph.out_edges(node, data=True)}
        total = sum(out.values())
        for i, target in enumerate(nodes):
            matrix[i, j] = out.get(target, 0.0) / total if total else begin[i]
    ranks = np.linalg.solve(np.eye(n) - 0.85 * matrix, 0.15 * begin)
    return dict(zip(nodes, ranks, strict=True))


def test_weights_next_to_none_are_none():
    edges = {"src": ["a", "b"], "dst": ["b", "a"], "least": [5e-324, 1.0], "none": [0.0, 1.0]}
    least, none = (Graph(edges).page_rank(max_iter=3, weight=w) for w in ("least", "none"))
    assert least == none


@quick
@given(tables())
def test_personalized_ranks_are_those_of_each_source(drawn):
    sources = drawn[0].column("id").to_pylist()[:2]
    graph = directed(*drawn)
    found = same(
        *drawn,
        lambda g: g.parallel_personalized_page_rank(source_ids=sources, max_iter=200),
    )
    for j, source in enumerate(sources):
        expected = nx_pagerank(graph, source)
        alone = same(*drawn, lambda g, s=source: g.page_rank(source_id=s, max_iter=200))
        for vertex, ranks in found.items():
            assert ranks[j] == pytest.approx(expected[vertex], abs=1e-9)
            assert ranks[j] == alone[vertex]


@quick
@given(tables())
def test_distances_to_landmarks_are_networkx_s(drawn):
    landmarks = drawn[0].column("id").to_pylist()[:3]
    for is_directed in (True, False):
        graph = directed(*drawn) if is_directed else undirected(*drawn)
        found = same(*drawn, lambda g, d=is_directed: g.shortest_paths(landmarks, is_directed=d))
        for vertex, distances in found.items():
            lengths = nx.single_source_shortest_path_length(graph, vertex)
            assert dict(distances) == {m: lengths[m] for m in landmarks if m in lengths}


@quick
@given(tables())
def test_weighted_distances_are_networkx_s(drawn):
    vertices, edges = drawn
    weights = pa.array([2.5 * ((i * 7) % 5) for i in range(edges.num_rows)], pa.float64())
    edges = edges.append_column("cost", weights)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(vertices.column("id").to_pylist())
    for row in edges.to_pylist():
        graph.add_edge(row["src"], row["dst"], cost=row["cost"])
    source = vertices.column("id")[0].as_py()
    expected = nx.single_source_dijkstra_path_length(graph, source, weight="cost")
    found = same(vertices, edges, lambda g: g.sssp(source, "cost"))
    assert found == {vertex: expected.get(vertex) for vertex in found}


@quick
@given(tables())
def test_triangles_cores_and_clustering_are_networkx_s(drawn):
    graph = undirected(*drawn)
    assert same(*drawn, lambda g: g.triangle_count()) == nx.triangles(graph)
    assert same(*drawn, lambda g: g.k_core()) == nx.core_number(graph)
    found = same(*drawn, lambda g: g.clustering())
    assert found == pytest.approx(nx.clustering(graph))


@quick
@given(tables())
def test_an_independent_set_is_independent_and_maximal(drawn):
    graph = undirected(*drawn)
    for seed in (42, 7):
        found = same(*drawn, lambda g, s=seed: g.maximal_independent_set(s))
        for vertex, selected in found.items():
            near = [found[other] for other in graph[vertex]]
            assert not any(near) if selected else any(near)


@quick
@given(tables())
def test_labels_are_what_most_neighbours_have(drawn):
    graph = directed(*drawn)
    labels = {vertex: vertex for vertex in graph}
    for rounds in range(4):
        found = same(*drawn, lambda g, r=rounds: g.label_propagation(r))
        assert found == labels
        labels = {vertex: _common(graph, labels, vertex) for vertex in graph}


def _common(graph, labels, vertex):
    near = [o for o in (*graph.predecessors(vertex), *graph.successors(vertex)) if o != vertex]
    votes = [labels[other] for other in near]
    if not votes:
        return labels[vertex]
    return min(votes, key=lambda label: (-votes.count(label), label.encode()))


@quick
@given(tables())
def test_degrees_count_edges_that_repeat_and_loops_at_both_ends(drawn):
    graph = nx.MultiDiGraph()
    graph.add_edges_from(
        zip(*(drawn[1].column(c).to_pylist() for c in ("src", "dst")), strict=True)
    )
    for one in graphs_of(*drawn):
        assert dict(zip(*one.degrees.to_pydict().values(), strict=True)) == dict(graph.degree)
        ins = dict(zip(*one.in_degrees.to_pydict().values(), strict=True))
        assert ins == {v: d for v, d in graph.in_degree if d}
        outs = dict(zip(*one.out_degrees.to_pydict().values(), strict=True))
        assert outs == {v: d for v, d in graph.out_degree if d}


@quick
@given(tables())
def test_filtered_graphs_keep_what_fits(drawn):
    vertices, edges = drawn
    graph = Graph(vertices, edges)
    ages = dict(
        zip(vertices.column("id").to_pylist(), vertices.column("age").to_pylist(), strict=True)
    )
    old = {v for v, age in ages.items() if age is not None and age > 2}
    kept = graph.filter_vertices("age > 2")
    assert set(kept.vertices.column("id").to_pylist()) == old
    rows = edges.to_pylist()
    assert kept.edges.to_pylist() == [r for r in rows if r["src"] in old and r["dst"] in old]
    some = graph.filter_edges("amount is null or sort = 'bank'")
    expected = [r for r in rows if r["amount"] is None or r["sort"] == "bank"]
    assert some.edges.to_pylist() == expected
    assert some.vertices.equals(vertices)
    ends = {end for row in expected for end in (row["src"], row["dst"])}
    assert set(some.drop_isolated_vertices().vertices.column("id").to_pylist()) == ends
    turned = [{**r, "src": r["dst"], "dst": r["src"]} for r in rows]
    assert graph.reverse().edges.to_pylist() == turned
    assert graph.as_undirected().edges.to_pylist() == rows + turned
    of = {row["id"]: row for row in vertices.to_pylist()}
    triplets = graph.triplets.to_pylist()
    assert triplets == [{"src": of[r["src"]], "edge": r, "dst": of[r["dst"]]} for r in rows]


def test_ids_may_be_of_any_type():
    import datetime
    import decimal

    for values in (
        [datetime.date(2020, 1, 2), datetime.date(2019, 1, 1), datetime.date(2021, 1, 1)],
        [decimal.Decimal("1.50"), decimal.Decimal("-2.25"), decimal.Decimal("0.00")],
        [b"\x00", b"", b"\xff"],
        [{"kind": "a", "number": 2}, {"kind": "a", "number": 1}, {"kind": "b", "number": 1}],
        [7, -3, 2**62],
        [True, False],
    ):
        edges = {"src": [values[0]], "dst": [values[1]]}
        found = Graph({"id": values}, edges).connected_components().to_pydict()
        assert found["id"] == values
        assert found["component"][0] == found["component"][1]
        assert found["component"][2:] == values[2:]


def test_a_graph_of_edges_alone_has_their_ends():
    graph = Graph({"src": ["b", "b"], "dst": ["a", "c"], "weight": [1.0, None]})
    assert graph.vertices.to_pydict() == {"id": ["a", "b", "c"]}
    assert graph.out_degrees.to_pydict() == {"id": ["b"], "out_degree": [2]}


def test_pandas_frames_are_taken():
    import pandas

    people = pandas.DataFrame({"id": ["a", "b"], "age": [1, 2]})
    follows = pandas.DataFrame({"src": ["a"], "dst": ["b"]})
    found = Graph(people, follows).filter_vertices("age < 5").connected_components()
    assert found.to_pydict() == {"id": ["a", "b"], "age": [1, 2], "component": ["a", "a"]}


@pytest.mark.parametrize(
    ("vertices", "edges", "error", "says"),
    [
        ({"id": ["a", "a"]}, {"src": ["a"], "dst": ["a"]}, GraphError, "'a'"),
        ({"id": ["a", None]}, {"src": ["a"], "dst": ["a"]}, GraphError, "null"),
        ({"id": ["a"]}, {"src": ["a"], "dst": ["b"]}, GraphError, "'dst' that is no vertex: 'b'"),
        ({"id": ["a"]}, {"src": [None], "dst": ["a"]}, GraphError, "'src' of the edges"),
        ({"id": [1]}, {"src": ["a"], "dst": ["a"]}, SchemaError, "ids are int64"),
        ({"name": ["a"]}, {"src": ["a"], "dst": ["a"]}, ColumnError, "'name'"),
        (
            pa.table([["a"], ["b"]], names=["id", "id"]),
            {"src": ["a"], "dst": ["a"]},
            SchemaError,
            "vertices have more than one column 'id'",
        ),
        (
            {"id": ["a"], "_pointstamp_number": [1]},
            {"src": ["a"], "dst": ["a"]},
            SchemaError,
            "vertices have a column '_pointstamp_number': names that begin with '_pointstamp_'",
        ),
        ({"id": ["a"]}, {"src": ["a"], "dst": []}, SchemaError, "edges cannot become columns"),
    ],
)
def test_what_is_no_graph_is_refused(vertices, edges, error, says):
    with pytest.raises(error, match=says):
        Graph(vertices, edges).validate()


def test_what_is_asked_wrongly_is_refused():
    graph = Graph({"src": ["a"], "dst": ["b"]})
    with pytest.raises(GraphError, match="no vertex has the id 'x'"):
        graph.shortest_paths(["x"])
    with pytest.raises(GraphError, match="ids are string"):
        graph.sssp(7)
    with pytest.raises(UsageError, match="a number of rounds or a tolerance"):
        graph.page_rank()
    for cost, says in (
        (None, "of 1 in the column 'cost' are null"),
        ("2", "integers in the column 'cost', not string: cast"),
    ):
        with pytest.raises(SchemaError, match=says):
            Graph({"src": ["a"], "dst": ["b"], "cost": pa.array([cost])}).sssp("a", "cost")
    with pytest.raises(ColumnError, match="no column 'weight' of weights"):
        graph.sssp("a")
    with pytest.raises(ColumnError, match="vertices have no column 'age'"):
        graph.filter_vertices("age > 3")


@pytest.mark.parametrize(
    ("ids", "end"),
    [
        ([datetime.date(2020, 1, 1)], datetime.datetime(2020, 1, 1, 12)),
        ([True, False], 5),
        ([1, 2], "02"),
    ],
)
def test_an_end_that_would_change_to_be_an_id_is_refused(ids, end):
    with pytest.raises(SchemaError, match=r"not all of these \S+ are any|lose data"):
        Graph({"id": ids}, {"src": [end], "dst": [end]}).validate()


def test_text_is_no_list_of_ids():
    graph = Graph({"src": ["a", "b"], "dst": ["b", "c"]})
    with pytest.raises(
        UsageError, match=r"landmarks, a list of ids, and 'ab' is one: say \['ab'\]"
    ):
        graph.shortest_paths("ab")
    with pytest.raises(UsageError, match="source_ids, a list of ids, and 'ab' is one"):
        graph.parallel_personalized_page_rank(source_ids="ab", max_iter=2)
    found = graph.shortest_paths(np.array(["c"])).column("distances").to_pylist()
    assert found == [[("c", 2)], [("c", 1)], [("c", 0)]]


def test_landmarks_may_be_structs_and_repeat():
    one, other = {"k": 1}, {"k": 2}
    found = Graph({"src": [one], "dst": [other]}).shortest_paths([other, one, other])
    assert found.column("distances").to_pylist() == [[(other, 1), (one, 0)], [(other, 0)]]


def test_power_iteration_clusters_names_by_weights_and_leaves_those_without_edges_out():
    names = [f"vertex {i}" for i in range(11)]
    near = [*itertools.combinations(names[:6], 2), *itertools.combinations(names[6:9], 2)]
    edges = [(a, b, 4.0) for a, b in near] + [(names[5], names[6], 0.1), (names[10],) * 2 + (9.0,)]
    columns = dict(zip(("src", "dst", "close"), zip(*edges, strict=True), strict=True))
    for graph in graphs_of(pa.table({"id": names}), pa.table(columns)):
        found = graph.power_iteration_clustering(2, 20, "close").column("cluster").to_pylist()
        assert found == [1] * 6 + [0] * 3 + [None] * 2
        assert graph.power_iteration_clustering(1, 0).column("cluster")[0].as_py() == 0
    with pytest.raises(UsageError, match="k of power_iteration_clustering is an integer of 1 or"):
        graph.power_iteration_clustering(0, 5)
    with pytest.raises(ColumnError, match="edges have no column 'weight' of weights"):
        graph.power_iteration_clustering(2, 5, weight_col="weight")
    none = Graph({"id": ["a"]}, {"src": [], "dst": []}).power_iteration_clustering(2, 5)
    assert none.to_pydict() == {"id": ["a"], "cluster": [None]}


def test_a_model_of_ratings_predicts_them_and_is_null_for_vertices_without_any():
    names = {"u": [f"user {i}" for i in range(9)], "i": ["tea", "ale", "Möst", "milk"]}
    pairs = list(itertools.product(names["u"], names["i"]))[::3]
    rows = [(u, i, (len(u + i) * 7 + ord(u[-1])) % 11 - 5) for u, i in pairs]
    edges = pa.table(dict(zip(("src", "dst", "stars"), zip(*rows, strict=True), strict=True)))
    vertices = pa.table({"id": [*names["i"], "unrated", *names["u"]], "bias": [0] * 14})
    arguments = {"rank": 3, "max_iter": 9, "min_value": -5, "weight": "stars"}
    found = [graph.svd_plus_plus(**arguments) for graph in graphs_of(vertices, edges)]
    more = ["factors", "implicit_factors", "norm", "mean_rating", "loss"]
    for table in found:
        assert table.schema.names == ["id", "bias", *more]  # in the place of the column before
        assert table.column("id").equals(vertices.column("id"))
    rated, others = ({row["id"]: row for row in table.to_pylist()} for table in found)
    for model in (rated, others):
        assert model.pop("unrated") == {"id": "unrated", **dict.fromkeys(["bias", *more])}
    for vertex, row in rated.items():
        for name in ("bias", *more):
            assert row[name] == pytest.approx(others[vertex][name], rel=1e-9)
    errors = []
    for u, i, stars in rows:
        user, item = rated[u], rated[i]
        product = np.dot(user["implicit_factors"], item["factors"])
        predicted = user["mean_rating"] + user["bias"] + item["bias"] + product
        errors.append(stars - np.clip(predicted, -5, 5))
    assert np.mean(np.square(errors)) == pytest.approx(rated["tea"]["loss"])
    assert rated["tea"]["mean_rating"] == pytest.approx(np.mean([stars for *_, stars in rows]))


def test_a_model_of_what_are_no_ratings_is_refused():
    columns = {"src": ["a", "b"], "dst": ["x", "y"], "weight": [1.0, 2.0], "text": ["1", "2"]}
    columns |= {"null": [1.0, None], "nan": [float("nan"), 1.0], "exact": [2**60, 1]}
    graph = Graph(columns)
    for wrong, error, says in [
        ({"rank": 0}, UsageError, "rank of svd_plus_plus is an integer of 1 or more, not 0"),
        ({"max_iter": 1.5}, UsageError, "max_iter of svd_plus_plus is an integer"),
        ({"min_value": 6}, UsageError, "is less than its max_value; found 6 and 5.0"),
        ({"gamma2": "1"}, UsageError, "gamma2 of svd_plus_plus is a number of 0 or more, not '1'"),
        ({"seed": 0.5}, UsageError, "a seed is an integer, not 0.5"),
        ({"weight": "stars"}, ColumnError, "edges have no column 'stars' of weights, only 'src'"),
        ({"weight": "text"}, SchemaError, "floats or integers in the column 'text', not string"),
        ({"weight": "null"}, SchemaError, "1 of 2 in the column 'null' are null"),
        ({"weight": "nan"}, SchemaError, "ratings are finite numbers; 1 of 2 are not"),
        ({"weight": "exact"}, SchemaError, "exact for integers up to 2"),
    ]:
        with pytest.raises(error, match=says):
            graph.svd_plus_plus(**wrong)
    with pytest.raises(GraphError, match="users and items ids that differ"):
        Graph({"src": ["a", "b"], "dst": ["b", "c"]}).svd_plus_plus(weight=None)
    for graph in graphs_of(pa.table({"id": ["a"]}), pa.table({"src": [], "dst": []})):
        with pytest.raises(GraphError, match="this graph has no edges"):
            graph.svd_plus_plus(weight=None)


TEXT, CODED = pa.string(), pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        (pa.int32(), pa.int32(), pa.int32()),
        (pa.int64(), pa.int32(), pa.int64()),
        (TEXT, TEXT, TEXT),
        (TEXT, pa.large_string(), TEXT),
        (CODED, TEXT, TEXT),
    ],
)
def test_edges_are_undirected_whatever_their_schema(nullable, alone, source, target, found):
    fields = [("src", source), ("dst", target), ("amount", pa.int8())]
    schema = pa.schema([pa.field(*field, nullable=nullable) for field in fields], {"of": "Spark"})
    columns = [pa.array(texts).cast(kind) for texts, kind in ((["1", "2"], source), ("23", target))]
    edges = pa.Table.from_arrays([*columns, pa.array([5, 6], pa.int8())], schema=schema)
    ids = pa.array(["1", "2", "3"]).cast(source)
    graph = (Graph(edges) if alone else Graph({"id": ids}, edges)).as_undirected()
    assert graph.edges.schema.types == [found, found, pa.int8()]
    ends = [1, 2, 2, 3], [2, 3, 1, 2]
    expected = [pa.array(end).cast(found).to_pylist() for end in ends]
    assert [graph.edges.column(name).to_pylist() for name in ("src", "dst")] == expected
    assert graph.edges.column("amount").to_pylist() == [5, 6, 5, 6]
    assert graph.count("(a)-[]->(b); (b)-[]->(a)") == 4


@pytest.mark.parametrize("turned", [False, True])
def test_ids_of_edges_alone_have_the_wider_type_of_integers(turned):
    narrow, wide = pa.array([1, 2], pa.int32()), pa.array([2, 1 << 40])
    graph = Graph({"src": wide, "dst": narrow} if turned else {"src": narrow, "dst": wide})
    assert graph.vertices.equals(pa.table({"id": pa.array([1, 2, 1 << 40])}))
    assert graph.connected_components().column("component").to_pylist() == [1, 1, 1]
    assert graph.as_undirected().count("(a)-[]->(b)") == 4


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        (pa.uint8(), pa.int64(), pa.int64()),
        (pa.int64(), pa.uint16(), pa.int64()),
        (pa.uint8(), pa.uint32(), pa.uint32()),
        (pa.uint8(), pa.int8(), pa.int16()),
        (pa.int32(), pa.uint32(), pa.int64()),
        (pa.uint64(), pa.uint8(), pa.uint64()),
        (pa.uint64(), pa.int64(), pa.uint64()),  # no integer has the values of both
        (pa.int8(), pa.uint64(), pa.uint64()),
    ],
)
def test_ids_of_edges_alone_have_the_values_of_signed_and_unsigned_integers(source, target, found):
    most = min(2 ** (kind.bit_width - 1) - 1 for kind in (source, target))
    ends = {"src": pa.array([1, most], source), "dst": pa.array([most, 2], target)}
    graph = Graph(ends)
    assert graph.vertices.equals(pa.table({"id": pa.array(sorted([1, 2, most]), found)}))
    assert graph.connected_components().column("component").to_pylist() == [1, 1, 1]
    assert graph.as_undirected().count("(a)-[]->(b)") == 4
    found_ends = SeenIds().new_ends(batch_of(ends))
    assert found_ends.schema.field("id").type == found


def test_an_id_that_no_type_of_both_ends_has_is_refused():
    ends = {"src": pa.array([2**64 - 1], pa.uint64()), "dst": pa.array([-1])}
    with pytest.raises(SchemaError, match="'dst' of the edges: ids are uint64"):
        Graph(ends)
    with pytest.raises(SchemaError, match="'dst' of the edges: ids are uint64"):
        SeenIds().new_ends(batch_of(ends))


def batch_of(columns):
    return pa.RecordBatch.from_pydict(columns)
