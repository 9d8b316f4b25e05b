"""GraphX, whose jar comes with PySpark, through the gateway to the JVM.

For comparison only: Pointstamp itself uses no gateway. GraphX reads text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import graphs
from benchmarks.harness.case import Effort, Measure, Reading
from benchmarks.harness.measure import repeated, timed
from benchmarks.harness.memory import peaks

PARTITIONS = 4


def measure(name: str, run: Callable[[Any, Any], Any]) -> Measure:
    """Time `run(jvm, graph)`, with reading the graph from a file."""

    def measured(effort: Effort) -> Reading:
        from pointstamp.spark import session

        edges = np.column_stack(graphs.load(name))
        with tempfile.TemporaryDirectory() as folder, session(workers=2) as spark:
            path = Path(folder) / "edges.txt"
            np.savetxt(path, edges, "%d")
            seconds, answer = repeated(
                effort, lambda: timed(lambda: run(spark._jvm, read_edges(spark, path)))
            )
            return Reading(seconds, peaks(), answer)

    return measured


def read_edges(spark: Any, path: Path | str) -> Any:
    """A graph of text, two numbers in each line, which may be in several files of a folder."""
    jvm = spark._jvm
    level = jvm.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
    loader = jvm.org.apache.spark.graphx.GraphLoader
    context = spark.sparkContext._jsc.sc()
    return loader.edgeListFile(context, str(path), False, PARTITIONS, level, level)


def tag_of(jvm: Any) -> Any:
    """What Scala is to know of the type of an attribute."""
    return jvm.scala.reflect.ClassTag.Int()


def pagerank(jvm: Any, graph: Any, rounds: int) -> None:
    """Twenty rounds, and all ranks looked at once."""
    tag = tag_of(jvm)
    lib = jvm.org.apache.spark.graphx.lib.PageRank
    lib.run(graph, rounds, 0.15, tag, tag).vertices().count()


def count_triangles(jvm: Any, graph: Any) -> int:
    """Its TriangleCount, which tells each triangle to its three vertices."""
    tag = tag_of(jvm)
    counted = jvm.org.apache.spark.graphx.lib.TriangleCount.run(graph, tag, tag)
    # Without a lambda of Scala nothing can be added up over there; text can be read here.
    with tempfile.TemporaryDirectory() as folder:
        counted.vertices().saveAsTextFile(f"{folder}/counts")
        parts = Path(folder, "counts").glob("part-*")
        lines = [line for part in parts for line in part.read_text().split()]
    return sum(int(line.strip("()").split(",")[1]) for line in lines) // 3
