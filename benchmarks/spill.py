"""More than memory: an exchange of five times the limit, against the disk's own rate.

Each worker sends all of its batches before it takes a step, so that all of them wait at once;
then they are exchanged by key and added up. With `memory_limit=` a fifth of them is in memory
and the rest on disk. The plain case writes the same bytes to a file of the same directory and
reads them back, a batch at a time, which is what the disk (and the system's cache of it) allows.
"""

from __future__ import annotations

import os
import tempfile
from time import perf_counter
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.measure import Run, alone
from pointstamp.containers import Arrays
from pointstamp.metrics.peak_memory import peak_bytes

LIMIT_MIB = {"tiny": (2,), "small": (32,), "full": (64, 128)}
TIMES = 5
RECORDS = 1 << 16
"""In a batch of half a MiB."""

UNBOUNDED = "the same without a limit"
DISK = "a file, written and read back"


def made(n_mib: int, worker: int = 0, peers: int = 1) -> Any:
    """A worker's share of batches of half a MiB, each of its own values."""
    mixed = np.random.default_rng(1).integers(0, 1 << 30, RECORDS)
    for number in range(worker, 2 * n_mib, peers):
        yield Arrays(x=mixed + number)


def through(worker: ps.Worker, n_mib: int) -> tuple[float, int, int]:
    """Seconds, the peak of this worker, and the sum of what it received."""
    total = 0

    def add(batch: Any) -> None:
        nonlocal total
        total += int(batch["x"].sum())

    began = perf_counter()
    with worker.dataflow("spill") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange("x").inspect_batch(lambda time, batch: add(batch)).probe()
    for batch in made(n_mib, worker.index, worker.peers):
        input.send_batch(batch)
    input.close()
    worker.step_while(lambda: not probe.done)
    return perf_counter() - began, peak_bytes(), total


def measured(n_mib: int, workers: int, limit: int | None) -> Measure:
    """Each sample on new workers, as a peak is never less than one before."""

    def measure(effort: Effort) -> Reading:
        seconds, peaks, answer = [], [], 0
        for _ in range(1 if effort.samples == 1 else 3):
            parts = ps.execute(through, n_mib, workers=workers, memory_limit=limit)
            seconds.append(max(part[0] for part in parts))
            peaks += [part[1] for part in parts]
            answer = sum(part[2] for part in parts)
        return Reading(seconds, peaks, answer)

    return measure


def on_disk(n_mib: int) -> Run:
    """Write all, then read all and add it up."""

    def run() -> int:
        total, n_bytes = 0, 8 * RECORDS
        with tempfile.TemporaryFile(buffering=0) as file:
            for number, batch in enumerate(made(n_mib)):
                os.pwrite(file.fileno(), batch["x"].data, number * n_bytes)
            for number in range(2 * n_mib):
                values = np.empty(RECORDS, np.int64)
                os.preadv(file.fileno(), [values.data.cast("B")], number * n_bytes)
                total += int(values.sum())
        return total

    return run


def cases(size: Size) -> list[Case]:
    """Five times each limit, on one worker and on two."""
    found = []
    for limit_mib in LIMIT_MIB[size]:
        n_mib = TIMES * limit_mib
        for workers in (1, 2):
            data = f"{n_mib * workers} MiB, of which {limit_mib} MiB on each worker fit"
            for contender, limit in ((OURS, limit_mib << 20), (UNBOUNDED, None)):
                measure = measured(n_mib * workers, workers, limit)
                at = {"MiB": n_mib, "workers": workers}
                found.append(Case(contender, measure, n_mib * workers, at, data=data))
            plain = alone(on_disk, n_mib * workers)
            at = {"MiB": n_mib, "workers": workers}
            found.append(Case(DISK, plain, n_mib * workers, at, data=data))
    return found


BENCHMARK = Benchmark(
    name="spill",
    title="An exchange of five times the memory that it may take",
    about="All is sent before any of it is taken, by each worker. Without a limit all of it is "
    "in memory; a worker alone takes about 110 MiB for the program.",
    quantity=Quantity("MiB/s", 1.0, is_rate=True),
    cases=cases,
    baselines=(DISK, UNBOUNDED),
)
