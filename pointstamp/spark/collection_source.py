"""Outputs of a service that are collections, as sources of Spark.

A stream has each epoch once, as rows of a change data feed or as changes with diffs. A query
that begins when epochs are discarded, gets the collection as of the last of those first, as rows
that are inserted then. So what it has seen always adds up to the collection.

Offsets are epochs, as `{"epoch": n}`: the first that is not read. That of a query's beginning has
`"whole"` beside it if the collection as of the epoch before is to be read, too. Each has `"of"`,
the identity of what the epochs are of: those of a service that began with nothing are others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pointstamp.collections.schema import Schema, schema_of
from pointstamp.collections.upserts import TIMESTAMP, VERSION
from pointstamp.errors import EpochError, UsageError
from pointstamp.service.feed_columns import (
    FEED_TIME,
    epoch_columns,
    feed_rows,
    feed_schema,
)
from pointstamp.service.protocol import (
    TICK_S,
    GetEpochTimes,
    GetPosition,
    ReadEpochs,
)
from pointstamp.spark.access import Access
from pointstamp.spark.output_source import (
    COMMIT_S,
    EpochRange,
    StreamReader,
    await_epoch,
    frontier_of,
)

CDF, DIFF, SNAPSHOT = "cdf", "diff", "snapshot"
"""The forms of what is read: two of streams, and one of batches."""

_START = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def schema_in_form(access: Access, output: str, form: str) -> pa.Schema:
    """The columns of an output that is a collection, in a form.

    Raises
    ------
    UsageError
        If it is no collection, or that is no form.
    """
    if output not in access.maintained:
        raise UsageError(
            f'option("form", {form!r}) is for outputs that are collections, and output {output!r} '
            f"of service {access.name!r} is a stream"
        )
    changes = access.outputs[output]
    if form == CDF:
        return feed_schema(_schema(access, output), output)
    if form == DIFF:
        return changes.append(pa.field(VERSION, pa.int64(), False)).append(
            pa.field(TIMESTAMP, FEED_TIME, False)
        )
    if form == SNAPSHOT:
        return changes
    raise UsageError(
        f'option("form", {form!r}) is none; there are {CDF!r}, {DIFF!r} and {SNAPSHOT!r}'
    )


def _schema(access: Access, output: str) -> Schema:
    """Of the records of an output."""
    return schema_of(pa.schema(list(access.outputs[output])[:-1]))


class CollectionRange(EpochRange):
    """What one worker has of a collection at some epochs."""

    def __init__(
        self, worker: int, after: int, upto: int, is_whole: bool, times: Mapping[str, int]
    ) -> None:
        super().__init__(worker, after, upto)
        self.is_whole = is_whole
        """Whether the collection as of `after` belongs to it."""
        self.times = times
        """By epoch, as a text: when it was committed, in microseconds since 1970."""

    def time(self, epoch: int) -> dt.datetime:
        """When an epoch was committed."""
        return _START + dt.timedelta(microseconds=self.times.get(str(epoch), 0))


class CollectionStreamReader(StreamReader):
    """Serves complete epochs of a collection, in order.

    discards : whether the workers are to add up what is done with
    """

    def __init__(self, access: Access, output: str, form: str, discards: bool) -> None:
        super().__init__(access, output)
        self._form = form
        self._discards = discards

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        """The first epoch that the workers have not discarded."""
        first, _ = frontier_of(self._access, self._output)
        return self._offset({"epoch": first, "whole": True} if first else {"epoch": first})

    def latestOffset(  # noqa: N802  (Spark's name)
        self, start: dict[str, Any], limit: Any
    ) -> dict[str, Any]:
        """The first epoch that is not complete; there is no limit to what is read at once.

        Raises `EpochError` if the query is past all epochs that there are, or they are others.
        """
        self._check_same(start)
        found = super().latestOffset(start, limit)
        if found["epoch"] == start["epoch"]:
            self._check_known(start["epoch"])
        return self._offset(found)

    def _offset(self, epoch: dict[str, Any]) -> dict[str, Any]:
        return {**epoch, "of": self._access.identity} if self._access.identity else epoch

    def _check_same(self, offset: dict[str, Any]) -> None:
        """Raise if the epochs of an offset, where it says of what they are, are of another one."""
        mine = self._access.identity
        if mine and offset.get("of", mine) != mine:
            raise EpochError(
                f"the query has read output {self._output!r} up to epoch {offset['epoch'] - 1} of "
                f"another service, and the epochs of service {self._access.name!r} are others: it "
                "began without the checkpoint of that one; begin the query anew"
            )

    def _check_known(self, epoch: int) -> None:
        """Raise unless all epochs before this one were committed: else the query is of another."""
        at = self._access.ask(GetPosition(min(self._access.collections)))
        if at is not None and epoch > at:
            raise EpochError(
                f"the query has read output {self._output!r} up to epoch {epoch - 1}, and service "
                f"{self._access.name!r} is at epoch {at}: it is another one than the query has "
                "read, or has lost its checkpoint; begin the query anew"
            )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One for each worker."""
        self._check_same(start)
        after, upto, is_whole = start["epoch"] - 1, end["epoch"] - 1, start.get("whole", False)
        if after > upto:
            raise EpochError(
                f"output {self._output!r} is to be read up to epoch {upto}, and what came up to "
                f"epoch {after} is discarded since: begin the query anew, and have nothing else "
                "discard (discard=False)"
            )
        if after == upto and not is_whole:
            return []
        times = self._access.ask(GetEpochTimes(after, upto))
        return [
            CollectionRange(worker, after, upto, is_whole, times)
            for worker in range(len(self._access.endpoints))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What a worker has of the epochs; it waits as the reader of a stream does."""
        assert isinstance(partition, CollectionRange)
        schema = _schema(self._access, self._output)
        for epoch, changes in self._pairs(partition):
            if self._form == CDF:
                time = partition.time(epoch)
                yield from feed_rows(schema, changes, epoch, time, self._output)
            else:
                yield self._versioned(changes, epoch, partition.time(epoch))

    def _pairs(self, part: CollectionRange) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(epoch, changes)."""
        await_epoch(self._access, part.worker, self._output, part.upto, COMMIT_S)
        with self._access.worker(part.worker) as worker:
            wait_s = TICK_S * 10
            if part.is_whole:
                request = ReadEpochs(self._output, None, part.after, wait_s, "snapshot")
                for _, batch in worker.stream(request):
                    yield part.after, batch
            if part.after < part.upto:
                yield from worker.stream(ReadEpochs(self._output, part.after, part.upto, wait_s))

    def _versioned(self, changes: pa.RecordBatch, epoch: int, time: dt.datetime) -> pa.RecordBatch:
        added = epoch_columns(epoch, time, changes.num_rows)
        into = schema_in_form(self._access, self._output, self._form)
        return pa.RecordBatch.from_arrays([*changes.columns, *added], schema=into)

    def commit(self, end: dict[str, Any]) -> None:
        """Have the workers add up what comes before, where they are to."""
        self._check_same(end)
        if self._discards:
            super().commit(end)


class SnapshotReader(DataSourceReader):
    """Reads a collection as of an epoch: its records, each with how often a worker has it."""

    def __init__(self, access: Access, output: str, epoch: int | None) -> None:
        self._access = access
        self._output = output
        self._epoch = epoch

    def partitions(self) -> Sequence[InputPartition]:
        """One for each worker, all as of one epoch."""
        upto = self._epoch
        if upto is None:
            upto = frontier_of(self._access, self._output)[1] - 1
        return [EpochRange(worker, -1, upto) for worker in range(len(self._access.endpoints))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What a worker has."""
        assert isinstance(partition, EpochRange)
        request = ReadEpochs(self._output, None, partition.upto, TICK_S * 10, "snapshot")
        with self._access.worker(partition.worker) as worker:
            for _, batch in worker.stream(request):
                yield batch
