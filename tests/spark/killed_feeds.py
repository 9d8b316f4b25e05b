"""Lives of a service of collections on Spark that follows two streams, ended by kill -9.

As `tests.spark.killed_streams`, with the collections of `tests.service.collection_lives`: their
changes come as files of a change data feed each. In which order the batches of both come is not
said, so what is compared is what is there in the end, and how many epochs it took.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pointstamp as ps
import pointstamp.spark
from pointstamp.collections.schema import schema_of
from pointstamp.errors import WorkerError
from pointstamp.service.service import Service
from tests.service.collection_lives import SCHEMAS, CollectionBuild, build, changes_of
from tests.service.lives import Life, check_cause, replaced
from tests.spark.killed_streams import LAST, LIFE_S, LOOK_S, TOO_SLOW

AHEAD = 3
"""So many files are there, of each feed, that the service may not have had."""

NAMES = ("labels", "named", "longest")


def write(folder: Path, name: str, number: int) -> None:
    """The file of a feed that Spark makes batch `number` of, if it is not there."""
    path = folder / name / f"{number:06}.parquet"
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        return
    columns = schema_of(SCHEMAS[name]).names
    rows = [
        {**dict(zip(columns, row, strict=True)), "_change_type": "insert" if n > 0 else "delete"}
        for row, n in changes_of(number)[name]
        for _ in range(abs(n))
    ]
    made = path.with_name(f".{path.name}")
    pq.write_table(pa.Table.from_pylist(rows, feed_schema(name)), made)
    os.utime(made, (1e9 + number, 1e9 + number))  # Spark takes them in the order of their times
    made.replace(path)


def feed_schema(name: str) -> pa.Schema:
    fields = [(c.name, c.type.arrow()) for c in schema_of(SCHEMAS[name]).columns]
    return pa.schema([*fields, ("_change_type", pa.string())])


class Feeds:
    """The queries that feed the service."""

    def __init__(self, spark: Any, service: Service, folder: Path) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        self._service = service
        self._streams = {
            name: spark.readStream.schema(from_arrow_schema(feed_schema(name)))
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / name))
            for name in SCHEMAS
        }
        self.queries = {name: self._follow(name) for name in SCHEMAS}

    def look(self) -> None:
        """Raise what a query has failed of, unless the machine was too slow for Spark."""
        for name, query in self.queries.items():
            error = query.exception()
            if error is not None:
                self._service.status()  # raises why, if that is what it has failed of
                if TOO_SLOW not in str(error):
                    raise error
                self.queries[name] = self._follow(name)

    def _follow(self, name: str) -> Any:
        return self._service.input(name).follow(self._streams[name], "cdf")


def live(spark: Any, life: Life) -> None:
    """Have files come until the end comes; without one, a few more, and stop."""
    folder, until = Path(life.folder), time.monotonic() + LIFE_S
    for name in SCHEMAS:
        write(folder, name, 0)  # the stream wants a folder
    with pointstamp.spark.serve(
        CollectionBuild(life),
        spark,
        life.workers,
        collections=SCHEMAS,
        checkpoint=folder / "checkpoint",
        snapshot_every=life.every,
        restart=None,
    ) as service:
        feeds = Feeds(spark, service, folder)
        most: int | None = None
        while most is None or service.input("edges").time < 2 * most:
            now = service.input("edges").time
            there = len(list((folder / "edges").glob("*.parquet")))
            if life.where is None and most is None:
                most = there + LAST
            # Each batch is an epoch: of both feeds there are about as many.
            for number in range(there, now // 2 + AHEAD if most is None else most):
                for name in SCHEMAS:
                    write(folder, name, number)
            feeds.look()
            assert time.monotonic() < until, f"it never came to {life}"
            time.sleep(LOOK_S)
        last = service.input("edges").time - 1
        service.probe.wait(last)
        snapshots = {name: json.dumps(service.output(name).snapshot(last)[:]) for name in NAMES}
        told = {"n_epochs": last + 1, "n_files": most, "snapshots": snapshots}
        replaced(folder / "last", json.dumps(told))


def check(folder: Path) -> int:
    """What was there in the end is what a view has; of how many epochs."""
    last = json.loads((folder / "last").read_text())
    # A batch that came twice would be an epoch more.
    assert last["n_epochs"] == 2 * last["n_files"]
    with ps.View(build, **SCHEMAS) as view:
        for number in range(last["n_files"]):
            for name, changes in changes_of(number).items():
                view.update(name, changes)
        view.advance()
        for name, found in last["snapshots"].items():
            assert found == json.dumps(view.snapshot(name)[:]), name
    return int(last["n_epochs"])


def main(folder: str, numbered: str) -> None:
    """Have these lives, one after the other, as far as we live."""
    spark = pointstamp.spark.session("local[4]")
    for told in json.loads(numbered):
        life = Life(**{**told, "folder": folder, "driver": os.getpid()})
        try:
            live(spark, life)
        except WorkerError as error:
            check_cause(folder, life, error)
        else:
            assert life.where is None, f"it ended by itself: {life}"
    spark.stop()
