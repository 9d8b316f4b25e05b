"""A service on Spark whose worker is killed under a stream, and what it holds of large batches."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
import pointstamp.spark
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.service.supervisor import CAUSE_S
from pointstamp.spark.service_pool import REPORT_S, Registration
from tests.resident_memory import PeakGrowth

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

NOW = {"availableNow": True}

LIMIT = 4 << 20
ROWS = 20 * LIMIT // 16
"""Of two integers each."""

AT_WORK = 64 * PREFERRED_RECORDS * 16
"""32 MiB for what is at work: batches of 65,536 rows, of two partitions at a time, as each has come
from Spark's task, with a column of diffs, as it is written to the checkpoint, and as it is read.
And 32 for libraries, as a worker is a fork, to which a page counts when it first looks at it, and
for what their allocators keep: 30 MiB in all are usual, 55 were seen beside other tests. What is
sent takes 80 MiB, and as much again."""


def written(folder: Path, number: int, numbers: Any) -> None:
    """One more file of a stream."""
    folder.mkdir(exist_ok=True)
    at = folder / f"{number}.parquet"
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), at)
    os.utime(at, (1e9 + number, 1e9 + number))


def test_a_stream_goes_on_when_a_worker_is_killed_between_its_batches(
    spark: Any, tmp_path: Path
) -> None:
    """The same query, in both directions: what it writes to, and what it reads, comes back."""

    def build(scope: Any, numbers: Any) -> Any:
        (tmp_path / "worker").write_text(str(os.getpid()))
        return numbers.exchange("n")

    written(tmp_path / "in", 0, [0])
    with pointstamp.spark.serve(
        build,
        spark,
        1,
        inputs={"numbers": "n long"},
        outputs={"n": "n long"},
        name="lost",
        checkpoint=tmp_path / "service",
    ):
        files = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1)
        arriving = (
            files.parquet(str(tmp_path / "in"))
            .writeStream.format("pointstamp")
            .options(service="lost", input="numbers")
            .option("checkpointLocation", str(tmp_path / "sink"))
            .start()
        )
        read = spark.readStream.format("pointstamp").options(service="lost", output="n").load()
        leaving = (
            read.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "source"))
            .start()
        )
        try:
            arriving.processAllAvailable()
            os.kill(int((tmp_path / "worker").read_text()), signal.SIGKILL)
            written(tmp_path / "in", 1, [1, 2])
            arriving.processAllAvailable()
            leaving.processAllAvailable()
        finally:
            arriving.stop()
            leaving.stop()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.n for row in found) == [0, 1, 2]


def test_a_batch_of_a_stream_twenty_times_the_limit_waits_on_disk(
    spark: Any, tmp_path: Path
) -> None:
    """One batch of 80 MiB, of two partitions; and a collection of as much in twenty epochs."""

    def build(scope: Any, numbers: Any, rows: Any) -> Any:
        (tmp_path / "worker").write_text(str(os.getpid()))
        sums = numbers.map_batches(
            lambda batch: pa.record_batch(
                {"n": [batch.num_rows], "x": [int(batch["n"].to_numpy().sum())]}
            )
        )
        return {"sums": sums, "total": rows.agg(n=ps.count(), x=ps.sum("x"))}

    with pointstamp.spark.serve(
        build,
        spark,
        1,
        inputs={"numbers": "n long"},
        outputs={"sums": "n long, x long"},
        collections={"rows": "k long, x long"},
        checkpoint=tmp_path / "service",
        memory_limit=LIMIT,
        spill_directory=tmp_path,
    ) as service:
        rows = service.input("rows")
        worker, driver = int((tmp_path / "worker").read_text()), os.getpid()
        rows.insert([(0, 0)])  # what the first batch has made, stays
        service.output("total").changes(service.advance())
        for number in range(2):
            half = np.arange(number * ROWS, (number + 1) * ROWS)
            written(tmp_path / "in", number, half)
        stream = spark.readStream.schema("n long").parquet(str(tmp_path / "in"))
        grown = PeakGrowth([worker, driver])
        query = (
            stream.writeStream.format("pointstamp")
            .options(service=service.name, input="numbers")
            .option("checkpointLocation", str(tmp_path / "sink"))
            .trigger(**NOW)
            .start()
        )
        assert query.awaitTermination(120)
        found = service.output("sums").collect(0, timeout_s=60)
        assert sum(found["n"].to_pylist()) == 2 * ROWS
        assert sum(found["x"].to_pylist()) == ROWS * (2 * ROWS - 1)
        assert service.input("numbers").time == 1
        for start in range(0, ROWS, ROWS // 20):
            x = pa.array(np.arange(start, start + ROWS // 20))
            rows.insert(pa.table({"k": x, "x": x}))
            epoch = service.advance(max_staged_bytes=2 * LIMIT)
        total = ROWS, ROWS * (ROWS - 1) // 2
        assert service.output("total").snapshot(epoch) == [(total[0] + 1, total[1])]
        assert grown.of(worker) < LIMIT + AT_WORK
        assert grown.of(driver) < LIMIT + AT_WORK


@pytest.mark.parametrize(("listens", "waits_s"), [(True, REPORT_S), (False, CAUSE_S)])
def test_what_fails_of_its_rows_is_not_held_up_as_where_a_worker_is_lost(
    listens: bool, waits_s: float
) -> None:
    waited: list[float] = []
    pool = SimpleNamespace(termination=SimpleNamespace(wait=waited.append))
    registration = object.__new__(Registration)
    registration._supervisor = SimpleNamespace(pool=lambda: pool)
    registration._access = SimpleNamespace(all_listen=lambda: listens)
    with pytest.raises(ZeroDivisionError):
        registration.repeated(lambda: 1 / 0)
    assert waited == [waits_s]
