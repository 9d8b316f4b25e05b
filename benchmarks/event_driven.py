"""A thousand dataflows of a thousand operators each, of which one moves in a round.

A million operators on one worker: what they take in memory, and how long a round takes in which
a record goes through a thousand of them.

Source: timely-dataflow `examples/event_driven.rs`, called with 1000 and 1000.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.harness.case import Benchmark, Case, Quantity, Size
from benchmarks.many_dataflows import IN_TURN, RECORD, moving

SHAPES = {"tiny": ((2, 3),), "small": ((100, 100),), "full": ((100, 1_000), (1_000, 1_000))}
ROUNDS = {"tiny": 4, "small": 200, "full": 1_000}

OPERATOR_BYTES = 8_000
"""What an operator takes at the most: a case that does not fit would end others' programs."""


def cases(size: Size) -> list[Case]:
    """A tenth of it, and all; each dataflow in turn, as in the example."""
    return [
        replace(case, absent=partial(_absence, case, n_dataflows * length * OPERATOR_BYTES))
        for n_dataflows, length in SHAPES[size]
        for at in [{"dataflows": n_dataflows, "operators": length}]
        for case in moving(n_dataflows, length, ROUNDS[size], at, samples=1)
        if case.at["moves"] == IN_TURN and case.at["sends"] == RECORD
    ]


def _absence(case: Case, needed_bytes: int) -> str:
    """Why the case is not measured here, or nothing."""
    free = free_bytes(Path("/proc/meminfo"))
    if free is not None and free < needed_bytes:
        gib = [f"{n / 2**30:.1f} GiB" for n in (needed_bytes, free)]
        return f"it may need {gib[0]} of memory, of which {gib[1]} are free"
    return case.absent()


def free_bytes(meminfo: Path) -> int | None:
    """The memory that is to be had, where the system says so."""
    if not meminfo.exists():
        return None
    sizes = dict(line.split(":") for line in meminfo.read_text().splitlines())
    return int(sizes["MemAvailable"].split()[0]) * 1024


BENCHMARK = Benchmark(
    name="event_driven",
    title="1,000 dataflows of 1,000 operators, one of them active in a round",
    about="Per round: a record through all operators of one of the dataflows, each in turn. To "
    "build a million operators takes minutes, so it runs only when it is named.",
    quantity=Quantity("us per round", 1e6),
    cases=cases,
    when_named=True,
)
