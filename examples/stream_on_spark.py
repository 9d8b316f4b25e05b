"""Pointstamp in the middle of a Spark stream: files in, Parquet out, a graph kept in between.

Spark parses the files that arrive, an epoch each. A service of Pointstamp, which is a job of
the same session, counts the triangles of `edges`, which only come (growing_triangles.py), and
keeps the components of `changes`, which come and go (changing_components.py). Both graphs are
collections, and what comes out are the updates of their answers: rows with +1 or -1. Spark writes
both to Parquet. Whoever runs it again with the files that are new goes on, on any number of
workers: the service and the queries have checkpoints.

    python examples/stream_on_spark.py [FOLDER [WORKERS]]

FOLDER has edges/*, lines of `src dst time`, and changes/*, lines of `src,dst,change`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import changing_components
import growing_triangles
import pyarrow as pa

import pointstamp as ps
import pointstamp.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE = pa.schema({"src": pa.int64(), "dst": pa.int64(), "change": pa.int64()})
COUNTED = pa.schema([(name, pa.int64()) for name in ("epoch", "triangles", "change")])
MOVED = pa.schema([(name, pa.int64()) for name in ("epoch", "vertex", "component", "change")])
INPUTS = {"edges": growing_triangles.EDGE, "changes": CHANGE}
OUTPUTS = {"triangles": COUNTED, "components": MOVED}


def build(scope: ps.Scope, edges: ps.Stream[Any], changes: ps.Stream[Any]) -> dict[str, Any]:
    growing = edges.as_collection("src long, dst long")
    changing = changes.as_collection("src long, dst long", diff="change")
    return {
        "triangles": told(growing_triangles.triangles(scope, growing), COUNTED),
        "components": told(changing_components.components(scope, changing), MOVED),
    }


def told(answers: ps.Collection, schema: pa.Schema) -> ps.Stream[Any]:
    """Columns of updates, with the epoch of each."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        capability.drop()
        info.keeps_nothing()

        def logic(input: ps.Input, output: ps.Output) -> None:
            for time, batch in input:
                rows = [(time.time, *row, change) for row, change in batch]
                columns = [pa.array(column) for column in zip(*rows, strict=True)]
                told = pa.RecordBatch.from_arrays(columns, schema=schema)
                output.session(time).give_batch(told)

        return logic

    return answers.updates().unary(ps.Pipeline(), "WithEpoch", build)


def arriving(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """The stream of an input, of which each file is a batch, and so an epoch."""
    third, separator = ("time", " ") if name == "edges" else ("change", ",")
    files = spark.readStream.schema(f"src long, dst long, {third} long").option("sep", separator)
    lines = files.option("maxFilesPerTrigger", 1).csv(str(folder / name))
    return lines.select(INPUTS[name].names)


def work_off(spark: SparkSession, folder: Path, workers: int) -> None:
    """Take in the files that are new; return when all that they change is written."""
    for module in (growing_triangles.__file__, changing_components.__file__, __file__):
        spark.sparkContext.addPyFile(str(module))  # the tasks import them as well
    with pointstamp.spark.serve(
        build,
        spark,
        workers,
        inputs=INPUTS,
        outputs=OUTPUTS,
        checkpoint=str(folder / "service"),
        snapshot_every=3,
    ) as service:
        coming, going = [], []
        for name in INPUTS:
            to = arriving(spark, folder, name).writeStream.format("pointstamp")
            to = to.option("service", service.name).option("input", name)
            to = to.trigger(availableNow=True)
            coming.append(to.option("checkpointLocation", str(folder / "queries" / name)).start())
        for name in OUTPUTS:
            out = spark.readStream.format("pointstamp").option("service", service.name)
            to = out.option("output", name).load().writeStream.format("parquet")
            to = to.option("checkpointLocation", str(folder / "queries" / name))
            going.append(to.start(str(folder / name)))
        for query in coming:
            query.awaitTermination()
        for query in going:
            query.processAllAvailable()
            query.stop()


def make_files(folder: Path) -> None:
    """A small graph whose edges come in four files, and another one that changes four times."""
    for name in INPUTS:
        (folder / name).mkdir()
    edges = growing_triangles.random_edges(50, 400).to_pylist()
    changes = changing_components.random_changes(30, 8, 4)
    for k in range(4):
        come = [f"{edge['src']} {edge['dst']} {k}" for edge in edges[100 * k : 100 * k + 100]]
        change = [f"{u},{v},{n}" for (u, v), n in changes[k]]
        for name, lines in (("edges", come), ("changes", change)):
            file = folder / name / f"{k}.csv"
            file.write_text("\n".join(lines))
            os.utime(file, (k, k))  # Spark takes files in the order of their times


def say(spark: SparkSession, folder: Path) -> None:
    from pyspark.sql.functions import max_by

    counts = spark.read.parquet(str(folder / "triangles")).where("change > 0")
    (last,) = counts.select(max_by("triangles", "epoch")).collect()[0]
    print(f"{last} triangles")
    moved = spark.read.parquet(str(folder / "components"))
    labels = moved.groupBy("vertex", "component").sum("change").where("`sum(change)` > 0")
    print(f"{labels.select('component').distinct().count()} components")


def main(folder: str | None = None, workers: int | str = 2) -> None:
    with pointstamp.spark.session(workers=int(workers) + 1) as spark:
        if folder is not None:
            work_off(spark, Path(folder), int(workers))
            say(spark, Path(folder))
            return
        with tempfile.TemporaryDirectory() as made:
            make_files(Path(made))
            work_off(spark, Path(made), int(workers))
            say(spark, Path(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
