"""The tables of the pipeline: a graph whose edges come and go, its triangles and its components.

    data/*.csv --> changes --> edges --> triangles
                         '---> moved --> components

`triangles` is found anew by each run. `components` is not: `moved` has what changes of them, and
its query begins with what it kept of the last batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

import pointstamp as ps
import pointstamp.spark
from pointstamp.collections import changing_graphs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

spark = SparkSession.active()
PROJECT = Path(__file__).parent.parent
EDGES = "src long, dst long"
WORKERS = 2


@dp.temporary_view
def changes() -> DataFrame:
    """Lines of `src,dst,change`; each file is a batch of the queries that read them."""
    files = spark.readStream.schema(f"{EDGES}, change long").option("maxFilesPerTrigger", 1)
    return files.csv(f"{PROJECT}/data")


@dp.table
def edges() -> DataFrame:
    """What has become of edges: +1 where one comes, -1 where it goes."""
    return spark.readStream.table("changes")


@dp.materialized_view
def triangles() -> DataFrame:
    """At how many directed triangles each vertex is, of the edges that are there."""
    there = spark.read.table("edges").groupBy("src", "dst").agg({"change": "sum"})
    there = pointstamp.spark.with_schema(there.where("`sum(change)` > 0"), EDGES)
    found = pointstamp.spark.graph(there, workers=WORKERS).find(
        "(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)", distinct=True
    )
    return found.groupBy("a.id").count()


def build(scope: ps.Scope, edges: ps.Collection) -> ps.Collection:
    """`node` and `label`, the least of the nodes that it is connected to."""
    return changing_graphs.components(edges)


@dp.table
def moved() -> DataFrame:
    """What changes of the components, as a change data feed."""
    stream = pointstamp.spark.with_schema(
        spark.readStream.table("changes"), f"{EDGES}, change long"
    )
    return pointstamp.spark.maintain_stream(
        build,
        {"edges": stream},
        form="diff",
        diff="change",
        collections={"edges": EDGES},
        checkpoint=PROJECT / "state",
        workers=WORKERS,
    )


@dp.materialized_view(name="components")
def labels() -> DataFrame:
    """The components as they are now."""
    n = expr("sum(if(_change_type = 'insert', 1, -1))").alias("n")
    counted = spark.read.table("moved").groupBy("node", "label").agg(n)
    return counted.where("n > 0").select("node", "label")
