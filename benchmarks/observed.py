"""Observed: what it costs to have the workers write down what they do.

The same programs with a log and without. The exchange has large batches, as programs
that move data do, and is what the claim is about; a barrier has nothing but rounds of
progress, so that all it does is something to tell, and it shows the worst.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pointstamp as ps
from benchmarks.barrier import barrier
from benchmarks.exchange import exchange
from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Ratio,
    Reading,
    Size,
)
from benchmarks.harness.measure import on_workers

BATCH = {"tiny": 1_000, "small": 1_000_000, "full": 1_000_000}
BATCHES = {"tiny": 3, "small": 8, "full": 40}
ROUNDS = {"tiny": 20, "small": 3_000, "full": 30_000}

WITHOUT = "the same without a log"


def logged(setup: Any, *args: Any, workers: int) -> Measure:
    """Measure `setup` on workers that write a log, each a new one."""

    def measure(effort: Effort) -> Reading:
        with tempfile.TemporaryDirectory() as folder:
            return on_workers(setup, *args, workers=workers, log=ps.Log(folder))(effort)

    return measure


def cases(size: Size) -> list[Case]:
    """Exchange on two workers, and a barrier on one and on two."""
    n_batches, n_records, rounds = BATCHES[size], BATCH[size], ROUNDS[size]
    programs: list[tuple[str, Any, tuple[int, ...], int, int]] = [
        ("exchange", exchange, (n_batches, n_records), 2, n_batches),
        ("barrier", barrier, (rounds,), 1, rounds),
        ("barrier", barrier, (rounds,), 2, rounds),
    ]
    found = []
    for name, setup, args, workers, amount in programs:
        at: dict[str, int | str] = {"program": name, "workers": workers}
        with_log = logged(setup, *args, workers=workers)
        without = on_workers(setup, *args, workers=workers)
        found += [
            Case(who, measure, amount, at, in_turns=True)
            for who, measure in ((OURS, with_log), (WITHOUT, without))
        ]
    return found


BENCHMARK = Benchmark(
    name="observed",
    title="With a log, and without",
    about="Per batch of a million records that each of two workers sends, or per round of a "
    "barrier.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    baselines=(WITHOUT,),
    ratios=(Ratio({"program": "exchange", "workers": 2}, 1.05),),
)
