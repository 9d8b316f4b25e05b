"""A thousand dataflows of a thousand operators each, of which one moves in a round.

A million operators on one worker: what they take in memory, and how long a round takes in which
nothing, or a record, goes through a thousand of them.

Source: timely-dataflow `examples/event_driven.rs`, called with 1000 and 1000.
"""

from __future__ import annotations

from benchmarks.harness.case import Benchmark, Case, Quantity, Size
from benchmarks.many_dataflows import IN_TURN, RECORD, moving

SHAPES = {"tiny": ((2, 3),), "small": ((100, 100),), "full": ((100, 1_000), (1_000, 1_000))}
ROUNDS = {"tiny": 4, "small": 200, "full": 1_000}


def cases(size: Size) -> list[Case]:
    """A tenth of it, and all; each dataflow in turn, as in the example."""
    return [
        case
        for n_dataflows, length in SHAPES[size]
        for at in [{"dataflows": n_dataflows, "operators": length}]
        for case in moving(n_dataflows, length, ROUNDS[size], at, samples=1)
        if case.at["moves"] == IN_TURN and case.at["sends"] == RECORD
    ]


BENCHMARK = Benchmark(
    name="event_driven",
    title="1,000 dataflows of 1,000 operators, of which one moves in a round",
    about="Per round: a record through all operators of one of the dataflows, each in turn. To "
    "build a million operators takes minutes, so it runs only when it is named.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    when_named=True,
)
