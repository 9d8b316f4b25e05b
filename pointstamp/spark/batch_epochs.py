"""One batch of a query as an epoch of collections: what the tasks of its barrier stage do.

Each task is a worker. All open what is kept, and compare what they found; if the batch is not
there yet, they run it, and worker 0 commits what all have written. What changed is stored by then,
and read from there: so the rows that a batch gives are those that it gives when it is repeated.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.objects import Objects
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.control import WorkerConfig
from pointstamp.communication.tls import Certificates
from pointstamp.errors import CheckpointError, UsageError
from pointstamp.runtime.introspection import registered
from pointstamp.runtime.worker import Worker
from pointstamp.service.changes_columns import columns_of_changes
from pointstamp.service.epoch_run import (
    CommittedRun,
    Decode,
    EpochPart,
    EpochRuns,
    stored_changes,
)
from pointstamp.service.feed_columns import feed_rows
from pointstamp.service.spec import RESULT, ServiceSpec
from pointstamp.spark import packed_batches
from pointstamp.spark.access import QUERY_ID
from pointstamp.spark.driver_control import worker_config
from pointstamp.spark.feed_forms import change_column, form_of, given_schemas, table_columns
from pointstamp.spark.known_schemas import columns_of_frame, known
from pointstamp.spark.mapped_columns import selected
from pointstamp.spark.packed_batches import PackedBatch
from pointstamp.spark.source import BATCH_ID
from pointstamp.spark.task import controlled, rendezvous, reporting

Rows = Iterable[pa.RecordBatch]

RUN_ID = "spark.jobGroup.id"
"""The local property in which Spark has for a batch of a stream which run of a query it is of."""

_CALLS = "calls"


@dataclass(frozen=True)
class BatchTask:
    """The function for `mapInArrow(..., barrier=True)`: packed batches in and out.

    Attributes
    ----------
    spec : ServiceSpec
        Of collections alone, with one result.
    decode : mapping of str to callable
        By input, what makes columns of changes of a batch that arrives.
    checkpoint : Checkpoint
        The folder that has one for each query.
    call : str
        Which `maintain_stream` it is of.
    """

    spec: ServiceSpec
    decode: Mapping[str, Decode]
    checkpoint: Checkpoint
    call: str
    workers: int
    secret: bytes = field(repr=False)
    control: WorkerConfig
    certificates: Certificates | None

    @classmethod
    def new(
        cls,
        spark: SparkSession,
        spec: ServiceSpec,
        decode: Mapping[str, Decode],
        checkpoint: Checkpoint,
        workers: int,
        certificates: Certificates | None,
    ) -> BatchTask:
        """That of a query which is made now."""
        control = worker_config(spark, certificates)
        call = uuid.uuid4().hex
        return cls(spec, decode, checkpoint, call, workers, new_secret(), control, certificates)

    def __call__(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """What changed of the result, as packed batches; in a task."""
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise UsageError(
                "maintain_stream makes a stream of streams, which a query of Spark writes batch by "
                "batch, and this job is of none: give DataFrames of spark.readStream, or use "
                "maintain, which is for what is no stream"
            )
        kept = KeptBatches(self.checkpoint.within(query), query, int(batch))
        names = list(self.decode)  # in the order of the streams
        arrivals = ((names[one.input], one.batch) for one in packed_batches.unpack(rows))
        with controlled(self.control, context.partitionId()) as control:
            communicator = rendezvous(
                context, self.workers, self.secret, control, self.certificates
            )
            with reporting(communicator, control):
                if communicator.index == 0:
                    run = context.getLocalProperty(RUN_ID)
                    check_alone(kept.checkpoint.objects, run, self.call)
                worker = Worker(communicator)
                with closing(worker), registered(worker):
                    committed = kept.run(worker, self.spec, self.decode, arrivals)
                    worker.finish()
        # Of another number of workers, if the batch was run before.
        mine = committed.outputs[RESULT][communicator.index :: communicator.peers]
        schema = self.spec.maintained[RESULT]
        for changes in stored_changes(kept.checkpoint, [staged for staged in mine if staged.rows]):
            found = feed_rows(schema, changes, committed.epoch, committed.time, RESULT)
            for records in packed_batches.resized(found):
                yield packed_batches.pack(PackedBatch(communicator.index, 0, records))


@dataclass(frozen=True)
class StreamOfChanges:
    """A stream of what changes of an input, with the columns that are needed."""

    name: str
    schema: Schema
    frame: DataFrame
    decode: Decode

    @classmethod
    def of(
        cls,
        name: str,
        frame: DataFrame,
        form: str,
        diff: str | None,
        collections: Mapping[str, Any] | None,
    ) -> StreamOfChanges:
        """Of a DataFrame, whose columns have to fit."""
        where = f"input {name!r}"
        how = form_of(form, where, diff=diff)
        given = columns_of_frame(frame, where)
        if collections is None:
            schema = schema_of(table_columns(how, given))
        else:
            schema = given_schemas(collections, [name])[name]
        how.check(given, schema, where)
        # Without versions, by which `maintain` knows what it has had: Spark's log knows that, and
        # has batches end in the middle of one.
        needed = [*schema.names, *filter(None, [change_column(how)])]
        struct = type(given)([given[each] for each in needed])
        found = known(selected(frame, needed), struct)
        return cls(name, schema, found, partial(how.changes, wire=columns_of_changes(schema)))


def check_alone(objects: Objects, run: str | None, call: str) -> None:
    """Refuse two calls of `maintain_stream` whose batches are kept in one folder of a query.

    Their batches have the same names, so that one of them would be given what the other has
    computed. Each run of a query leaves a mark of its call before it looks for others: of two at
    once one sees the other, or both do. The next run of the query is of another call, which may
    differ: it removes the marks of former runs.

    run : which one of the query it is, as Spark numbers them; a program may have changed that

    Raises
    ------
    UsageError
    """
    try:
        run = str(uuid.UUID(run))
    except (TypeError, ValueError):  # a name that a program gave, perhaps to several runs
        return
    mine = f"{run}.{call}"
    found = objects.files(_CALLS)
    if mine not in found:
        objects.put(f"{_CALLS}/{mine}", [b""])
        for mark in found:
            if not mark.startswith(f"{run}."):
                objects.delete(f"{_CALLS}/{mark}")
        found = objects.files(_CALLS)
    if any(mark.startswith(f"{run}.") and mark != mine for mark in found):
        raise UsageError(
            "two calls of maintain_stream are in one query, and both keep its batches in "
            f"{objects}: give each a checkpoint= of its own"
        )


class KeptBatches:
    """What is kept of the batches of a query, by one worker of a batch that runs now.

    Raises
    ------
    CheckpointError
        By `run`, if the last batch that is kept is neither this one nor the one before.
    """

    def __init__(self, checkpoint: Checkpoint, query: str, batch: int) -> None:
        self.checkpoint = checkpoint
        self._query = query
        self._batch = batch
        self._name = _name(batch)
        self._runs = EpochRuns(checkpoint)

    def run(
        self,
        worker: Worker,
        spec: ServiceSpec,
        decode: Mapping[str, Decode],
        arrivals: Iterable[tuple[str, pa.RecordBatch]],
    ) -> CommittedRun:
        """The batch, which is committed when this returns; on all workers."""
        found: list[str | None] = gathered(worker, self._runs.last)
        if len(set(found)) > 1:
            # A try of the batch that Spark gave up has committed it just now.
            raise CheckpointError(
                f"{self.checkpoint} changed while batch {self._batch} began: its workers found as "
                f"the last one {', '.join(map(str, found))}; Spark begins the batch again"
            )
        if self._runs.last == self._name:
            committed = self._runs.committed(self._name)
            assert committed is not None  # it is the last one
            for _ in arrivals:
                pass  # Spark has it as it was
            return committed
        self._check()
        # One name for the attempt, under which all store what changed.
        attempt: str = gathered(worker, uuid.uuid4().hex)[0]
        run = self._runs.new_run(spec, decode, attempt)
        part = run.work(worker, arrivals)
        parts = [EpochPart.from_json(each) for each in gathered(worker, part.to_json())]
        time = None
        if worker.index == 0:
            time = self._runs.commit(run, parts, self._name).time.isoformat()
        # No worker goes on before that is known to be committed.
        when = dt.datetime.fromisoformat(gathered(worker, time)[0])
        outputs = {RESULT: tuple(each.outputs[RESULT] for each in parts)}
        return CommittedRun(run.epoch, self._name, when, outputs)

    def _check(self) -> None:
        """Refuse a folder that is not of the batches before this one."""
        before = _name(self._batch - 1) if self._batch else None
        if self._runs.last != before:
            raise CheckpointError(
                f"batch {self._batch} of query {self._query} follows on {before or 'nothing'}, and "
                f"the last that {self.checkpoint} has is {self._runs.last or 'none'}: the folder "
                "and the checkpointLocation of the query are not as they were together; restore "
                "both, or begin both anew"
            )


def gathered(worker: Worker, value: Any) -> list[Any]:
    """What each worker gives, in their order, at all of them; plain values, as JSON has them."""
    found: dict[int, Any] = {}
    with worker.dataflow("gather") as scope:
        handle, stream = scope.new_input()
        probe = stream.broadcast().inspect(lambda pair: found.update([pair])).probe()
    handle.send((worker.index, json.dumps(value)))
    handle.close()
    worker.step_while(lambda: not probe.done)
    return [json.loads(found[index]) for index in range(worker.peers)]


def _name(batch: int) -> str:
    return f"batch {batch}"
