"""Outstanding times: what a round costs while many times are unfinished.

An operator holds a capability for each of a number of times. Every round one more
is asked for and the oldest is let go, so that the frontier moves by one and the
number of times stays. In a loop the times are pairs, (epoch, round), none of which is before
another: of each epoch an earlier round the later the epoch. Every round one of them moves on.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, on_workers

COUNTS = {"tiny": (1, 10), "small": (1, 100, 10_000), "full": (1, 10, 100, 1_000, 10_000)}
ROUNDS = {"tiny": 10, "small": 2_000, "full": 20_000}


def outstanding(worker: ps.Worker, n_times: int, rounds: int) -> Run:
    """Move a window of `n_times` held times on by one, `rounds` times."""
    held: deque[Any] = deque()

    def build(capability: ps.Capability, info: Any) -> Any:
        held.extend(capability.delayed(time) for time in range(n_times))
        capability.drop()
        turn = 0

        def logic(input: Any, output: Any) -> bool:
            nonlocal turn
            if turn == rounds:
                while held:
                    held.popleft().drop()
                return False
            turn += 1
            held.append(held[-1].delayed(held[-1].time + 1))
            held.popleft().drop()
            return True

        return logic

    with worker.dataflow("outstanding") as scope:
        nothing = scope.to_stream([])
        nothing.unary(ps.Pipeline(), "Hold", build).probe()
    return worker.run


def of_pairs(worker: ps.Worker, n_times: int, rounds: int) -> Run:
    """Move one of `n_times` held times of a loop to its next round, `rounds` times."""
    apart = rounds // n_times + 2
    held: list[Any] = []

    def build(capability: ps.Capability, info: Any) -> Any:
        held.extend(
            capability.delayed((epoch, (n_times - epoch) * apart)) for epoch in range(n_times)
        )
        capability.drop()
        turn = 0

        def logic(input: Any, output: Any) -> bool:
            nonlocal turn
            if turn == rounds:
                while held:
                    held.pop().drop()
                return False
            moved = held[turn % n_times]
            epoch, round = moved.time
            moved.downgrade((epoch, round + 1))
            turn += 1
            return True

        return logic

    with worker.dataflow("outstanding") as scope, scope.iterative() as inner:
        nothing = scope.to_stream([]).enter(inner)
        nothing.unary(ps.Pipeline(), "Hold", build).probe()
    return worker.run


def cases(size: Size) -> list[Case]:
    """From one to ten thousand."""
    return [
        Case(
            OURS,
            on_workers(setup, n_times, ROUNDS[size], workers=1),
            ROUNDS[size],
            {"times": n_times, "type": type_},
            in_both_modes=type_ == "int",
        )
        for n_times in COUNTS[size]
        for type_, setup in (("int", outstanding), ("(epoch, round)", of_pairs))
    ]


BENCHMARK = Benchmark(
    name="outstanding_times",
    title="1 to 10,000 outstanding times",
    about="Per round, in which one more time is held and the oldest is dropped.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    axis="times",
)
