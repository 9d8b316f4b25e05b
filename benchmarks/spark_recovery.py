"""How long after a loss a service on Spark says something again, in turns with Spark's own count.

Both count by key, of a stream of files, with a checkpoint, and have counted many keys. *The JVM
stays*: one session has both. A worker of the service is killed (`SIGKILL`), and all that follows
is the service's; the query that feeds it is left alone. Of Spark the query is stopped and started
again from its checkpoint; its time is from that start. *The JVM is killed*, with all of its
program: that is the loss of `service_recovery`, in turns. What is told is the time to the next
count that is out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks
from benchmarks.running_count import COUNT_DDL, RECORD, RECORD_DDL, counts, records
from benchmarks.service_recovery import (
    KEYS,
    N_RECORDS,
    SNAPSHOT_EVERY,
    SPARK,
    TASKS,
    Life,
)
from benchmarks.spark_streams import FileQuery, counting, shared

STAYS, KILLED = "stays", "is killed"
SAMPLES = {
    "tiny": dict.fromkeys((STAYS, KILLED), 1),
    "small": dict.fromkeys((STAYS, KILLED), 3),
    # One of a JVM that is killed begins two programs of each.
    "full": {STAYS: 5, KILLED: 3},
}

Sample = Callable[[], float]
"""Seconds from a loss to the next count."""

_taken: dict[tuple[int, str], dict[str, list[float]]] = {}
"""By number of keys and what becomes of the JVM: the seconds of both, which take turns."""


class NotedBuild:
    """Builds the running count, and says in a folder which process has each worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __call__(self, scope: ps.Scope, records: ps.Stream[Any]) -> ps.Stream[Any]:
        Path(self._folder, f"pid-{scope.index}").write_text(str(os.getpid()))
        return counts(scope, records)


@contextlib.contextmanager
def in_one_jvm(n_keys: int, folder: Path) -> Iterator[dict[str, Sample]]:
    """What loses the service's worker, and what begins Spark's query again."""
    from pointstamp.spark import serve

    seeds = count()
    every_key = pa.RecordBatch.from_arrays([pa.array(np.arange(n_keys))], schema=RECORD)
    with serve(
        NotedBuild(folder),
        shared(),
        workers=2,
        inputs={"records": RECORD_DDL},
        outputs={"counts": COUNT_DDL},
        checkpoint=str(folder / "service"),
        snapshot_every=SNAPSHOT_EVERY,
        restart=ps.RestartPolicy(attempts=100, delay_s=0.0),
    ) as service:
        fed = FileQuery(
            folder / "fed", RECORD_DDL, lambda stream: stream.writeStream.format("pointstamp")
        )
        own = FileQuery(folder / "own", RECORD_DDL, counting)
        for query in (fed, own):
            query.start()
            query.take_in(every_key)

        def lose_a_worker() -> float:
            done = service.snapshot()["committed"] or -1
            # The same is to be done as of the query: work off the epochs since a snapshot.
            while (service.snapshot()["committed"] or -1) <= done:
                fed.take_in(records(N_RECORDS, n_keys, next(seeds)))
                service.output("counts").discard(fed.n_files - 1)
            worker = int((folder / "pid-1").read_text())
            began = monotonic()
            os.kill(worker, signal.SIGKILL)
            fed.take_in(records(N_RECORDS, n_keys, next(seeds)))
            return monotonic() - began

        def begin_the_query_again() -> float:
            own.take_in(records(N_RECORDS, n_keys, next(seeds)))
            own.stop()
            began = monotonic()
            own.start()
            own.take_in(records(N_RECORDS, n_keys, next(seeds)))
            return monotonic() - began

        yield {OURS: lose_a_worker, SPARK: begin_the_query_again}
        fed.stop()
        own.stop()


@contextlib.contextmanager
def in_new_jvms(n_keys: int, folder: Path) -> Iterator[dict[str, Sample]]:
    """What kills the program of the service, and what kills that of Spark's query."""

    def killed(program: str) -> Sample:
        place = folder / program.replace(" ", "-")
        place.mkdir()

        def sample() -> float:
            # One at a time has the machine.
            with Life(program, place, n_keys) as life:
                life.await_epoch("ready", 0.0)
                at = monotonic()
                life.end()
                life.begin()
                return life.await_epoch("", at) - at

        return sample

    yield {OURS: killed(TASKS), SPARK: killed(SPARK)}


PLACES: Mapping[str, Any] = {STAYS: in_one_jvm, KILLED: in_new_jvms}


def recovered(who: str, n_keys: int, jvm: str, samples: int) -> Measure:
    """The seconds of one of both, which took turns."""

    def measure(effort: Effort) -> Reading:
        key = n_keys, jvm
        if key not in _taken:
            with (
                tempfile.TemporaryDirectory() as folder,
                PLACES[jvm](n_keys, Path(folder)) as found,
            ):
                seconds: dict[str, list[float]] = {name: [] for name in found}
                for _ in range(samples):
                    for name, sample in found.items():
                        seconds[name].append(sample())
                _taken[key] = seconds
        return Reading(_taken[key][who], peaks())

    return measure


def cases(size: Size) -> list[Case]:
    """With many keys; both in one session, in which they take turns."""
    n_keys, samples = KEYS[size][1], SAMPLES[size]
    return [
        Case(
            who,
            recovered(who, n_keys, jvm, samples[jvm]),
            at={"keys": n_keys, "JVM": jvm},
            samples=samples[jvm],
            needs=("pyspark",),
            session=jvm,
        )
        for jvm in (STAYS, KILLED)
        for who in (OURS, SPARK)
    ]


BENCHMARK = Benchmark(
    name="spark_recovery",
    title="From a loss to the next count, on Spark",
    about="A running count of a stream of files, with a checkpoint, by a service on two tasks of "
    "Spark and by Spark's own state, alternating. If the JVM survives, one worker of the service "
    "is killed, and the query that feeds it is left alone; Spark's query is stopped, and timed "
    "from its restart. If the JVM is killed, so is the whole program, which is restarted.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(SPARK,),
    when_named=True,
)
