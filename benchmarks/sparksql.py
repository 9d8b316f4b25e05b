"""Spark SQL over a graph of this run, read from a Parquet file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from benchmarks import graphs
from benchmarks.harness.case import Effort, Measure, Reading
from benchmarks.harness.measure import repeated, timed
from benchmarks.harness.memory import peaks


def measure(name: str, run: Callable[[Any], Any]) -> Measure:
    """Time `run(spark)`, which finds the graph as the view `edges`."""

    def measured(effort: Effort) -> Reading:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from pointstamp.spark import session

        sources, targets = graphs.load(name)
        with tempfile.TemporaryDirectory() as folder, session(workers=2) as spark:
            pq.write_table(pa.table({"src": sources, "dst": targets}), f"{folder}/edges.parquet")
            spark.read.parquet(f"{folder}/edges.parquet").createOrReplaceTempView("edges")
            seconds, answer = repeated(effort, lambda: timed(lambda: run(spark)))
            return Reading(seconds, peaks(), answer)

    return measured
