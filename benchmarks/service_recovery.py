"""How long after it was killed a service, or a stream of Spark, says something again.

A program counts by key, with a checkpoint, a small epoch after the other; before, it has
counted many keys. It is killed (`SIGKILL`, all its processes at once) and started again with what
it has on disk. What is told is the time from the kill to the next count that is out: starting
Python (and Spark's JVM), having the state back, working off what came since the last snapshot,
and an epoch. Where one of the workers is killed, the program lives on, notices, and serves again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import descendants, peaks
from benchmarks.running_count import RECORD, RECORD_DDL, embedded, on_spark, records
from benchmarks.spark_streams import FileQuery, counting, shared
from pointstamp.errors import PointstampError

KEYS = {"tiny": (10, 1_000), "small": (1_000, 1_000_000), "full": (1_000, 1_000_000)}
N_RECORDS = 1_000
SNAPSHOT_EVERY = 4
PACE_S = 0.05
SAMPLES, SAMPLES_OF_SPARK = 3, 2

PROCESSES, TASKS = "two processes", "two tasks of Spark"
SPARK = "Spark, groupBy().count()"
ALL, ONE = "the program", "a worker"

Epoch = Callable[[pa.RecordBatch], None]
"""Takes in an epoch, and returns when its counts are out."""


# The programs that are killed.


def live(program: str, folder: Path, n_keys: int) -> None:
    """Say `out` after each epoch, or `ready` when all keys are in a snapshot."""
    with PROGRAMS[program](folder) as (take_in, first, is_kept):
        if first == 0:
            take_in(pa.RecordBatch.from_arrays([pa.array(np.arange(n_keys))], schema=RECORD))
        is_ready = False
        for seed in count():
            began = monotonic()
            take_in(records(N_RECORDS, n_keys, seed))
            is_ready = is_ready or is_kept()
            # The clock is that of the machine, so that who has started us may compare.
            print("ready" if is_ready else "out", began, monotonic(), flush=True)
            sleep(PACE_S)


@contextlib.contextmanager
def in_processes(folder: Path) -> Iterator[tuple[Epoch, int, Callable[[], bool]]]:
    """A service that serves again when one of its workers has died."""
    services = [_served(folder)]

    def take_in(batch: pa.RecordBatch) -> None:
        while True:
            try:
                return _send(services[0], batch)
            except PointstampError:
                services[0].abort()
                services[0] = _served(folder)

    first = services[0].input("records").time or 0
    yield take_in, first, lambda: _sealed(services[0])


def _served(folder: Path) -> ps.Service:
    return embedded(checkpoint=str(folder / "service"), snapshot_every=SNAPSHOT_EVERY)


def _send(service: ps.Service, batch: pa.RecordBatch) -> None:
    input, output = service.input("records"), service.output("counts")
    epoch = input.time or 0
    input.send(batch)
    input.advance_to(epoch + 1)
    output.read(epoch, after=epoch - 1)
    output.discard(epoch)


def _sealed(service: ps.Service) -> bool:
    return (service.snapshot()["committed"] or -1) >= SNAPSHOT_EVERY


@contextlib.contextmanager
def in_tasks(folder: Path) -> Iterator[tuple[Epoch, int, Callable[[], bool]]]:
    """A service on Spark, which a stream of files feeds."""
    kept = {"checkpoint": str(folder / "service"), "snapshot_every": SNAPSHOT_EVERY}
    service = on_spark(shared(), **kept)
    output = service.output("counts")
    query = FileQuery(folder, RECORD_DDL, lambda stream: stream.writeStream.format("pointstamp"))
    query.start()

    def taken_in(batch: pa.RecordBatch) -> None:
        query.take_in(batch)
        output.discard((service.input("records").time or 1) - 1)

    yield taken_in, service.input("records").time or 0, lambda: _sealed(service)


@contextlib.contextmanager
def in_spark(folder: Path) -> Iterator[tuple[Epoch, int, Callable[[], bool]]]:
    """Spark's own state, which it writes with each batch."""
    query = FileQuery(folder, RECORD_DDL, counting)
    first = query.n_files
    query.start()
    yield query.take_in, first, lambda: True


PROGRAMS: dict[str, Any] = {PROCESSES: in_processes, TASKS: in_tasks, SPARK: in_spark}


# Who kills them.


def killed(program: str, n_keys: int, victim: str) -> Measure:
    """Seconds from each kill to the next count that is out."""

    def measure(effort: Effort) -> Reading:
        with tempfile.TemporaryDirectory() as place, Life(program, Path(place), n_keys) as life:
            seconds = []
            for _ in range(effort.samples):
                life.await_epoch("ready", 0.0)
                at = monotonic()
                if victim == ALL:
                    life.end()
                    life.begin()
                else:
                    os.kill(descendants(life.pid)[-1], signal.SIGKILL)
                seconds.append(life.await_epoch("", at) - at)
            life.await_epoch("ready", 0.0)
            return Reading(seconds, peaks())

    return measure


class Life:
    """A program that runs, and its next lives in the same folder."""

    def __init__(self, program: str, folder: Path, n_keys: int) -> None:
        self._command = ["-m", "benchmarks.service_recovery", program, str(folder), str(n_keys)]
        self._log = (folder / "log").open("wb")
        self.begin()

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    def begin(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, *self._command], stdout=subprocess.PIPE, stderr=self._log
        )

    def end(self) -> None:
        """Kill it with all that it has started."""
        for pid in (self.pid, *descendants(self.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def await_epoch(self, wanted: str, after: float) -> float:
        """When an epoch was out that was begun after a time, and is said to be as `wanted`."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match line.decode().split():
                case ["out" | "ready" as said, began, done] if wanted in ("", said):
                    if float(began) > after:
                        return float(done)
        raise RuntimeError(f"the program ended: {self._last_words()}")

    def _last_words(self) -> str:
        lines = Path(self._log.name).read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it does not say why")

    def __enter__(self) -> Life:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
        self._log.close()


def cases(size: Size) -> list[Case]:
    """With few keys and with many; a service on Spark, which takes long, with many only."""
    few, many = KEYS[size]
    found = []
    for n_keys in (few, many):
        for victim in (ONE, ALL):
            at: dict[str, int | str] = {"keys": n_keys, "service": PROCESSES, "killed": victim}
            found.append(Case(OURS, killed(PROCESSES, n_keys, victim), at=at, samples=SAMPLES))
    with_spark: dict[str, Any] = {"samples": SAMPLES_OF_SPARK, "needs": ("pyspark",)}
    at = {"keys": many, "service": TASKS, "killed": ALL}
    found.append(Case(OURS, killed(TASKS, many, ALL), at=at, **with_spark))
    for n_keys in (few, many):
        run = killed(SPARK, n_keys, ALL)
        found.append(Case(SPARK, run, at={"keys": n_keys}, **with_spark))
    return found


BENCHMARK = Benchmark(
    name="service_recovery",
    title="From a kill to the next count",
    about="A running count with a checkpoint is killed, and restarted from what is on disk. "
    "With `a worker` killed, the program that holds the service lives on and restarts the "
    "workers. Spark is killed as a whole, with its JVM, like `the program`. Each sample is "
    f"another kill; Spark is killed {SAMPLES_OF_SPARK} times, as that takes long.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(SPARK,),
    when_named=True,
)


if __name__ == "__main__":
    live(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
