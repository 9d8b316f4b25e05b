"""Core numbers against networkx."""

from __future__ import annotations

import itertools

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.errors import UsageError, WorkerError
from pointstamp.graph import core_numbers, k_core
from tests.graph.answers import answer, graphs, quick, real_edges, same_on_all


def by_networkx(edges, vertices=()):
    graph = networkx.Graph([(s, t) for s, t in edges if s != t])
    graph.add_nodes_from(v for edge in edges for v in edge)
    graph.add_nodes_from(vertices)
    return networkx.core_number(graph)


@quick
@given(graph=graphs)
def test_core_numbers_are_those_of_networkx(graph):
    assert same_on_all(core_numbers, *graph) == by_networkx(*graph)


@quick
@given(edges=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=40))
def test_the_k_core_is_what_has_k_or_more(edges):
    for k in (1, 2, 3):
        expected = {v: core for v, core in by_networkx(edges).items() if core >= k}
        assert answer(lambda e, v, k=k: k_core(e, k), edges, workers=2) == expected


def test_a_clique_with_a_long_tail():
    edges = [*itertools.combinations(range(6), 2), *((i, i + 1) for i in range(5, 60))]
    expected = {v: 5 if v < 6 else 1 for v in range(61)}
    assert same_on_all(core_numbers, edges) == expected


@pytest.mark.parametrize("name", ["ca-GrQc", "wiki-Vote"])
def test_the_core_numbers_of_real_graphs(name, data):
    edges = real_edges(data, name)
    found = same_on_all(core_numbers, edges, size=20_000)
    assert found == by_networkx(edges.tolist())


def test_a_core_of_none_is_refused():
    with pytest.raises(WorkerError) as caught:
        answer(lambda e, v: k_core(e, 0), [(1, 2)], workers=2)
    assert isinstance(caught.value.__cause__, UsageError)
