"""Triangles of real graphs on Spark, undirected and directed: ours in its tasks, and its own.

All read the graph from a file, as `spark_triangles` does, on two slots. GraphX counts
without directions only.
"""

from __future__ import annotations

from benchmarks.directed_triangles import JOINS as DIRECTED_JOINS
from benchmarks.harness.case import OURS, Benchmark, Case, Quantity, Size
from benchmarks.real_graphs import chosen, input_bytes, prepare
from benchmarks.spark_triangles import ours
from benchmarks.sql import in_spark
from benchmarks.triangles import GRAPHX, JOINS, SPARK, in_graphx


def cases(size: Size) -> list[Case]:
    """Each graph in both forms, three times each."""
    found = []
    for graph in chosen(size):
        for form in ("undirected", "directed"):
            name, at = f"{graph}-{form}", {"graph": graph, "form": form}
            is_undirected = form == "undirected"
            measures = {
                OURS: (ours(name, form), {**at, "workers": 2}),
                SPARK: (in_spark(name, JOINS if is_undirected else DIRECTED_JOINS), at),
            }
            if is_undirected:
                measures[GRAPHX] = in_graphx(name), at
            found += [
                Case(who, measure, at=where, data=name, needs=("pyspark",), samples=3)
                for who, (measure, where) in measures.items()
            ]
    return found


BENCHMARK = Benchmark(
    name="spark_real_graphs",
    title="Triangles of real graphs, on Spark",
    about="Graphs of 35,000 to 100,000 edges, from a file to the count, with two slots. It runs "
    "only when named.",
    quantity=Quantity("s"),
    cases=cases,
    baselines=(SPARK,),
    prepare=prepare,
    input_bytes=input_bytes,
    counted="triangles",
    on_all_cores=(SPARK, GRAPHX),
    when_named=True,
)
