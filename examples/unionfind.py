"""Union-find: components of a graph whose edges go by once.

Each worker keeps a forest, and passes on only those edges that connect two of its trees: fewer
than there are vertices, however many edges there are. One worker does the same with what all of
them passed on, and what it passes on is a spanning forest of the whole graph. Nobody waits
for anybody: an edge is judged when it comes.

    python examples/unionfind.py [VERTICES [EDGES [WORKERS]]]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pointstamp as ps

Logic = Callable[[ps.Input, ps.Output], None]
Edge = tuple[int, int]


class Forest:
    """Which vertices belong together; the root of a tree is its least vertex."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def root(self, vertex: int) -> int:
        """The root of `vertex`, halving the path to it."""
        parents = self._parents
        while (parent := parents.setdefault(vertex, vertex)) != vertex:
            parents[vertex] = vertex = parents[parent]
        return vertex

    def connect(self, edge: Edge) -> bool:
        """Whether the edge made one tree of two."""
        low, high = sorted(map(self.root, edge))
        self._parents[high] = low
        return low != high


def union_find(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    capability.drop()
    forest = Forest()

    def logic(input: ps.Input, output: ps.Output) -> None:
        for time, batch in input:
            with output.session(time) as session:
                session.give_many(edge for edge in batch if forest.connect(edge))

    return logic


def random_edges(index: int, n_vertices: int, n_edges: int) -> list[Edge]:
    draw = random.Random(index)
    return [(draw.randrange(n_vertices), draw.randrange(n_vertices)) for _ in range(n_edges)]


def forest(worker: ps.Worker, n_vertices: int, n_edges: int) -> tuple[int, list[Edge]]:
    """How many edges this worker passed on; and, on one worker, the spanning forest."""
    passed_on: list[Edge] = []
    spanning: list[Edge] = []
    with worker.dataflow("union-find") as scope:
        edges = scope.to_stream(random_edges(worker.index, n_vertices, n_edges))
        local = edges.unary(ps.Pipeline(), "Local", union_find).inspect(passed_on.append)
        all_to_one = ps.Exchange(lambda edge: 0)
        local.unary(all_to_one, "Global", union_find).inspect(spanning.append)
    worker.run()
    return len(passed_on), spanning


def main(n_vertices: int = 1000, n_edges: int = 1200, workers: int = 2) -> None:
    parts = ps.execute(forest, n_vertices, n_edges, workers=workers)
    n_passed_on = sum(n for n, _ in parts)
    n_spanning = sum(len(spanning) for _, spanning in parts)
    print(f"{n_edges * workers} edges, of which {n_passed_on} were passed on and {n_spanning} kept")
    print(f"{n_vertices - n_spanning} components of {n_vertices} vertices")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
