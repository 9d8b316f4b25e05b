"""Distances against LDBC's reference and networkx."""

from __future__ import annotations

import math

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import DataError, WorkerError
from pointstamp.graph import sssp
from tests.graph.answers import Ldbc, quick, real_edges, same_on_all

weighted = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 10), st.floats(0, 100)), max_size=40
)


def by_networkx(edges, source, directed):
    """Of edges that repeat, the lightest."""
    graph = networkx.DiGraph() if directed else networkx.Graph()
    for s, t, weight in sorted(edges, key=lambda edge: -edge[2]):
        graph.add_edge(s, t, weight=weight)
    if source not in graph:
        return {}
    return dict(networkx.single_source_dijkstra_path_length(graph, source))


@pytest.mark.parametrize("name", ["example-directed", "example-undirected"])
def test_distances_are_those_of_ldbc(data, name):
    ldbc = Ldbc(data, name)
    source = int(ldbc.parameter("sssp.source-vertex"))
    found = same_on_all(
        lambda e, v: sssp(e, source, v, directed=ldbc.directed), ldbc.weighted, ldbc.vertices
    )
    assert {v: found.get(v, math.inf) for v in ldbc.vertices} == pytest.approx(
        ldbc.reference("SSSP"), rel=1e-12
    )


@quick
@given(edges=weighted, source=st.integers(0, 10), directed=st.booleans())
def test_distances_are_the_least_sums_of_weights(edges, source, directed):
    found = same_on_all(lambda e, v: sssp(e, source, directed=directed), edges)
    assert found == by_networkx(edges, source, directed)


def test_a_source_without_edges_is_at_no_distance():
    assert same_on_all(lambda e, v: sssp(e, 7, v), [(1, 2, 1.0)], [7]) == {7: 0.0}


def test_the_distances_of_a_real_graph(data):
    pairs = real_edges(data, "email-Eu-core")
    weights = np.random.default_rng(3).random(len(pairs))
    edges = np.column_stack([pairs, weights])
    found = same_on_all(lambda e, v: sssp(e, 0), edges, size=4_000)
    triples = [(int(s), int(t), float(w)) for s, t, w in edges]
    assert found == by_networkx(triples, 0, True)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([(1, 2, -1.0)], "weights of 0 or more"),
        ([(1, 2, math.nan)], "weights of 0 or more"),
        ([(1, 2, math.inf), (1, 3, 1.0)], "1 of 2 are larger"),
        ([(1, 2, 1e308), (2, 3, 1e308)], "2 of 2 are larger"),
        ([(1, 2, 2**53 + 1)], "9007199254740993 is larger"),
        (Arrays(src=[1], dst=[2], weight=[2**53 + 1]), "9007199254740993 is larger"),
        ([(1, 2)], "triples"),
        ([(1, 2, "far")], "triples"),
        (Arrays(a=[1], b=[2]), "three columns"),
        (Arrays(src=[1], dst=[2], weight=["far"]), "floats or integers in the column 'weight'"),
    ],
    ids=str,
)
def test_weights_that_no_path_has_are_refused(records, message):
    def main(worker):
        with worker.dataflow() as scope:
            sssp(scope.batches_to_stream([records]), 1)
        worker.run()

    with pytest.raises(WorkerError, match=message) as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, DataError)
