"""PageRank against LDBC's reference, and powers of networkx's matrix."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import UsageError, WorkerError
from pointstamp.graph import pagerank
from pointstamp.graph.graph_partition import Links
from pointstamp.graph.weighted_page_rank import in_order
from tests.graph.answers import (
    Ldbc,
    answer,
    graphs,
    quick,
    real_edges,
    same_on_all,
)


def by_matrix(edges, vertices, rounds, directed=True):
    """Ranks by powers of the matrix that networkx makes, which spreads dangling mass."""
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_edges_from(edges)
    graph.add_nodes_from(vertices)
    if not len(graph):
        return {}
    matrix = np.asarray(networkx.google_matrix(graph.to_directed(), alpha=0.85))
    ranks = np.full(len(graph), 1 / len(graph))
    for _ in range(rounds):
        ranks = ranks @ matrix
    return dict(zip(graph, ranks, strict=True))


def by_hand(edges, vertices, rounds):
    """Ranks of which dangling mass is dropped, by the definition."""
    edges = set(edges)
    nodes = {v for edge in edges for v in edge} | set(vertices)
    out = {v: sum(s == v for s, _ in edges) for v in nodes}
    ranks = {v: 1 / len(nodes) for v in nodes}
    for _ in range(rounds):
        ranks = {
            v: 0.15 / len(nodes) + 0.85 * sum(ranks[s] / out[s] for s, t in edges if t == v)
            for v in nodes
        }
    return ranks


@pytest.mark.parametrize("name", ["example-directed", "example-undirected"])
def test_ranks_are_those_of_ldbc(data, name):
    ldbc = Ldbc(data, name)
    rounds, damping = (
        ldbc.parameter("pr.num-iterations"),
        ldbc.parameter("pr.damping-factor"),
    )
    found = same_on_all(
        lambda e, v: pagerank(
            e, v, rounds=int(rounds), damping=float(damping), directed=ldbc.directed
        ),
        ldbc.edges,
        ldbc.vertices,
    )
    assert found == pytest.approx(ldbc.reference("PR"), rel=1e-12)


@quick
@given(graph=graphs)
def test_ranks_are_those_of_the_matrix(graph):
    edges, vertices = graph
    found = same_on_all(lambda e, v: pagerank(e, v, rounds=7), edges, vertices)
    assert found == pytest.approx(by_matrix(edges, vertices, 7), rel=1e-12)


@quick
@given(graph=graphs)
def test_undirected_edges_lead_both_ways(graph):
    edges, vertices = graph
    found = answer(lambda e, v: pagerank(e, v, rounds=3, directed=False), edges, vertices, 2)
    assert found == pytest.approx(by_matrix(edges, vertices, 3, directed=False), rel=1e-12)


@quick
@given(graph=graphs)
def test_dropped_mass_is_lost(graph):
    edges, vertices = graph
    found = same_on_all(lambda e, v: pagerank(e, v, rounds=3, dangling="drop"), edges, vertices)
    assert found == pytest.approx(by_hand(edges, vertices, 3), rel=1e-12)


def test_ranks_of_a_real_graph_add_up_to_one_and_do_not_depend_on_the_workers(data):
    edges = real_edges(data, "p2p-Gnutella08")
    found = same_on_all(lambda e, v: pagerank(e, v), edges, size=5_000)
    assert sum(found.values()) == pytest.approx(1, abs=1e-12)
    pairs = [(int(s), int(t)) for s, t in edges]
    graph = networkx.DiGraph(pairs)
    ranks = {v: 1 / len(graph) for v in graph}
    for _ in range(20):
        lost = sum(ranks[v] for v in graph if not graph.out_degree(v))
        base = (0.15 + 0.85 * lost) / len(graph)
        ranks = {
            v: base + 0.85 * sum(ranks[s] / graph.out_degree(s) for s in graph.predecessors(v))
            for v in graph
        }
    assert found == pytest.approx(ranks, rel=1e-9)


def test_no_rounds_leave_all_equal():
    found = same_on_all(lambda e, v: pagerank(e, v, rounds=0), [(1, 2)], [3, 4])
    assert found == {1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25}


def test_each_epoch_is_a_graph_of_its_own():
    def main(worker):
        found = []
        with worker.dataflow() as scope:
            input, edges = scope.new_input()
            pagerank(edges, rounds=1).inspect_batch(
                lambda time, batch: found.extend((time, v) for v in batch["vertex"].to_pylist())
            )
        if worker.index == 0:
            for epoch, edge in enumerate([(1, 2), (3, 4)]):
                input.send(edge)
                input.advance_to(epoch + 1)
        input.close()
        worker.run()
        return found

    found = [pair for part in ps.execute(main, workers=2, threads=True) for pair in part]
    assert sorted(found) == [(0, 1), (0, 2), (1, 3), (1, 4)]


@pytest.mark.parametrize("wrong", [{"rounds": -1}, {"damping": 1.5}, {"dangling": "keep"}], ids=str)
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(WorkerError) as caught:
        answer(lambda e, v: pagerank(e, v, **wrong), [(1, 2)], workers=2)
    assert isinstance(caught.value.__cause__, UsageError)


LINK = st.tuples(st.integers(0, 4), st.integers(0, 6), st.sampled_from([0.5, 1, 3]))


@given(kinds=st.lists(st.lists(LINK), min_size=1, max_size=2), ids=st.permutations(range(7)))
def test_links_are_in_the_order_of_heads_and_of_the_ids_of_tails_and_of_weights(kinds, ids):
    partition = SimpleNamespace(n=5, n_places=7, ids=np.array(ids, np.int64))
    found = in_order(partition, *map(links_to_push, kinds))
    links = [link for kind in kinds for link in kind]
    expected = sorted(links, key=lambda link: (link[0], ids[link[1]], link[2]))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


def links_to_push(links: list[tuple[int, int, float]]) -> Links:
    of_tail = [[link for link in links if link[1] == place] for place in range(7)]
    ends = np.cumsum([len(mine) for mine in of_tail])
    heads, _, weights = zip(*itertools.chain(*of_tail), strict=True) if links else ([], [], [])
    begins = np.append(0, ends[:-1])
    return Links(begins, ends, np.array(heads, np.int32), np.array(weights, np.float64))
