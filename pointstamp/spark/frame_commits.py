"""DataFrames staged by tasks of Spark and committed to an input of a service, each as one epoch.

`commit` does so with a DataFrame, `follow` with each batch of a stream.

Rules
-----
1. A task stages its partition under a name of its own, and gives the handle as a row. A task that
   is tried again, or that runs twice, gives another handle; Spark keeps one. What no commit names
   never counts. Names of one job begin alike: what it has staged is dropped if it fails.
2. A row that does not fit is no failed task, which Spark would try again: the task gives it as a
   row, too, and the whole is refused before anything is committed.
3. Batches of a stream are committed under the number of their query, and their own: a batch that
   Spark repeats is staged again, and committed once.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.errors import (
    DataError,
    EpochError,
    PointstampError,
    ServiceError,
    StoppedError,
    TruncatedCheckpointError,
    UsageError,
)
from pointstamp.service import protocol
from pointstamp.service.protocol import TICK_S, StagingHandle, decode, encode
from pointstamp.spark.access import QUERY_ID
from pointstamp.spark.call_sites import CallSite, call_site, called_at
from pointstamp.spark.feed_forms import ChangesOfRows, FeedForm
from pointstamp.spark.mapped_columns import mapped_in_arrow
from pointstamp.spark.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from pointstamp.collections.schema import Schema
    from pointstamp.service.collection_handles import CollectionFeeds
    from pointstamp.spark.access import Access
    from pointstamp.spark.collection_service import SparkSide

COMPLETE_S = 600.0
"""How long a batch waits for its epoch to be complete where nothing else is said."""

_STAGED = pa.schema([("handle", pa.string()), ("wrong", pa.string())])
"""What a task gives: the handle of what it has staged, and what is wrong with a row."""

N_TRIES = 3
"""How often a DataFrame is staged, of which some was pruned before it was committed."""


class FrameCommits:
    """Commits DataFrames to one input of a service."""

    def __init__(self, side: SparkSide, feeds: CollectionFeeds, name: str, schema: Schema) -> None:
        self.feeds = feeds
        self.name = name
        self._side = side
        self._schema = schema
        self._where = f"input {name!r}"

    def load(
        self,
        frame: DataFrame,
        form: FeedForm,
        once: str | None,
        max_staged_bytes: int | None,
        timeout_s: float | None,
    ) -> int:
        """Commit a DataFrame, under a name once; at which epoch."""
        check_frame(frame, self._where, streams=False)
        form.check(frame.schema, self._schema, self._where)
        if max_staged_bytes is not None:
            self.feeds.await_room(max_staged_bytes, timeout_s)
        with called_at(self._side.spark, call_site("load")):
            return self._loaded(frame, form, once)

    def _loaded(self, frame: DataFrame, form: FeedForm, once: str | None) -> int:
        if once is None:
            return self._commit(frame, form, self._where, uuid.uuid4().hex)
        name, ask = f"load {self.name}: {once}", self.feeds.service.ask
        if ask(protocol.GetBatch(name)) is None:
            return self._commit(frame, form, self._where, name, 0)
        epoch = ask(protocol.CommitEpoch(name, batch=0))
        assert epoch is not None  # it is one that is over
        return epoch

    def follow(
        self,
        stream: DataFrame,
        form: FeedForm,
        name: str | None,
        trigger: Mapping[str, Any] | None,
        timeout_s: float,
    ) -> StreamingQuery:
        """Start a query that commits each batch of a stream."""
        check_frame(stream, self._where, streams=True)
        if context_of(self._side.spark) is None:
            raise UsageError(
                f"{self._where}: follow() commits the batches of a stream in this program, and "
                "Spark Connect would do that where its server is: give each DataFrame to load(), "
                "or serve from a classic session"
            )
        form.check(stream.schema, self._schema, self._where)
        place = self.name if name is None else f"{self.name}, {name}"
        folder = self._side.query_folder("in", place, f"{self._where}: follow()")
        followed = _Followed(self, form, timeout_s, call_site("follow"))
        writer = stream.writeStream.foreachBatch(followed.commit_batch)
        writer = writer.trigger(**trigger) if trigger else writer
        followed.query = query = self._side.start(writer, folder, self._where)
        return query

    def commit_batch(self, frame: DataFrame, form: FeedForm, query: str, batch: int) -> int:
        """Commit a batch of a query, if that is not done already; at which epoch it is."""
        where = f"{self._where}, batch {batch} of query {query}"
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
            epoch = service.ask(protocol.GetPosition(self.name))
            if epoch is None:
                raise StoppedError(f"{where} is closed, and takes nothing more")
            staged_as = uuid.uuid4().hex
            handles: list[StagingHandle] = []
            try:
                handles = self._staged(frame, form, where, epoch, staged_as)
                committed = service.ask(protocol.CommitEpoch(commit, tuple(handles), batch))
            except BaseException as error:  # of Spark, and an interrupt, too
                with contextlib.suppress(PointstampError):
                    service.ask(protocol.Abort(tuple(handles), staged_as))
                # Other feeds may have gone on, so far that what is staged has been pruned.
                if not left or not isinstance(error, TruncatedCheckpointError):
                    raise
            else:
                break
        if committed is None:
            raise StoppedError(f"{where} is closed, and takes nothing more")
        return committed

    def _staged(
        self, frame: DataFrame, form: FeedForm, where: str, epoch: int, staged_as: str
    ) -> list[StagingHandle]:
        """What the tasks have staged; raises what is wrong with the rows."""
        side, name = self._side, self.name

        def job() -> Sequence[Any]:
            task = staging(side.access, name, epoch, form, staged_as)
            return mapped_in_arrow(frame, task, "handle string, wrong string").collect()

        rows = side.registration.repeated(job)
        wrong = [row.wrong for row in rows if row.wrong is not None]
        if wrong:
            raise DataError(f"{where}: {wrong[0]}")
        return [decode(StagingHandle, row.handle) for row in rows if row.handle is not None]


class _Followed:
    """What a query calls with each of its batches, on the driver."""

    def __init__(
        self, commits: FrameCommits, form: FeedForm, timeout_s: float, asked_at: CallSite
    ) -> None:
        self.query: StreamingQuery | None = None
        """Once it has started; its first batch may come before."""
        self._commits = commits
        self._form = form
        self._timeout_s = timeout_s
        self._asked_at = asked_at

    def commit_batch(self, frame: DataFrame, batch: int) -> None:
        """Commit it, and wait until its epoch is complete, so that no more is sent than is done."""
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if query is None:
            raise ServiceError(
                f"Spark does not say which query batch {batch} is of: {QUERY_ID!r} is not set; "
                "PySpark's threads have to be those of Java (PYSPARK_PIN_THREAD, which is so "
                "unless it is set to false)"
            )
        with called_at(frame.sparkSession, self._asked_at):
            epoch = self._commits.commit_batch(frame, self._form, query, batch)
        until = monotonic() + self._timeout_s
        while not (self._commits.is_complete(epoch) or self._is_over):
            if monotonic() > until:
                raise EpochError(
                    f"batch {batch} of query {query} is committed as epoch {epoch} of input "
                    f"{self._commits.name!r}, and not complete after {self._timeout_s:g} s: "
                    f"{self._commits.feeds.service.status()}"
                )

    @property
    def _is_over(self) -> bool:
        """Whether its end is not waited for any more."""
        return self._commits.is_ending or (self.query is not None and not self.query.isActive)


def check_frame(frame: Any, where: str, *, streams: bool) -> None:
    """Raise `UsageError` unless it is a DataFrame that is a stream, or is none."""
    if not hasattr(frame, "mapInArrow") or not hasattr(frame, "isStreaming"):
        raise UsageError(f"{where} is given {type(frame).__name__}, and takes a DataFrame of Spark")
    if frame.isStreaming and not streams:
        raise UsageError(f"{where} is to load a stream: have it follow that, by follow(...)")
    if streams and not frame.isStreaming:
        raise UsageError(f"{where} is to follow a DataFrame that is no stream: load(...) takes it")


def staging(
    access: Access, input: str, epoch: int, form: FeedForm, staged_as: str
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
                staged = access.stage(input, epoch, context.partitionId(), changes, staged_as)
                handle = encode(staged).decode()
            except DataError as error:  # what the worker says
                changes.wrong = str(error)
            row = {"handle": handle, "wrong": changes.wrong}
            yield pa.RecordBatch.from_pylist([row], _STAGED)

    return task
