"""One record through an input, an exchange and a probe, and then the next.

Each worker sends a record to whoever its key's hash names, advances its input and
waits until the probe has passed the round.
"""

from __future__ import annotations

import pointstamp as ps
from benchmarks import plain
from benchmarks.harness.case import Benchmark, Case, Elsewhere, Quantity, Size, Target
from benchmarks.harness.measure import Run

ROUNDS = {"tiny": 20, "small": 3_000, "full": 30_000}


def record(worker: ps.Worker, rounds: int) -> Run:
    """Send `rounds` records, each when the one before has arrived."""
    with worker.dataflow("record") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()

    def run() -> None:
        for round in range(rounds):
            input.send(round)
            input.advance_to(round + 1)
            worker.step_while(lambda: probe.less_than(input.time))
        input.close()
        worker.run()

    return run


def cases(size: Size) -> list[Case]:
    """One worker, two, and more than there are cores; what the machine takes for less."""
    return [*plain.coordination(record, ROUNDS[size]), *plain.floors(ROUNDS[size])]


BENCHMARK = Benchmark(
    name="record",
    title="One record: input, exchange, probe",
    about="Per round: a record sent by each worker, and the time until the probe has passed it.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(plain.ASYNCIO, plain.PIPE),
    floors=plain.FLOORS,
    targets=(Target({"workers": 1}, 6, 3.5), Target({"workers": 2}, 30, 10)),
    elsewhere=(
        Elsewhere("Rust timely", {"workers": 1}, 3.4),
        Elsewhere("Rust timely, two processes", {"workers": 2}, 153),
    ),
)
