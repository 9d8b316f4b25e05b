"""Fairness: the latency of a small dataflow beside a large one on the same worker.

The large one has a queue of a million records, in batches of growing number; the small
one an input of one record per epoch, of which each is waited for. Without a budget,
an operator of the large one works off all that waits before anybody else has a turn.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks

BATCHES = {"tiny": (10,), "small": (100, 1_000), "full": (100, 1_000, 10_000)}
RECORDS = {"tiny": 1_000, "small": 1_000_000, "full": 4_000_000}
UNLIMITED = "the same without a budget"


def latency(worker: ps.Worker, n_batches: int, n_records: int, budget: int | None) -> float:
    """The longest that an epoch of the small dataflow took while the large one was at work."""
    if budget is not None:
        worker.environment.budget = budget
    with worker.dataflow("large") as scope:
        large, stream = scope.new_input()
        busy = stream.map(lambda x: x + 1).filter(lambda x: x % 2).probe()
    with worker.dataflow("small") as scope:
        small, stream = scope.new_input()
        probe = stream.map(lambda x: x).probe()
    batch: list[Any] = list(range(n_records // n_batches))
    for _ in range(n_batches):
        large.send_batch(batch)
        large.advance_to(0)  # which sends what was given
    large.advance_to(1)
    longest = 0.0
    while busy.less_than(1):
        began = perf_counter()
        small.send(0)
        small.advance_to(small.time + 1)
        worker.step_while(lambda: probe.less_than(small.time))
        longest = max(longest, perf_counter() - began)
    return longest


def measured(n_batches: int, n_records: int, budget: int | None) -> Measure:
    """The longest epoch is a sample; each is of a new worker."""

    def measure(effort: Effort) -> Reading:
        longest = [
            ps.execute(latency, n_batches, n_records, budget)[0]
            for _ in range(max(1, effort.samples))
        ]
        return Reading(longest, peaks())

    return measure


def cases(size: Size) -> list[Case]:
    """As many records in few batches and in many, with and without a budget."""
    return [
        Case(who, measured(n_batches, RECORDS[size], budget), at={"batches": n_batches})
        for n_batches in BATCHES[size]
        for who, budget in ((OURS, None), (UNLIMITED, 1 << 60))
    ]


BENCHMARK = Benchmark(
    name="fairness",
    title="The longest epoch of a small dataflow beside a large one",
    about="Both on one worker; the large one has a long queue of records to work off.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(UNLIMITED,),
    axis="batches",
)
