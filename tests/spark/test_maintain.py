"""Collections kept up to date by jobs on a real Spark session, one after the other."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

import pointstamp as ps
import pointstamp.spark
from pointstamp import col
from pointstamp.checkpoint import Checkpoint, claims
from pointstamp.errors import (
    CheckpointInUseError,
    CheckpointStructureError,
    DataError,
    SchemaError,
    UsageError,
    WorkerError,
)
from pointstamp.service.epoch_run import EpochRuns

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SALES, SHOPS = "shop long, item string, cents long", "shop long, city string"
FEED = ", _change_type string, _commit_version long, _commit_timestamp timestamp"
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def report(scope: Any, sales: Any, shops: Any) -> Any:
    big = sales.filter(col("cents") >= 1_000).join(shops, on="shop")
    return big.group_by("city").agg(n=ps.count(), cents=ps.sum("cents"), largest=ps.max("cents"))


def table(spark: Any, rows: list[Any], schema: str) -> Any:
    return spark.createDataFrame(rows, schema).repartition(2)


def feed(spark: Any, rows: list[Any], schema: str) -> Any:
    """Rows that end with a change type and a version."""
    return spark.createDataFrame([(*row, NOW) for row in rows], schema + FEED)


def found(frame: Any) -> list[Any]:
    """(row, change type, version), sorted, of a feed, whose timestamps are one."""
    rows = frame.collect()
    assert frame.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    assert len({row[-1] for row in rows}) <= 1
    return sorted((tuple(row[:-3]), row[-3], row[-2]) for row in rows)


def of_view(changes: Any, epoch: int) -> list[Any]:
    """The same of what a view gives."""
    return sorted(
        (row, "insert" if diff > 0 else "delete", epoch)
        for row, diff in changes
        for _ in range(abs(diff))
    )


def test_runs_give_what_a_view_gives(spark: Any, tmp_path: Path) -> None:
    inputs = {"sales": "shop long?, item string?, cents long?", "shops": "shop long?, city string?"}
    view = ps.View(report, **inputs)
    sales = [(1, "tea", 1_200), (2, None, 3_000), (2, "ink", 400)]
    shops = [(1, "Rome"), (2, "Oslo")]
    view.insert("sales", sales)
    view.insert("shops", shops)
    tables = {"sales": table(spark, sales, SALES), "shops": table(spark, shops, SHOPS)}

    def run(changes: dict[str, Any], workers: int, **options: Any) -> Any:
        return pointstamp.spark.maintain(
            report, spark, changes, checkpoint=tmp_path, workers=workers, **options
        )

    first = run(tables, 2)
    assert found(first) == of_view(view.advance(), 0)
    # Twice: the second asks for what is stored, and runs nothing.
    assert found(first) == [
        (("Oslo", 1, 3_000, 3_000), "insert", 0),
        (("Rome", 1, 1_200, 1_200), "insert", 0),
    ]
    with pytest.raises(SchemaError, match=r"'sales' has columns .* should have '_change_type'"):
        run(tables, 2)

    # One input, on another number of workers, under a name.
    changes = [
        (2, None, 3_000, "delete", 1),
        (1, "tea", 1_200, "update_preimage", 2),
        (1, "tea", 1_300, "update_postimage", 2),
        (1, "pen", 1_000, "insert", 2),
    ]
    view.delete("sales", [(2, None, 3_000), (1, "tea", 1_200)])
    view.insert("sales", [(1, "tea", 1_300), (1, "pen", 1_000)])
    expected = of_view(view.advance(), 1)
    second = run({"sales": feed(spark, changes, SALES)}, 1, run="tonight")
    assert found(second) == expected
    # Repeated, it runs nothing, whatever it is given.
    again = run({"sales": feed(spark, changes, SALES)}, 2, run="tonight")
    assert found(again) == expected
    assert again.collect()[0][-1] == second.collect()[0][-1]
    with pytest.raises(
        DataError, match=r"'sales' is of version [12] of its table, .* version 3 on"
    ):
        run({"sales": feed(spark, changes, SALES)}, 2)
    third = run({"shops": feed(spark, [(1, "Rome", "delete", 7)], SHOPS)}, 2)
    view.delete("shops", [(1, "Rome")])
    assert found(third) == of_view(view.advance(), 2)


def test_a_job_that_fails_changes_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(scope: Any, t: Any) -> Any:
        def check(row: Any) -> Any:
            if row[0] < 0:
                raise ValueError("the very cause")
            return row

        plain = t.group_by("a").count()
        return {"plain": plain, "checked": t.map(check, "a long")}

    def run(rows: list[Any]) -> Any:
        frame = spark.createDataFrame(rows, "a long not null, diff long")
        return pointstamp.spark.maintain(
            checked,
            spark,
            {"t": frame},
            form="diff",
            diff="diff",
            checkpoint=tmp_path,
            workers=2,
            collections={"t": "a long"},
        )

    feeds = run([(1, 2), (2, 1)])
    assert found(feeds["plain"]) == [((1, 2), "insert", 0), ((2, 1), "insert", 0)]
    assert found(feeds["checked"]) == [((a,), "insert", 0) for a in (1, 1, 2)]
    with pytest.raises(WorkerError, match="the very cause"):
        run([(1, 1), (-1, 1)])
    with pytest.raises(DataError, match="the diff, column 'diff', is null"):
        run([(1, 1), (1, None)])

    def dies(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    # As if the program were killed when all workers have written what they have.
    with monkeypatch.context() as patched:
        patched.setattr(EpochRuns, "commit", dies)
        with pytest.raises(KeyboardInterrupt):
            run([(1, 1)])
    assert found(run([(1, 1), (2, -1)])["plain"]) == [
        ((1, 2), "delete", 1),
        ((1, 3), "insert", 1),
        ((2, 1), "delete", 1),
    ]


def test_rows_that_are_added(spark: Any, tmp_path: Path) -> None:
    def largest(scope: Any, t: Any) -> Any:
        return t.group_by("a").agg(b=ps.max("b"))

    for epoch, b in enumerate([3, 5]):
        frame = spark.createDataFrame([(1, b)], "a long, b long")
        changed = pointstamp.spark.maintain(
            largest, None, {"t": frame}, form="append", checkpoint=tmp_path, workers=1
        )
        gone = [((1, 3), "delete", 1)] if epoch else []
        assert found(changed) == [*gone, ((1, b), "insert", epoch)]


def test_two_runs_at_once_are_not_one_epoch(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE_S", 0.01)

    def run(checkpoint: Any, build: Any = lambda scope, t: t) -> Any:
        changes = {"t": spark.createDataFrame([(7,)], "a long")}
        options: dict[str, Any] = {"form": "append", "workers": 1}
        return pointstamp.spark.maintain(build, spark, changes, checkpoint=checkpoint, **options)

    with (
        Checkpoint(tmp_path / "a").claimed(),
        pytest.raises(CheckpointInUseError, match="this program commits to this checkpoint"),
    ):
        run(tmp_path / "a")
    assert found(run(tmp_path / "a")) == [((7,), "insert", 0)]

    # Where there are no locks, the one that began first is refused when it is to count.
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def build(scope: Any, t: Any) -> Any:
        with Checkpoint("b", store).claimed():
            return t

    with pytest.raises(CheckpointInUseError, match="another program has begun to commit to it"):
        run(Checkpoint("b", store), build)
    assert found(run(Checkpoint("b", store))) == [((7,), "insert", 0)]


def test_a_feed_may_have_its_columns_in_another_order_and_has_integers_as_versions(
    spark: Any, tmp_path: Path
) -> None:
    def run(rows: Any, schema: str) -> Any:
        changes = {"t": spark.createDataFrame(rows, schema)}
        return pointstamp.spark.maintain(
            lambda scope, t: t, spark, changes, checkpoint=tmp_path, workers=1
        )

    run([(1, 2)], "a long, b long")
    changed = run([("delete", 7, 2, 1)], "_change_type string, _commit_version int, b long, a long")
    assert found(changed) == [((1, 2), "delete", 1)]
    with pytest.raises(DataError, match="for the input 't' has no _commit_version, by which"):
        run(
            [("insert", 8, 1, 2), ("insert", None, 1, 2)],
            "_change_type string, _commit_version int, a long, b long",
        )
    for kind, version in (("string", "11"), ("double", 8.5)):
        with pytest.raises(SchemaError, match=f"'_commit_version' of Spark's type {kind}, and it"):
            run(
                [("insert", version, 1, 2)],
                f"_change_type string, _commit_version {kind}, a long, b long",
            )


def test_a_column_may_be_called_as_one_of_a_feed(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1L a, timestamp'2026-01-02 03:04:05' _commit_timestamp, 7L v")
    for form, given in [("append", frame), ("cdf", frame), ("diff", frame.selectExpr("*", "2 n"))]:
        changed = pointstamp.spark.maintain(
            lambda scope, t: t.select("a", "v"),
            *(spark, {"t": given}),
            form=form,
            diff="n" if form == "diff" else None,
            checkpoint=tmp_path / form,
            workers=1,
        )
        assert found(changed) == [((1, 7), "insert", 0)] * (2 if form == "diff" else 1)


def test_the_first_run_is_repeated_with_the_whole_tables_that_it_was_given(
    spark: Any, tmp_path: Path
) -> None:
    def counts(scope: Any, t: Any) -> Any:
        return t.group_by("a").count()

    def run(name: str) -> Any:
        tables = {"t": spark.createDataFrame([(1,), (1,), (2,)], "a long")}
        return pointstamp.spark.maintain(
            counts, spark, tables, run=name, checkpoint=tmp_path, workers=1
        )

    expected = [((1, 2), "insert", 0), ((2, 1), "insert", 0)]
    assert found(run("Monday")) == expected
    assert found(run("Monday")) == expected
    with pytest.raises(SchemaError, match="a whole table is given to the first run alone"):
        run("Tuesday")


def test_what_does_not_fit_is_refused(spark: Any, tmp_path: Path) -> None:
    def run(changes: Any, **options: Any) -> Any:
        options = {"checkpoint": tmp_path, "workers": 1, **options}
        return pointstamp.spark.maintain(lambda scope, t: t, spark, changes, **options)

    frame = spark.createDataFrame([(1,)], "a long")
    with pytest.raises(UsageError, match="form='csv' is none"):
        run({"t": frame}, form="csv")
    with pytest.raises(UsageError, match="a dict of DataFrames by input, and not DataFrame"):
        run(frame)
    with pytest.raises(UsageError, match=r'this one has none: .* as \{"sales": changes\}'):
        run({})
    with pytest.raises(UsageError, match="run= is a text that is not empty, or None, and not 7"):
        run({"t": frame}, run=7)
    with pytest.raises(UsageError, match="give it by checkpoint="):
        run({"t": frame}, checkpoint=None)
    with pytest.raises(UsageError, match="collections= has no schema of the input 't'"):
        run({"t": frame}, collections={"u": "a long"})
    with pytest.raises(SchemaError, match="input 't' is given a DataFrame that lacks 'b'"):
        run({"t": frame}, collections={"t": "a long, b long"})
    with pytest.raises(SchemaError, match="'result' has the column '_commit_version', which"):
        run({"t": spark.createDataFrame([(1,)], "_commit_version long")}, form="append")
    run({"t": frame})
    other = spark.createDataFrame([("x", "insert")], "b string, _change_type string")
    with pytest.raises(CheckpointStructureError, match=r"'t': b string\?, .* 't': a long\?"):
        run({"t": other})
