"""Idle operators: what operators with nothing to do cost the one that has something.

A stream goes to a number of operators that keep a capability each, and hold nothing
else; one record per round goes past them.
"""

from __future__ import annotations

from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, on_workers

COUNTS = {"tiny": (1, 10), "small": (1, 100, 10_000), "full": (1, 10, 100, 1_000, 10_000, 100_000)}
ROUNDS = {"tiny": 10, "small": 2_000, "full": 2_000}


def idle(worker: ps.Worker, n_idle: int, rounds: int) -> Run:
    """A record per round through a map, beside `n_idle` operators that wait."""
    with worker.dataflow("idle") as scope:
        _, quiet = scope.new_input("waiting")
        for _ in range(n_idle):
            quiet.unary(ps.Pipeline(), "Idle", _keep)
        input, stream = scope.new_input("moving")
        probe = stream.map(lambda x: x + 1).probe()
    while worker.has_work:
        worker.step()

    def run() -> None:
        for _ in range(rounds):
            input.send(input.time)
            input.advance_to(input.time + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    return run


def _keep(capability: ps.Capability, info: Any) -> Any:
    return lambda input, output: None


def cases(size: Size) -> list[Case]:
    """From one to a hundred thousand."""
    return [
        Case(
            OURS,
            on_workers(idle, n_idle, ROUNDS[size], workers=1, once=True),
            ROUNDS[size],
            {"idle": n_idle},
            in_both_modes=n_idle <= 10_000,
        )
        for n_idle in COUNTS[size]
    ]


BENCHMARK = Benchmark(
    name="idle_operators",
    title="1 to 100,000 idle operators beside one that moves",
    about="Per round of the active one. The others receive nothing, so they are not scheduled.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    axis="idle",
)
