"""Triangles of a graph that grows: a service counts those that each batch of edges closes.

A triangle is closed by its last edge, and found when that comes: the younger of its ends
sends the neighbours that it has to the older one, which counts those that both have. Edges of
one epoch are taken in the order of their ends, so that one of them is the last.

What the vertices know is state that lasts. Halfway the service is aborted; another one
begins with its checkpoint, on one more worker, and goes on.

    python examples/growing_triangles.py [EDGES [EPOCHS [WORKERS]]]
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

import pointstamp as ps
from pointstamp.formats.edge_files import read_edges

EDGE = pa.schema({"src": pa.int64(), "dst": pa.int64()})
COUNT = pa.schema({"epoch": pa.int64(), "triangles": pa.int64()})

Neighbours: TypeAlias = dict[int, set[int]]
Logic = Callable[[ps.Input, ps.Output, ps.Notificator], None]


def when_complete(work: Callable[[int, list[Any], Neighbours], Iterable[Any]]) -> Any:
    """An operator that knows the neighbours of its vertices, and works epoch by epoch."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
        capability.drop()
        neighbours = info.state("neighbours")
        came: dict[int, list[Any]] = defaultdict(list)

        def logic(input: ps.Input, output: ps.Output, notificator: ps.Notificator) -> None:
            for time, batch in input:
                came[time.time].extend(batch)
                notificator.notify_at(time.retain())
            for cap in notificator:
                with cap, output.session(cap) as session:
                    ends = sorted(came.pop(cap.time, ()), key=lambda end: sorted(end[:2]))
                    session.give_many(work(cap.time, ends, neighbours))

        return logic

    return build


def ask(epoch: int, ends: list[Any], neighbours: Neighbours) -> Iterator[Any]:
    """Of a new edge, tell the other end; the younger, with the neighbours that it has."""
    for vertex, other in ends:
        near = neighbours.get(vertex, set())
        if other not in near:
            yield other, vertex, list(near) if vertex > other else []
            near.add(other)
            neighbours[vertex] = near  # again, as it has changed in place


def answer(epoch: int, ends: list[Any], neighbours: Neighbours) -> Iterator[Any]:
    """How many triangles the edges of an epoch close here."""
    closed = 0
    for vertex, other, theirs in ends:
        near = neighbours.get(vertex, set())
        closed += len(near.intersection(theirs))
        near.add(other)
        neighbours[vertex] = near
    yield epoch, closed


def both_ends(edges: pa.RecordBatch) -> list[tuple[int, int]]:
    """Each edge as seen from both of its ends; loops are in no triangle."""
    pairs: Any = zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True)
    return [end for u, v in pairs if u != v for end in ((u, v), (v, u))]


def add_up(key: int, counted: tuple[int, int], total: int) -> tuple[int, list[tuple[int, int]]]:
    epoch, closed = counted
    return total + closed, [(epoch, total + closed)]


def triangles(scope: ps.Scope, edges: ps.Stream[Any]) -> ps.Stream[Any]:
    """How many there are, told after each epoch in which new edges came."""
    by_vertex = ps.Exchange(lambda end: end[0])
    told = edges.map_batches(both_ends).unary_notify(by_vertex, "Ask", when_complete(ask))
    closed = told.unary_notify(by_vertex, "Answer", when_complete(answer))
    per_epoch = closed.aggregate(lambda epoch, closed, total: total + closed, default=0)
    totals = per_epoch.state_machine(add_up, key=lambda counted: 0, default=0)
    return totals.map_batches(
        lambda rows: pa.RecordBatch.from_pylist(
            [dict(zip(COUNT.names, row, strict=True)) for row in rows], schema=COUNT
        )
    )


def serve(folder: str, workers: int) -> ps.Service:
    inputs, outputs = {"edges": EDGE}, {"triangles": COUNT}
    return ps.serve(
        triangles, workers, inputs=inputs, outputs=outputs, checkpoint=folder, snapshot_every=3
    )


def feed(service: ps.Service, epochs: list[pa.Table]) -> None:
    """Send what is missing, from where the service says that it is."""
    edges = service.input("edges")
    for epoch in range(edges.time or 0, len(epochs)):
        edges.send(epochs[epoch])
        edges.advance_to(epoch + 1)


def random_edges(n_vertices: int, n_edges: int) -> pa.Table:
    draw = random.Random(3)
    src, dst = ([draw.randrange(n_vertices) for _ in range(n_edges)] for _ in range(2))
    return pa.table([pa.array(src, pa.int64()), pa.array(dst, pa.int64())], schema=EDGE)


def edges_of(file: str) -> pa.Table:
    return pa.Table.from_batches(read_edges(file).batches(), EDGE)


def main(file: str | None = None, n_epochs: int | str = 8, workers: int | str = 2) -> None:
    edges = random_edges(50, 400) if file is None else edges_of(file)
    size = -(-len(edges) // int(n_epochs))
    epochs = [edges.slice(start, size) for start in range(0, len(edges), size)]
    with tempfile.TemporaryDirectory() as folder:
        first = serve(folder, int(workers))
        feed(first, epochs[: len(epochs) // 2])
        first.abort()
        with serve(folder, int(workers) + 1) as service:
            feed(service, epochs)
            counts = service.output("triangles").collect(upto=len(epochs) - 1)
    for row in counts.to_pylist():
        print(f"epoch {row['epoch']}: {row['triangles']} triangles")


if __name__ == "__main__":
    main(*sys.argv[1:])
