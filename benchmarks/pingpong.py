"""Ping-pong: one record goes round a loop, to the other worker and back.

Every hop the number is one higher, and is the number of the worker that it goes to: so each
hop is to the next worker. What ends it is the time, as in timely's example.
"""

from __future__ import annotations

import pointstamp as ps
from benchmarks import plain
from benchmarks.harness import rust
from benchmarks.harness.case import Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run

HOPS = {"tiny": 20, "small": 3_000, "full": 30_000}


def pingpong(worker: ps.Worker, hops: int) -> Run:
    """Send one record round `hops` times."""

    def run() -> None:
        with worker.dataflow("pingpong") as scope:
            loop, cycle = scope.feedback(1)
            start = scope.to_stream([0] if worker.index == 0 else [])
            moved = start.concat(cycle).exchange(to=lambda x: x).map(lambda x: x + 1)
            _, again = moved.branch_when(lambda time: time < hops)
            loop.connect(again)
        worker.run()

    return run


def cases(size: Size) -> list[Case]:
    """One worker, two, and more than there are cores; Rust; what the machine takes for less."""
    hops = HOPS[size]
    return [
        *plain.coordination(pingpong, hops),
        *rust.example("example_pingpong", 1, rounds=hops),
        *plain.floors(hops),
    ]


BENCHMARK = Benchmark(
    name="pingpong",
    title="Ping-pong: one record round a loop",
    about="Per hop, from one worker to the other: concatenate, exchange, map, branch and feedback.",
    quantity=Quantity("us per hop", 1e6),
    cases=cases,
    baselines=(plain.ASYNCIO, plain.PIPE),
    floors=plain.FLOORS,
    targets=(Target({"workers": 1}, 9, 5), Target({"workers": 2}, 25, 10)),
)
