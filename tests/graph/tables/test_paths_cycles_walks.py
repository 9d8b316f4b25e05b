"""Shortest paths, cycles and random walks against networkx, on graphs with text as ids."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings

from pointstamp.errors import ColumnError, UsageError
from pointstamp.graph import Graph
from tests.conftest import examples
from tests.graph.tables.graphs_of_text import directed, graphs_of, tables

quick = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))


def multigraph(vertices, edges, allowed=lambda row: True):
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(vertices.column("id").to_pylist())
    for number, row in enumerate(edges.to_pylist()):
        if allowed(row):
            graph.add_edge(row["src"], row["dst"], key=number)
    return graph


@quick
@given(tables())
def test_bfs_finds_all_paths_of_the_least_length(drawn):
    people = {row["id"]: row for row in drawn[0].to_pylist()}
    begins = [v for v, row in people.items() if row["kind"] == "bank"]
    ends = [v for v, row in people.items() if row["age"] is not None and row["age"] > 3]
    rows = drawn[1].to_pylist()
    graph = multigraph(*drawn, lambda row: row["sort"] != "shop" and row["sort"] is not None)
    lengths = nx.multi_source_dijkstra_path_length(graph, begins) if begins else {}
    least = min((lengths[end] for end in ends if end in lengths), default=None)
    expected = []
    for begin in begins:
        for end in ends if least else ():
            if begin != end and nx.has_path(graph, begin, end):
                paths = nx.all_simple_edge_paths(graph, begin, end, cutoff=least)
                expected += [[key for _, _, key in path] for path in paths if len(path) == least]
    for one in graphs_of(*drawn):
        found = one.bfs("kind = 'bank'", "age > 3", "sort != 'shop'")
        if least is None or least == 0:
            both = sorted(set(begins) & set(ends))
            assert sorted(row["from"]["id"] for row in found.to_pylist()) == both
            assert all(row["from"] == row["to"] for row in found.to_pylist())
            continue
        names = ["from", *(f"v{i}" for i in range(1, least)), "to"]
        assert found.schema.names[0::2] == names
        assert found.schema.names[1::2] == [f"e{i}" for i in range(least)]
        paths = [[row[f"e{i}"] for i in range(least)] for row in found.to_pylist()]
        shown = sorted(repr([rows[key] for key in path]) for path in expected)
        assert sorted(map(repr, paths)) == shown
        for row in found.to_pylist():
            for i, name in enumerate(names[:-1]):
                assert row[name] == people[row[f"e{i}"]["src"]]
                assert row[names[i + 1]] == people[row[f"e{i}"]["dst"]]
        assert one.bfs("kind = 'bank'", "age > 3", "sort != 'shop'", least - 1).num_rows == 0


@quick
@given(tables(max_edges=14))
def test_cycles_are_networkx_s(drawn):
    graph = nx.DiGraph(directed(*drawn))
    expected = []
    for cycle in nx.simple_cycles(graph):
        least = min(range(len(cycle)), key=lambda i: cycle[i].encode())
        expected.append([*cycle[least:], *cycle[:least], cycle[least]])
    for one in graphs_of(*drawn):
        assert sorted(one.detect_cycles().column("found_cycles").to_pylist()) == sorted(expected)
        for most in (2, 3, 4, 5):
            short = one.detect_cycles(max_length=most).column("found_cycles").to_pylist()
            assert sorted(short) == sorted(cycle for cycle in expected if len(cycle) <= most + 1)


@quick
@given(tables())
def test_walks_follow_edges_and_are_the_same_on_any_number_of_workers(drawn):
    graph = directed(*drawn)
    one, three = (
        sorted(g.random_walks(2, 5, seed=3).column("walk").to_pylist()) for g in graphs_of(*drawn)
    )
    assert one == three
    assert sorted(walk[0] for walk in one) == sorted(2 * drawn[0].column("id").to_pylist())
    for walk in one:
        assert all(graph.has_edge(*step) for step in itertools.pairwise(walk))
        assert len(walk) == 6 or not graph.out_degree(walk[-1])


def test_walks_take_every_edge_as_often_and_restart():
    graph = Graph({"src": ["a", "a", "b", "c"], "dst": ["b", "c", "a", "a"]})
    walks = graph.random_walks(3000, 1).column("walk").to_pylist()
    to_b = sum(walk == ["a", "b"] for walk in walks)
    assert 1350 < to_b < 1650
    again = graph.random_walks(1000, 4, restart_probability=1.0).column("walk").to_pylist()
    assert all(len(set(walk)) == 1 for walk in again)
    some = graph.random_walks(3000, 1, restart_probability=0.25).column("walk").to_pylist()
    assert 1900 < sum(walk[0] == walk[1] for walk in some) < 2600


def test_what_is_asked_wrongly_is_refused():
    graph = Graph({"src": ["a"], "dst": ["b"]})
    with pytest.raises(ColumnError, match="vertices have no column 'age'"):
        graph.bfs("age > 3", "id = 'a'")
    with pytest.raises(ColumnError, match="edges have no column 'age'"):
        graph.bfs("id = 'a'", "id = 'a'", "age > 3")
    for ask in (
        lambda: graph.bfs("id = 'a'", "id = 'b'", max_path_length=-1),
        lambda: graph.detect_cycles(0),
        lambda: graph.random_walks(0),
    ):
        with pytest.raises(UsageError):
            ask()


@pytest.mark.parametrize("length", [16, 120])
def test_paths_are_longer_than_patterns_may_be(length):
    chain = Graph({"src": list(range(200)), "dst": list(range(1, 201))})
    [path] = chain.bfs("id = 0", f"id = {length}", max_path_length=length).to_pylist()
    assert [one["id"] for name, one in path.items() if name[0] != "e"] == [*range(length + 1)]
    assert chain.bfs("id = 0", f"id = {length}", max_path_length=length - 1).num_rows == 0
