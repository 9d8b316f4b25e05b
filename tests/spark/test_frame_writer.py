"""Writes and counts of what `pointstamp.spark.run` gives: no shuffle is behind the workers."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pickle import PicklingError
from types import SimpleNamespace

import pyarrow.parquet
import pytest

import pointstamp.spark
from pointstamp.errors import WorkerError
from pointstamp.spark.session import retries_stages
from tests.spark.flows import by_id, run
from tests.spark.test_call_sites import each, shown_jobs

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ATTEMPTS = "spark.stage.maxConsecutiveAttempts"
DERBY = "org.apache.derby.jdbc.EmbeddedDriver"


def texts(scope, records):
    """Of which all formats can write the one column."""
    return records.map_batches(lambda batch: batch.set_column(0, "id", batch[0].cast("string")))


def numbers(spark, n=1000, parts=2):
    return spark.range(0, n, 1, parts)


def n_stages(spark, action):
    """How many stages the jobs of an action have."""
    status = spark.sparkContext._jsc.sc().statusStore()
    before = max((job.id for job in shown_jobs(spark)), default=-1)
    action()
    jobs = [status.job(job.id) for job in shown_jobs(spark, before)]
    return len({stage for job in jobs for stage in each(job.stageIds())})


def ids_in(spark, folder, kind):
    reader = spark.read.schema("id string").option("rowTag", "ROW")
    return sorted(int(row.id) for row in reader.format(kind).load(str(folder)).collect())


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("kind", ["csv", "json", "orc", "parquet", "text", "xml"])
def test_all_records_are_written_once(spark, tmp_path, kind, workers):
    found = run(texts, {"records": numbers(spark)}, "id string", workers)
    arguments = {"rowTag": "ROW"} if kind == "xml" else {}
    getattr(found.write, kind)(f"{tmp_path}/by_method", **arguments)
    found.write.format(kind).options(**arguments).save(f"{tmp_path}/by_name")
    for name in ("by_method", "by_name"):
        assert ids_in(spark, tmp_path / name, kind) == list(range(1000))


def test_what_is_dealt_is_written_once(spark, tmp_path):
    inputs = {"left": numbers(spark, parts=3), "right": numbers(spark).coalesce(1)}
    found = run(lambda scope, left, right: left.concat(right), inputs, "id long", 3)
    found.write.parquet(f"{tmp_path}/out")
    ids = pyarrow.parquet.read_table(f"{tmp_path}/out")["id"].to_pylist()
    assert sorted(ids) == sorted([*range(1000), *range(1000)])
    assert found.count() == 2000


def test_no_shuffle_is_behind_the_workers(spark, tmp_path):
    found = run(by_id, {"records": numbers(spark)}, "id long")
    assert n_stages(spark, lambda: found.write.parquet(f"{tmp_path}/out")) == 1
    assert n_stages(spark, lambda: found.select("id").write.parquet(f"{tmp_path}/other")) > 1


def test_settings_of_a_writer_are_kept(spark, tmp_path):
    found = run(by_id, {"records": numbers(spark, 100)}, "id long")
    settings = found.write.mode("overwrite").option("header", True).options(sep=";", none=None)
    for _ in range(2):  # also of one that has written
        settings.csv(f"{tmp_path}/csv", quoteAll=True)
    parts = (tmp_path / "csv").glob("*.csv")
    lines = [line for part in parts for line in part.read_text().splitlines()]
    assert sorted(lines) == sorted(['"id"', '"id"', *(f'"{i}"' for i in range(100))])
    two = run(pairs, {"records": numbers(spark, 100)}, "id long, rest long")
    two.write.partitionBy("rest").parquet(f"{tmp_path}/parts", compression="gzip")
    written = sorted(Path(tmp_path, "parts").glob("rest=*/*.parquet"))
    assert {path.parent.name for path in written} == {"rest=0", "rest=1", "rest=2"}
    assert all(path.name.endswith(".gz.parquet") for path in written)
    assert spark.read.parquet(f"{tmp_path}/parts").count() == 100


def pairs(scope, records):
    def paired(batch):
        ids = batch["id"].to_pylist()
        return pyarrow.record_batch({"id": ids, "rest": [i % 3 for i in ids]})

    return records.map_batches(paired)


def test_what_is_there_is_refused_and_nothing_is_run(spark, tmp_path):
    began = tmp_path / "began"
    found = run(marking(began), {"records": numbers(spark)}, "id long")
    (tmp_path / "out").mkdir()
    with pytest.raises(Exception, match=r"PATH_ALREADY_EXISTS"):
        found.write.parquet(f"{tmp_path}/out")
    with pytest.raises(Exception, match=r"mode"):
        found.write.mode("sometimes")
    assert not began.exists()


def marking(file):
    """A dataflow that writes a line into a file for each worker that runs it."""

    def build(scope, records):
        def mark(batch):
            with file.open("a") as marks:
                marks.write("ran\n")
            return batch

        return records.map_batches(mark)

    return build


def test_what_spark_keeps_is_written_and_counted_as_it_is(spark, tmp_path):
    marks = tmp_path / "marks"
    found = run(marking(marks), {"records": numbers(spark)}, "id long")
    found.cache()
    try:
        assert found.count() == 1000
        n_marks = len(marks.read_text().splitlines())
        found.write.parquet(f"{tmp_path}/out")
        assert found.count() == 1000
        assert len(marks.read_text().splitlines()) == n_marks
    finally:
        found.unpersist()
    assert found.count() == 1000
    assert len(marks.read_text().splitlines()) > n_marks


@pytest.mark.parametrize("kind", ["a table", "buckets", "an insert", "a database"])
def test_other_sinks_get_all_records(spark, tmp_path, kind):
    found = run(by_id, {"records": numbers(spark)}, "id long")
    table = f"of_{kind.replace(' ', '_')}"
    try:
        if kind == "a table":
            found.write.saveAsTable(table, format="parquet", path=f"{tmp_path}/table")
        elif kind == "buckets":
            sorted_ones = found.write.bucketBy(3, "id").sortBy("id")
            sorted_ones.option("path", f"{tmp_path}/table").saveAsTable(table)
        elif kind == "an insert":
            spark.sql(f"create table {table} (id long) using parquet location '{tmp_path}/table'")
            found.write.insertInto(table)
        else:  # which coalesces partitions
            url = f"jdbc:derby:{tmp_path}/derby;create=true"
            few = found.write.option("driver", DERBY).option("numPartitions", 1)
            few.jdbc(url, "records")
            reader = spark.read.format("jdbc").options(url=url, driver=DERBY, dbtable="records")
            reader.load().createOrReplaceTempView(table)
        assert spark.table(table).count() == 1000
    finally:
        spark.sql(
            f"drop view if exists {table}"
            if kind == "a database"
            else f"drop table if exists {table}"
        )


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("write", ["parquet", "save", "saveAsTable"])
def test_the_error_of_a_write_begins_with_its_cause(spark, tmp_path, write, fused):
    def fails(scope, records):
        def check(batch):
            raise ValueError("the very cause")

        return records.map_batches(check, name="Check")

    found = pointstamp.spark.run(fails, numbers(spark), "id long", workers=2, fused=fused)
    # A table is at a path of its own; else `path` is where to.
    arguments = {"name": "of_failures"} if write == "saveAsTable" else {}
    with pytest.raises(WorkerError) as caught:
        getattr(found.write, write)(path=f"{tmp_path}/out", **arguments)
    assert re.match(r"worker [01] failed: operator 'Check' failed at", str(caught.value))
    assert isinstance(caught.value.__cause__, ValueError)
    assert not [*tmp_path.rglob("*.parquet")]


@pytest.mark.parametrize("write", ["parquet", "save"])
def test_a_write_that_fails_leaves_nothing(spark, tmp_path, write):
    """No folder, which the next write would refuse, and of the records none."""
    found = run(failing, {"records": numbers(spark)}, "id long")
    out = tmp_path / "out"
    writer = found.write.option("path", str(out)) if write == "save" else found.write
    with pytest.raises(WorkerError):
        getattr(writer, write)(*([] if write == "save" else [str(out)]))
    assert not out.exists()
    run(by_id, {"records": numbers(spark)}, "id long").write.parquet(str(out))
    with pytest.raises(WorkerError):
        found.write.mode("append").parquet(str(out))
    assert spark.read.parquet(str(out)).count() == 1000


def test_a_write_that_is_interrupted_leaves_no_folder(spark, tmp_path):
    """Which a write of mode `ignore` would take for one that is done."""

    def slow(scope, records):
        def wait(batch):
            (tmp_path / "began").touch()
            time.sleep(60)

        return records.map_batches(wait)

    def interrupt():
        while not (tmp_path / "began").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    found = run(slow, {"records": numbers(spark)}, "id long")
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        found.write.option("PATH", f"{tmp_path}/out").save()
    thread.join()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("write", ["parquet", "save"])
def test_an_overwrite_that_fails_keeps_what_is_there(spark, tmp_path, write):
    numbers(spark).write.parquet(f"{tmp_path}/out")
    found = run(failing, {"records": numbers(spark)}, "id long")
    with pytest.raises(WorkerError):
        getattr(found.write, write)(f"{tmp_path}/out", mode="Overwrite")
    assert spark.read.parquet(f"{tmp_path}/out").count() == 1000


def failing(scope, records):
    def check(batch):
        raise ValueError("the very cause")

    return records.map_batches(check)


def test_a_folder_that_is_read_can_be_overwritten(spark, tmp_path):
    numbers(spark).write.parquet(f"{tmp_path}/read")
    found = run(by_id, {"records": spark.read.parquet(f"{tmp_path}/read")}, "id long")
    found.write.mode("overwrite").parquet(f"{tmp_path}/read")
    assert spark.read.parquet(f"{tmp_path}/read").count() == 1000


def test_all_plans_run_what_was_given_when_the_run_was_asked_for(spark, tmp_path):
    factor, offset = 10, spark.sparkContext.broadcast(7)

    def build(scope, records):
        def computed(batch):
            ids = [factor * id + offset.value for id in batch["id"].to_pylist()]
            return pyarrow.record_batch({"id": ids})

        return records.map_batches(computed)

    schema = spark.range(0).schema
    found = run(build, {"records": numbers(spark, 100)}, schema)
    factor = 11
    schema.add("more", "string")
    found.schema.add("still_more", "string")
    expected = [10 * i + 7 for i in range(100)]
    found.write.parquet(f"{tmp_path}/out")
    assert sorted(row.id for row in spark.read.parquet(f"{tmp_path}/out").collect()) == expected
    assert found.count() == 100
    assert sorted(row.id for row in found.collect()) == expected
    assert sorted(row.id for row in found.select("id").collect()) == expected


def test_one_plan_is_made_when_several_threads_ask_for_it(spark):
    found = run(by_id, {"records": numbers(spark)}, "id long")
    with ThreadPoolExecutor(8) as pool:

        def ask():
            return found.filter(found.id > 1).select(found["id"])

        asked = [pool.submit(ask) for _ in range(8)]
        assert {frame.result().schema.simpleString() for frame in asked} == {"struct<id:bigint>"}


@pytest.mark.parametrize(("conf", "retried"), [({}, True), ({ATTEMPTS: "1"}, False)])
def test_sessions_of_others_retry_stages(conf, retried):
    assert retries_stages(SimpleNamespace(conf=conf)) is retried


def test_where_stages_are_retried_a_write_has_one_of_its_own(spark, tmp_path, monkeypatch):
    assert not retries_stages(spark)
    monkeypatch.setattr(sys.modules["pointstamp.spark.run"], "retries_stages", lambda spark: True)
    found = run(by_id, {"records": numbers(spark)}, "id long")
    assert n_stages(spark, lambda: found.write.parquet(f"{tmp_path}/out")) > 1
    assert spark.read.parquet(f"{tmp_path}/out").count() == found.count() == 1000


def test_a_frame_cannot_be_sent_to_a_task(spark):
    found = run(by_id, {"records": numbers(spark)}, "id long")
    with pytest.raises(PicklingError, match="CONTEXT_ONLY_VALID_ON_DRIVER"):
        spark.sparkContext.parallelize([1]).map(lambda one: found).collect()
