"""Nested scopes: a record through a hundred scopes, each inside another.

It enters all of them and leaves all of them again; each has its own part in saying how far time is.
"""

from __future__ import annotations

from typing import Any

import pointstamp as ps
from benchmarks.harness import rust
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, on_workers

DEPTHS = {"tiny": (1, 3), "small": (1, 10, 100), "full": (1, 10, 100)}
ROUNDS = {"tiny": 10, "small": 20_000, "full": 100_000}


def nested(worker: ps.Worker, depth: int, rounds: int) -> Run:
    """`rounds` records, one after the other, into `depth` scopes and out again."""
    with worker.dataflow("nested") as scope:
        input, stream = scope.new_input()
        probe = _in_scopes(scope, stream, depth).probe()

    def run() -> None:
        for round in range(rounds):
            input.send(round)
            input.advance_to(round + 1)
            worker.step_while(lambda: probe.less_than(input.time))

    return run


def _in_scopes(scope: Any, stream: Any, depth: int) -> Any:
    if not depth:
        return stream
    with scope.region() as inner:
        return _in_scopes(inner, stream.enter(inner), depth - 1).leave()


def cases(size: Size) -> list[Case]:
    """From one scope to a hundred, on one worker and two."""
    found: list[Case] = []
    for depth in DEPTHS[size]:
        rounds = max(10, ROUNDS[size] // depth // 4)
        at = {"depth": depth}
        found += [
            Case(
                OURS,
                on_workers(nested, depth, rounds, workers=workers),
                rounds,
                {**at, "workers": workers},
                in_both_modes=workers == 1,
            )
            for workers in (1, 2)
        ]
        found += rust.in_rounds("nested", depth, rounds=rounds, at=at)
    return found


BENCHMARK = Benchmark(
    name="nested_scopes",
    title="A record through 1 to 100 nested scopes",
    about="Per round: input, into all scopes and out of them, probe.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    axis="depth",
)
