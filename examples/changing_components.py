"""Connected components of a graph whose edges come and go, kept by a service.

A change is an edge and +1 or -1; an edge is there while its changes add up to more than 0.
The edges are kept in shares, each of which passes on a spanning forest of what it has, and
what changes in that. One worker has the forests of all shares, and walks again through
those trees that an epoch has touched. It tells which vertices are in another component
than before; a component has the name of its least vertex.

What is kept is state that lasts. Halfway the service is aborted; another one begins
with its checkpoint, on one more worker, and goes on.

    python examples/changing_components.py [VERTICES [EDGES [EPOCHS [WORKERS]]]]
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

import pointstamp as ps

CHANGE = pa.schema({"src": pa.int64(), "dst": pa.int64(), "change": pa.int64()})
SHARED = CHANGE.append(pa.field("share", pa.int64()))
MOVED = pa.schema({"epoch": pa.int64(), "vertex": pa.int64(), "component": pa.int64()})
SHARES = 16
"""In how many parts the edges are kept, on however many workers."""

Edge: TypeAlias = tuple[int, int]
Update: TypeAlias = tuple[Edge, int]
Logic = Callable[[ps.Input, ps.Output, ps.Notificator], None]


def with_share(changes: pa.RecordBatch) -> pa.RecordBatch:
    """One direction of each edge, and by it the share; loops connect nothing."""
    rows: Any = zip(*(changes[name].to_pylist() for name in CHANGE.names), strict=True)
    kept = [(min(u, v), max(u, v), n, min(u, v) % SHARES) for u, v, n in rows if u != v]
    return pa.RecordBatch.from_pylist(
        [dict(zip(SHARED.names, row, strict=True)) for row in kept], schema=SHARED
    )


def thin_out(share: int, changes: pa.RecordBatch, state: Any) -> tuple[Any, list[Update]]:
    """What changes in the spanning forest of a share with the changes of an epoch."""
    counts, forest = state
    for u, v, n in zip(*(changes[name].to_pylist() for name in CHANGE.names), strict=True):
        counts[u, v] += n
    lost = [edge for edge in forest if counts[edge] <= 0]
    forest.difference_update(lost)
    trees = Trees(forest)
    grown = [edge for edge, n in counts.items() if n > 0 and trees.connect(edge)]
    forest.update(grown)
    present = Counter({edge: n for edge, n in counts.items() if n})
    return (present, forest), [(edge, -1) for edge in lost] + [(edge, +1) for edge in grown]


class Trees:
    """Which vertices belong together; the root of a tree is its least vertex."""

    def __init__(self, edges: set[Edge]) -> None:
        self._parents: dict[int, int] = {}
        for edge in edges:
            self.connect(edge)

    def connect(self, edge: Edge) -> bool:
        """Whether the edge made one tree of two."""
        low, high = sorted(map(self._root, edge))
        self._parents[high] = low
        return low != high

    def _root(self, vertex: int) -> int:
        parents = self._parents
        while (parent := parents.setdefault(vertex, vertex)) != vertex:
            parents[vertex] = vertex = parents[parent]
        return vertex


def label(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
    """Tells (epoch, vertex, component) of the vertices whose component is another one."""
    capability.drop()
    near: dict[int, set[int]] = info.state("near", route=lambda vertex: 0)
    labels: dict[int, int] = info.state("labels", route=lambda vertex: 0)
    came: dict[int, list[Update]] = defaultdict(list)

    def logic(input: ps.Input, output: ps.Output, notificator: ps.Notificator) -> None:
        for time, batch in input:
            came[time.time].extend(batch)
            notificator.notify_at(time.retain())
        for cap in notificator:
            with cap, output.session(cap) as session:
                for vertex, root in relabelled(came.pop(cap.time, []), near, labels):
                    session.give((cap.time, vertex, root))

    return logic


def relabelled(
    updates: list[Update], near: dict[int, set[int]], labels: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Change the forests; then each vertex that has a new label, and the label."""
    touched: list[int] = []
    for (u, v), diff in updates:
        for vertex, other in ((u, v), (v, u)):
            others = near.get(vertex, set())
            others.add(other) if diff > 0 else others.remove(other)
            near[vertex] = others  # again, as it has changed in place
        # An edge inside of a component changes nothing.
        if diff < 0 or labels.get(u, u) != labels.get(v, v):
            touched += (u, v)
    seen: set[int] = set()
    for start in touched:
        if start not in seen:
            tree = reached_from(start, near)
            seen |= tree
            root = min(tree)
            for vertex in tree:
                if labels.get(vertex) != root:
                    labels[vertex] = root
                    yield vertex, root


def reached_from(start: int, near: dict[int, set[int]]) -> set[int]:
    reached, todo = {start}, [start]
    while todo:
        new = near[todo.pop()] - reached
        reached |= new
        todo += new
    return reached


def components(scope: ps.Scope, changes: ps.Stream[Any]) -> ps.Stream[Any]:
    """The vertices that come into another component, at each epoch."""
    shares = changes.map_batches(with_share)
    forests = shares.state_machine(thin_out, key="share", default=(Counter(), set()))
    moved = forests.unary_notify(ps.Exchange(lambda update: 0), "Label", label)
    return moved.map_batches(
        lambda rows: pa.RecordBatch.from_pylist(
            [dict(zip(MOVED.names, row, strict=True)) for row in rows], schema=MOVED
        )
    )


def serve(folder: str, workers: int) -> ps.Service:
    inputs, outputs = {"changes": CHANGE}, {"components": MOVED}
    return ps.serve(
        components, workers, inputs=inputs, outputs=outputs, checkpoint=folder, snapshot_every=3
    )


def feed(service: ps.Service, epochs: list[list[Update]]) -> None:
    """Send what is missing, from where the service says that it is."""
    changes = service.input("changes")
    for epoch in range(changes.time or 0, len(epochs)):
        changes.send([{"src": u, "dst": v, "change": n} for (u, v), n in epochs[epoch]])
        changes.advance_to(epoch + 1)


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
            moved = service.output("components").collect(upto=n_epochs - 1).to_pylist()
    labels: dict[int, int] = {}
    for epoch in range(n_epochs):
        new = {row["vertex"]: row["component"] for row in moved if row["epoch"] == epoch}
        labels |= new
        print(
            f"epoch {epoch}: {len(new)} vertices moved, {len({*labels.values()})} components of "
            f"{len(labels)} vertices"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
