"""Inputs that the workers read themselves: a scan of as many partitions as there are workers."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pointstamp.spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def owners(scope, records):
    """How many records each worker has, a row for each batch."""
    index = scope.index
    return records.map_batches(
        lambda batch: pa.RecordBatch.from_pydict({"worker": [index], "n": [batch.num_rows]})
    )


def shuffles(frame, capsys):
    frame.explain()
    return capsys.readouterr().out.count("Exchange ")


def test_workers_read_a_scan_of_as_many_partitions_and_deal_what_they_read(spark, tmp_path, capsys):
    path = str(tmp_path / "records")
    spark.range(0, 600_000, 1, 2).where("id < 300000").write.parquet(path)
    # The one partition has nothing.
    records = spark.range(0, 600_000, 1, 2).where("id < 300000")
    frame = pointstamp.spark.run(owners, {"records": records}, "worker long, n long", workers=2)
    assert shuffles(frame, capsys) == 1
    rows = frame.collect()
    assert sum(row.n for row in rows) == 300_000
    assert {row.worker for row in rows} == {0, 1}
    # Of the result some may be taken, for it comes by a shuffle.
    assert len(frame.take(1)) == 1
    files = spark.read.parquet(path)
    read = pointstamp.spark.run(
        owners, files, "worker long, n long", workers=files.rdd.getNumPartitions()
    )
    assert shuffles(read, capsys) == 1
    assert sum(row.n for row in read.collect()) == 300_000


@pytest.mark.parametrize("made", ["a union", "a limit", "a shuffle", "other partitions"])
def test_what_is_no_such_scan_is_dealt_by_a_shuffle(spark, capsys, made):
    part = spark.range(0, 100, 1, 1)
    frames = {
        "a union": part.union(part),
        "a limit": spark.range(0, 100, 1, 2).limit(50),
        "a shuffle": part.repartition(2),
        "other partitions": spark.range(0, 100, 1, 3),
    }
    before = shuffles(frames[made], capsys)
    frame = pointstamp.spark.run(owners, frames[made], "worker long, n long", workers=2)
    assert shuffles(frame, capsys) >= before + 2
