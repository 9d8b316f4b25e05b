"""Ping-pong: one record goes round a loop, to the other worker and back.

Every hop the number is one higher, and the exchange is by the number, so that it
goes to whichever worker its hash names.
"""

from __future__ import annotations

import pointstamp as ps
from benchmarks import plain
from benchmarks.harness.case import Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run

HOPS = {"tiny": 20, "small": 3_000, "full": 30_000}


def pingpong(worker: ps.Worker, hops: int) -> Run:
    """Send one record round `hops` times."""
    with worker.dataflow("pingpong") as scope:
        loop, cycle = scope.feedback(1)
        start = scope.to_stream([0] if worker.index == 0 else [])
        moved = start.concat(cycle).map(lambda x: x + 1).exchange(lambda x: x)
        loop.connect(moved.filter(lambda x: x < hops))
    return worker.run


def cases(size: Size) -> list[Case]:
    """One worker, two, and more than there are cores; what the machine takes for less."""
    return [*plain.coordination(pingpong, HOPS[size]), *plain.floors(HOPS[size])]


BENCHMARK = Benchmark(
    name="pingpong",
    title="Ping-pong: one record round a loop",
    about="Per hop: concatenate, map, exchange, filter and feedback for one record.",
    quantity=Quantity("us per hop", 1e6),
    cases=cases,
    baselines=(plain.ASYNCIO, plain.PIPE),
    floors=plain.FLOORS,
    targets=(Target({"workers": 1}, 9, 5), Target({"workers": 2}, 25, 10)),
    elsewhere=(
        Elsewhere("Rust timely", {"workers": 1}, 5.6),
        Elsewhere("Rust timely, two processes", {"workers": 2}, 42),
    ),
)
