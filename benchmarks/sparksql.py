"""Spark SQL over a graph of this run, read from a Parquet file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks import graphs
from benchmarks.harness.case import Effort, Measure, Reading
from benchmarks.harness.memory import peaks


def measure(name: str, run: Callable[[Any], Any]) -> Measure:
    """Time `run(spark)`, which finds the graph as the view `edges`; once before, to be warm."""

    def measured(effort: Effort) -> Reading:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from pointstamp.spark import session

        sources, targets = graphs.load(name)
        with tempfile.TemporaryDirectory() as folder, session(workers=2) as spark:
            pq.write_table(pa.table({"src": sources, "dst": targets}), f"{folder}/edges.parquet")
            spark.read.parquet(f"{folder}/edges.parquet").createOrReplaceTempView("edges")
            seconds: list[float] = []
            answer = None
            while len(seconds) <= (effort.wanted(seconds[-1]) if seconds else 0):
                began = perf_counter()
                answer = run(spark)
                seconds.append(perf_counter() - began)
            return Reading(seconds[1:], peaks(), answer)

    return measured
