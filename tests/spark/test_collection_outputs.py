"""Outputs of a service on Spark that are collections, as DataFrames and as streams."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import pointstamp as ps
import pointstamp.spark
from pointstamp.errors import ColumnError, EpochError, SchemaError, StoppedError, UsageError
from pointstamp.spark import source
from pointstamp.spark.collection_source import schema_in_form

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SCHEMAS = {"sales": "shop long, item string?, cents long"}


def build(scope: Any, sales: Any) -> dict[str, Any]:
    totals = sales.group_by("shop").agg(n=ps.count(), cents=ps.sum("cents"))
    return {"totals": totals, "items": sales.select("item", "cents")}


EPOCHS: list[tuple[list[Any], list[Any]]] = [
    ([(1, "tea", 30), (2, None, 10), (3, "ink", 5), (1, "tea", 30)], []),
    ([(4, None, 10)], [(2, None, 10)]),
    ([(1, "pen", 7), (3, "ink", 6)], [(1, "tea", 30), (3, "ink", 5)]),
    ([], [(1, "pen", 7), (1, "tea", 30)]),
]
"""What is inserted, and what is deleted."""


def of_view() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """By epoch: changes, and what is there then, by output."""
    view, found = ps.View(build, **SCHEMAS), []
    for inserted, deleted in EPOCHS:
        view.insert("sales", inserted)
        view.delete("sales", deleted)
        changes = view.advance()
        found.append((changes, {name: view.snapshot(name)[:] for name in changes}))
    return found


def feed_of_view(name: str, epochs: Any) -> list[Any]:
    """(row, change type, epoch), sorted."""
    return sorted(
        (
            (row, "insert" if diff > 0 else "delete", epoch)
            for epoch in epochs
            for row, diff in of_view()[epoch][0][name]
            for _ in range(abs(diff))
        ),
        key=repr,
    )


def feed(service: Any, epochs: Any) -> None:
    """Commit some of the epochs, and wait until they are complete."""
    for epoch in epochs:
        inserted, deleted = EPOCHS[epoch]
        service.input("sales").insert(inserted)
        service.input("sales").delete(deleted)
        assert service.advance() == epoch
        service.probe.wait(epoch)


def rows(frame: DataFrame) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


class Sink:
    """Files that a stream is written to, by queries that go on where the last one was."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def take(self, stream: DataFrame) -> None:
        """Write all that there is now."""
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(self._folder / "out"))
            .option("checkpointLocation", str(self._folder / "query"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    def rows(self) -> list[Any]:
        return rows(self._spark.read.parquet(str(self._folder / "out")))


@pytest.fixture(scope="module")
def service(spark: Any) -> Iterator[Any]:
    """A service that all epochs were sent to, and nothing of which is discarded.

    With one worker, as of the session's four slots another service here needs two, and jobs one.
    """
    with pointstamp.spark.serve(build, spark, 1, collections=SCHEMAS, name="outputs") as running:
        feed(running, range(len(EPOCHS)))
        yield running


def test_a_dataframe_is_as_of_an_epoch(service: Any) -> None:
    snapshots = [by_name for _, by_name in of_view()]
    output = service.output("items")
    for epoch in (0, 2):
        assert rows(output.to_spark(epoch)) == sorted(snapshots[epoch]["items"], key=repr)
    totals = service.output("totals").to_spark()
    assert rows(totals) == sorted(snapshots[-1]["totals"], key=repr)
    assert totals.columns == ["shop", "n", "cents"]
    with pytest.raises(
        EpochError, match=r"'totals' cannot be read as of epoch 9: .* from 0, .* to 3, the last"
    ):
        service.output("totals").to_spark(epoch=9)


def test_a_feed_has_each_epoch_once(spark: Any, service: Any, tmp_path: Path) -> None:
    sink = Sink(spark, tmp_path)
    output = service.output("items")
    began = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=10)
    for _ in range(2):  # started again, it gets nothing twice
        sink.take(output.change_feed(discard=False))
    found = sink.rows()
    assert sorted(((row[:-3], row[-3], row[-2]) for row in found), key=repr) == feed_of_view(
        "items", range(4)
    )
    times = sorted({(row[-2], row[-1].astimezone(dt.UTC)) for row in found})
    assert [epoch for epoch, _ in times] == [0, 2, 3]  # in epoch 1 what changes cancels
    assert began < times[0][1] <= times[1][1] <= times[2][1]
    assert [column for column, _ in output.change_feed().dtypes[-3:]] == [
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]


def test_upserts_have_one_row_for_each_key_and_epoch(
    spark: Any, service: Any, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path)
    sink.take(service.output("totals").upserts(key="shop", discard=False))
    assert [row[:-1] for row in sink.rows()] == [
        (1, 2, 37, False, 2),
        (1, 2, 37, True, 3),
        (1, 2, 60, False, 0),
        (2, 1, 10, False, 0),
        (2, 1, 10, True, 1),
        (3, 1, 5, False, 0),
        (3, 1, 6, False, 2),
        (4, 1, 10, False, 1),
    ]


def test_columns_of_all_names_go_in_and_come_out(spark: Any, tmp_path: Path) -> None:
    names = ["k.1", "K.1", "*", "a`b"]
    columns = ", ".join(f"`{name.replace('`', '``')}` long not null" for name in names)
    frame = spark.createDataFrame([(1, 2, 3, 4), (5, 6, 7, 8)], columns)
    frame.toDF(*"abcd").write.parquet(str(tmp_path / "in"))
    schema = {"t": frame.schema}
    with pointstamp.spark.serve(
        lambda scope, t: t, spark, 1, collections=schema, checkpoint=tmp_path / "service"
    ) as running:
        running.input("t").load(frame)
        stream = spark.readStream.schema("a long, b long, c long, d long")
        running.input("t").follow(
            stream.parquet(str(tmp_path / "in")).selectExpr("a", "-b", "c", "d").toDF(*names),
            "append",
            trigger={"availableNow": True},
        ).awaitTermination()
        output = running.output("result")
        expected = [(1, -2, 3, 4), (1, 2, 3, 4), (5, -6, 7, 8), (5, 6, 7, 8)]
        assert rows(output.to_spark(1)) == expected
        assert output.to_spark(1).columns == names
        found: list[Any] = []
        query = output.upserts(["K.1", "*"], discard=False).writeStream.foreachBatch(
            lambda batch, _: found.extend(tuple(row)[:4] for row in batch.collect())
        )
        query.option("checkpointLocation", str(tmp_path / "query")).trigger(
            availableNow=True
        ).start().awaitTermination()
        assert sorted(found) == expected
        with pytest.raises(SchemaError, match=r"have the columns 'k.1' and 'K.1', which are one"):
            output.merge_into("a_table", key="*")
        twice = frame.toDF(*"abcd").selectExpr("*", "a as e").toDF(*names, "k.1")
        with pytest.raises(SchemaError, match=r"a DataFrame with two columns 'k.1': its columns"):
            running.input("t").load(twice)


def test_a_second_row_of_a_key_ends_the_query(spark: Any, service: Any, tmp_path: Path) -> None:
    with pytest.raises(
        StreamingQueryException, match="DataError: output 'items' has a second row of the key item="
    ):
        Sink(spark, tmp_path).take(service.output("items").upserts("item", discard=False))
    with pytest.raises(ColumnError, match="is given the column 'city'; there are: shop long"):
        service.output("totals").upserts("city")


def test_a_query_of_another_service_is_not_gone_on_with(
    spark: Any, service: Any, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path)
    sink.take(service.output("items").change_feed(discard=False))
    expected = sink.rows()
    with pointstamp.spark.serve(build, spark, 1, collections=SCHEMAS) as other:
        feed(other, [0])
        for _ in range(5):  # so that it is past the epochs of that one
            last = other.advance()
            other.probe.wait(last)
            with pytest.raises(
                StreamingQueryException,
                match=r"has read output 'items' up to epoch 3 of another service, and the epochs",
            ):
                sink.take(other.output("items").change_feed())
        assert rows(other.output("items").to_spark(0))  # which the query has not had discarded
    assert sink.rows() == expected


def test_a_query_of_a_former_version_is_not_gone_on_with_beyond_what_there_is(
    spark: Any, service: Any, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path)
    sink.take(service.output("items").change_feed(discard=False))
    for offsets in (tmp_path / "query" / "offsets").glob("[0-9]*"):
        text = offsets.read_text()
        offsets.write_text(re.sub(r', "of": "\w+"', "", text))
        assert offsets.read_text() != text
        offsets.with_name(f".{offsets.name}.crc").unlink()
    with pointstamp.spark.serve(build, spark, 1, collections=SCHEMAS) as other:
        feed(other, [0])
        with pytest.raises(
            StreamingQueryException,
            match=r"has read output 'items' up to epoch 3, and service .* 1:",
        ):
            sink.take(other.output("items").change_feed())
    expected = sink.rows()
    sink.take(service.output("items").change_feed(discard=False))
    assert sink.rows() == expected


def test_what_is_no_form_is_refused(service: Any) -> None:
    def made(**options: str) -> Any:
        found = {"service": "outputs", "output": "totals", **options}
        return type("Known", (source.Pointstamp,), {"services": source._services})(found)

    with pytest.raises(
        UsageError, match=r"option\(\"form\", 'csv'\) is none; there are 'cdf', 'dif"
    ):
        made(form="csv").schema()
    with pytest.raises(UsageError, match=r"is of batches: spark.read, not readStream"):
        made(form="snapshot").streamReader(None)
    with pytest.raises(UsageError, match=r"'cdf'\) is of streams: spark.readStream, not read"):
        made(form="cdf").reader(None)
    with pytest.raises(UsageError, match='is "true" or "false", and not \'no\''):
        made(form="cdf", discard="no").streamReader(None)
    access = replace(source._services["outputs"], maintained=frozenset())
    with pytest.raises(UsageError, match="output 'totals' of service 'outputs' is a stream"):
        schema_in_form(access, "totals", "cdf")


def test_a_service_that_begins_again_goes_on_in_its_feeds(spark: Any, tmp_path: Path) -> None:
    def serve(workers: int) -> Any:
        return pointstamp.spark.serve(
            build,
            spark,
            workers,
            collections=SCHEMAS,
            checkpoint=tmp_path / "service",
            snapshot_every=2,
        )

    sink, late = Sink(spark, tmp_path / "sink"), Sink(spark, tmp_path / "late")
    service = serve(2)
    try:
        feed(service, [0, 1])
        sink.take(service.output("items").change_feed())
        feed(service, [2])
        # It has done with the epochs before, and says so with the next batch.
        sink.take(service.output("items").change_feed())
        assert service.output("items").snapshot(2) == of_view()[2][1]["items"]
        with pytest.raises(EpochError, match=r"as of epoch 0: .* from 1, as what came before is"):
            service.output("items").to_spark(0)
        times = {row[-2]: row[-1] for row in sink.rows()}
    finally:
        service.abort()
    with serve(1) as service:
        feed(service, [3])
        sink.take(service.output("items").change_feed(discard=False))
        service.output("items").discard(1)
        # One that begins now gets what was there before, as of the last epoch that is gone.
        late.take(service.output("items").change_feed(discard=False))
        assert rows(service.output("items").to_spark()) == sorted(
            of_view()[3][1]["items"], key=repr
        )
    found = sink.rows()
    assert sorted(((row[:-3], row[-3], row[-2]) for row in found), key=repr) == feed_of_view(
        "items", range(4)
    )
    assert {row[-2]: row[-1] for row in found}.items() > times.items()
    whole = [(row, "insert", 1) for row in of_view()[1][1]["items"]]
    expected = whole + feed_of_view("items", range(2, 4))
    assert sorted(((row[:-3], row[-3], row[-2]) for row in late.rows()), key=repr) == sorted(
        expected, key=repr
    )
    # What was fetched when it stopped can still be read; streams cannot.
    assert rows(service.output("items").to_spark()) == sorted(of_view()[3][1]["items"], key=repr)
    with pytest.raises(StoppedError, match="the service has stopped: nothing more comes of 'tota"):
        service.output("totals").change_feed()
