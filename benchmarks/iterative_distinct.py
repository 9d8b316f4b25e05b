"""Distinct in a loop: what can be reached from a few numbers, each number once.

Each number leads to two others. The loop ends when nothing new comes: so most of what goes round
is dropped. Columns and rows, and beside them a set in plain Python and a search in NumPy.

Source: the first programs of timely dataflow, of which distinct in a loop was one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size
from benchmarks.harness.measure import Run, alone, on_workers
from pointstamp.containers import Arrays

NUMBERS = {"tiny": 1_000, "small": 100_000, "full": 1_000_000}
FEW = 10
"""Rows are so many times fewer."""
STARTS = 10

SET, NUMPY = "a set in plain Python", "NumPy, marks"


def reached(worker: ps.Worker, n: int) -> Run:
    """Columns: how many numbers below `n` this worker has."""
    starts = Arrays(x=np.arange(STARTS if worker.index == 0 else 0))

    def next_of(batch: Arrays) -> Arrays:
        return Arrays(x=_next(batch["x"], n))

    return _reaching(worker, "batches_to_stream", [starts], lambda s: s.map_batches(next_of))


def reached_as_rows(worker: ps.Worker, n: int) -> Run:
    """Rows, and a function call for each."""
    starts = range(STARTS if worker.index == 0 else 0)
    return _reaching(
        *(worker, "to_stream", starts),
        lambda stream: stream.flat_map(lambda x: [(2 * x) % n, (3 * x + 1) % n]),
    )


def _reaching(worker: ps.Worker, source: str, starts: Any, lead: Any) -> Run:
    n_found = 0

    def note(time: int, batch: Any) -> None:
        nonlocal n_found
        n_found += len(batch)

    def run() -> int:
        with worker.dataflow("reached") as scope, scope.iterative() as inner:
            loop, again = inner.feedback(1)
            start = getattr(scope, source)(starts).enter(inner)
            found = start.concat(again).distinct(over_rounds=True)
            loop.connect(lead(found))
            found.leave().inspect_batch(note)
        worker.run()
        return n_found

    return run


def _next(x: Any, n: int) -> Any:
    return np.concatenate([(2 * x) % n, (3 * x + 1) % n])


def in_a_set(n: int) -> Run:
    """A set of all, and a list of the latest."""

    def run() -> int:
        seen = set(range(STARTS))
        latest = list(seen)
        while latest:
            after = {y for x in latest for y in ((2 * x) % n, (3 * x + 1) % n)} - seen
            seen |= after
            latest = list(after)
        return len(seen)

    return run


def in_numpy(n: int) -> Run:
    """A mark for each number there can be."""

    def run() -> int:
        seen = np.zeros(n, bool)
        latest = np.arange(STARTS)
        while len(latest):
            seen[latest] = True
            after = _next(latest, n)
            latest = np.unique(after[~seen[after]])
        return int(seen.sum())

    return run


def cases(size: Size) -> list[Case]:
    """Ours on one worker and two, columns and rows; plain programs."""
    n = NUMBERS[size]

    def ours(program: Any, workers: int, n: int, **at: str) -> Case:
        measure = on_workers(program, n, workers=workers, total=sum)
        return Case(OURS, measure, n, {"workers": workers, **at}, f"{n} numbers")

    return [
        *(ours(reached, workers, n) for workers in (1, 2)),
        *(ours(reached_as_rows, workers, n // FEW, of="rows") for workers in (1, 2)),
        Case(NUMPY, alone(in_numpy, n), n, {}, f"{n} numbers"),
        Case(SET, alone(in_a_set, n), n, {}, f"{n} numbers"),
    ]


BENCHMARK = Benchmark(
    name="iterative_distinct",
    title="Distinct in a loop: what can be reached, each number once",
    about="Numbers below a million that 2x and 3x + 1 lead to from the first ten, in a loop of "
    "distinct. Rows are of a tenth of the numbers.",
    quantity=Quantity("M numbers/s", 1e-6, is_rate=True),
    cases=cases,
    baselines=(SET, NUMPY),
)
