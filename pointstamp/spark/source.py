"""`format("pointstamp")`: a service as a sink and a source of Spark's streams.

What Spark knows of a data source is its class, which it carries to where it is used;
so each class that is registered has the services of this program with it. Spark
makes a sink anew for each commit, in a process of its own that it uses again or not: nothing
is kept between, and little is imported here, since the first batch waits for that.

Rules
-----
1. A task stages its partition and gives the handle. Spark hands the handles of the tasks
   that count to `commit`, which names them the attempts of the epoch.
2. The epoch is the number of the batch, and `commit` returns when the epoch has passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema

from pointstamp.errors import EpochError, ServiceError, UsageError
from pointstamp.service.protocol import (
    TICK_S,
    Abort,
    AwaitCompletion,
    Commit,
    GetStatus,
    StagingHandle,
)
from pointstamp.spark.access import QUERY_ID, Access, check_columns
from pointstamp.spark.output_source import COMMIT_S, Reader, StreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.service.flight_client import RemoteWorker
    from pointstamp.service.worker_pools import Termination

BATCH_ID = "streaming.sql.batchId"
"""The local property in which Spark has for a task of a stream which batch it is of."""

_services: dict[str, Access] = {}


_terminations: dict[str, Termination] = {}


def check_name(name: Any) -> None:
    """Raise `UsageError` unless a service may have this name: two of one would be mixed up."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"the name of a service is a text that is not empty, and not {name!r}")
    termination = _terminations.get(name)
    if termination is not None and not termination.has_ended:
        raise UsageError(
            f"there is a service {name!r} in this program already: stop it, or give another name"
        )


def register(spark: SparkSession, access: Access, termination: Termination) -> None:
    """Have `format("pointstamp")` of the session know one more service."""
    _services[access.name], _terminations[access.name] = access, termination
    known = dict(_services)
    spark.dataSource.register(type("Registered", (Pointstamp,), {"services": known}))


def unregister(access: Access) -> None:
    """Leave a service that has ended out of what is registered from now on."""
    if _services.get(access.name) is access:  # and not its successor of the same name
        del _services[access.name], _terminations[access.name]


class Pointstamp(DataSource):
    """A service, by `option("service", name)`.

    Options
    -------
    service
        The name of the service; not needed where there is one alone.
    input
        To which input a stream is written; not needed where there is one alone.
    output
        Which output is read; likewise.
    first_epoch
        The epoch of a stream's batch 0; 0 if not given. For an input that has epochs already.
    timeout_s
        How long a commit waits for its epoch to pass; 600 if not given.
    epoch
        As of which epoch a batch is read; the last that is complete, if not given.
    form
        Of an output that is a collection: a stream is a change data feed ("cdf"), or changes with
        diffs ("diff"), with the epoch of each; a batch is what is there ("snapshot"). If
        not given, it is changes with diffs alone.
    discard
        Whether a stream in a form has what is done with added up: "true" if not given, or "false".
    """

    services: ClassVar[Mapping[str, Access]] = {}

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "pointstamp"

    def schema(self) -> StructType:
        """Of the output that is read."""
        access = self._access()
        output, form = self._named("output", access.outputs), self.options.get("form")
        if form is None:
            return from_arrow_schema(access.outputs[output])
        # Here, and not above: a sink does without.
        from pointstamp.spark.collection_source import schema_in_form

        return from_arrow_schema(schema_in_form(access, output, form))

    def streamWriter(  # noqa: N802  (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """A sink of a stream."""
        access = self._access()
        first, patience = self._epoch("first_epoch") or 0, self._seconds("timeout_s", COMMIT_S)
        input = self._named("input", access.inputs)
        if input in access.collections:
            raise UsageError(
                f"input {input!r} of service {access.name!r} is a collection, whose epochs are "
                f"numbered as they come: have it follow the stream, by "
                f"service.input({input!r}).follow(stream, form=...)"
            )
        expected = access.inputs[input].names
        check_columns(schema.names, f"input {input!r} of service {access.name!r}", expected)
        return StreamWriter(access, input, first, patience)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """No sink of a batch, which has no number to be the epoch."""
        raise UsageError(
            "a DataFrame that is no stream is sent by service.input(name).send(frame), followed by "
            'advance_to; format("pointstamp") writes streams'
        )

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802  (Spark's name)
        """A source of a stream."""
        access, form = self._access(), self.options.get("form")
        output = self._named("output", access.outputs)
        if form is None:
            return StreamReader(access, output)
        from pointstamp.spark.collection_source import SNAPSHOT, CollectionStreamReader

        if form == SNAPSHOT:
            raise UsageError('option("form", "snapshot") is of batches: spark.read, not readStream')
        return CollectionStreamReader(access, output, form, self._discards())

    def reader(self, schema: StructType) -> DataSourceReader:
        """A source of a batch."""
        access, form = self._access(), self.options.get("form")
        output, epoch = self._named("output", access.outputs), self._epoch("epoch")
        if form is None:
            return Reader(access, output, epoch)
        from pointstamp.spark.collection_source import SNAPSHOT, SnapshotReader

        if form != SNAPSHOT:
            raise UsageError(f'option("form", {form!r}) is of streams: spark.readStream, not read')
        return SnapshotReader(access, output, epoch)

    def _access(self) -> Access:
        name = self.options.get("service")
        if name is None and len(self.services) == 1:
            return next(iter(self.services.values()))
        if name is None or name not in self.services:
            raise UsageError(
                f'option("service", ...) names {name!r}; this session knows '
                f"{', '.join(map(repr, self.services)) or 'no service'}: give service.name"
            )
        return self.services[name]

    def _named(self, what: str, schemas: Mapping[str, pa.Schema]) -> str:
        name = self.options.get(what)
        if name is None and len(schemas) == 1:
            return next(iter(schemas))
        if name is None or name not in schemas:
            raise UsageError(
                f'option("{what}", ...) names {name!r}; the service has '
                f"{', '.join(map(repr, schemas)) or 'none'}"
            )
        return name

    def _epoch(self, name: str) -> int | None:
        given = self.options.get(name)
        if given is None:
            return None
        # An epoch before the first would be one that is over: what comes for it is dropped.
        if not given.isdecimal():
            raise UsageError(
                f'option("{name}", ...) should be an epoch, a whole number from 0, and is {given!r}'
            )
        return int(given)

    def _discards(self) -> bool:
        given = self.options.get("discard", "true").lower()
        if given not in ("true", "false"):
            raise UsageError(f'option("discard", ...) is "true" or "false", and not {given!r}')
        return given == "true"

    def _seconds(self, name: str, default: float) -> float:
        given = self.options.get(name)
        try:
            found = default if given is None else float(given)
            if found >= 0:
                return found
        except ValueError:
            pass
        raise UsageError(f'option("{name}", ...) should be a number of seconds, and is {given!r}')


@dataclass
class TaskCommitMessage(WriterCommitMessage):
    """What a task of the stream hands to the driver."""

    staged: StagingHandle
    query: str | None
    """The id of the query."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Stages partitions in tasks, and commits batches on the driver."""

    def __init__(self, access: Access, input: str, first_epoch: int, timeout_s: float) -> None:
        self._access = access
        self._input = input
        self._first_epoch = first_epoch
        self._timeout_s = timeout_s

    def write(self, iterator: Iterator[Any]) -> TaskCommitMessage:
        """Stage a partition; in a task."""
        context = TaskContext.get()
        assert context is not None  # there is one in every task
        batch = context.getLocalProperty(BATCH_ID)
        if batch is None:
            raise ServiceError(
                f"Spark does not say to this task which batch it is of: {BATCH_ID!r} is not set; "
                "bring the records with foreachBatch and service.input(...).send(frame)"
            )
        epoch = self._epoch(int(batch))
        staged = self._access.stage(self._input, epoch, context.partitionId(), iterator)
        return TaskCommitMessage(staged, context.getLocalProperty(QUERY_ID))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Release the batch at its epoch, and wait until that has passed; again is the same.

        Raises `EpochError` if the input is past that epoch, and not by this batch: its records
        would be lost.
        """
        epoch = self._epoch(batchId)
        ask = self._access.ask
        query = next((m.query for m in messages if isinstance(m, TaskCommitMessage)), None)
        release = Commit(self._input, epoch, tuple(_staged(messages)), epoch + 1, query=query)
        wait = AwaitCompletion(epoch, TICK_S)

        def released(worker: RemoteWorker) -> bool:
            # By one connection, which is what each batch needs at the least.
            worker.ask(release)
            return worker.ask(wait)

        is_complete = self._access.repeated(0, released)
        until = monotonic() + self._timeout_s
        while not is_complete:
            if monotonic() > until:
                raise EpochError(
                    f"epoch {epoch} of input {self._input!r} is committed, and not complete "
                    f"after {self._timeout_s:g} s: {ask(GetStatus())}"
                )
            is_complete = ask(wait)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what the tasks of the batch have staged."""
        with self._access.worker(0) as worker:
            worker.ask(Abort(tuple(_staged(messages))))  # once: the next life drops it by itself

    def _epoch(self, batch: int) -> int:
        return self._first_epoch + batch


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagingHandle]:
    """The handles of the tasks that have one."""
    return [message.staged for message in messages if isinstance(message, TaskCommitMessage)]
