"""Lives of a service on Spark, between two streams, which end by kill -9 where a plan says.

`main` is a program, as that of `tests.service.lives` is, with the same dataflow and the same
points: they are in the tasks of the service. A stream of files goes in, and one of Parquet
comes out, each with Spark's own checkpoint, by which Spark repeats its last batch.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

import pointstamp.spark
from pointstamp.errors import EpochError, WorkerError
from pointstamp.service.service import Service
from tests.service.lives import (
    FACT,
    OUTPUTS,
    RATE,
    RATES_EVERY,
    Build,
    Client,
    Life,
    check_cause,
    check_soon,
    facts_of,
    next_rate,
    rates_of,
    replaced,
    rows,
)

AHEAD = 2
"""So many files are there that the service has not had."""

LAST = 3
"""So many epochs more has the last life."""

LOOK_S = 0.2

TOO_SLOW = "Python worker failed to connect back"
"""What a query says for which Spark has waited 10 s for a process that it had started."""

FAILED_S = 60
"""So soon a query has failed whose service has ended."""

LIFE_S = 300.0
"""In that time a life should have come to where it ends, on a machine with much else to do."""


def serve(spark: Any, life: Life) -> Service:
    return pointstamp.spark.serve(
        Build(life),
        spark,
        life.workers,
        inputs={"facts": pa.schema(FACT), "rates": pa.schema(RATE)},
        outputs={name: pa.schema(columns) for name, columns in OUTPUTS.items()},
        checkpoint=Path(life.folder) / "checkpoint",
        snapshot_every=life.every,
        restart=None,
    )


def write(folder: Path, epoch: int) -> None:
    """The file that Spark makes batch `epoch` of, if it is not there."""
    path = folder / "files" / f"{epoch:06}.parquet"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        keys, values = zip(*facts_of(epoch), strict=True)
        batch = pa.table({"k": keys, "v": values}, pa.schema(FACT))
        made = path.with_name(f".{path.name}")
        pq.write_table(batch, made)
        os.utime(made, (1e9 + epoch, 1e9 + epoch))  # Spark takes them in the order of their times
        made.replace(path)


class Streams:
    """The query that feeds the service, and the one that reads it and has it discard."""

    def __init__(self, spark: Any, service: Service, folder: Path) -> None:
        files = spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        arriving = (
            files.parquet(str(folder / "files"))
            .writeStream.format("pointstamp")
            .options(service=service.name, input="facts")
            .option("checkpointLocation", str(folder / "in"))
        )
        leaving = (
            spark.readStream.format("pointstamp")
            .options(service=service.name, output="totals")
            .load()
            .writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "offsets"))
        )
        self._service = service
        self._writers = (arriving, leaving)
        self.queries = [writer.start() for writer in self._writers]

    def look(self) -> None:
        """Raise what a query has failed of, unless the machine was too slow for Spark."""
        for n, query in enumerate(self.queries):
            error = query.exception()
            if error is not None:
                self._service.status()  # raises why, if that is what it has failed of
                if TOO_SLOW not in str(error):
                    raise error
                self.queries[n] = self._writers[n].start()

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        for query in self.queries:
            if isinstance(error, WorkerError):
                # It fails of that itself; to stop it in the middle costs Spark connections.
                with contextlib.suppress(StreamingQueryException):
                    assert query.awaitTermination(FAILED_S), "it goes on without its service"
            query.stop()


def live(spark: Any, life: Life) -> None:
    """Feed and read until the end comes; without one, a few epochs more, and stop."""
    folder = Path(life.folder)
    write(folder, 0)  # the stream wants a folder
    with serve(spark, life) as service, Streams(spark, service, folder) as streams:
        try:
            drive(service, life, streams)
        except WorkerError:
            check_soon(folder)  # now: to stop the queries takes its time
            raise
        told: dict[str, Any] = {"n_epochs": service.input("facts").time}
        told["totals"] = sorted(map(tuple, spark.read.parquet(str(folder / "out")).collect()))
        for name in ("pairs", "steps"):
            found = service.output(name).read(told["n_epochs"] - 1, after=-1)
            told[name] = sorted((at, *row) for at, batch in found for row in rows(batch))
        replaced(folder / "last", json.dumps(told))


def drive(service: Service, life: Life, streams: Streams) -> None:
    """Have files come, and rates with them, until all that came is worked off, or the end."""
    folder, until = Path(life.folder), time.monotonic() + LIFE_S
    rates = Client(folder, "rates", RATE, rates_of, next_rate)
    rates.check(service)
    most = math.inf
    if life.where is None:
        # What former lives were about to send is there.
        n_files = len(list((folder / "files").iterdir()))
        most = (n_files + LAST) // RATES_EVERY * RATES_EVERY
    while (now := service.input("facts").time) < most:
        for epoch in range(now + AHEAD):
            if epoch < most:
                write(folder, epoch)
        if rates.epoch <= now:
            rates.send(service)
        with contextlib.suppress(EpochError):
            service.probe.wait(now, LOOK_S)
        streams.look()
        assert time.monotonic() < until, f"it never came to {life}"
    while rates.epoch < most:
        rates.send(service)
    service.probe.wait(now - 1)
    for query in streams.queries:
        query.processAllAvailable()


def main(folder: str, numbered: str) -> None:
    """Have these lives, one after the other, as far as we live."""
    spark = pointstamp.spark.session("local[4]")
    for told in json.loads(numbered):
        life = Life(**{**told, "folder": folder, "driver": os.getpid()})
        began = time.monotonic()
        try:
            live(spark, life)
        except WorkerError as error:
            check_cause(folder, life, error)
        else:
            assert life.where is None, f"it ended by itself: {life}"
        print(f"life {life.number}: {time.monotonic() - began:.2f} s", flush=True)
    spark.stop()
