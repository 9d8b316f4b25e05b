"""Graph algorithms on changing graphs, beside networkx on each state of the graph."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest

import pointstamp as ps
from pointstamp.collections import changing_graphs as graphs
from pointstamp.errors import BuildError
from tests.collections.graphs import ALGORITHMS, Rows, check_graph, expected, histories

ROUNDS = 30


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("seed", range(3))
def test_each_state_is_that_of_networkx(name: str, seed: int) -> None:
    build, compute = ALGORITHMS[name]
    epochs = histories(seed, 12)
    view = ps.View(
        lambda scope, edges, roots: build(edges, roots),
        edges="src long, dst long",
        roots="node long",
    )
    view.insert("roots", [(0,)])
    now: Rows = Counter()
    for changes, wanted in zip(epochs, expected(epochs, compute), strict=True):
        view.update("edges", changes)
        for row, diff in view.advance():
            now[row] += diff
        assert +now == wanted
        assert all(n >= 0 for n in now.values())
    view.close()


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("workers", "at_a_time"), [(1, 5), (2, 1), (3, 4), (4, 20)])
def test_workers_and_epochs_under_way_give_the_same(
    name: str, workers: int, at_a_time: int
) -> None:
    check_graph(name, workers, 10, workers, at_a_time)


def ranks(graph: nx.DiGraph) -> dict[int, float]:
    """By its definition, in as many rounds."""
    found = dict.fromkeys(graph, 1 / len(graph))
    for _ in range(ROUNDS):
        lost = sum(found[node] for node in graph if not graph.out_degree(node))
        share = (0.15 + 0.85 * lost) / len(graph)
        found = {
            node: share
            + sum(0.85 * found[v] / graph.out_degree(v) for v in graph.predecessors(node))
            for node in graph
        }
    return found


def test_pagerank_is_that_of_its_definition() -> None:
    epochs = histories(5, 6)
    view = ps.View(lambda scope, edges: graphs.pagerank(edges, ROUNDS), edges="src long, dst long")
    now: Rows = Counter()

    for changes, wanted in zip(epochs, expected(epochs, ranks), strict=True):
        view.update("edges", changes)
        for row, diff in view.advance():
            now[row] += diff
        found = +now
        assert all(n == 1 for n in found.values())
        assert dict(list(found)) == pytest.approx(wanted, rel=1e-12)


def test_what_cannot_be_is_refused() -> None:
    def build(scope: Any, edges: Any) -> Any:
        with pytest.raises(BuildError, match="k=0"):
            graphs.k_core(edges, 0)
        with pytest.raises(BuildError, match="damping=2"):
            graphs.pagerank(edges, damping=2)
        return edges

    ps.View(build, edges="src long, dst long").close()
