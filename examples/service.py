"""A dataflow that stays: counts of a graph's edges, kept while they come and go.

The stored graph is the first epoch of one input, its changes are the epochs of another. The
service is killed half-way, as if the machine had gone, and another one, with more
workers, goes on from the checkpoint. At the end the degrees are counted anew.

    python examples/service.py [CHANGES [EPOCHS]]
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from typing import Any

import pyarrow as pa

import pointstamp as ps

EDGE = {"src": pa.int64(), "dst": pa.int64(), "diff": pa.int64()}
DEGREE = {"vertex": pa.int64(), "degree": pa.int64()}

Edge = dict[str, int]


def degrees(scope: ps.Scope, graph: ps.Stream[Any], changes: ps.Stream[Any]) -> ps.Stream[Any]:
    """At each epoch, the degrees of the vertices whose edges have changed."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        held: dict[ps.Capability, Counter[int]] = {}
        known = info.state("degrees")

        def logic(input: ps.Input, output: ps.Output) -> None:
            for when, batch in input:
                found = held.setdefault(when.retain(), Counter())
                ends, diffs = batch["src"].to_pylist(), batch["diff"].to_pylist()
                for vertex, diff in zip(ends, diffs, strict=True):
                    found[vertex] += diff
            done = [cap for cap in held if not input.frontier.less_equal(cap.time)]
            for cap in sorted(done, key=lambda cap: cap.time):
                with cap, output.session(cap) as session:
                    changed = held.pop(cap)
                    for vertex, diff in changed.items():
                        known[vertex] = known.get(vertex, 0) + diff
                    rows = [{"vertex": v, "degree": known[v]} for v in changed]
                    session.give_batch(pa.RecordBatch.from_pylist(rows, schema=pa.schema(DEGREE)))

        return logic

    return graph.concat(changes).unary_frontier(ps.Exchange("src"), "Degrees", build)


def serve(folder: str, workers: int) -> ps.Service:
    return ps.serve(
        degrees,
        workers,
        inputs={"graph": EDGE, "changes": EDGE},
        outputs={"degrees": DEGREE},
        threads=True,
        checkpoint=folder,
        snapshot_every=3,
    )


def stored(n: int) -> list[Edge]:
    """Of n vertices, each with an edge to the next."""
    return [{"src": v, "dst": (v + 1) % n, "diff": 1} for v in range(n)]


def change(n: int, epoch: int) -> list[Edge]:
    """What changes at an epoch: the same whenever it is asked for."""
    rolled = random.Random(epoch)
    ends = [(rolled.randrange(n), rolled.randrange(n)) for _ in range(n)]
    return [{"src": src, "dst": dst, "diff": rolled.choice([1, 1, -1])} for src, dst in ends]


def feed(service: ps.Service, n: int, upto: int) -> None:
    """Send what is missing, from where the service says that it is."""
    graph, changes = service.input("graph"), service.input("changes")
    if graph.time == 0:
        graph.send(stored(n))
        graph.advance_to(1)
    graph.close()
    for epoch in range(changes.time or 0, upto):
        changes.send(change(n, epoch))
        changes.advance_to(epoch + 1)


def main(n: int = 100, epochs: int = 10) -> dict[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        first = serve(folder, workers=2)
        feed(first, n, epochs // 2)
        first.probe.wait(epochs // 2 - 1)
        first.abort()
        with serve(folder, workers=3) as second:
            print(f"the second service begins at epoch {second.input('changes').time}")
            feed(second, n, epochs)
            last = {}
            for row in second.output("degrees").collect(upto=epochs - 1).to_pylist():
                last[row["vertex"]] = row["degree"]
    return last


def recount(n: int, epochs: int) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for edge in [*stored(n), *(edge for epoch in range(epochs) for edge in change(n, epoch))]:
        counts[edge["src"]] += edge["diff"]
    return dict(counts)


if __name__ == "__main__":
    n, epochs = (int(arg) for arg in (*sys.argv[1:], "100", "10")[:2])
    found = main(n, epochs)
    same = "as" if found == recount(n, epochs) else "NOT as"
    print(f"{len(found)} vertices have degrees {same} a recount says")
