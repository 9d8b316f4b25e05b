"""One query in SQL over a graph of this run, by engines that have SQL."""

from __future__ import annotations

import tempfile

from benchmarks import graphs
from benchmarks.harness.case import Effort, Measure, Reading
from benchmarks.harness.measure import Run, repeated, timed
from benchmarks.harness.memory import peaks


def in_duckdb(name: str, query: str, memory_limit: str = "") -> Run:
    """Over the columns in memory, on all cores; `query` finds them as `edges`."""
    import duckdb
    import pyarrow as pa

    sources, targets = graphs.load(name)
    connection = duckdb.connect(config={"memory_limit": memory_limit} if memory_limit else {})
    connection.register("edges", pa.table({"src": sources, "dst": targets}))
    return lambda: int(connection.execute(query).fetchone()[0])


def in_spark(name: str, query: str) -> Measure:
    """The same in Spark, from a Parquet file."""

    def measured(effort: Effort) -> Reading:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from pointstamp.spark import session

        sources, targets = graphs.load(name)
        with tempfile.TemporaryDirectory() as folder, session(workers=2) as spark:
            pq.write_table(pa.table({"src": sources, "dst": targets}), f"{folder}/edges.parquet")
            spark.read.parquet(f"{folder}/edges.parquet").createOrReplaceTempView("edges")

            def run() -> int:
                return int(spark.sql(query).collect()[0][0])

            seconds, answer = repeated(effort, lambda: timed(run))
            return Reading(seconds, peaks(), answer)

    return measured
