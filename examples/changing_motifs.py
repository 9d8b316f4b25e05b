"""Triangles of a graph that changes: which appear and which vanish with each change.

The pattern is a join of the edges with themselves that is kept up to date: a changed edge is
taken for each edge of the pattern in turn, and the vertex that is missing is one that both ends
agree on. What an epoch tells is the matches that it brings and takes, each once.

    python examples/changing_motifs.py [VERTICES [EDGES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys
from typing import Any, TypeAlias

import pointstamp as ps

Edge: TypeAlias = tuple[int, int]
Triangle: TypeAlias = tuple[int, int, int]
Update: TypeAlias = tuple[Any, int]
"""An edge, the triangle that it may be of, or one; and whether it comes (+1) or goes (-1)."""

TRIANGLE = "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)"


def epochs(n_vertices: int, n_edges: int, n_epochs: int) -> list[list[Update]]:
    """At first random edges; then at each epoch a tenth of them go and as many come."""
    draw = random.Random(5)
    pairs = [(a, b) for a in range(n_vertices) for b in range(n_vertices) if a != b]
    present = draw.sample(pairs, n_edges)
    result: list[list[Update]] = [[(edge, +1) for edge in present]]
    for _ in range(n_epochs - 1):
        gone = draw.sample(present, n_edges // 10)
        come = draw.sample(sorted({*pairs} - {*present}), n_edges // 10)
        present = sorted({*present, *come} - {*gone})
        result.append([(edge, -1) for edge in gone] + [(edge, +1) for edge in come])
    return result


def watch(worker: ps.Worker, epochs: list[list[Update]]) -> list[tuple[int, Update]]:
    """(epoch, update) of the triangles found here."""
    found: list[tuple[int, Update]] = []
    with worker.dataflow("motifs") as scope:
        input, edges = scope.new_collection("src long, dst long")
        triangles = ps.motifs(edges, TRIANGLE)
        triangles.inspect(lambda abc, epoch, diff: found.append((epoch, (abc, diff))))
    for epoch, updates in enumerate(epochs):
        input.update(updates[worker.index :: worker.peers])
        input.advance_to(epoch + 1)
        worker.step()
    input.close()
    worker.run()
    return found


def main(n_vertices: int = 50, n_edges: int = 500, n_epochs: int = 4, workers: int = 2) -> None:
    changes = epochs(n_vertices, n_edges, n_epochs)
    found = [update for part in ps.execute(watch, changes, workers=workers) for update in part]
    n_present = 0
    for epoch in range(n_epochs):
        diffs = [diff for at, (_, diff) in found if at == epoch]
        n_present += sum(diffs)
        print(
            f"epoch {epoch}: {len(changes[epoch])} edges change, {diffs.count(1)} triangles "
            f"appear and {diffs.count(-1)} vanish: {n_present}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
