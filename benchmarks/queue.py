"""A queue: records are held until their time is complete, and then passed on.

An operator keeps what comes by time, asks to be notified of each time, and sends it then. Each
worker sends a record per round, and waits until the probe has passed it.

Source: the first programs of timely dataflow, of which this was one; it has no successor there.
"""

from __future__ import annotations

from typing import Any

import pointstamp as ps
from benchmarks import plain
from benchmarks.harness.case import Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run

ROUNDS = {"tiny": 20, "small": 3_000, "full": 30_000}


def queue(worker: ps.Worker, rounds: int) -> Run:
    """`rounds` records, each through a queue when the one before is through."""

    def build(capability: ps.Capability, info: Any) -> Any:
        capability.drop()
        held: dict[int, list[Any]] = {}

        def logic(input: Any, output: Any, notificator: Any) -> None:
            for time, batch in input:
                held.setdefault(time.time, []).append(batch)
                notificator.notify_at(time.retain())
            for cap in notificator:
                with output.session(cap) as session:
                    for batch in held.pop(cap.time):
                        session.give_batch(batch)

        return logic

    with worker.dataflow("queue") as scope:
        input, stream = scope.new_input()
        probe = stream.unary_notify(ps.Exchange(), "Queue", build).probe()

    def run() -> None:
        for round in range(rounds):
            input.send(round)
            input.advance_to(round + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    return run


def cases(size: Size) -> list[Case]:
    """One worker, two, and more than there are cores; what the machine takes for less."""
    return [*plain.coordination(queue, ROUNDS[size]), *plain.floors(ROUNDS[size])]


BENCHMARK = Benchmark(
    name="queue",
    title="A queue: a record held until its time is complete",
    about="Per round: a record sent by each worker, exchanged, held, and passed on to the probe.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(plain.ASYNCIO, plain.PIPE),
    floors=plain.FLOORS,
)
