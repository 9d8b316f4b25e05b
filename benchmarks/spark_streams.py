"""Streams of Spark, as the benchmarks of services have them: one session, source and clock."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SLOTS = 4
PARTITIONS = 2
"""Of the source and of Spark's shuffles: as many as there are workers."""

LOOK_S = 0.01

N_WARM, WARM_BATCHES, WARM_S = 1_000, 40, 15.0
"""Records of a batch, batches and seconds of what a session runs before the first case."""

LEAST = 10
"""Batches that are waited for, however long they take."""


@cache  # where a service holds slots, as many are not there for another
def shared() -> Any:
    """The session that the cases of a process share; it ends with the process."""
    from pointstamp.spark import session

    spark = session(f"local[{SLOTS}]", workers=3)
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    return spark


@cache
def warm(spark: Any) -> None:
    """Have a stream of counts run in a session, once, so that no case has Java's first batches.

    Java compiles what all streams run in their first dozens of batches, which would be counted
    against the case that comes first.
    """
    with tempfile.TemporaryDirectory() as folder:
        query = counting(source(spark, N_WARM, N_WARM))
        settled(query.option("checkpointLocation", folder).start(), WARM_BATCHES, WARM_S)


def source(spark: Any, n_records: int, n_keys: int) -> Any:
    """A stream of batches of so many records, of which the next is always there."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", n_records)
    numbers = rate.option("numPartitions", PARTITIONS).load()
    return numbers.selectExpr(f"pmod(xxhash64(value), {n_keys}L) as key")


def progress(query: Any, wanted: int, patience_s: float) -> Iterator[Any]:
    """Of one batch after the other: so many, or fewer when it has taken so long."""
    until, last = None, -1
    while last + 1 < wanted:
        assert query.isActive, query.exception()
        assert not query.awaitTermination(0.2), query.exception()
        # Spark keeps those of the last hundred batches.
        for one in query.recentProgress:
            if one["batchId"] > last:
                last = one["batchId"]
                yield one
        if last >= 0 and until is None:
            until = monotonic() + patience_s  # the first batch is Spark's getting ready
        if until is not None and monotonic() > until and last + 1 >= min(LEAST, wanted):
            return


def settled(query: Any, wanted: int, patience_s: float) -> list[Any]:
    """The progress of a query's batches without the first fifth; it is stopped."""
    try:
        done = list(progress(query, wanted, patience_s))
    finally:
        query.stop()
    return done[max(1, len(done) // 5) :]


def seconds_of(done: list[Any]) -> list[float]:
    """How long each batch took, as Spark says."""
    return [one["durationMs"]["triggerExecution"] / 1e3 for one in done]


def parts_of(done: list[Any]) -> dict[str, float]:
    """The medians of what the time of batches is made of, in ms."""
    return {
        name: median(one["durationMs"].get(name, 0) for one in done)
        for name in done[-1]["durationMs"]
    }


class FileQuery:
    """A query of which each batch is a file; it may be stopped, and goes on when it is started.

    Parameters
    ----------
    folder : Path
        For the files, and for what the query keeps.
    ddl : str
        The columns of the files.
    to : callable
        What writes a stream; to be started.
    """

    def __init__(self, folder: Path, ddl: str, to: Callable[[Any], Any]) -> None:
        self._folder = folder
        self._files = folder / "files"
        self._files.mkdir(parents=True, exist_ok=True)
        stream = shared().readStream.schema(ddl).option("maxFilesPerTrigger", 1)
        self._writer = to(stream.parquet(str(self._files)))
        self._query: Any = None

    @property
    def n_files(self) -> int:
        """How many there are, which is the number of the next batch."""
        return len(list(self._files.glob("*.parquet")))

    def start(self) -> None:
        """Go on from what is kept."""
        place = str(self._folder / "q")
        self._query = self._writer.option("checkpointLocation", place).start()

    def stop(self) -> None:
        """Let go of the query; what it keeps stays."""
        self._query.stop()

    def take_in(self, batch: pa.RecordBatch) -> None:
        """Have one more file, and wait until its batch is out."""
        number = self.put(batch)
        while not any(_is_of(one, number) for one in self._query.recentProgress[-3:]):
            assert self._query.isActive, self._query.exception()
            sleep(LOOK_S)

    def put(self, batch: pa.RecordBatch) -> int:
        """Have one more file; the number of its batch."""
        number, written = self.n_files, self._folder / "written"
        pq.write_table(pa.Table.from_batches([batch]), written)
        written.replace(self._files / f"{number:06}.parquet")
        return number


def _is_of(progress: Any, batch: int) -> bool:
    """Whether it is told of this batch, or a later one, and not of waiting for one."""
    return bool(progress["batchId"] >= batch and progress["numInputRows"])


def counting(stream: Any) -> Any:
    """What writes Spark's own counts by key nowhere; to be started."""
    return stream.groupBy("key").count().writeStream.format("noop").outputMode("update")
