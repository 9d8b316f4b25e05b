"""Triangles of the larger R-MAT graphs on Spark: ours in its tasks, and what it has itself.

All of them read the graph from a file (GraphX reads text, the others Parquet), on two slots,
and have as much memory as the JVM asks for. A case takes minutes, so it has one run.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pointstamp as ps
from benchmarks import graphs
from benchmarks.directed_triangles import counting
from benchmarks.harness import inputs
from benchmarks.harness.case import (
    OURS,
    At,
    Benchmark,
    Case,
    Effort,
    Measure,
    Quantity,
    Reading,
    Size,
)
from benchmarks.harness.measure import repeated, timed
from benchmarks.harness.memory import peaks
from benchmarks.sql import in_spark
from benchmarks.triangles import GRAPHX, JOINS, SPARK, in_graphx, n_told

SCALES = {"tiny": (8,), "small": (14,), "full": (14, 16, 18)}
HEAP = "10g"


def prepare(size: Size) -> None:
    """The graphs."""
    for scale in SCALES[size]:
        graphs.save(f"rmat-{scale}", graphs.rmat(scale))


def with_heap(measure: Measure) -> Measure:
    """`measure` with a larger JVM, which it starts in this process."""

    def measured(effort: Effort) -> Reading:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory {HEAP} pyspark-shell"
        return measure(effort)

    return measured


def ours(name: str, form: str = "undirected") -> Measure:
    """The dataflow in the tasks that read the file, and in those alone."""

    def build(scope: ps.Scope, edges: Any) -> Any:
        return counting(form)(edges).map_batches(_told)

    def measured(effort: Effort) -> Reading:
        import pyarrow as pa
        import pyarrow.parquet as pq

        import pointstamp.spark

        sources, targets = graphs.load(name)
        with tempfile.TemporaryDirectory() as folder, pointstamp.spark.session(workers=2) as spark:
            half = len(sources) // 2
            for number, part in enumerate((slice(half), slice(half, None))):
                table = pa.table({"src": sources[part], "dst": targets[part]})
                pq.write_table(table, f"{folder}/edges-{number}.parquet")

            def run() -> int:
                edges = spark.read.parquet(folder)
                n = "n long"
                told = pointstamp.spark.run(build, {"edges": edges}, n, workers=2, fused=True)
                return sum(row.n for row in told.collect())

            seconds, answer = repeated(effort, lambda: timed(run))
            return Reading(seconds, peaks(), answer)

    return measured


def _told(batch: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"n": [n_told([batch])]})


def cases(size: Size) -> list[Case]:
    """Ours on two workers, GraphX, and two joins."""
    found = []
    for scale in SCALES[size]:
        name = f"rmat-{scale}"
        common: dict[str, Any] = {"data": name, "needs": ("pyspark",)}
        found += [
            Case(OURS, with_heap(ours(name)), at={"scale": scale, "workers": 2}, **common),
            Case(GRAPHX, with_heap(in_graphx(name)), at={"scale": scale}, samples=1, **common),
            Case(SPARK, with_heap(in_spark(name, JOINS)), at={"scale": scale}, samples=1, **common),
        ]
    return found


def input_bytes(size: Size, at: At) -> int:
    """The graph as two columns."""
    return inputs.n_bytes(f"rmat-{at['scale']}")


BENCHMARK = Benchmark(
    name="spark_triangles",
    title="Triangles of an undirected R-MAT graph, on Spark",
    about="From a file to the count, with two slots. It takes a quarter of an hour, and so runs "
    "only when named.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(GRAPHX,),
    axis="scale",
    prepare=prepare,
    input_bytes=input_bytes,
    counted="triangles",
    on_all_cores=(SPARK, GRAPHX),
    when_named=True,
)
