"""Changing graphs, and what algorithms on them give: as networkx has it, of each state."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import networkx as nx

import pointstamp as ps
from pointstamp.collections import changing_graphs as graphs
from tests.collections.checks import PIECES, in_pieces
from tests.collections.running import set_limits_of_loops

Edge = tuple[int, int]
Rows = Counter[Any]

N = 12


def histories(seed: int, n_epochs: int) -> list[list[tuple[Edge, int]]]:
    """Changes of epochs: at first many edges, then a few that come and go."""
    choose = random.Random(seed)
    there: list[Edge] = []
    epochs = []
    for epoch in range(n_epochs):
        gone = choose.sample(there, min(len(there), choose.randrange(4)))
        come = [(choose.randrange(N), choose.randrange(N)) for _ in range(3 if epoch else 15)]
        come = [edge for edge in dict.fromkeys(come) if edge not in there]
        there = [edge for edge in there if edge not in gone] + come
        epochs.append([*((edge, 1) for edge in come), *((edge, -1) for edge in gone)])
    return epochs


def bfs_of(graph: nx.DiGraph) -> Rows:
    found = nx.single_source_shortest_path_length(graph, 0) if 0 in graph else {0: 0}
    return Counter(found.items())


def labels_of(parts: Any) -> Rows:
    return Counter((node, min(part)) for part in parts for node in part)


def components_of(graph: nx.DiGraph) -> Rows:
    return labels_of(nx.weakly_connected_components(graph))


def strong_of(graph: nx.DiGraph) -> Rows:
    return labels_of(nx.strongly_connected_components(graph))


def core_of(graph: nx.DiGraph, k: int) -> Rows:
    plain = nx.Graph(graph)
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    core = nx.k_core(plain, k)
    return Counter([*core.edges, *((v, u) for u, v in core.edges)])


def core_numbers_of(graph: nx.DiGraph) -> Rows:
    plain = nx.Graph(graph)
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    return Counter(list(nx.core_number(plain).items()))


MOST_STEPS = 3_000
"""Of a worker, until the epochs that are under way are complete: some hundreds are needed."""

ALGORITHMS: dict[str, tuple[Callable[..., Any], Callable[[nx.DiGraph], Rows]]] = {
    "bfs": (graphs.bfs, bfs_of),
    "components": (lambda edges, roots: graphs.components(edges), components_of),
    "strong": (lambda edges, roots: graphs.strongly_connected(edges), strong_of),
    "core": (lambda edges, roots: graphs.k_core(edges, 2), partial(core_of, k=2)),
    "core numbers": (lambda edges, roots: graphs.core_numbers(edges), core_numbers_of),
}


def expected(epochs: list[list[tuple[Edge, int]]], compute: Callable[[nx.DiGraph], Any]) -> Any:
    graph = nx.DiGraph()
    found = []
    for changes in epochs:
        for edge, diff in changes:
            graph.add_edge(*edge) if diff > 0 else graph.remove_edge(*edge)
        graph.remove_nodes_from(list(nx.isolates(graph)))
        found.append(compute(graph))
    return found


def check_graph(name: str, seed: int, n_epochs: int, workers: int, at_a_time: int) -> None:
    """On simulated workers, with several epochs under way, each state is that of networkx."""
    set_limits_of_loops(bool(seed % 2))
    epochs = histories(seed, n_epochs)
    with in_pieces(PIECES[seed // 2 % len(PIECES)]):
        parts = ps.simulate(_run, name, epochs, at_a_time, workers=workers, seed=seed)
    now: Rows = Counter()
    for epoch, wanted in enumerate(expected(epochs, ALGORITHMS[name][1])):
        for part in parts:
            for row, time, diff in part:
                if time == epoch:
                    now[row] += diff
        assert +now == wanted


def _run(worker: ps.Worker, name: str, epochs: list[Any], at_a_time: int) -> list[Any]:
    seen: list[Any] = []
    build, _ = ALGORITHMS[name]
    with worker.dataflow() as scope:
        edges, graph = scope.new_collection("src long, dst long")
        roots, starts = scope.new_collection("node long")
        result = build(graph, starts)
        result.inspect(lambda row, time, diff: seen.append((row, time, diff)))
        probe = result.probe()
    if worker.index == 0:
        roots.insert([(0,)])
    roots.close()
    for epoch, changes in enumerate(epochs):
        edges.update(changes[worker.index :: worker.peers])
        edges.advance_to(epoch + 1)
        if epoch % at_a_time == at_a_time - 1:
            worker.step_while(within(MOST_STEPS, partial(probe.less_than, epoch + 1)))
    edges.close()
    worker.step_while(within(MOST_STEPS, lambda: not probe.done))
    worker.run()
    return seen


def within(most: int, condition: Callable[[], bool]) -> Callable[[], bool]:
    """The condition, which is asked so many times at most: a loop with a bug may never end."""
    asked = count()

    def still() -> bool:
        assert next(asked) < most, "it goes on and on"
        return condition()

    return still
