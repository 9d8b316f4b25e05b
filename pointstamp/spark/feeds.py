"""Inputs of a service that are collections, fed by DataFrames.

`load` stages a DataFrame by the tasks of the job that reads it, and commits what Spark has got
handles of as one epoch.

Rules
-----
1. A task stages its partition under a name of its own, and gives the handle as a row. A task that
   is tried again, or that runs twice, gives another handle; Spark keeps one. What no commit names
   never counts.
2. A row that does not fit is no failed task, which Spark would try again: the task gives it as a
   row, too, and the whole is refused before anything is committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.collections.schema import Schema
from pointstamp.errors import DataError, StoppedError, TruncatedCheckpointError, UsageError
from pointstamp.service import protocol
from pointstamp.service.collection_handles import CollectionFeed, CollectionFeeds
from pointstamp.service.protocol import StagingHandle, decode, encode
from pointstamp.spark.feed_forms import Append, ChangesOfRows, FeedForm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pointstamp.spark.access import Access
    from pointstamp.spark.collection_service import SparkSide

_STAGED = pa.schema([("handle", pa.string()), ("wrong", pa.string())])
"""What a task gives: the handle of what it has staged, and what is wrong with a row."""

N_TRIES = 3
"""How often a DataFrame is staged, of which some was pruned before it was committed."""


class SparkFeed(CollectionFeed):
    """An input of a service on Spark that is a collection; it takes DataFrames, too."""

    def __init__(self, side: SparkSide, feeds: CollectionFeeds, name: str, schema: Schema) -> None:
        super().__init__(feeds, name, schema)
        self._side = side

    def load(self, frame: DataFrame) -> int:
        """Insert the rows of a DataFrame, as one epoch of their own; which one.

        All tasks of the job that reads it send to the workers, in Arrow batches. What else was
        inserted waits for `advance`.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            With the columns of the collection, of the same types, in any order.

        Raises
        ------
        UsageError
            If it is a stream, or no DataFrame.
        SchemaError
            If its columns are others.
        DataError
            If a column that is not nullable has a null. Nothing is inserted then.
        StoppedError
            If the collections are closed.
        """
        where = f"input {self.name!r}"
        check_frame(frame, where, streams=False)
        form = Append()
        form.check(frame.schema, self.schema, where)
        return self.commit_frame(frame, form, where, uuid.uuid4().hex)

    def commit_frame(self, frame: DataFrame, form: FeedForm, where: str, commit: str) -> int:
        """Stage the changes that a DataFrame says, and commit them by a name; at which epoch."""
        service = self.feeds.service
        for left in reversed(range(N_TRIES)):
            epoch = self.time
            if epoch is None:
                raise StoppedError(f"{where} is closed, and takes nothing more")
            handles = self._staged(frame, form, where, epoch)
            try:
                committed = service.ask(protocol.CommitEpoch(commit, tuple(handles)))
            except TruncatedCheckpointError:
                # Other feeds went on meanwhile, so far that what is staged has been pruned.
                if not left:
                    raise
            else:
                break
        if committed is None:
            raise StoppedError(f"{where} is closed, and takes nothing more")
        return committed

    def _staged(
        self, frame: DataFrame, form: FeedForm, where: str, epoch: int
    ) -> list[StagingHandle]:
        """What the tasks have staged; raises what is wrong with the rows, and drops it then."""
        side, name = self._side, self.name

        def job() -> Sequence[Any]:
            task = staging(side.access, name, epoch, form)
            return frame.mapInArrow(task, "handle string, wrong string").collect()

        rows = side.registration.repeated(job)
        handles = [decode(StagingHandle, row.handle) for row in rows if row.handle is not None]
        wrong = [row.wrong for row in rows if row.wrong is not None]
        if wrong:
            self.feeds.service.ask(protocol.Abort(tuple(handles)))
            raise DataError(f"{where}: {wrong[0]}")
        return handles


def check_frame(frame: Any, where: str, *, streams: bool) -> None:
    """Raise `UsageError` unless it is a DataFrame that is a stream, or is none."""
    if not hasattr(frame, "mapInArrow") or not hasattr(frame, "isStreaming"):
        raise UsageError(f"{where} is given {type(frame).__name__}, and takes a DataFrame of Spark")
    if frame.isStreaming and not streams:
        raise UsageError(f"{where} is to load a stream: have it follow that, by follow(...)")
    if streams and not frame.isStreaming:
        raise UsageError(f"{where} is to follow a DataFrame that is no stream: load(...) takes it")


def staging(
    access: Access, input: str, epoch: int, form: FeedForm
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: stages the changes of its partition.

    It gives one row, of the handle, or of what is wrong; none, if there are no rows.
    """
    wire = access.inputs[input]

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # there is one in every task
        changes, handle = ChangesOfRows(form, wire, batches), None
        if changes.has_any:
            try:
                staged = access.stage(input, epoch, context.partitionId(), changes)
                handle = encode(staged).decode()
            except DataError as error:  # what the worker says
                changes.wrong = str(error)
            row = {"handle": handle, "wrong": changes.wrong}
            yield pa.RecordBatch.from_pylist([row], _STAGED)

    return task
