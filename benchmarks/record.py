"""One record through an input, an exchange and a probe, and then the next.

Each worker sends a record to the worker that its hash names, advances its input and
waits until the probe has passed the round. And the same without a record: only time advances.
"""

from __future__ import annotations

from functools import partial

import pointstamp as ps
from benchmarks import plain
from benchmarks.harness import rust
from benchmarks.harness.case import Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run

ROUNDS = {"tiny": 20, "small": 3_000, "full": 30_000}


RECORD, NOTHING = {"sends": "a record"}, {"sends": "nothing"}


def record(worker: ps.Worker, rounds: int, *, sends: bool = True) -> Run:
    """Send `rounds` records, each when the one before has arrived."""
    with worker.dataflow("record") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()

    def run() -> None:
        for round in range(rounds):
            if sends:
                input.send(round)
            input.advance_to(round + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    return run


def cases(size: Size) -> list[Case]:
    """One worker, two, and more than there are cores; Rust; what the machine takes for less."""
    rounds = ROUNDS[size]
    return [
        *plain.coordination(record, rounds, RECORD),
        *rust.in_rounds("queue", rounds=rounds, at=RECORD),
        *plain.coordination(partial(record, sends=False), rounds, NOTHING),
        *rust.in_rounds("advance", rounds=rounds, at=NOTHING),
        *plain.floors(rounds),
    ]


BENCHMARK = Benchmark(
    name="record",
    title="One record: input, exchange, probe",
    about="Per round: a record sent by each worker, or none, and the time until the probe has "
    "passed it.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(plain.ASYNCIO, plain.PIPE),
    floors=plain.FLOORS,
    targets=(Target({**RECORD, "workers": 1}, 6, 3.5), Target({**RECORD, "workers": 2}, 30, 10)),
)
