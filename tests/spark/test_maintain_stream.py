"""Collections kept by queries of a real Spark session, which are stopped and started again."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

import pointstamp as ps
import pointstamp.spark
from pointstamp import col
from pointstamp.errors import BuildError, SchemaError, UsageError
from pointstamp.spark.known_schemas import struct_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

STATE = "state of 100%25"
"""A folder whose name is another one where it is read as part of a URI."""

SALES = "shop long, item string, cents long"
SCHEMAS = {"sales": "shop long, item string?, cents long"}

# By file, which is a batch: of shops, what comes and goes.
FILES = [
    [(1, "tea", 1_200, 1), (2, "ink", 3_000, 1), (2, "ink", 400, 1)],
    [(1, "tea", 1_200, -1), (3, "pen", 2_000, 2)],
    [(2, "ink", 3_000, -1), (2, "ink", 400, -1), (1, "cup", 5, 1)],
    [(3, "pen", 2_000, -1)],
]


def report(scope: Any, sales: Any) -> Any:
    big = sales.filter(col("cents") >= 1_000)
    return big.group_by("shop").agg(n=ps.count(), largest=ps.max("cents"))


def put(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / f".{number}.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in FILES[number]))
    os.utime(file, (1e9 + number, 1e9 + number))
    file.rename(folder / f"{number}.csv")


def stream(spark: Any, folder: Path) -> Any:
    files = spark.readStream.schema(f"{SALES}, n int").option("maxFilesPerTrigger", 1)
    return files.csv(str(folder))


def kept(spark: Any, folder: Path, workers: int, build: Any = report, **options: Any) -> Any:
    return pointstamp.spark.maintain_stream(
        build,
        {"sales": stream(spark, folder / "files")},
        **{
            "form": "diff",
            "diff": "n",
            "checkpoint": folder / STATE,
            "collections": SCHEMAS,
            **options,
        },
        workers=workers,
    )


def written(frame: Any, folder: Path) -> list[Any]:
    """What batches a query gives until there is no more: (number, its rows without time)."""
    found: list[Any] = []

    def take(rows: Any, batch: int) -> None:
        # Twice, as a program may: the second time runs nothing, and is the same.
        twice = [sorted(map(tuple, rows.collect())) for _ in range(2)]
        assert twice[0] == twice[1]
        assert len({row[-1] for row in twice[0]}) <= 1
        found.append((batch, [row[:-1] for row in twice[0]]))

    writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "query")).start().awaitTermination()
    return found


def of_view() -> list[Any]:
    """What a view makes of the files, as batches of a change data feed."""
    view = ps.View(report, **SCHEMAS)
    expected = []
    for batch, rows in enumerate(FILES):
        for *row, n in rows:
            view.update("sales", [(tuple(row), n)])
        changes = [
            (*row, "insert" if diff > 0 else "delete", batch)
            for row, diff in view.advance()
            for _ in range(abs(diff))
        ]
        expected.append((batch, sorted(changes)))
    return expected


def test_batches_are_epochs_of_a_view_over_stops_and_repeats(spark: Any, tmp_path: Path) -> None:
    expected = of_view()
    assert expected[0] == (0, [(1, 1, 1_200, "insert", 0), (2, 1, 3_000, "insert", 0)])
    for number in range(2):
        put(tmp_path / "files", number)
    assert written(kept(spark, tmp_path, 2), tmp_path) == expected[:2]
    put(tmp_path / "files", 2)
    # Another number of workers.
    assert written(kept(spark, tmp_path, 1), tmp_path) == expected[2:3]

    # As if the program were killed before Spark noted that the batch was through: it repeats it.
    for note in (tmp_path / "query" / "commits").glob("*2*"):
        note.unlink()
    put(tmp_path / "files", 3)
    assert written(kept(spark, tmp_path, 2), tmp_path) == expected[2:]

    # Without its checkpointLocation it is another query, and begins anew.
    shutil.rmtree(tmp_path / "query")
    assert written(kept(spark, tmp_path, 2), tmp_path) == expected
    assert len([*(tmp_path / STATE).iterdir()]) == 2

    # What was kept is not as old as the query: it is refused, and nothing changes.
    shutil.rmtree(tmp_path / STATE)
    for note in (tmp_path / "query" / "commits").glob("*3*"):
        note.unlink()
    with pytest.raises(
        Exception, match=r"batch 3 .* follows on batch 2, and the last .* has is none"
    ):
        written(kept(spark, tmp_path, 2), tmp_path)


def test_a_row_that_does_not_fit_has_the_query_fail_and_changes_nothing(
    spark: Any, tmp_path: Path
) -> None:
    put(tmp_path / "files", 0)
    (tmp_path / "files" / "1.csv").write_text("1,tea,7,")
    with pytest.raises(Exception, match="the diff, column 'n', is null"):
        written(kept(spark, tmp_path, 1), tmp_path)
    (tmp_path / "files" / "1.csv").write_text("1,tea,7000,1")
    assert written(kept(spark, tmp_path, 1), tmp_path) == [
        (1, [(1, 1, 1_200, "delete", 1), (1, 2, 7_000, "insert", 1)])
    ]


def test_two_collections_of_one_query_need_two_folders(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "files", 0)

    def both(*folders: str) -> Any:
        # Of the same columns, so that nothing but the values would differ.
        each = [
            kept(spark, tmp_path, 1, partial(shops, least), checkpoint=tmp_path / folder)
            for least, folder in zip((0, 2_000), folders, strict=True)
        ]
        return each[0].union(each[1]).withColumn("_commit_timestamp", functions.lit(None))

    for _ in range(2):
        with pytest.raises(Exception, match="two calls of maintain_stream are in one query"):
            written(both("state", "state"), tmp_path)
    assert written(both("one", "other"), tmp_path) == [
        (0, [(1, "insert", 0), (2, "insert", 0), (2, "insert", 0)])
    ]


def shops(least: int, scope: Any, sales: Any) -> Any:
    return sales.filter(col("cents") >= least).select("shop").distinct()


def test_what_cannot_be_kept_is_refused_by_the_call(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "files", 0)
    with pytest.raises(UsageError, match="'sales' should be a stream"):
        pointstamp.spark.maintain_stream(
            report, {"sales": spark.range(1)}, checkpoint=tmp_path, workers=1
        )
    with pytest.raises(UsageError, match="a dict of DataFrames by input"):
        pointstamp.spark.maintain_stream(report, {}, checkpoint=tmp_path, workers=1)
    with pytest.raises(UsageError, match=r'this one has none: .* as \{"sales": stream\}'):
        pointstamp.spark.maintain_stream(report, {}, checkpoint=tmp_path, workers=1)
    with pytest.raises(UsageError, match="keeps what it has in a folder"):
        kept(spark, tmp_path, 1, checkpoint=None)
    with pytest.raises(BuildError, match=r"\['a', 'b'\], and a query has one result"):
        kept(spark, tmp_path, 1, lambda scope, sales: {"a": sales, "b": sales})
    with pytest.raises(SchemaError, match="has 'n' besides"):
        kept(spark, tmp_path, 1, form="append", diff=None)
    with pytest.raises(UsageError, match="form='upserts' is for an input of a service"):
        kept(spark, tmp_path, 1, form="upserts", diff=None)
    for declared in (ps.UpsertInput(SALES, key="shop"), ps.AppendInput(SALES), ps.ClockInput()):
        with pytest.raises(UsageError, match=r"'sales' as .*, which views and services have"):
            kept(spark, tmp_path, 1, collections={"sales": declared})


@pytest.mark.parametrize(
    "text",
    [
        "a long, b string",
        "`a b` int not null,c decimal(10, 2) , d DECIMAL, e:double",
        "a tinyint, b byte, c smallint, d short, e integer, f bigint, g float, h real",
        "a boolean, b binary, c date, d timestamp_ltz, e timestamp_ntz, f numeric(5)",
        "a array<struct<b: long>>, c map<string, int>",
        "b timestamp, c string comment 'what it is'",
    ],
)
def test_columns_are_read_as_spark_reads_them(spark: Any, text: str) -> None:
    assert struct_of(text) == spark.createDataFrame([], text).schema


def test_columns_that_are_said_are_selected_and_cast(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "2", 3.5)], "a int, `b c` string, d double")
    said = pointstamp.spark.with_schema(frame, "`b c` long, a long")
    assert said.schema.simpleString() == "struct<b c:bigint,a:bigint>"
    assert [tuple(row) for row in said.collect()] == [(2, 1)]
    for wrong in (3, "long"):
        with pytest.raises(SchemaError, match="a schema is a text such as 'a long, b string'"):
            pointstamp.spark.with_schema(frame, wrong)  # type: ignore[arg-type]
