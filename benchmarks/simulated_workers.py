"""Simulated workers: how the cost of agreeing grows with the number of workers.

All run in one thread, with messages that are objects, so this is the work of the
protocol and of the driver and nothing of any system's: per round and worker. In a
round of a barrier every worker tells every other, so that it grows with their
number; what it should not do is grow faster.
"""

from __future__ import annotations

from time import perf_counter

import pointstamp as ps
from benchmarks.barrier import barrier
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Quantity, Reading, Size
from benchmarks.harness.measure import Run
from benchmarks.harness.memory import peaks

COUNTS = {"tiny": (1, 3), "small": (1, 4, 16), "full": (1, 2, 4, 8, 16, 32, 64)}
DECISIONS = {"tiny": 100, "small": 20_000, "full": 60_000}


def simulated(workers: int, rounds: int):
    """A barrier on simulated workers; another seed each sample."""

    def measure(effort: Effort) -> Reading:
        seconds = []
        for seed in range(effort.samples + 1):
            began = perf_counter()
            ps.simulate(_run, rounds, workers=workers, seed=seed)
            seconds.append(perf_counter() - began)
        return Reading(seconds[1:], peaks())

    return measure


def _run(worker: ps.Worker, rounds: int) -> None:
    run: Run = barrier(worker, rounds)
    run()


def cases(size: Size) -> list[Case]:
    """From one to sixty-four; fewer rounds the more there are, since each costs more."""
    return [
        Case(
            OURS,
            simulated(workers, rounds),
            rounds * workers,
            {"workers": workers},
            in_both_modes=True,
        )
        for workers in COUNTS[size]
        for rounds in [max(2, DECISIONS[size] // 20 // workers**2)]
    ]


BENCHMARK = Benchmark(
    name="simulated_workers",
    title="1 to 64 simulated workers at a barrier",
    about="Per round and worker, in one thread, with the simulation's own driver included.",
    quantity=Quantity("us per round and worker", 1e6),
    cases=cases,
    axis="workers",
)
