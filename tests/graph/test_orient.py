"""Edges turned from lower to higher degree."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

import pointstamp as ps
from pointstamp.graph.orient import undirected
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
