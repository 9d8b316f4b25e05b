"""Cliques and triangles: brute force, networkx, and published counts of real graphs."""

from __future__ import annotations

import gzip
import itertools
import json
import math

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import UsageError, WorkerError
from pointstamp.graph import (
    cliques,
    count_cliques,
    count_motifs,
    count_triangles,
    triangles,
)
from tests.conftest import examples
from tests.graph.conftest import merged, run

REAL = [
    "ca-GrQc",
    "email-Eu-core",
    "facebook_combined",
    "p2p-Gnutella08",
    "p2p-Gnutella24",
    "wiki-Vote",
]

graphs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=50)


def brute_force(edges, k):
    joined = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    ids = sorted({v for edge in edges for v in edge})
    return [
        group
        for group in itertools.combinations(ids, k)
        if all(frozenset(pair) in joined for pair in itertools.combinations(group, 2))
    ]


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=graphs)
def test_every_clique_is_found_once_and_counted(k, workers, edges):
    expected = brute_force(edges, k)
    assert run(lambda s: cliques(s, k), edges, workers) == expected
    assert run(lambda s: count_cliques(s, k), edges, workers) == [(len(expected),)]


def test_triangles_are_cliques_of_three(workers):
    edges = [(3, 1), (1, 2), (2, 3), (1, 3), (3, 3), (3, 4)]
    assert run(triangles, edges, workers) == [(1, 2, 3)]
    assert run(count_triangles, edges, workers) == [(1,)]


def test_a_clique_of_all_vertices_has_every_smaller_one(workers):
    edges = list(itertools.combinations(range(9), 2))
    for k in (3, 6, 9):
        assert run(lambda s, k=k: count_cliques(s, k), edges, workers) == [(math.comb(9, k),)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("edges", [[], [(1, 1), (2, 2)]])
def test_a_graph_without_edges_has_no_triangles_and_says_so(edges, workers):
    def counted(count):
        return ps.testing.collect(
            lambda scope: count(scope.to_stream(edges if scope.index == 0 else [])),
            workers=workers,
        )

    assert counted(count_triangles) == [(0, (0,))]
    assert counted(lambda stream: count_motifs(stream, "(a)-[]->(b)")) == [(0, (len(edges),))]


def test_times_that_have_no_edges_are_not_counted():
    def main(worker):
        seen = []
        with worker.dataflow() as scope:
            edges, stream = scope.new_input()
            counts = count_triangles(stream)
            probe = counts.inspect_batch(lambda time, _: seen.append(time)).probe()
        edges.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        edges.send((1, 2))
        edges.close()
        worker.run()
        return seen

    assert ps.execute(main) == [[3]]


@pytest.mark.parametrize("k", [1, 27, True, 2.5, "3"])
def test_sizes_that_no_clique_has_are_refused(k):
    with pytest.raises(WorkerError, match="from 2 to 26") as caught:
        run(lambda s: cliques(s, k), [(1, 2)])
    assert isinstance(caught.value.__cause__, UsageError)


def test_a_hub_of_a_hundred_thousand_neighbours(workers):
    """A star with one edge between two leaves has one triangle, and very many pairs of leaves."""
    n = 100_000
    leaves = np.arange(1, n + 1)
    star = Arrays(src=np.append(np.zeros(n, np.int64), 5), dst=np.append(leaves, 77))

    def counts(build):
        def main(worker):
            found = []
            with worker.dataflow() as scope:
                edges = scope.batches_to_stream([star] if worker.index == 0 else [])
                build(edges).inspect_batch(lambda time, batch: found.append(batch.to_pydict()))
            worker.run()
            return found

        return merged(ps.execute(main, workers=workers, threads=True))

    assert counts(count_triangles) == [{"count": [1]}]
    assert counts(triangles) == [{"a": [0], "b": [5], "c": [77]}]
    fork = "(hub)-[]->(x); (hub)-[]->(y)"
    assert counts(lambda s: count_motifs(s, fork)) == [{"count": [n * n + 1]}]
    assert counts(lambda s: count_motifs(s, fork, distinct=True)) == [{"count": [n * n - n]}]


def edges_of(path):
    with gzip.open(path, "rt") as lines:
        return np.loadtxt(lines, np.int64, comments="#", usecols=(0, 1))


def count(build, table, workers):
    def main(worker):
        found = []
        with worker.dataflow() as scope:
            mine = table[worker.index :: worker.peers]
            edges = scope.batches_to_stream([Arrays(src=mine[:, 0], dst=mine[:, 1])])
            build(edges).inspect_batch(lambda time, batch: found.extend(batch.to_pydict()["count"]))
        worker.run()
        return found

    (total,) = merged(ps.execute(main, workers=workers, threads=True))
    return total


@pytest.mark.parametrize("name", REAL)
def test_the_triangles_of_real_graphs_are_as_published(name, data, workers):
    published = json.loads(data(name, "answers.json").read_text())["published"]["triangles"]
    table = edges_of(data(name, f"{name}.txt.gz"))
    assert count(count_triangles, table, workers) == published


DIAMOND = "(a)-[]->(b); (a)-[]->(c); (b)-[]->(d); (c)-[]->(d)"
CYCLE = "(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)"


@pytest.mark.parametrize("name", ["email-Eu-core-temporal-Dept3", "p2p-Gnutella08"])
def test_the_four_cliques_of_real_graphs_as_networkx_lists_them(name, data, workers):
    table = edges_of(data(name, f"{name}.txt.gz"))
    simple = networkx.Graph(table.tolist())
    simple.remove_edges_from(list(networkx.selfloop_edges(simple)))
    up_to_four = itertools.takewhile(
        lambda clique: len(clique) <= 4, networkx.enumerate_all_cliques(simple)
    )
    four_cliques = sum(len(clique) == 4 for clique in up_to_four)
    assert count(lambda s: count_cliques(s, 4), table, workers) == four_cliques


def test_the_directed_cycles_of_a_real_graph_as_networkx_lists_them(data, workers):
    table = edges_of(data("email-Eu-core-temporal-Dept3", "email-Eu-core-temporal-Dept3.txt.gz"))
    simple = networkx.simple_cycles(networkx.DiGraph(table.tolist()), length_bound=3)
    cycles = sum(len(cycle) == 3 for cycle in simple)
    # A cycle is matched from each of its three vertices.
    assert count(lambda s: count_motifs(s, CYCLE, distinct=True), table, workers) == 3 * cycles


def test_the_diamonds_of_the_karate_club_as_networkx_matches_them(workers):
    graph = networkx.karate_club_graph().to_directed()
    diamond = networkx.DiGraph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    matcher = networkx.isomorphism.DiGraphMatcher(graph, diamond)
    diamonds = sum(1 for _ in matcher.subgraph_monomorphisms_iter())
    table = np.array(list(graph.edges), np.int64)
    assert count(lambda s: count_motifs(s, DIAMOND, distinct=True), table, workers) == diamonds
