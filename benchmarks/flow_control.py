"""Flow control: a fast source, a slow receiver on another worker, and the memory between.

One worker makes batches of columns as fast as it can, and the other does something slow
with each. The peak of memory is read at streams of growing length: it stays where it is
with a bound of what is in flight, and grows with the stream without one.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from pointstamp.containers import Arrays, kind_of
from pointstamp.metrics.peak_memory import peak_bytes

MIB = {"tiny": (2, 4), "small": (64, 256), "full": (32, 128, 512)}
LIMIT_BYTES = 16 << 20
RECORDS = 1 << 16
"""In a batch of half a MiB."""

UNBOUNDED = "the same without a bound"


def through(worker: ps.Worker, n_mib: int) -> tuple[float, int, int]:
    """Seconds, the peak of this worker, and how many records it took."""
    taken = 0

    def slow(batch: Any) -> Any:
        nonlocal taken
        for _ in range(32):
            batch = Arrays(x=np.sort(batch["x"] ^ 0x2AAAAAAA))
        taken += RECORDS
        return None

    def made() -> Any:
        for number in range(2 * n_mib if worker.index == 0 else 0):
            # In no order, and all for the other worker.
            yield Arrays(to=there, x=mixed + number)

    there = np.full(RECORDS, _key_of(1), np.int32)
    mixed = np.random.default_rng(1).integers(0, 1 << 30, RECORDS).astype(np.int32)
    began = perf_counter()
    with worker.dataflow("flow") as scope:
        probe = scope.batches_to_stream(made()).exchange("to").map_batches(slow).probe()
    worker.step_while(lambda: not probe.done)
    return perf_counter() - began, peak_bytes(), taken


def _key_of(worker: int) -> int:
    """A key that two workers exchange to `worker`."""
    keys = Arrays(to=np.arange(64, dtype=np.int32))
    hashes = kind_of(keys).hashes(keys, "to")
    return int(np.flatnonzero(hashes % np.uint64(2) == worker)[0])


def measured(n_mib: int, limit_bytes: int) -> Measure:
    """Each sample on new workers, as a peak is never less than one before."""

    def measure(effort: Effort) -> Reading:
        seconds, peaks, answer = [], [], 0
        for _ in range(1 if effort.samples == 1 else 2):
            parts = ps.execute(through, n_mib, workers=2, in_flight_bytes=limit_bytes)
            seconds.append(max(part[0] for part in parts))
            peaks += [part[1] for part in parts]
            answer = sum(part[2] for part in parts)
        return Reading(seconds, peaks, answer)

    return measure


def cases(size: Size) -> list[Case]:
    """Streams of several lengths, with and without a bound."""
    return [
        Case(who, measured(n_mib, limit), n_mib, {"MiB": n_mib}, data=f"{n_mib} MiB")
        for n_mib in MIB[size]
        for who, limit in ((OURS, LIMIT_BYTES), (UNBOUNDED, 0))
    ]


BENCHMARK = Benchmark(
    name="flow_control",
    title="A fast source and a slow receiver: memory against the length of the stream",
    about="With 16 MiB in flight at most, and with no bound. What counts here is the memory.",
    quantity=Quantity("MiB/s", 1.0, is_rate=True),
    cases=cases,
    baselines=(UNBOUNDED,),
    axis="MiB",
    draws_memory=True,
)
