"""A chain of 1,000 maps, and one record at a time through all of them."""

from __future__ import annotations

from functools import partial

import pointstamp as ps
from benchmarks.harness import rust
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size, Target
from benchmarks.harness.measure import Run, alone, on_workers

LENGTH = {"tiny": 5, "small": 1_000, "full": 1_000}
ROUNDS = {"tiny": 3, "small": 10, "full": 50}

CALLS = "plain Python, a call per map"


def chain(worker: ps.Worker, length: int, rounds: int) -> Run:
    """`rounds` records, one after the other, through `length` maps."""
    with worker.dataflow("chain") as scope:
        input, stream = scope.new_input()
        for _ in range(length):
            stream = stream.map(_next)
        probe = stream.probe()

    def run() -> None:
        for round in range(rounds):
            input.send(round)
            input.advance_to(round + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    return run


def calls(length: int, rounds: int) -> Run:
    """The same maps on lists of one record, without dataflow."""
    maps = [partial(map, _next) for _ in range(length)]

    def run() -> None:
        for round in range(rounds):
            batch = [round]
            for function in maps:
                batch = list(function(batch))

    return run


def _next(x: int) -> int:
    return x + 1


def cases(size: Size) -> list[Case]:
    """One worker and two, which exchange no record, and all progress."""
    length, rounds = LENGTH[size], ROUNDS[size]
    return [
        *(
            Case(
                OURS,
                on_workers(chain, length, rounds, workers=workers),
                length * rounds,
                {"workers": workers},
                in_both_modes=workers == 1,
            )
            for workers in (1, 2)
        ),
        *rust.race("chain", length, rounds, amount=lambda form: length * rounds),
        Case(CALLS, alone(calls, length, rounds), length * rounds),
    ]


BENCHMARK = Benchmark(
    name="chain",
    title="A chain of 1,000 maps, one record",
    about="Per operator: the cost of scheduling it, passing it a batch of one, and counting that.",
    quantity=Quantity("us per operator", 1e6),
    cases=cases,
    baselines=(CALLS,),
    floors=(CALLS,),
    targets=(Target({"workers": 1}, 2.5, 1.2),),
)
