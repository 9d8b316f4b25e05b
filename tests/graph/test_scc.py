"""Strongly connected components against networkx and published counts."""

from __future__ import annotations

import collections
import itertools

import networkx
import pytest
from hypothesis import given

from pointstamp.graph import scc, strongly_connected_components
from tests.graph.answers import answer, graphs, published, quick, real_edges, same_on_all


def by_networkx(edges, vertices=()):
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(vertices)
    parts = networkx.strongly_connected_components(graph)
    return {v: least for part in parts for least in [min(part)] for v in part}


@quick
@given(graph=graphs)
def test_components_are_those_of_networkx(graph):
    assert same_on_all(strongly_connected_components, *graph) == by_networkx(*graph)


def test_rings_in_a_chain_are_not_closed_one_by_one(monkeypatch):
    """As they would be if the first of them coloured all that follow, being the least."""
    times_round = []

    class Mark(scc._Mark):
        def __init__(self, search):
            times_round.append(search)
            super().__init__(search)

    monkeypatch.setattr(scc, "_Mark", Mark)
    n = 90
    rings = [[(3 * k + i, 3 * k + (i + 1) % 3) for i in range(3)] for k in range(n)]
    bridges = [(3 * k, 3 * k + 3) for k in range(n - 1)]
    edges = [*itertools.chain(*rings), *bridges]
    assert same_on_all(strongly_connected_components, edges, size=50) == by_networkx(edges)
    assert len(times_round) < n  # on one worker, on two and on three


def test_a_path_is_trimmed():
    edges = [(i, i + 1) for i in range(40)]
    assert same_on_all(strongly_connected_components, edges) == {i: i for i in range(41)}


def test_a_path_between_rings_is_trimmed_once_a_ring_is_closed(monkeypatch):
    """Not marked vertex by vertex, which would take as many times round as it is long."""
    times_round = []

    class Mark(scc._Mark):
        def __init__(self, search):
            times_round.append(int(search.is_open.sum()))
            super().__init__(search)

    monkeypatch.setattr(scc, "_Mark", Mark)
    ring = [(0, 1), (1, 2), (2, 0)]
    edges = [*ring, *((i, i + 1) for i in range(2, 30)), (30, 31), (31, 30)]
    assert answer(strongly_connected_components, edges) == by_networkx(edges)
    # All at first; then, without the first ring and the path, the ring at the end.
    assert times_round == [32, 2]


@pytest.mark.parametrize("name", ["email-Eu-core", "p2p-Gnutella08", "wiki-Vote"])
def test_the_components_of_real_graphs_are_as_published(name, data):
    answers = published(data, name)
    found = same_on_all(strongly_connected_components, real_edges(data, name), size=10_000)
    sizes = collections.Counter(found.values())
    assert len(sizes) == answers["scc"]
    assert max(sizes.values()) == answers["largest_scc_nodes"]
