"""Edges turned from lower to higher degree."""

from __future__ import annotations

from collections import Counter
from graphlib import TopologicalSorter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.graph import orient
from pointstamp.graph.orient import undirected
from pointstamp.kernels.lists import DenseIds
from tests.graph.answers import edge_lists, quick


def oriented(edges, workers=1):
    """The turned edges of all workers, with repeats."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            mine = edges[worker.index :: worker.peers]
            undirected(scope.to_stream(mine)).inspect_batch(lambda t, batch: found.extend(batch))
        worker.run()
        return found

    return [edge for part in ps.execute(main, workers=workers, threads=True) for edge in part]


def ends(edges):
    return Counter(frozenset(edge) for edge in edges)


@pytest.mark.parametrize("workers", [1, 3])
@quick
@given(edges=edge_lists)
def test_every_edge_leads_from_lower_to_higher_degree(workers, edges):
    found = oriented(edges, workers)
    proper = [(source, target) for source, target in edges if source != target]
    assert ends(found) == ends(proper)
    degrees = Counter(end for edge in proper for end in edge)
    assert all((degrees[s], s) < (degrees[t], t) for s, t in found)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("n_known", [0, 3, 9])
@quick
@given(edges=edge_lists)
def test_where_few_degrees_are_known_all_workers_go_by_one_order(n_known, workers, edges):
    proper = [(source, target) for source, target in edges if source != target]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orient, "KNOWN_VERTICES", n_known)
        found = oriented(edges, workers)
    assert ends(found) == ends(proper)
    graph = {}
    for source, target in found:
        graph.setdefault(target, set()).add(source)
    TopologicalSorter(graph).prepare()  # raises where there is a circle
    if not n_known:
        assert all(source < target for source, target in found)


@given(degrees=st.lists(st.integers(1, 9), max_size=20), n=st.integers(0, 20))
def test_the_highest_degrees_are_those_that_are_known(degrees, n):
    ids = np.arange(len(degrees)) * 3
    part = orient._Degrees(DenseIds.of(ids), np.array(degrees, np.int64)).highest(n)
    known = dict(zip(part["vertex"].tolist(), part["degree"].tolist(), strict=True))
    assert len(known) <= n
    rest = [d for v, d in zip(ids.tolist(), degrees, strict=True) if v not in known]
    assert all(known[v] == degrees[v // 3] for v in known)
    assert all(d > other for d in known.values() for other in rest)
    left_out = max(rest, default=0)
    assert left_out < 2 or len(known) + rest.count(left_out) > n, "there was no room for more"


def test_no_vertex_has_many_out_neighbours():
    rng = np.random.default_rng(3)
    hub = [(0, leaf) for leaf in range(1, 400)]
    edges = hub + [tuple(edge) for edge in rng.integers(1, 400, (400, 2)).tolist()]
    out = Counter(source for source, _ in set(oriented(edges)))
    assert max(out.values()) <= (2 * len(edges)) ** 0.5
    assert out[0] == 0


def test_graphs_of_different_times_are_turned_apart():
    """1 has the higher degree at the first time, 3 at the second."""

    def main(worker):
        found = []
        with worker.dataflow() as scope:
            input, edges = scope.new_input()
            undirected(edges).inspect_batch(lambda t, batch: found.extend((t, *e) for e in batch))
        for time, batch in enumerate([[(1, 2), (1, 3)], [(3, 2), (3, 1)]]):
            input.advance_to(time)
            for edge in batch:
                input.send(edge)
        input.close()
        worker.run()
        return sorted(found)

    assert ps.execute(main) == [[(0, 2, 1), (0, 3, 1), (1, 1, 3), (1, 2, 3)]]
