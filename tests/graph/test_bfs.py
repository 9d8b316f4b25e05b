"""Levels against LDBC's reference and networkx."""

from __future__ import annotations

import networkx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.graph import bfs, landmark_distances
from tests.graph.answers import Ldbc, graphs, quick, real_edges, same_on_all

UNREACHED = float(2**63 - 1)


def by_networkx(edges, vertices, source, directed):
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_edges_from(edges)
    graph.add_nodes_from(vertices)
    if source not in graph:
        return {}
    return dict(networkx.single_source_shortest_path_length(graph, source))


@pytest.mark.parametrize("name", ["example-directed", "example-undirected"])
def test_levels_are_those_of_ldbc(data, name):
    ldbc = Ldbc(data, name)
    source = int(ldbc.parameter("bfs.source-vertex"))
    found = same_on_all(
        lambda e, v: bfs(e, source, v, directed=ldbc.directed), ldbc.edges, ldbc.vertices
    )
    assert {v: found.get(v, UNREACHED) for v in ldbc.vertices} == ldbc.reference("BFS")


@quick
@given(graph=graphs, source=st.integers(0, 12), directed=st.booleans())
def test_levels_are_the_fewest_edges(graph, source, directed):
    edges, vertices = graph
    found = same_on_all(lambda e, v: bfs(e, source, v, directed=directed), edges, vertices)
    assert found == by_networkx(edges, vertices, source, directed)


def test_a_path_has_as_many_levels_as_vertices():
    edges = [(i, i + 1) for i in range(100)]
    assert same_on_all(lambda e, v: bfs(e, 0), edges) == {i: i for i in range(101)}


def test_a_source_without_edges_reaches_itself():
    assert same_on_all(lambda e, v: bfs(e, 7, v), [(1, 2)], [7]) == {7: 0}


def test_the_levels_of_a_real_graph(data):
    edges = real_edges(data, "p2p-Gnutella24")
    source = int(edges[0, 0])
    found = same_on_all(lambda e, v: bfs(e, source), edges, size=20_000)
    assert found == by_networkx(edges.tolist(), (), source, True)


@pytest.mark.parametrize(
    "search",
    [lambda edges: bfs(edges, 0), lambda edges: landmark_distances(edges, [0, 2_999])],
    ids=["levels", "landmarks"],
)
def test_a_level_takes_no_round_where_no_edge_leads_to_another_worker(search):
    def main(worker: ps.Worker) -> tuple[int, int]:
        found: list[int] = []
        with worker.dataflow() as scope:
            path = pa.record_batch({"src": np.arange(2_999), "dst": np.arange(1, 3_000)})
            answer = search(scope.to_stream(path))
            answer.inspect_batch(lambda _, batch: found.append(batch.num_rows))
        worker.run()
        return sum(found), worker.n_steps

    [(n_found, n_steps)] = ps.execute(main)
    assert n_found == 3_000
    assert n_steps < 100
