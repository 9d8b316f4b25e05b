"""Collections kept up to date by a service on Spark: driven directly, and read directly."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StringType, StructField, StructType

import pointstamp as ps
import pointstamp.spark
from pointstamp import col
from pointstamp.errors import DataError, SchemaError, UsageError

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def report(scope: Any, sales: Any, shops: Any) -> Any:
    big = sales.filter(col("cents") >= 1_000).join(shops, on="shop")
    return big.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"), largest=ps.max("cents"))


SCHEMAS = {
    "sales": StructType(
        [
            StructField("shop", LongType(), False),
            StructField("item", StringType()),
            StructField("cents", LongType(), False),
        ]
    ),
    "shops": "shop long, city string",
}


def test_a_report_is_kept_up_to_date_inside_a_job_of_spark(spark: Any) -> None:
    with pointstamp.spark.serve(report, spark, 2, collections=SCHEMAS) as service:
        service.input("shops").insert([(1, "Rome"), (2, "Oslo")])
        service.input("sales").insert([(1, "tea", 1_200), (2, None, 3_000), (2, "ink", 400)])
        assert service.advance() == 0
        output = service.output("result")
        assert output.changes(0) == [
            (("Oslo", 1, 3_000, 3_000), 1),
            (("Rome", 1, 1_200, 1_200), 1),
        ]
        service.input("sales").delete([(2, None, 3_000)])
        service.input("sales").insert(pa.table({"shop": [1], "item": ["pen"], "cents": [5_000]}))
        assert service.advance() == 1
        assert output.snapshot(1) == [("Rome", 2, 6_200, 5_000)]
        with pytest.raises(DataError, match="None as 'shop', which is not nullable"):
            service.input("shops").insert([(None, "Rome")])
    assert output.changes(1, after=-1) == [(("Rome", 2, 6_200, 5_000), 1)]


def test_what_is_no_collection_is_refused(spark: Any) -> None:
    with pytest.raises(UsageError, match="serve is given no inputs: give inputs= of streams, or"):
        pointstamp.spark.serve(report, spark)
    with pytest.raises(SchemaError, match="a Spark StructType, and 7 is none"):
        pointstamp.spark.serve(report, spark, collections={"sales": 7, "shops": "shop long"})


def test_a_collection_is_no_sink_of_a_format(spark: Any, tmp_path: Any) -> None:
    with pointstamp.spark.serve(
        lambda scope, t: t, spark, 1, name="no sink", collections={"t": "a long"}
    ):
        spark.range(3).selectExpr("id as a").write.parquet(str(tmp_path / "files"))
        writer = (
            spark.readStream.schema("a long")
            .parquet(str(tmp_path / "files"))
            .writeStream.format("pointstamp")
            .option("service", "no sink")
            .option("checkpointLocation", str(tmp_path / "sink"))
        )
        with pytest.raises(PySparkException, match="is a collection, whose epochs are numbered"):
            writer.start().processAllAvailable()


def test_a_dataframe_is_loaded_as_one_epoch_by_all_tasks(spark: Any, tmp_path: Any) -> None:
    flags = tmp_path / "flags"
    flags.mkdir()

    def fails_once(batches: Any) -> Any:
        """The first attempt of each partition ends when all of it was read, the next goes on."""
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        flag = flags / str(context.partitionId())
        if not flag.exists():
            flag.touch()
            raise ValueError("a task that fails")

    with pointstamp.spark.serve(
        lambda scope, t: t.group_by("b").count(), spark, 2, collections={"t": "a long, b long?"}
    ) as service:
        input = service.input("t")
        rows = spark.range(0, 50_000, 1, 3).selectExpr("nullif(id % 3, 2) as b", "id as a")
        input.insert([(7, 7)])
        assert input.load(rows) == 0
        assert service.output().changes(0) == [
            ((None, 16_666), 1),
            ((0, 16_667), 1),
            ((1, 16_667), 1),
        ]
        assert service.advance() == 1
        assert service.output().changes(1) == [((7, 1), 1)]
        unsteady = rows.limit(10).mapInArrow(fails_once, rows.schema)
        with pytest.raises(PySparkException, match="a task that fails"):
            input.load(unsteady)
        assert input.load(unsteady) == 2
        assert input.load(rows.limit(0)) == 3
        with pytest.raises(DataError, match="input 't': column 'a' has 1 nulls of 3 values"):
            input.load(spark.range(0, 6, 1, 2).selectExpr("nullif(id, 4) as a", "id as b"))
        assert input.time == 4
        with pytest.raises(
            SchemaError, match="lacks 'b' and has 'c' besides: its columns are a, c"
        ):
            input.load(rows.selectExpr("a", "b as c"))
        with pytest.raises(SchemaError, match="'b' of Spark's type int, and it should be long"):
            input.load(rows.selectExpr("a", "cast(b as int) as b"))
        with pytest.raises(UsageError, match="input 't' is given list, and takes a DataFrame"):
            input.load([(1, 2)])
