"""Many dataflows on one worker, of which one moves: what the others cost it.

The cost of a round should be that of what happens in it. The baseline is the same
program with one dataflow.
"""

from __future__ import annotations

from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run, on_workers

COUNTS = {"tiny": (1, 3), "small": (1, 100, 1_000), "full": (1, 10, 100, 1_000)}
ROUNDS = {"tiny": 10, "small": 2_000, "full": 5_000}


def dataflows(worker: ps.Worker, n_dataflows: int, rounds: int) -> Run:
    """A record per round through the last of `n_dataflows`, all with open inputs."""
    built = [_dataflow(worker) for _ in range(n_dataflows)]
    # What has just been built has something to do; only afterwards it is idle.
    while worker.has_work:
        worker.step()
    input, probe = built[-1]

    def run() -> None:
        for _ in range(rounds):
            input.send(input.time)
            input.advance_to(input.time + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    return run


def _dataflow(worker: ps.Worker) -> tuple[Any, ps.Probe]:
    with worker.dataflow("one of many") as scope:
        input, stream = scope.new_input()
        return input, stream.map(lambda x: x + 1).probe()


def cases(size: Size) -> list[Case]:
    """From one to a thousand."""
    return [
        Case(
            OURS,
            on_workers(dataflows, n_dataflows, ROUNDS[size], workers=1, once=True),
            ROUNDS[size],
            {"dataflows": n_dataflows},
            in_both_modes=True,
        )
        for n_dataflows in COUNTS[size]
    ]


BENCHMARK = Benchmark(
    name="many_dataflows",
    title="1 to 1,000 dataflows, of which one moves",
    about="Per round of the one that moves: input, map, probe.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    elsewhere=(
        Elsewhere("Rust timely", {"dataflows": 1}, 3.5),
        Elsewhere("Rust timely", {"dataflows": 1_000}, 8.9),
    ),
    axis="dataflows",
    growth=(Target({"dataflows": 1_000}, 2.5, 1.2),),
)
