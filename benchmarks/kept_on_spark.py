"""Collections on Spark: a report of ten million rows kept up to date, and an epoch by a stream.

*A report* joins sales with shops, adds up by city, and has the three largest sales of each shop.
Ours is kept by a service on two tasks, into which the tables were loaded; a round inserts a
thousand sales and deletes as many, and is over when the report has them. Spark computes the same
from the tables, which it has cached, by queries that are new each time: of a query that ran before,
Spark still has what was shuffled. *A stream* is counted by key: ours follows it (`follow`),
the others are Spark's own aggregation, a stream into a sink in Python that does nothing, which is
the least that one takes that leaves the JVM, and a stream into nothing. What is told of a stream is
how long Spark says that a batch took (`durationMs.triggerExecution`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import pointstamp as ps
from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks
from benchmarks.spark_streams import (
    PARTITIONS,
    counting,
    parts_of,
    seconds_of,
    settled,
    shared,
    source,
)

SALES = {"tiny": 2_000, "small": 200_000, "full": 10_000_000}
CHANGES = {"tiny": 100, "small": 1_000, "full": 1_000}
ROUNDS = {"tiny": 3, "small": 10, "full": 20}
BATCHES = {"tiny": 2, "small": 20, "full": 60}
BATCHES_S = {"tiny": 0.0, "small": 4.0, "full": 8.0}
BATCH = 1_000
N_KEYS = 10_000
SNAPSHOT_EVERY = 50
N_SHOPS, N_CITIES = 1_000, 50
SALE, SHOP = "sale long, shop long, cents long", "shop long, city long"

REPORT, STREAM = "a report", "a stream"
RECOMPUTED, COUNT, NOTHING = "Spark, all of it", "Spark, groupBy().count()", "Spark, no work"
IN_PYTHON = "Spark, a sink in Python without work"


def report(scope: ps.Scope, sales: ps.Collection, shops: ps.Collection) -> dict[str, ps.Collection]:
    """The sums of each city, and the three largest sales of each shop."""
    joined = sales.join(shops, on="shop")
    sums = joined.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"))
    return {"cities": sums, "best": sales.group_by("shop").top_k(3, by="cents")}


def counted(scope: ps.Scope, records: ps.Collection) -> ps.Collection:
    """How often each key came."""
    return records.group_by("key").count()


# A report.


def _shops(spark: Any) -> Any:
    return spark.range(N_SHOPS).selectExpr("id as shop", f"id % {N_CITIES} as city")


def _sales(spark: Any, n: int) -> Any:
    """Sales, whose numbers are from 0 on."""
    columns = f"pmod(xxhash64(id), {N_SHOPS}L) as shop", "pmod(xxhash64(id, 1), 100000L) as cents"
    return spark.range(0, n, 1, PARTITIONS).selectExpr("id as sale", *columns)


def kept(n_sales: int, changes: int, rounds: int) -> Measure:
    """Seconds from giving a round's changes to having what they change in both outputs."""

    def measure(effort: Effort) -> Reading:
        from pointstamp.spark import serve

        spark = shared()
        collections = {"sales": SALE, "shops": SHOP}
        with serve(report, spark, workers=PARTITIONS, collections=collections) as service:
            service.input("shops").load(_shops(spark))
            began = perf_counter()
            service.input("sales").load(_sales(spark, n_sales))
            service.output("cities").snapshot()
            loaded_s = perf_counter() - began
            first = [tuple(row) for row in _sales(spark, changes * rounds).collect()]
            choose = np.random.default_rng(1)
            seconds = []
            for number in range(rounds):
                gone = first[number * changes : (number + 1) * changes]
                shops, cents = choose.integers(0, [[N_SHOPS], [100_000]], (2, changes)).tolist()
                numbers = range(n_sales + number * changes, n_sales + (number + 1) * changes)
                come = list(zip(numbers, shops, cents, strict=True))
                began = perf_counter()
                service.input("sales").insert(come)
                service.input("sales").delete(gone)
                epoch = service.advance()
                for output in ("cities", "best"):
                    service.output(output).changes(epoch)
                seconds.append(perf_counter() - began)
            n_rows = sum(n for _, n, _ in service.output("cities").snapshot())
        return Reading(seconds, peaks(), n_rows, details={"loaded_s": loaded_s})

    return measure


def recomputed(n_sales: int, rounds: int) -> Measure:
    """Seconds of Spark's own queries of both, over cached tables."""

    def measure(effort: Effort) -> Reading:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        spark = shared()
        sales, shops = _sales(spark, n_sales).cache(), _shops(spark).cache()
        sales.count(), shops.count()
        largest = Window.partitionBy("shop").orderBy(f.desc("cents"), "sale")

        def queries() -> tuple[Any, Any]:
            joined = sales.join(shops, "shop")
            sums = joined.groupBy("city").agg(f.count("*").alias("n"), f.sum("cents"))
            placed = sales.withColumn("place", f.row_number().over(largest))
            return sums, placed.filter("place <= 3")

        seconds = []
        for _ in range(max(2, rounds // 5)):
            began = perf_counter()
            sums, best = queries()
            rows = sums.collect()
            best.collect()
            seconds.append(perf_counter() - began)
        sales.unpersist()
        return Reading(seconds[1:], peaks(), sum(row["n"] for row in rows))

    return measure


# A stream.


def streamed(start: Callable[[Any, str], Any], size: Size) -> Measure:
    """What Spark says that each batch took, without the first fifth."""

    def measure(effort: Effort) -> Reading:
        with tempfile.TemporaryDirectory() as folder:
            query = start(source(shared(), BATCH, N_KEYS), folder)
            done = settled(query, BATCHES[size], BATCHES_S[size])
        return Reading(seconds_of(done), peaks(), details={"ms": parts_of(done)})

    return measure


def followed(size: Size) -> Measure:
    """A service on two tasks follows the stream."""

    def measure(effort: Effort) -> Reading:
        from pointstamp.spark import serve

        collections = {"records": "key long"}
        with (
            tempfile.TemporaryDirectory() as kept_in,
            serve(
                *(counted, shared()),
                workers=PARTITIONS,
                collections=collections,
                checkpoint=kept_in,
                snapshot_every=SNAPSHOT_EVERY,
            ) as service,
        ):

            def start(stream: Any, folder: str) -> Any:
                return service.input("records").follow(stream, form="append")

            return streamed(start, size)(effort)

    return measure


def by_spark(stream: Any, folder: str) -> Any:
    """Spark's own aggregation."""
    return counting(stream).option("checkpointLocation", folder).start()


def by_nothing(stream: Any, folder: str) -> Any:
    """Each batch is read, and that is all."""
    return stream.writeStream.format("noop").option("checkpointLocation", folder).start()


def by_a_sink(stream: Any, folder: str) -> Any:
    """Each batch goes to a data source of Python, which reads it, and that is all."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

    class Writer(DataSourceStreamArrowWriter):
        def write(self, iterator: Any) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803  (Spark's name)
            pass

        def abort(self, messages: Any, batchId: int) -> None:  # noqa: N803  (Spark's name)
            pass

    class Nothing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "nothing"

        def streamWriter(self, schema: Any, overwrite: bool) -> Writer:  # noqa: N802  (Spark's name)
            return Writer()

    shared().dataSource.register(Nothing)
    return stream.writeStream.format("nothing").option("checkpointLocation", folder).start()


def cases(size: Size) -> list[Case]:
    """The report, then the stream, in one session."""
    n, changes, rounds = SALES[size], CHANGES[size], ROUNDS[size]
    needs, at = ("pyspark",), {"kept": REPORT, "in and out": changes}
    found = [
        Case(OURS, kept(n, changes, rounds), at=at, data=REPORT, needs=needs, session="Spark"),
        Case(
            *(RECOMPUTED, recomputed(n, rounds)),
            at=at,
            data=REPORT,
            needs=needs,
            session="Spark",
        ),
    ]
    streams = ((OURS, followed(size)), (COUNT, streamed(by_spark, size)))
    floors = ((IN_PYTHON, streamed(by_a_sink, size)), (NOTHING, streamed(by_nothing, size)))
    for who, measure in (*streams, *floors):
        at = {"kept": STREAM, "in and out": BATCH}
        found.append(Case(who, measure, at=at, needs=needs, session="Spark"))
    return found


BENCHMARK = Benchmark(
    name="kept_on_spark",
    title="A report of ten million rows kept up to date on Spark, and an epoch by a stream",
    about="On two tasks. A sample of the report is a round of changes, or one full computation; "
    "a sample of the stream is a batch.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(RECOMPUTED, COUNT),
    floors=(IN_PYTHON, NOTHING),
    tells_p99=True,
    when_named=True,
)
