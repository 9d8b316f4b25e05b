"""Ids, arguments and messages that cannot be right are refused by name; empty graphs have types."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pointstamp.errors import GraphError, SchemaError, UsageError
from pointstamp.graph import Graph

UTC = datetime.UTC
DAYS = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]

COLUMNS_OF_IDS = {
    "uuid": pa.array([uuid.UUID(int=2), uuid.UUID(int=1)], pa.uuid()),
    "float16": pa.array([np.float16(2), np.float16(1)], pa.float16()),
    "text views": pa.array(["b", "a"], pa.string_view()),
    "bytes views": pa.array([b"b", b"a"], pa.binary_view()),
    "dictionary": pa.array(["b", "a"]).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2], ["b", "a"]),
    "short decimals": pa.array([decimal.Decimal(2), decimal.Decimal(1)]).cast(
        pa.decimal32(5, 2) if hasattr(pa, "decimal32") else pa.decimal128(5, 2)
    ),
}


@pytest.mark.parametrize("name", COLUMNS_OF_IDS)
def test_ids_of_these_types_are_numbered_in_their_order(name):
    first, second = (COLUMNS_OF_IDS[name][i].as_py() for i in (0, 1))
    ends = {"src": COLUMNS_OF_IDS[name], "dst": COLUMNS_OF_IDS[name].slice(1, 1)}
    ends["dst"] = pa.concat_arrays([ends["dst"], ends["dst"]])
    graph = Graph(ends)
    assert graph.vertices.column("id").to_pylist() == [second, first]
    assert graph.connected_components().column("component").to_pylist() == [second, second]
    near = graph.shortest_paths([second]).column("distances").to_pylist()
    assert near == [[(second, 0)], [(second, 1)]]
    assert graph.count("(a)-[]->(b)") == 2
    [walk] = graph.detect_cycles().column("found_cycles").to_pylist()
    assert walk == [second, second]


def test_ids_that_are_equal_are_one_and_those_that_look_so_are_not():
    assert Graph({"src": [0.0], "dst": [-0.0]}).vertices.num_rows == 1
    times = pa.array([{"t": 2}, {"t": 1}], pa.struct([("t", pa.time64("ns"))]))
    assert Graph({"src": times, "dst": times}).vertices.num_rows == 2  # in Python both are 0:00


def test_ids_that_have_no_order_are_refused_by_name():
    spans = pa.array([(1, 2, 3), (2, 3, 4)], pa.month_day_nano_interval())
    with pytest.raises(SchemaError, match="these are month_day_nano_interval, which Arrow cannot"):
        Graph({"src": spans, "dst": spans})


def test_times_with_a_zone_and_without_one_are_not_the_same_ids():
    plain, zoned = pa.array(DAYS, pa.timestamp("us")), pa.array(DAYS, pa.timestamp("us", "UTC"))
    with pytest.raises(SchemaError, match=r"'src' of the edges: ids are .* give both a zone"):
        Graph({"id": plain}, {"src": zoned, "dst": zoned}).connected_components()
    with pytest.raises(SchemaError, match=r"edges: ids are .* give both a zone, or neither"):
        Graph({"src": plain, "dst": zoned})
    with pytest.raises(GraphError, match=r"ids are timestamp\[us\], and"):
        Graph({"src": plain, "dst": plain}).shortest_paths([DAYS[0].replace(tzinfo=UTC)])
    with pytest.raises(GraphError, match=r"ids are timestamp\[us, tz=UTC\], and"):
        Graph({"src": zoned, "dst": zoned}).shortest_paths([DAYS[0]])
    paris = zoned.cast(pa.timestamp("us", "Europe/Paris"))  # the same moments
    graph = Graph({"id": zoned}, {"src": paris, "dst": paris.take([1, 0])})
    found = graph.shortest_paths([DAYS[0].replace(tzinfo=UTC)]).column("distances").to_pylist()
    assert [distance for [(_, distance)] in found] == [0, 1]


@pytest.mark.parametrize("wrong", ["3", 2.5, True, -1])
def test_numbers_that_are_none_are_refused_by_name(wrong):
    graph = Graph({"src": ["a", "b"], "dst": ["b", "a"]})
    program = {"x": ("1", "2")}
    asked = {
        "max_iter of label_propagation": lambda: graph.label_propagation(wrong),
        "max_iter of PageRank": lambda: graph.page_rank(max_iter=wrong),
        "max_iter of pregel": lambda: graph.pregel(
            program, "sum(msg)", send_to_dst="1", max_iter=wrong
        ),
        "a limit": lambda: graph.find("(a)-[]->(b)", limit=wrong),
        "max_path_length": lambda: graph.bfs("id = 'a'", "id = 'b'", max_path_length=wrong),
        "max_length": lambda: graph.detect_cycles(wrong),
        "num_walks": lambda: graph.random_walks(wrong),
        "length of random_walks": lambda: graph.random_walks(1, wrong),
        "restart_probability": lambda: graph.random_walks(restart_probability=wrong),
        "reset_probability": lambda: graph.page_rank(wrong, max_iter=1),
    }
    for name, ask in asked.items():
        with pytest.raises(UsageError, match=f"{name}.* not {wrong!r}"):
            ask()
    if wrong != -1:
        with pytest.raises(UsageError, match=f"a seed is an integer, not {wrong!r}"):
            graph.maximal_independent_set(wrong)
    if wrong in ("3", True):
        with pytest.raises(UsageError, match=f"tol of PageRank.* not {wrong!r}"):
            graph.page_rank(tol=wrong)


EMPTY_ANSWERS = {
    "component": (lambda g: g.connected_components(), pa.string()),
    "label": (lambda g: g.label_propagation(2), pa.string()),
    "pagerank": (lambda g: g.page_rank(max_iter=1), pa.float64()),
    "count": (lambda g: g.triangle_count(), pa.int64()),
    "kcore": (lambda g: g.k_core(), pa.int64()),
    "coefficient": (lambda g: g.clustering(), pa.float64()),
    "selected": (lambda g: g.maximal_independent_set(), pa.bool_()),
}


@pytest.mark.parametrize("name", EMPTY_ANSWERS)
def test_answers_of_an_empty_graph_have_their_types(name):
    none = pa.array([], pa.string())
    ask, kind = EMPTY_ANSWERS[name]
    for graph in (Graph({"id": none}, {"src": none, "dst": none}), Graph({"id": none}, _NO_EDGES)):
        found = ask(graph)
        assert found.num_rows == 0
        assert found.schema.field(name).type == kind
        assert found.schema.field("id").type == pa.string()
    assert ask(Graph({"id": ["a"]}, _NO_EDGES)).schema.field(name).type == kind
    assert ask(Graph({"id": []}, {"src": none, "dst": none})).schema.field(name).type == kind


_NO_EDGES = {"src": [], "dst": []}


def test_attributes_in_runs_are_found_as_their_values():
    runs = pa.RunEndEncodedArray.from_arrays([1, 3], ["x", "y"])
    graph = Graph({"id": [1, 2, 3], "kind": runs}, {"src": [1, 2], "dst": [2, 3]})
    [found] = graph.find("(a)-[]->(b)", "a.kind = 'y'").to_pylist()
    assert found["b"] == {"id": 3, "kind": "y"}


def test_means_of_decimals_have_four_digits_more_and_distinct_zeros_are_one():
    def made(text, values, kind):
        edges = {"src": [1, 2], "dst": [3, 3], "w": pa.array(values, kind)}
        [found] = Graph(edges).aggregate_messages(text, send_to_dst="edge.w").column(1).to_pylist()
        return found

    ones = [decimal.Decimal(1), decimal.Decimal(2)]
    assert made("avg(msg)", ones, pa.decimal128(10, 0)) == decimal.Decimal("1.5")
    nines = [decimal.Decimal("9" * 38)] * 2
    assert made("avg(msg)", nines, pa.decimal128(38, 0)) == nines[0]
    assert made("count_distinct(msg)", [0.0, -0.0], pa.float64()) == 1
    assert made("count_distinct(null)", [0.0, 1.0], pa.float64()) == 0


def test_sums_that_do_not_fit_are_refused_and_those_that_do_are_right():
    def summed(values, kind):
        edges = {"src": [1, 2, 3], "dst": [4, 4, 4], "w": pa.array(values, kind)}
        found = Graph(edges).aggregate_messages("sum(msg) as s", send_to_dst="edge.w")
        return found.column("s").to_pylist()

    big = 2**62
    with pytest.raises(SchemaError, match=f"{3 * big}, does not fit into int64: make floats"):
        summed([big] * 3, pa.int64())
    with pytest.raises(SchemaError, match=f"{-3 * big}, does not fit"):
        summed([-big] * 3, pa.int64())
    assert summed([big, big, -big], pa.int64()) == [big]
    assert summed([2 * big - 1, 1, -1], pa.int64()) == [2 * big - 1]
    assert summed([-2 * big, 1, -1], pa.int64()) == [-2 * big]
    assert summed([2**64 - 1, 0, None], pa.uint64()) == [2**64 - 1]
    with pytest.raises(SchemaError, match=f"{2**64}, does not fit into uint64"):
        summed([2**64 - 1, 1, 0], pa.uint64())
    assert summed([100, 100, 100], pa.int8()) == [300]
    nines = decimal.Decimal("9" * 38)
    with pytest.raises(SchemaError, match="does not fit into 38 digits"):
        summed([nines, nines, nines], pa.decimal128(38, 0))
    sevens = decimal.Decimal("7" * 20)
    assert summed([sevens, sevens, sevens], pa.decimal128(38, 8)) == [3 * sevens]


def test_a_program_whose_sums_do_not_fit_is_refused():
    graph = Graph({"src": [1, 2], "dst": [2, 1]})
    doubled = {"n": ("1", "2 * coalesce(msg, 0)")}
    with pytest.raises(SchemaError, match="overflow"):
        graph.pregel(doubled, "sum(msg)", send_to_dst="src.n", max_iter=80)
    both = Graph({"src": [1, 1], "dst": [1, 1]})
    with pytest.raises(SchemaError, match="does not fit into int64"):
        both.pregel({"n": ("1", "msg")}, "sum(msg)", send_to_dst="src.n", max_iter=80)


def test_ids_that_would_be_others_as_ids_of_the_graph_are_in_none():
    days = pa.array([datetime.date(2020, 1, 1)])
    of_days, of_integers = (Graph({"src": ids, "dst": ids}) for ids in (days, [1]))
    for graph, other in ((of_days, DAYS[0] + datetime.timedelta(hours=5)), (of_integers, 1.5)):
        with pytest.raises(GraphError, match=r"are not$"):
            graph.sssp(other, None)
    assert of_days.sssp(DAYS[0], None) == of_days.sssp(DAYS[0].date(), None)
    assert of_integers.shortest_paths([1.0]) == of_integers.shortest_paths(np.array([1]))
    with pytest.raises(UsageError, match=r"a list of ids, and 1 is none: say \[1\]"):
        of_integers.shortest_paths(1)


def test_arguments_may_be_large_or_numpy_s():
    graph = Graph({"src": ["a", "b"], "dst": ["b", "a"], "": [1, 2]})
    for of_seed in (graph.maximal_independent_set, graph.random_walks):
        assert of_seed(seed=2**64 + 3) == of_seed(seed=3)
    assert graph.find("(a)-[]->(b)", limit=2**70).num_rows == 2
    ranks = [graph.page_rank(share, tol=np.float32(0.5)) for share in (0.5, np.float32(0.5))]
    assert ranks[0] == ranks[1]
    assert graph.filter_edges(pc.field("src") == "a").edges.num_rows == 1


def test_names_of_aggregates_and_of_columns_of_programs():
    graph = Graph({"src": [1, 2], "dst": [2, 1]})
    for given in (["min(msg)", "min(msg)"], ["sum(msg) as s", "min(msg) as s"]):
        with pytest.raises(SchemaError, match="have a name twice"):
            graph.aggregate_messages(given, send_to_dst="src.id")
    with pytest.raises(SchemaError, match="cannot be called 'id'"):
        graph.aggregate_messages("min(msg) as id", send_to_dst="src.id")
    with pytest.raises(UsageError, match="give one"):
        graph.aggregate_messages([], send_to_dst="src.id")
    with pytest.raises(UsageError, match="text such as 'sum"):
        graph.aggregate_messages(3, send_to_dst="src.id")
    for name in ("id", "msg"):
        with pytest.raises(UsageError, match=f"no column '{name}' of its own"):
            graph.pregel({name: ("id", "msg")}, "min(msg)", send_to_dst="src.id")
    for given in ({"x": "id"}, {"x": ("id",)}):
        with pytest.raises(UsageError, match="'x' of a program is two expressions"):
            graph.pregel(given, "min(msg)", send_to_dst="src.id")
    with pytest.raises(UsageError, match="pregel needs a column"):
        graph.pregel(["x"], "min(msg)", send_to_dst="src.id")


def test_names_of_other_libraries_are_said_to_be_called_otherwise_or_not_to_be_there():
    graph = Graph({"src": [1], "dst": [2]})
    for name, message in {
        "aggregateNeighbors": r"Graph has no 'aggregateNeighbors', which GraphFrames has: find\(\)",
        "svdPlusPlus": "Graph has no 'svdPlusPlus': it is called 'svd_plus_plus' here",
        "pageRank": "Graph has no 'pageRank': it is called 'page_rank' here",
        "inDegrees": "it is called 'in_degrees' here",
        "as_reversed": "Graph has no 'as_reversed': it is called 'reverse' here",
        "detectingCycles": "it is called 'detect_cycles' here",
        "nodes": "it is called 'vertices' here",
        "pagerank": "Graph has no 'pagerank': it is called 'page_rank' here",
        "triangles": "it is called 'triangle_count' here",
        "kcore": r"'Graph' object has no attribute 'kcore'; did you mean 'k_core'\?",
        "nothing": "'Graph' object has no attribute 'nothing'",
    }.items():
        with pytest.raises(AttributeError, match=message):
            getattr(graph, name)
        assert not hasattr(graph, name)
