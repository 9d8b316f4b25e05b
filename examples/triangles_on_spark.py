"""Triangles of a DataFrame, on Spark: DataFrame in, DataFrame out.

The workers are the tasks of one barrier stage of the job that Spark runs when
somebody asks for the result. Before and after it is Spark as always.

    python examples/triangles_on_spark.py [EDGES.parquet [WORKERS]]
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pointstamp as ps
import pointstamp.spark
from pointstamp.graph import motifs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def triangles(scope: ps.Scope, edges: ps.Stream[Any]) -> ps.Stream[Any]:
    return motifs(edges, "(a)-[]->(b); (b)-[]->(c); (a)-[]->(c)")


def toy_graph(spark: SparkSession) -> DataFrame:
    """0 to 9, each with an edge to the three that follow it."""
    edges = spark.range(10).selectExpr("id as src", "explode(array(1, 2, 3)) as step")
    return edges.selectExpr("src", "src + step as dst").where("dst < 10")


def main(file: str | None = None, workers: int | str = 2) -> None:
    with pointstamp.spark.session(workers=int(workers)) as spark:
        edges = toy_graph(spark) if file is None else spark.read.parquet(file)
        found = pointstamp.spark.run(
            triangles, {"edges": edges}, schema="a long, b long, c long", workers=int(workers)
        )
        for a, n in found.groupBy("a").count().orderBy("a").limit(3).collect():
            print(f"{n} triangles begin at {a}")


if __name__ == "__main__":
    main(*sys.argv[1:])
