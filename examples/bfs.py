"""Breadth-first search by hand: a time is a distance.

A vertex that is reached at time t tells its neighbours at t + 1, by a loop that advances time
by one. Time t is complete when no vertex at that distance can be named any more, by any worker,
so the first time at which a vertex is named is its distance. Edges stay with the worker
that owns the vertex they come from, and only vertices travel.
`pointstamp.graph.bfs` does it on columns, for graphs that are large.

    python examples/bfs.py [VERTICES [EDGES [WORKERS]]]
"""

from __future__ import annotations

import collections
import random
import sys
from collections.abc import Callable

import pointstamp as ps

Logic = Callable[[ps.Input, ps.Input, ps.Output, ps.Notificator], None]


def random_edges(n_vertices: int, n_edges: int) -> list[tuple[int, int]]:
    draw = random.Random(7)
    return [(draw.randrange(n_vertices), draw.randrange(n_vertices)) for _ in range(n_edges)]


def search(worker: ps.Worker, edges: list[tuple[int, int]], root: int) -> dict[int, int]:
    """The distance from the root of each vertex that this worker owns."""
    distances: dict[int, int] = {}

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
        capability.drop()
        neighbours: dict[int, list[int]] = {}
        named: dict[int, set[int]] = {}

        def logic(
            edges: ps.Input, vertices: ps.Input, output: ps.Output, notificator: ps.Notificator
        ) -> None:
            for _, batch in edges:
                for source, target in batch:
                    neighbours.setdefault(source, []).append(target)
            for time, batch in vertices:
                if time.time not in named:
                    named[time.time] = set()
                    notificator.notify_at(time.retain())
                named[time.time].update(batch)
            for cap in notificator:
                with cap, output.session(cap) as session:
                    for vertex in named.pop(cap.time) - distances.keys():
                        distances[vertex] = cap.time
                        session.give_many(neighbours.get(vertex, ()))

        return logic

    with worker.dataflow("bfs") as scope:
        loop, reached = scope.feedback(1)
        mine = scope.to_stream(edges[worker.index :: worker.peers])
        vertices = scope.to_stream([root] if worker.index == 0 else []).concat(reached)
        pacts = ps.Exchange(lambda edge: edge[0]), ps.Exchange(lambda vertex: vertex)
        loop.connect(mine.binary_notify(vertices, *pacts, "Search", build))
    worker.run()
    return distances


def main(n_vertices: int = 1000, n_edges: int = 5000, workers: int = 2) -> None:
    parts = ps.execute(search, random_edges(n_vertices, n_edges), 0, workers=workers)
    sizes = collections.Counter(distance for part in parts for distance in part.values())
    for distance, n in sorted(sizes.items()):
        print(f"distance {distance}: {n} vertices")
    print(f"{n_vertices - sizes.total()} vertices are not reached")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
