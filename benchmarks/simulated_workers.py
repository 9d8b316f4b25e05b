"""Simulated workers: how the cost of agreeing grows with the number of workers.

All are in one thread and take turns: each steps, then everything arrives. Messages
are objects, so this is the work of the protocol and nothing of any system's. In a
round of a barrier every worker tells every other, so that the cost for one worker
grows with their number; what it should not do is grow faster.
"""

from __future__ import annotations

import random
from time import perf_counter
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks
from pointstamp.communication.simulated import SimulatedNetwork

COUNTS = {"tiny": (1, 3), "small": (1, 4, 16), "full": (1, 2, 4, 8, 16, 32, 64)}
MESSAGES = {"tiny": 50, "small": 5_000, "full": 40_000}
FIRST = 2
"""The rounds before belong to the start, when workers compare what they have built."""


def in_turns(peers: int, rounds: int) -> Measure:
    """A barrier on `peers` workers that take turns."""

    def measure(effort: Effort) -> Reading:
        return Reading([barrier(peers, rounds) for _ in range(effort.samples)], peaks())

    return measure


def barrier(peers: int, rounds: int) -> float:
    """Seconds from when the first worker is past the start until the last is done."""
    network = SimulatedNetwork(peers, random.Random(0))
    workers = [ps.Worker(network.communicator(index)) for index in range(peers)]
    marks = [_build(worker, FIRST + rounds) for worker in workers]
    while any(len(times) < 2 for times in marks):
        for worker in workers:
            worker.step()
        for link in network.pending():
            network.deliver(*link)
    return max(last for _, last in marks) - min(first for first, _ in marks)


def _build(worker: ps.Worker, rounds: int) -> list[float]:
    marks: list[float] = []

    def build(capability: ps.Capability, info: Any) -> Any:
        def logic(input: Any, output: Any, notificator: Any) -> None:
            for cap in notificator:
                if cap.time in (FIRST, rounds):
                    marks.append(perf_counter())
                if cap.time < rounds:
                    notificator.notify_at(cap.delayed(cap.time + 1))

        return logic

    with worker.dataflow("barrier") as scope:
        loop, stream = scope.feedback(1)
        loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]))
    return marks


def cases(size: Size) -> list[Case]:
    """From one to sixty-four; fewer rounds the more there are, since each costs more."""
    return [
        Case(
            OURS,
            in_turns(peers, rounds),
            rounds * peers,
            {"peers": peers},
            in_both_modes=True,
        )
        for peers in COUNTS[size]
        for rounds in [max(5, MESSAGES[size] // peers**2)]
    ]


BENCHMARK = Benchmark(
    name="simulated_workers",
    title="1 to 64 simulated workers at a barrier",
    about="Per round and worker, all in one thread. All workers exchange progress with all others.",
    quantity=Quantity("us per round and worker", 1e6),
    cases=cases,
    axis="peers",
)
