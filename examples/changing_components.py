"""Connected components of a graph whose edges come and go, kept by a service.

A change is an edge and +1 or -1; an edge is there while its changes add up to more than 0. Each
vertex has the least vertex of its component as its label: labels go along edges, in a loop, until
none changes any more. When edges change, the rounds that differ are computed again, and no others.

What is kept is state that lasts. Halfway the service is aborted; another one begins
with its checkpoint, on one more worker, and goes on.

    python examples/changing_components.py [VERTICES [EDGES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys
import tempfile
from typing import TypeAlias

import pointstamp as ps
from pointstamp import col

Edge: TypeAlias = tuple[int, int]
Update: TypeAlias = tuple[Edge, int]

SCHEMAS = {"edges": "src long, dst long"}


def components(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """`node` and `label`; edges have no direction, and loops connect nothing."""
    is_up = col("src") < col("dst")
    ends = edges.filter(col("src") != col("dst")).select(
        src=ps.when(is_up).then(col("src")).otherwise(col("dst")),
        dst=ps.when(is_up).then(col("dst")).otherwise(col("src")),
    )
    there = ends.distinct()
    both = there.concat(there.select(src="dst", dst="src"))
    nodes = both.select(node="src", label="src").distinct()

    def propagate(labels: ps.Collection) -> ps.Collection:
        offers = labels.join(both, left_on="node", right_on="src").select("label", node="dst")
        return offers.concat(nodes).group_by("node").agg(label=ps.min("label"))

    return nodes.iterate(propagate)


def serve(folder: str, workers: int, *, threads: bool = False) -> ps.Service:
    options = {"checkpoint": folder, "snapshot_every": 3, "threads": threads}
    return ps.serve(components, workers, collections=SCHEMAS, **options)  # type: ignore[arg-type]


def feed(service: ps.Service, epochs: list[list[Update]]) -> None:
    """Send what is missing, from where the service says that it is."""
    edges = service.input("edges")
    for epoch in range(edges.time or 0, len(epochs)):
        edges.update(epochs[epoch])
        service.advance()


def random_changes(n_vertices: int, n_edges: int, n_epochs: int) -> list[list[Update]]:
    """At each epoch edges come, and those that came two epochs before go."""
    draw = random.Random(3)

    def some() -> list[Edge]:
        return [(draw.randrange(n_vertices), draw.randrange(n_vertices)) for _ in range(n_edges)]

    came = [some() for _ in range(n_epochs)]
    return [
        [(edge, +1) for edge in come] + [(edge, -1) for edge in (came[k - 2] if k >= 2 else [])]
        for k, come in enumerate(came)
    ]


def main(n_vertices: int = 30, n_edges: int = 8, n_epochs: int = 8, workers: int = 2) -> None:
    epochs = random_changes(n_vertices, n_edges, n_epochs)
    with tempfile.TemporaryDirectory() as folder:
        first = serve(folder, workers)
        feed(first, epochs[: n_epochs // 2])
        first.abort()
        with serve(folder, workers + 1) as service:
            feed(service, epochs)
            output = service.output("result")
            for epoch in range(n_epochs):
                moved = {node for (node, _), _ in output.changes(epoch)}
                labels = dict(output.snapshot(epoch))
                print(
                    f"epoch {epoch}: {len(moved)} vertices moved, {len({*labels.values()})} "
                    f"components of {len(labels)} vertices"
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
