"""Small epochs: ten records through a map and a keyed count, answered at once.

Latency is what is measured: the next epoch begins when the last one's counts are
out. (Bytewax has no way to wait for that: its source gives the next ten at once, and
the time per epoch is what is told, which flatters it.)
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness import rust
from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
    Target,
)
from benchmarks.harness.measure import Run, alone, on_workers
from benchmarks.harness.memory import peaks
from pointstamp.containers import Arrays

EPOCHS = {"tiny": 10, "small": 2_000, "full": 10_000}
PATHWAY_EPOCHS = {"tiny": 20, "small": 500, "full": 2_000}
SPARK_BATCHES = {"tiny": 3, "small": 8, "full": 20}
RECORDS = list(range(10))

PLAIN, BYTEWAX, PATHWAY = "plain Python, a Counter", "Bytewax", "Pathway"
SPARK = "Spark, micro-batches"


def keyed_count(worker: ps.Worker, n_epochs: int) -> Run:
    """`n_epochs` of ten records from every worker."""
    seen: list[Any] = []
    with worker.dataflow("keyed count") as scope:
        input, stream = scope.new_input()
        counted = stream.map(_keyed).unary(ps.Exchange(_key), "Count", _count)
        probe = counted.inspect_batch(lambda time, batch: seen.append(len(batch))).probe()

    def run() -> int:
        for epoch in range(n_epochs):
            for record in RECORDS:
                input.send(record)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
        return sum(seen)

    return run


def _keyed(x: int) -> tuple[int, int]:
    return x % 5, x + 1


def _key(record: tuple[int, int]) -> int:
    return record[0]


def _count(capability: ps.Capability, info: Any) -> Any:
    counts: dict[int, int] = {}  # not a Counter, which takes ten times as long to be assigned to

    def logic(input: Any, output: Any) -> None:
        for time, batch in input:
            with output.session(time) as session:
                for key, _ in batch:
                    counts[key] = n = counts.get(key, 0) + 1
                    session.give((key, n))

    return logic


def keyed_count_of_columns(worker: ps.Worker, n_epochs: int) -> Run:
    """The same ten records as a batch of a column."""
    records = Arrays(x=np.array(RECORDS))
    n_seen = 0

    def see(time: int, batch: Arrays) -> None:
        nonlocal n_seen
        n_seen += len(batch)

    with worker.dataflow("keyed count") as scope:
        input, stream = scope.new_input()
        keyed = stream.map_batches(lambda batch: Arrays(key=batch["x"] % 5, x=batch["x"] + 1))
        counted = keyed.unary(ps.Exchange("key"), "Count", _count_columns)
        probe = counted.inspect_batch(see).probe()

    def run() -> int:
        for epoch in range(n_epochs):
            input.send_batch(records)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
        return n_seen

    return run


def _count_columns(capability: ps.Capability, info: Any) -> Any:
    counts = [0] * 5

    def logic(input: Any, output: Any) -> None:
        for time, batch in input:
            n = []
            # One by one: of so few, that takes less than a call of NumPy's or two.
            for key in batch["key"].tolist():
                counts[key] += 1
                n.append(counts[key])
            with output.session(time) as session:
                session.give_batch(Arrays(key=batch["key"], n=n))

    return logic


def plain(n_epochs: int) -> Run:
    """A function call per record and a dictionary."""

    def run() -> int:
        counts: Counter[int] = Counter()
        n_seen = 0
        for _ in range(n_epochs):
            out = []
            for key, _ in map(_keyed, RECORDS):
                counts[key] += 1
                out.append((key, counts[key]))
            n_seen += len(out)
        return n_seen

    return run


def in_bytewax(n_epochs: int) -> Run:
    """A source of tens with an epoch each, map, stateful map, and a sink that counts."""
    from bytewax.testing import run_main

    seen: list[int] = []
    flow = _bytewax_flow(n_epochs, seen)

    def run() -> int:
        run_main(flow, epoch_interval=timedelta(0))
        return sum(seen)

    return run


def in_two_of_bytewax(n_epochs: int) -> Measure:
    """The same in two processes, each with a source of its own."""

    def measure(effort: Effort) -> Reading:
        seconds = [_bytewax_cluster(n_epochs) for _ in range(effort.samples + 1)]
        return Reading(seconds[1:], peaks())

    return measure


def _bytewax_cluster(n_epochs: int) -> float:
    """Seconds that the slower of the two says it took, without the start of its process."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(2)]
        places = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    told = context.SimpleQueue()
    processes = [
        context.Process(target=_bytewax_process, args=(places, index, n_epochs, told))
        for index in range(2)
    ]
    for process in processes:
        process.start()
    taken = [told.get() for _ in processes]
    for process in processes:
        process.join()
    return max(taken)


def _bytewax_process(places: list[str], index: int, n_epochs: int, told: Any) -> None:
    from bytewax.testing import cluster_main

    flow = _bytewax_flow(n_epochs, [])
    began = perf_counter()
    cluster_main(flow, places, index, epoch_interval=timedelta(0))
    told.put(perf_counter() - began)


def _bytewax_flow(n_epochs: int, seen: list[int]) -> Any:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.inputs import DynamicSource, StatelessSourcePartition
    from bytewax.outputs import DynamicSink, StatelessSinkPartition

    class Tens(StatelessSourcePartition):
        def __init__(self) -> None:
            self.left = n_epochs

        def next_batch(self) -> list[int]:
            if not self.left:
                raise StopIteration
            self.left -= 1
            return RECORDS

    class Source(DynamicSource):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Tens:
            return Tens()

    class Counting(StatelessSinkPartition):
        def write_batch(self, items: list[Any]) -> None:
            seen.append(len(items))

    class Sink(DynamicSink):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Counting:
            return Counting()

    flow = Dataflow("keyed_count")
    keyed = op.map("key", op.input("in", flow, Source()), lambda x: (str(x % 5), x + 1))
    counted = op.stateful_map("count", keyed, lambda n, x: ((n or 0) + 1, (n or 0) + 1))
    op.output("out", counted, Sink())
    return flow


def in_pathway(n_epochs: int, workers: int) -> Measure:
    """A connector that commits ten rows, and waits for the end of their time at a subscriber."""

    def measure(effort: Effort) -> Reading:
        os.environ["PATHWAY_THREADS"] = str(workers)
        _pathway_epochs(n_epochs)
        return Reading([_pathway_epochs(n_epochs) for _ in range(effort.samples)], peaks())

    return measure


def _pathway_epochs(n_epochs: int) -> float:
    """The median latency of an epoch."""
    import pathway as pw

    pw.internals.parse_graph.G.clear()
    over = threading.Event()
    latencies = []

    class Tens(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            for _ in range(n_epochs):
                over.clear()
                began = perf_counter()
                for record in RECORDS:
                    self.next(x=record)
                self.commit()
                over.wait(5)
                latencies.append(perf_counter() - began)

    table = pw.io.python.read(
        Tens(), schema=pw.schema_from_types(x=int), autocommit_duration_ms=None
    )
    keyed = table.select(key=pw.this.x % 5)
    counted = keyed.groupby(pw.this.key).reduce(pw.this.key, n=pw.reducers.count())
    pw.io.subscribe(counted, on_change=lambda **_: None, on_time_end=lambda time: over.set())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return median(latencies)


def in_spark(n_batches: int) -> Measure:
    """Structured Streaming from a source of ten rows per batch; how long a batch takes."""

    def measure(effort: Effort) -> Reading:
        from pointstamp.spark import session

        with session(workers=2) as spark:
            source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
            counted = source.selectExpr("value % 5 as key").groupBy("key").count()
            query = counted.writeStream.format("noop").outputMode("complete").start()
            deadline = monotonic() + 120
            while monotonic() < deadline:
                last = query.lastProgress
                if last is not None and last["batchId"] >= n_batches:
                    break
                sleep(0.2)
            durations = [p["durationMs"]["triggerExecution"] for p in query.recentProgress]
            query.stop()
            # The first half is what the JVM needs to get warm.
            late = durations[len(durations) // 2 :]
            return Reading([ms / 1e3 for ms in late], peaks())

    return measure


def cases(size: Size) -> list[Case]:
    """Ours on one worker and two; the others as they come."""
    n = EPOCHS[size]
    return [
        *(
            Case(
                OURS,
                on_workers(keyed_count, n_epochs, workers=workers, total=sum),
                n_epochs,
                {"workers": workers, "of": "rows"},
                f"{n_epochs} epochs" if workers == 1 else None,
                in_both_modes=True,
            )
            for workers, n_epochs in ((1, n), (2, n // 2), (4, n // 10))
        ),
        *(
            Case(
                OURS,
                on_workers(keyed_count_of_columns, n, workers=workers, total=sum),
                n,
                {"workers": workers, "of": "columns"},
                f"{n} epochs" if workers == 1 else None,
            )
            for workers in (1, 2)
        ),
        *rust.in_rounds("kcount", rounds=n),
        Case(PLAIN, alone(plain, n), n, {}, f"{n} epochs"),
        Case(BYTEWAX, alone(in_bytewax, n), n, {"workers": 1}, f"{n} epochs", ("bytewax",)),
        Case(BYTEWAX, in_two_of_bytewax(n), n, {"workers": 2}, None, ("bytewax",), samples=2),
        *(
            Case(PATHWAY, in_pathway(few, workers), 1, {"workers": workers}, None, ("pathway",))
            for few in [PATHWAY_EPOCHS[size]]
            for workers in (1, 2)
        ),
        Case(
            SPARK,
            in_spark(SPARK_BATCHES[size]),
            1,
            {},
            None,
            ("pyspark",),
            note="a sample is a batch",
        ),
    ]


BENCHMARK = Benchmark(
    name="keyed_count",
    title="An epoch of ten records through a map and a keyed count",
    about="From sending the records to knowing that their counts are out. Ten records are too few "
    "for columns.",
    quantity=Quantity("us per epoch", 1e6),
    cases=cases,
    baselines=(BYTEWAX, PLAIN),
    floors=(PLAIN,),
    targets=(
        Target({"workers": 1, "of": "rows"}, 43, 20),
        Target({"workers": 2, "of": "rows"}, 100, 40),
    ),
)
