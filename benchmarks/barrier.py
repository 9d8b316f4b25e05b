"""The barrier: workers agree that a round is over, and nothing else happens.

No record is sent. An operator in a loop asks to be told when a round is complete,
and then for the next; with several workers that takes everybody's word.
"""

from __future__ import annotations

from typing import Any

import pointstamp as ps
from benchmarks import plain
from benchmarks.harness import rust
from benchmarks.harness.case import Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run

ROUNDS = {"tiny": 20, "small": 5_000, "full": 50_000}


def barrier(worker: ps.Worker, rounds: int) -> Run:
    """Go round the loop `rounds` times."""

    def build(capability: ps.Capability, info: Any) -> Any:
        def logic(input: Any, output: Any, notificator: Any) -> None:
            for cap in notificator:
                if cap.time + 1 < rounds:
                    notificator.notify_at(cap.delayed(cap.time + 1))

        return logic

    def run() -> None:
        with worker.dataflow("barrier") as scope:
            loop, stream = scope.feedback(1)
            loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]))
        worker.run()

    return run


def cases(size: Size) -> list[Case]:
    """One worker, two, and more than there are cores; Rust; what the machine takes for less."""
    rounds = ROUNDS[size]
    return [
        *plain.coordination(barrier, rounds),
        *rust.example("example_barrier", rounds=rounds),
        *plain.floors(rounds),
    ]


BENCHMARK = Benchmark(
    name="barrier",
    title="Barrier: agreeing that a round is over",
    about="A loop without records. Per round; 4 workers share the machine's cores.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(plain.ASYNCIO, plain.PIPE),
    floors=(plain.ASYNCIO, plain.PIPE),
    targets=(Target({"workers": 1}, 2.2, 1.2), Target({"workers": 2}, 15, 5)),
)
