"""Triangles of a graph that grows: a service counts those that there are after each epoch.

An edge is there once, however often it comes, and in either direction; loops are in no triangle.
The pattern is a join of the edges with themselves that is kept up to date: what an epoch costs
is what its new edges are in.

The edges are state that lasts. Halfway the service is aborted; another one
begins with its checkpoint, on one more worker, and goes on.

    python examples/growing_triangles.py [EDGES [EPOCHS [WORKERS]]]
"""

from __future__ import annotations

import random
import sys
import tempfile

import pyarrow as pa

import pointstamp as ps
from pointstamp import col
from pointstamp.formats.edge_files import read_edges

EDGE = pa.schema({"src": pa.int64(), "dst": pa.int64()})
SCHEMAS = {"edges": "src long, dst long"}


def triangles(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """One row: how many there are, of edges that go up."""
    is_up = col("src") < col("dst")
    low = ps.when(is_up).then(col("src")).otherwise(col("dst"))
    high = ps.when(is_up).then(col("dst")).otherwise(col("src"))
    up = edges.filter(col("src") != col("dst")).select(low=low, high=high).distinct()
    found = ps.motifs(up, "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)")
    return found.agg(triangles=ps.count())


def serve(folder: str, workers: int, *, threads: bool = False) -> ps.Service:
    options = {"checkpoint": folder, "snapshot_every": 3, "threads": threads}
    return ps.serve(triangles, workers, collections=SCHEMAS, **options)  # type: ignore[arg-type]


def feed(service: ps.Service, epochs: list[pa.Table]) -> None:
    """Send what is missing, from where the service says that it is."""
    edges = service.input("edges")
    for epoch in range(edges.time or 0, len(epochs)):
        edges.insert(epochs[epoch])
        service.advance()


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
            for epoch in range(len(epochs)):
                ((n,),) = service.output("result").snapshot(epoch)
                print(f"epoch {epoch}: {n} triangles")


if __name__ == "__main__":
    main(*sys.argv[1:])
