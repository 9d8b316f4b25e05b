"""Spark to the operator and back: what a record costs on the way.

A Parquet file is scanned, goes through a dataflow that changes nothing, and is
written to Spark's sink for nothing. The bar is `mapInArrow` with a function that
gives back what it gets: Python is reached by both. Ours adds workers that know each other
and, unless it is fused, a shuffle of packed batches behind them; and they read the file by
Arrow, where Spark writes each record for Python.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.case import (
    OURS,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Ratio,
    Reading,
    Size,
)
from benchmarks.harness.measure import repeated, timed
from benchmarks.harness.memory import peaks

RECORDS = {"tiny": 10_000, "small": 2_000_000, "full": 5_000_000}

NOTHING = "mapInArrow that does nothing"
SCHEMA = "src long, dst long"


def through(kind: str, n_records: int) -> Measure:
    """Scan, pass on, write to nowhere."""

    def measure(effort: Effort) -> Reading:
        from pointstamp.spark import session

        with tempfile.TemporaryDirectory() as folder, session(workers=2) as spark:
            path = Path(folder) / "records.parquet"
            _write(path, n_records)

            def pass_on() -> None:
                frame = _passed(kind, spark.read.parquet(str(path)))
                frame.write.format("noop").mode("overwrite").save()

            pass_on()
            seconds, _ = repeated(effort, lambda: timed(pass_on))
            n_seen = _passed(kind, spark.read.parquet(str(path))).count()
            return Reading(seconds, peaks(), n_seen)

    return measure


def _write(path: Path, n_records: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = np.random.default_rng(7).integers(0, 1 << 40, (2, n_records))
    table = pa.table({"src": columns[0], "dst": columns[1]})
    pq.write_table(table, path, row_group_size=max(1, n_records // 8))


def _passed(kind: str, frame: Any) -> Any:
    import pointstamp.spark

    if kind == "scan":
        return frame
    if kind == "nothing":
        return frame.mapInArrow(_give_back, SCHEMA)
    workers = 1 if kind == "one" else 2
    return pointstamp.spark.run(
        _identity, {"records": frame}, SCHEMA, workers=workers, fused=kind == "fused"
    )


def _give_back(batches: Iterable[Any]) -> Iterable[Any]:
    return batches


def _identity(scope: Any, records: Any) -> Any:
    return records.map_batches(_same)


def _same(batch: Any) -> Any:
    return batch


def cases(size: Size) -> list[Case]:
    """Ours, the bar, and the scan alone, which does not leave the JVM."""
    n = RECORDS[size]
    needs = ("pyspark",)
    return [
        Case(OURS, through("fused", n), n, {"workers": 2, "plan": "fused"}, "records", needs),
        Case(OURS, through("two", n), n, {"workers": 2}, "records", needs),
        Case(OURS, through("one", n), n, {"workers": 1}, "records", needs),
        Case(NOTHING, through("nothing", n), n, {}, "records", needs),
        Case("the scan alone", through("scan", n), n, {}, "records", needs),
    ]


BENCHMARK = Benchmark(
    name="spark_bridge",
    title="From a Spark scan to an operator and back",
    about="Records of two 64-bit columns, from a Parquet file; five million of them.",
    quantity=Quantity("M records/s", 1e-6, is_rate=True),
    cases=cases,
    baselines=(NOTHING,),
    floors=("the scan alone",),
    ratios=(Ratio({"workers": 2, "plan": "fused"}, 1.3),),
)
