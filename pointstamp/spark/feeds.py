"""Inputs of a service that are collections, fed by DataFrames.

`load` stages a DataFrame by the tasks of the job that reads it, and commits what Spark has got
handles of as one epoch. `follow` does so with each batch of a stream.

Rules
-----
1. A task stages its partition under a name of its own, and gives the handle as a row. A task that
   is tried again, or that runs twice, gives another handle; Spark keeps one. What no commit names
   never counts.
2. A row that does not fit is no failed task, which Spark would try again: the task gives it as a
   row, too, and the whole is refused before anything is committed.
3. Batches of a stream are committed under the number of their query, and their own: a batch that
   Spark repeats is staged again, and committed once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.collections.schema import Schema
from pointstamp.errors import (
    DataError,
    EpochError,
    ServiceError,
    StoppedError,
    TruncatedCheckpointError,
    UsageError,
)
from pointstamp.service import protocol
from pointstamp.service.collection_handles import CollectionFeed, CollectionFeeds
from pointstamp.service.protocol import TICK_S, StagingHandle, decode, encode
from pointstamp.spark.feed_forms import Append, ChangesOfRows, FeedForm, form_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from pointstamp.spark.access import Access
    from pointstamp.spark.collection_service import SparkSide

_STAGED = pa.schema([("handle", pa.string()), ("wrong", pa.string())])
"""What a task gives: the handle of what it has staged, and what is wrong with a row."""

QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark has for a batch of a stream which query it is of."""

COMPLETE_S = 600.0
"""How long a batch waits for its epoch to be complete where nothing else is said."""

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
        return self._commit(frame, form, where, uuid.uuid4().hex)

    def follow(
        self,
        stream: DataFrame,
        form: str,
        *,
        diff: str | None = None,
        name: str | None = None,
        trigger: Mapping[str, Any] | None = None,
        timeout_s: float = COMPLETE_S,
    ) -> StreamingQuery:
        """Have a query of Spark change the collection by a stream, each of its batches an epoch.

        Parameters
        ----------
        stream : pyspark.sql.DataFrame
            That is a stream, of the columns of the collection, of the same types, in any order.
        form : str
            What a row says. "append": it is inserted. "cdf": by `_change_type`, which is insert,
            delete, update_preimage or update_postimage; columns whose names begin with `_commit_`
            may be there, too. "diff": it comes as often as a column of integers says.
        diff : str, optional
            That column.
        name : str, optional
            Of the query's folder in the checkpoint of the service; that of the input, if not given.
            A second stream of an input needs one.
        trigger : mapping, optional
            As `DataStreamWriter.trigger` takes it: `{"availableNow": True}`.
        timeout_s : float
            How long a batch waits until its epoch is complete at the outputs.

        Returns
        -------
        pyspark.sql.streaming.StreamingQuery
            It is stopped when the service ends.

        Raises
        ------
        UsageError
            If it is no stream, or the service has no checkpoint, or the form is none.
        SchemaError
            If its columns are others.

        Notes
        -----
        Exactly once: the batches of a query are known by its number and theirs, which the log of
        the service has with each epoch. One that Spark repeats, as it was killed before it had
        noted that the batch was committed, changes nothing. For that the query's
        `checkpointLocation` is below the service's checkpoint, and belongs to it: keep, copy or
        remove them together.

        A row that does not fit has the query fail, with a `DataError` that says the input, the
        query and the batch; nothing of the batch is committed.
        """
        where = f"input {self.name!r}"
        check_frame(stream, where, streams=True)
        found = form_of(form, where, diff=diff)
        found.check(stream.schema, self.schema, where)
        place = self.name if name is None else f"{self.name}, {name}"
        folder = self._side.query_folder("in", place, f"{where}: follow()")
        followed = _Followed(self, found, timeout_s)
        writer = stream.writeStream.foreachBatch(followed.commit_batch)
        writer = writer.trigger(**trigger) if trigger else writer
        followed.query = query = self._side.start(writer, folder, where)
        return query

    def commit_batch(self, frame: DataFrame, form: FeedForm, query: str, batch: int) -> int:
        """Commit a batch of a query, if that is not done already; at which epoch it is."""
        where = f"input {self.name!r}, batch {batch} of query {query}"
        return self._commit(frame, form, where, f"query {query}", batch)

    def is_complete(self, epoch: int) -> bool:
        """Whether an epoch is as complete as it can be, for which it waits a little."""
        return self.feeds.service.ask(protocol.AwaitCompletion(epoch, TICK_S))

    @property
    def is_ending(self) -> bool:
        """Whether the service is about to end."""
        return self._side.is_ending.is_set()

    def _commit(
        self, frame: DataFrame, form: FeedForm, where: str, commit: str, batch: int | None = None
    ) -> int:
        """Stage the changes that a DataFrame says, and commit them by a name; at which epoch."""
        service = self.feeds.service
        for left in reversed(range(N_TRIES)):
            epoch = self.time
            if epoch is None:
                raise StoppedError(f"{where} is closed, and takes nothing more")
            handles = self._staged(frame, form, where, epoch)
            try:
                committed = service.ask(protocol.CommitEpoch(commit, tuple(handles), batch))
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


class _Followed:
    """What a query calls with each of its batches, on the driver."""

    def __init__(self, feed: SparkFeed, form: FeedForm, timeout_s: float) -> None:
        self.query: StreamingQuery | None = None
        """Once it has started; its first batch may come before."""
        self._feed = feed
        self._form = form
        self._timeout_s = timeout_s

    def commit_batch(self, frame: DataFrame, batch: int) -> None:
        """Commit it, and wait until its epoch is complete, so that no more is sent than is done."""
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if query is None:
            raise ServiceError(
                f"Spark does not say which query batch {batch} is of: {QUERY_ID!r} is not set; "
                "PySpark's threads have to be those of Java (PYSPARK_PIN_THREAD, which is so "
                "unless it is set to false)"
            )
        epoch = self._feed.commit_batch(frame, self._form, query, batch)
        until = monotonic() + self._timeout_s
        while not (self._feed.is_complete(epoch) or self._is_over):
            if monotonic() > until:
                raise EpochError(
                    f"batch {batch} of query {query} is committed as epoch {epoch} of input "
                    f"{self._feed.name!r}, and not complete after {self._timeout_s:g} s: "
                    f"{self._feed.feeds.service.status()}"
                )

    @property
    def _is_over(self) -> bool:
        """Whether its end is not waited for any more."""
        return self._feed.is_ending or (self.query is not None and not self.query.isActive)


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
