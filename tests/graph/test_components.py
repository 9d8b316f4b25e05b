"""Connected components, both ways, against LDBC's reference and networkx."""

from __future__ import annotations

import collections

import networkx
import pytest
from hypothesis import given

from pointstamp.graph import components, components_by_labels, connected_components
from tests.graph.answers import Ldbc, graphs, published, quick, real_edges, same_on_all

WAYS = [connected_components, components_by_labels]


def by_networkx(edges, vertices):
    graph = networkx.Graph(edges)
    graph.add_nodes_from(vertices)
    return {
        v: least
        for part in networkx.connected_components(graph)
        for least in [min(part)]
        for v in part
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["example-directed", "example-undirected"])
def test_components_are_those_of_ldbc(data, name, way):
    ldbc = Ldbc(data, name)
    found = same_on_all(way, ldbc.edges, ldbc.vertices)
    # LDBC's labels are the least vertex as well.
    assert found == ldbc.reference("WCC")


@pytest.mark.parametrize("way", WAYS)
def test_components_are_those_of_networkx(way):
    @quick
    @given(graph=graphs)
    def check(graph):
        assert same_on_all(way, *graph) == by_networkx(*graph)

    check()


@pytest.mark.parametrize("way", WAYS)
def test_a_path_through_all_workers_is_one_component(way):
    edges = [(i + 1, i) for i in range(60)]
    assert same_on_all(way, edges) == dict.fromkeys(range(61), 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["ca-GrQc", "email-Eu-core", "p2p-Gnutella24"])
def test_the_components_of_real_graphs_are_as_published(name, data, way):
    answers = published(data, name)
    found = same_on_all(way, real_edges(data, name), size=10_000)
    sizes = collections.Counter(found.values())
    assert len(found) == answers["nodes"]
    assert len(sizes) == answers["wcc"]
    assert max(sizes.values()) == answers["largest_wcc_nodes"]


def test_forests_take_the_place_of_edges_when_there_are_many(monkeypatch):
    monkeypatch.setattr(components, "ROOM", 4)
    edges = [(i % 7, i % 5) for i in range(200)] + [(10 + i, 11 + i) for i in range(30)]
    assert same_on_all(connected_components, edges) == by_networkx(edges, ())
