"""Clustering coefficients against LDBC's reference, networkx, and published averages."""

from __future__ import annotations

import itertools

import networkx
import pytest
from hypothesis import given

from pointstamp.graph import local_clustering
from tests.graph.answers import Ldbc, graphs, published, quick, real_edges, same_on_all


def by_networkx(edges, vertices=()):
    graph = networkx.Graph([(s, t) for s, t in edges if s != t])
    graph.add_nodes_from(v for edge in edges for v in edge)
    graph.add_nodes_from(vertices)
    return networkx.clustering(graph)


def by_definition(edges, vertices=()):
    """The partition of ordered pairs of neighbours, in either direction, that are edges."""
    arcs = {(s, t) for s, t in edges if s != t}
    found = {}
    for v in {v for edge in edges for v in edge} | set(vertices):
        near = {t for s, t in arcs if s == v} | {s for s, t in arcs if t == v}
        pairs = list(itertools.permutations(near, 2))
        found[v] = sum(pair in arcs for pair in pairs) / len(pairs) if pairs else 0.0
    return found


@pytest.mark.parametrize("name", ["example-directed", "example-undirected"])
def test_coefficients_are_those_of_ldbc(data, name):
    ldbc = Ldbc(data, name)
    found = same_on_all(
        lambda e, v: local_clustering(e, v, directed=ldbc.directed), ldbc.edges, ldbc.vertices
    )
    assert found == pytest.approx(ldbc.reference("LCC"), rel=1e-12)


@quick
@given(graph=graphs)
def test_undirected_coefficients_are_those_of_networkx(graph):
    assert same_on_all(local_clustering, *graph) == pytest.approx(by_networkx(*graph))


@quick
@given(graph=graphs)
def test_directed_coefficients_are_those_of_the_definition(graph):
    found = same_on_all(lambda e, v: local_clustering(e, v, directed=True), *graph)
    assert found == pytest.approx(by_definition(*graph))


@pytest.mark.parametrize("name", ["ca-GrQc", "facebook_combined", "wiki-Vote"])
def test_the_averages_of_real_graphs_are_as_published(name, data):
    found = same_on_all(local_clustering, real_edges(data, name), size=20_000)
    average = sum(found.values()) / len(found)
    assert average == pytest.approx(published(data, name)["avg_clustering"], abs=5e-5)
