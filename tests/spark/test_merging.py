"""MERGE of what changes into tables that Spark itself writes by rows; see `MergeCatalog.java`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

import pointstamp as ps
import pointstamp.spark
from pointstamp import col
from pointstamp.errors import ColumnError, StoppedError, UsageError
from pointstamp.spark.merging import Merge
from tests.spark.merge_catalog import add_merge_catalog

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

UPSERT = ", _deleted boolean, _commit_version long, _commit_timestamp timestamp"


@pytest.fixture(scope="module")
def catalog(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a catalog whose tables have MERGE, in memory."""
    return add_merge_catalog(spark, tmp_path_factory.mktemp("catalog") / "merge.jar", "memory")


@pytest.fixture
def table(spark: Any, catalog: str) -> Iterator[Any]:
    """`table(columns)`: the name of a new table, which goes with the test."""
    made = []

    def make(columns: str) -> str:
        made.append(f"{catalog}.t{len(made)}")
        spark.sql(f"CREATE TABLE {made[-1]} ({columns})")
        return made[-1]

    yield make
    for name in made:
        spark.sql(f"DROP TABLE {name}")


def rows(spark: Any, name: str) -> list[Any]:
    return sorted((tuple(row) for row in spark.table(name).collect()), key=repr)


def test_the_last_epoch_of_a_batch_counts_and_a_repeated_batch_changes_nothing(
    spark: Any, table: Any
) -> None:
    name = table("city STRING, n BIGINT")
    merge = Merge(name, ("city", "n"), ("city",))

    def batch(*upserts: Any) -> Any:
        found = [(*upsert, None) for upsert in upserts]
        return spark.createDataFrame(found, "city string, n long" + UPSERT)

    merge(batch(("Rome", 1, False, 0), (None, 2, False, 0), ("Rome", 3, False, 1)), 0)
    assert rows(spark, name) == [("Rome", 3), (None, 2)]
    second = batch(
        ("Rome", 3, True, 2),
        (None, 5, False, 2),
        ("Oslo", 5, False, 2),
        ("Bern", 1, True, 3),
        ("Oslo", 6, False, 4),
    )
    for _ in range(2):
        merge(second, 1)
        assert rows(spark, name) == [("Oslo", 6), (None, 5)]


def test_names_may_be_anything(spark: Any, table: Any) -> None:
    names = ["a`b", "{x}", "k.1", "select"]
    declared = ", ".join(f"`{name.replace('`', '``')}` INT" for name in names)
    name = table(declared)
    merge = Merge(name, tuple(names), ("k.1", "select"))
    merge(spark.createDataFrame([(1, 2, 3, 4, False, 0, None)], declared + UPSERT), 0)
    merge(spark.createDataFrame([(5, 6, 3, 4, False, 1, None)], declared + UPSERT), 1)
    assert rows(spark, name) == [(5, 6, 3, 4)]
    name = table("`row` INT, n INT")
    Merge(name, ("row", "n"), ("row",))(
        spark.createDataFrame(
            [(1, 2, False, 0, None), (1, 3, False, 1, None)], "`row` int, n int" + UPSERT
        ),
        0,
    )
    assert rows(spark, name) == [(1, 3)]
    keys = table("k INT")
    for is_deleted, found in ((False, [(1,)]), (False, [(1,)]), (True, [])):
        rows_of = spark.createDataFrame([(1, is_deleted, 0, None)], "k int" + UPSERT)
        Merge(keys, ("k",), ("k",))(rows_of, 0)
        assert rows(spark, keys) == found


def report(scope: Any, sales: Any) -> Any:
    return sales.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"))


SCHEMA = "city string?, cents long"

EPOCHS: list[list[tuple[tuple[str | None, int], int]]] = [
    [(("Rome", 5), 1), ((None, 7), 1), (("Oslo", 1), 1)],
    [(("Oslo", 1), -1), (("Rome", 6), 1)],
    [((None, 7), -1), ((None, 8), 1), (("Bern", 2), 1)],
    [(("Rome", 5), -1), (("Rome", 6), -1), (("Oslo", 9), 1)],
]


def test_a_table_is_kept_up_to_date_over_the_lives_of_a_service(
    spark: Any, table: Any, tmp_path: Path
) -> None:
    name, view = table("city STRING, n BIGINT, cents BIGINT"), ps.View(report, sales=SCHEMA)
    folder = tmp_path / "service"

    def serve(workers: int) -> Any:
        return pointstamp.spark.serve(
            report,
            spark,
            workers,
            collections={"sales": SCHEMA},
            checkpoint=folder,
            snapshot_every=2,
        )

    def feed(service: Any, epoch: int) -> None:
        service.input("sales").update(EPOCHS[epoch])
        view.update("sales", EPOCHS[epoch])
        view.advance()
        assert service.advance() == epoch
        service.probe.wait(epoch)

    def expected() -> list[Any]:
        return sorted(view.snapshot()[:], key=repr)

    service = serve(2)
    try:
        feed(service, 0)
        query = service.output("result").merge_into(name, key="city")
        query.processAllAvailable()
        assert rows(spark, name) == expected()
        feed(service, 1)
        query.processAllAvailable()
        assert rows(spark, name) == expected()
        with pytest.raises(UsageError, match=r"output 'result' merged into .* is at work in"):
            service.output("result").merge_into(name, key="city")
        with pytest.raises(ColumnError, match="is given the column 'shop'"):
            service.output("result").merge_into(name, key="shop")
        with pytest.raises(UsageError, match="needs the name of a table, as in SQL, and not ''"):
            service.output("result").merge_into("", key="city")
        feed(service, 2)
        query.stop()
    finally:
        service.abort()
    # As if the program had been killed before Spark had noted what was merged last.
    commits = sorted((folder / "queries").rglob("commits/[0-9]*"))
    commits[-1].unlink()
    shutil.rmtree(commits[-1].parent / ".tmp", ignore_errors=True)
    for checksum in commits[-1].parent.glob(f".{commits[-1].name}.crc"):
        checksum.unlink()
    with serve(1) as service:
        query = service.output("result").merge_into(name, key="city")
        feed(service, 3)
        query.processAllAvailable()
        assert rows(spark, name) == expected()
    assert not query.isActive
    with pytest.raises(StoppedError):
        service.output("result").merge_into(name, key="city")


def large(scope: Any, sales: Any, shops: Any) -> Any:
    big = sales.filter(col("cents") >= 1_000).join(shops, on="shop")
    return big.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"), largest=ps.max("cents"))


FEEDS: dict[str, tuple[str, list[list[Any]]]] = {
    "sales": (
        "shop BIGINT, item STRING, cents BIGINT",
        [
            [(1, "tea", 1_200, "insert"), (2, None, 3_000, "insert"), (2, "ink", 400, "insert")],
            [
                (2, None, 3_000, "update_preimage"),
                (2, None, 5_000, "update_postimage"),
                (1, "pen", 1_000, "insert"),
            ],
            [(2, None, 5_000, "delete")],
        ],
    ),
    "shops": (
        "shop BIGINT, city STRING",
        [
            [(1, "Rome", "insert"), (2, "Oslo", "insert")],
            [(1, "Rome", "update_preimage"), (1, "Bern", "update_postimage")],
        ],
    ),
}
"""By table: its columns, and the files of its change data feed."""


def test_change_data_feeds_go_in_and_a_table_is_merged(
    spark: Any, table: Any, tmp_path: Path
) -> None:
    """The program of the documentation, with files for the feeds of tables."""
    report, streams = table("city STRING, n BIGINT, cents BIGINT, largest BIGINT"), {}
    for name, (columns, batches) in FEEDS.items():
        of_feed = f"{columns}, _change_type STRING, _commit_version BIGINT"
        for version, batch in enumerate(batches):
            changes = spark.createDataFrame([(*row, version) for row in batch], of_feed)
            changes.coalesce(1).write.mode("append").parquet(str(tmp_path / name))
        files = spark.readStream.schema(of_feed).option("maxFilesPerTrigger", 1)
        streams[name] = files.parquet(str(tmp_path / name))
    schemas = {name: StructType.fromDDL(columns) for name, (columns, _) in FEEDS.items()}
    folder = tmp_path / "service"
    with pointstamp.spark.serve(
        large, spark, workers=2, collections=schemas, checkpoint=folder
    ) as service:
        queries = [service.input(name).follow(streams[name], form="cdf") for name in schemas]
        merging = service.output("result").merge_into(report, key="city")
        for query in [*queries, merging]:
            query.processAllAvailable()
        assert rows(spark, report) == [("Bern", 2, 2_200, 1_200)]
        assert rows(spark, report) == service.output("result").snapshot()[:]


def test_a_table_that_is_not_there_is_not_merged_into(
    spark: Any, table: Any, tmp_path: Path
) -> None:
    with pointstamp.spark.serve(
        report, spark, 1, collections={"sales": SCHEMA}, checkpoint=tmp_path / "service"
    ) as service:
        output = service.output("result")
        for name in ("no_such_table", "no_such_schema.report", "a table"):
            with pytest.raises(
                UsageError, match=f"output 'result' merged into {name} needs a table that is there"
            ):
                output.merge_into(name, key="city")
        with pytest.raises(UsageError, match="this one lacks 'cents': it has N, more, CITY"):
            output.merge_into(table("N BIGINT, more INT, CITY STRING"), key="city")


def test_a_table_is_not_merged_into_without_a_checkpoint(spark: Any) -> None:
    with (
        pointstamp.spark.serve(report, spark, 1, collections={"sales": SCHEMA}) as service,
        pytest.raises(
            UsageError, match="output 'result' merged into t needs a service with a check"
        ),
    ):
        service.output("result").merge_into("t", key="city")
