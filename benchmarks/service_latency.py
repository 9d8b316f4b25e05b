"""Services and streams of Spark: how long an epoch, or a batch, takes.

A running count by key, of epochs of ten records and of ten thousand: from the records being
there to knowing that the counts are complete. Ours is sent to directly, by a program
that holds the service (`send`, `advance_to`, `probe.wait`), or by a stream of Spark whose sink
is the service; the others are what else a stream of Spark may count with. All streams have the
same source, which has the next batch ready at once, and a checkpoint; what is told is how
long Spark says that a batch took (`durationMs.triggerExecution`).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks
from benchmarks.running_count import embedded, on_spark, records
from benchmarks.spark_streams import (
    counting,
    parts_of,
    seconds_of,
    settled,
    shared,
    source,
    warm,
)

SIZES = (10, 10_000)
N_KEYS = 10_000
EPOCHS = {"tiny": 10, "small": 100, "full": 300}
BATCHES = {"tiny": 2, "small": 20, "full": 40}
BATCHES_S = {"tiny": 0.0, "small": 4.0, "full": 5.0}
"""When a stream may stop that has not had so many batches."""
SNAPSHOT_EVERY = 50

DURABLE = ", with a checkpoint"
FOREACH, COUNT = "Spark, foreachBatch into a dict", "Spark, groupBy().count()"
WITH_STATE = "Spark, transformWithState"

Start = Callable[..., ps.Service]


# Sent to directly.


def sent(start: Start, n_records: int, n_epochs: int, *, durable: bool) -> Reading:
    """Seconds of each epoch, from sending its records to knowing that it is complete."""
    with tempfile.TemporaryDirectory() as folder, start(**_kept(folder, durable)) as service:
        input, probe, output = service.input("records"), service.probe, service.output("counts")
        seconds = []
        for epoch in range(n_epochs + n_epochs // 5):
            batch = records(n_records, N_KEYS, epoch)
            began = perf_counter()
            input.send(batch)
            input.advance_to(epoch + 1)
            probe.wait(epoch)
            seconds.append(perf_counter() - began)
            output.discard(epoch)
        return Reading(seconds[n_epochs // 5 :], peaks())


def _kept(folder: str, durable: bool) -> dict[str, Any]:
    return {"checkpoint": folder, "snapshot_every": SNAPSHOT_EVERY} if durable else {}


def directly(n_records: int, n_epochs: int, *, threads: bool, durable: bool) -> Measure:
    """On two workers of this machine."""

    def measure(effort: Effort) -> Reading:
        return sent(partial(embedded, threads=threads), n_records, n_epochs, durable=durable)

    return measure


def to_tasks(n_records: int, n_epochs: int, *, durable: bool) -> Measure:
    """On two tasks of Spark, sent to by the driver."""

    def measure(effort: Effort) -> Reading:
        return sent(partial(on_spark, shared()), n_records, n_epochs, durable=durable)

    return measure


# By a stream of Spark.


@contextmanager
def into_service(stream: Any, durable: bool) -> Iterator[Any]:
    """A service is the sink."""
    with (
        tempfile.TemporaryDirectory() as folder,
        on_spark(stream.sparkSession, **_kept(folder, durable)),
    ):
        yield stream.writeStream.format("pointstamp")


@contextmanager
def into_dict(stream: Any) -> Iterator[Any]:
    """Each batch is counted by a query, and added up in the driver."""
    counts: Counter[int] = Counter()

    def add(batch: Any, number: int) -> None:
        for row in batch.groupBy("key").count().collect():
            counts[row[0]] += row[1]

    yield stream.writeStream.foreachBatch(add)


@contextmanager
def counted(stream: Any) -> Iterator[Any]:
    """Spark's own aggregation, in the JVM."""
    yield counting(stream)


@contextmanager
def with_state(stream: Any) -> Iterator[Any]:
    """An operator in Python with state of ours, which Spark keeps in RocksDB."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class Count(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.n = handle.getValueState("n", "n long")

        def handleInputRows(  # noqa: N802  (Spark's name)
            self,
            key: Any,
            rows: Iterator[Row],
            timerValues: Any,  # noqa: N803
        ) -> Iterator[Row]:
            n = sum(1 for _ in rows) + (self.n.get()[0] if self.n.exists() else 0)
            self.n.update((n,))
            yield Row(key=key[0], n=n)

        def close(self) -> None:
            pass

    provider = "spark.sql.streaming.stateStore.providerClass"
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    stream.sparkSession.conf.set(provider, rocksdb)
    try:
        told = stream.groupBy("key").transformWithState(
            Count(), "key long, n long", "Update", "None"
        )
        yield told.writeStream.format("noop").outputMode("update")
    finally:
        stream.sparkSession.conf.unset(provider)


def batches(make: Any, n_records: int, size: Size) -> Measure:
    """What Spark says that each batch took, without the first fifth; and how far apart they are."""

    def measure(effort: Effort) -> Reading:
        if size != "tiny":
            warm(shared())
        with (
            tempfile.TemporaryDirectory() as folder,
            make(source(shared(), n_records, N_KEYS)) as to,
        ):
            query = to.option("checkpointLocation", str(Path(folder))).start()
            done = settled(query, BATCHES[size], BATCHES_S[size])
            starts = [datetime.fromisoformat(one["timestamp"]) for one in done]
            apart = [(b - a).total_seconds() for a, b in pairwise(starts)]
            apart_s = median(apart) if apart else None
            details = {"apart_s": apart_s, "ms": parts_of(done)}
            return Reading(seconds_of(done), peaks(), details=details)

    return measure


def cases(size: Size) -> list[Case]:
    """Ours without Spark, ours with it, and Spark's own, which share a session."""
    found = []
    for n in SIZES:
        for name, threads in (("threads", True), ("processes", False)):
            for durable in (False, True):
                at: dict[str, int | str] = {"records": n, "sent to": name + DURABLE * durable}
                run = directly(n, EPOCHS[size], threads=threads, durable=durable)
                found.append(Case(OURS, run, at=at))
    for n in SIZES:
        ours = [
            (
                f"tasks of Spark{DURABLE * durable}",
                to_tasks(n, EPOCHS[size], durable=durable),
            )
            for durable in (False, True)
        ]
        ours += [
            (
                f"by writeStream{DURABLE * durable}",
                batches(partial(into_service, durable=durable), n, size),
            )
            for durable in (False, True)
        ]
        for name, run in ours:
            at = {"records": n, "sent to": name}
            found.append(Case(OURS, run, at=at, needs=("pyspark",), session="Spark"))
        for who, make in ((FOREACH, into_dict), (COUNT, counted), (WITH_STATE, with_state)):
            run = batches(make, n, size)
            found.append(Case(who, run, at={"records": n}, needs=("pyspark",), session="Spark"))
    return found


BENCHMARK = Benchmark(
    name="service_latency",
    title="An epoch through a service, and a batch through Spark",
    about="A running count of 10,000 keys, on two workers. A sample is an epoch, or a micro-batch "
    "of Spark; with fewer than a hundred samples, p99 is the longest. The baselines are streams "
    "with the same source as `by writeStream`; all streams have a checkpoint of Spark's. "
    f"`{DURABLE[2:]}` means the checkpoint of the service, which syncs each epoch and takes a "
    f"snapshot every {SNAPSHOT_EVERY} epochs. A dict in the driver does not outlive it.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(FOREACH,),
    tells_p99=True,
    when_named=True,
)
