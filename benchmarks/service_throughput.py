"""Services and streams of Spark: how many records they take in, one epoch after the other.

A running count of a hundred thousand keys, of epochs of a million records. A program that holds
the service sends the next epoch while the workers are at the last ones, but never gets further
ahead than two; a stream of Spark begins its next batch when the last is complete. Streams have
the same source, which is not waited for, and a checkpoint.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks
from benchmarks.running_count import embedded, on_spark, records
from benchmarks.service_latency import COUNT, counted, into_service
from benchmarks.spark_streams import progress, shared, source

RECORDS = {"tiny": 1_000, "small": 1_000_000, "full": 1_000_000}
EPOCHS = {"tiny": 2, "small": 6, "full": 6}
BATCHES_S = {"tiny": 0.0, "small": 4.0, "full": 6.0}
BATCHES = {"tiny": 3, "small": 20, "full": 20}
N_KEYS = 100_000
AHEAD = 2
SNAPSHOT_EVERY = 5
"""Epochs."""

Start = Callable[..., ps.Service]


def sent(make: Callable[[], Start], n_records: int, n_epochs: int, durable: bool) -> Measure:
    """Seconds for an epoch, of so many that are sent one after the other; each of a new sample."""

    def measure(effort: Effort) -> Reading:
        given = [records(n_records, N_KEYS, seed) for seed in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            kept: dict[str, Any] = {"checkpoint": folder, "snapshot_every": SNAPSHOT_EVERY}
            with make()(**(kept if durable else {})) as service:
                took = [_taken(service, given, n_epochs) for _ in range(effort.samples + 1)]
                return Reading(took[1:], peaks())

    return measure


def _taken(service: ps.Service, given: list[Any], n_epochs: int) -> float:
    input, probe, output = service.input("records"), service.probe, service.output("counts")
    first = input.time or 0
    began = perf_counter()
    for epoch in range(first, first + n_epochs):
        input.send(given[epoch % len(given)])
        input.advance_to(epoch + 1)
        if epoch - AHEAD >= first:
            probe.wait(epoch - AHEAD)
            output.discard(epoch - AHEAD)
    probe.wait(first + n_epochs - 1)
    output.discard(first + n_epochs - 1)
    return (perf_counter() - began) / n_epochs


def streamed(make: Any, n_records: int, size: Size) -> Measure:
    """Seconds from the begin of a batch to that of the next, without the first ones."""

    def measure(effort: Effort) -> Reading:
        stream = source(shared(), n_records, N_KEYS)
        with tempfile.TemporaryDirectory() as folder, make(stream) as to:
            query = to.option("checkpointLocation", folder).start()
            try:
                done = list(progress(query, BATCHES[size], BATCHES_S[size]))
            finally:
                query.stop()
            begun = [datetime.fromisoformat(one["timestamp"]) for one in done]
            apart = [(later - one).total_seconds() for one, later in pairwise(begun)]
            return Reading(apart[len(apart) // 4 :], peaks())

    return measure


def cases(size: Size) -> list[Case]:
    """Ours without Spark, ours with it, and Spark's own, which share a session."""
    n, n_epochs = RECORDS[size], EPOCHS[size]
    with_spark: dict[str, Any] = {"amount": n, "needs": ("pyspark",), "session": "Spark"}
    found = []
    for name, options in (("threads", {"threads": True}), ("processes", {})):
        for durable in (False, True):
            at: dict[str, int | str] = {"sent to": name + _said(durable)}
            run = sent(lambda given=options: partial(embedded, **given), n, n_epochs, durable)
            found.append(Case(OURS, run, n, at))
    for durable in (False, True):
        run = sent(lambda: partial(on_spark, shared()), n, n_epochs, durable)
        at = {"sent to": f"tasks of Spark{_said(durable)}"}
        found.append(Case(OURS, run, at=at, **with_spark))
        run = streamed(partial(into_service, durable=durable), n, size)
        at = {"sent to": f"by writeStream{_said(durable)}"}
        found.append(Case(OURS, run, at=at, **with_spark))
    found.append(Case(COUNT, streamed(counted, n, size), **with_spark))
    return found


def _said(durable: bool) -> str:
    return ", with a checkpoint" if durable else ""


BENCHMARK = Benchmark(
    name="service_throughput",
    title="Records through a service, and through a stream of Spark",
    about="Epochs of a million records of 8 bytes, 100,000 keys, two workers. With a checkpoint "
    f"all records are written to it, and a snapshot is taken every {SNAPSHOT_EVERY} epochs; Spark "
    "writes the offsets of its source for each batch, and the counts that changed.",
    quantity=Quantity("M records/s", 1e-6, is_rate=True),
    cases=cases,
    baselines=(COUNT,),
    when_named=True,
)
