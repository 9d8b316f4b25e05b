"""Pointstamp in the middle of a Spark stream: files in, Parquet out, two graphs kept in between.

Spark parses the files that arrive, an epoch each. A service of Pointstamp, which is a job of
the same session, counts the triangles of `edges`, which only come (growing_triangles.py), and
keeps the components of `changes`, which come and go (changing_components.py). What changes of both
answers is a change data feed, which Spark writes to Parquet. Whoever runs it again with the
files that are new goes on, on any number of workers: the service and the queries have
checkpoints.

    python examples/stream_on_spark.py [FOLDER [WORKERS]]

FOLDER has edges/*, lines of `src dst time`, and changes/*, lines of `src,dst,change`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import changing_components
import growing_triangles

import pointstamp as ps
import pointstamp.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMAS = {"edges": "src long, dst long", "changes": "src long, dst long"}
OUTPUTS = ("triangles", "components")


def build(
    scope: ps.Scope, edges: ps.Collection, changes: ps.Collection
) -> dict[str, ps.Collection]:
    return {
        "triangles": growing_triangles.triangles(scope, edges),
        "components": changing_components.components(scope, changes),
    }


def arriving(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """The stream of an input, of which each file is a batch, and so an epoch."""
    third, separator = ("time", " ") if name == "edges" else ("change", ",")
    files = spark.readStream.schema(f"src long, dst long, {third} long").option("sep", separator)
    lines = files.option("maxFilesPerTrigger", 1).csv(str(folder / name))
    return lines.drop("time")


def work_off(spark: SparkSession, folder: Path, workers: int) -> None:
    """Take in the files that are new; return when all that they change is written."""
    for module in (growing_triangles.__file__, changing_components.__file__, __file__):
        spark.sparkContext.addPyFile(str(module))  # the tasks import them as well
    checkpoint = str(folder / "service")
    with pointstamp.spark.serve(
        build, spark, workers, collections=SCHEMAS, checkpoint=checkpoint, snapshot_every=3
    ) as service:
        now = {"availableNow": True}
        edges = arriving(spark, folder, "edges")
        changes = arriving(spark, folder, "changes")
        coming = [
            service.input("edges").follow(edges, "append", trigger=now),
            service.input("changes").follow(changes, "diff", diff="change", trigger=now),
        ]
        going = []
        for name in OUTPUTS:
            to = service.output(name).change_feed().writeStream.format("parquet")
            to = to.option("checkpointLocation", str(folder / "queries" / name))
            going.append(to.start(str(folder / name)))
        for query in coming:
            query.awaitTermination()
        for query in going:
            query.processAllAvailable()
            query.stop()


def make_files(folder: Path) -> None:
    """A small graph whose edges come in four files, and another one that changes four times."""
    for name in SCHEMAS:
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
    from pyspark.sql.functions import expr, max_by

    counts = spark.read.parquet(str(folder / "triangles")).where("_change_type = 'insert'")
    (last,) = counts.select(max_by("triangles", "_commit_version")).collect()[0]
    print(f"{last} triangles")
    moved = spark.read.parquet(str(folder / "components"))
    n = expr("sum(if(_change_type = 'insert', 1, -1))").alias("n")
    labels = moved.groupBy("node", "label").agg(n).where("n > 0")
    print(f"{labels.select('label').distinct().count()} components")


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
