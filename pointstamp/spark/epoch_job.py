"""One epoch of collections as a Spark job: what `maintain` has the driver and the tasks do."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.claims import CheckpointClaim
from pointstamp.checkpoint.staged import Staged
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.collections.upserts import TIMESTAMP, VERSION
from pointstamp.communication.authentication import new_secret
from pointstamp.communication.control import WorkerConfig
from pointstamp.communication.tls import Certificates
from pointstamp.errors import SchemaError, UsageError
from pointstamp.runtime.introspection import registered
from pointstamp.runtime.worker import Worker
from pointstamp.service.changes_columns import columns_of_changes
from pointstamp.service.epoch_run import (
    CommittedRun,
    EpochPart,
    EpochRun,
    EpochRuns,
    stored_changes,
    with_schemas,
)
from pointstamp.service.feed_columns import feed_rows, feed_schema
from pointstamp.service.spec import service_spec
from pointstamp.spark import packed_batches
from pointstamp.spark.awaited_slots import AwaitedSlots
from pointstamp.spark.call_sites import call_site, called_at
from pointstamp.spark.driver_control import worker_config
from pointstamp.spark.failures import error_of, remember
from pointstamp.spark.feed_forms import (
    INTEGERS,
    Append,
    FeedForm,
    change_column,
    check_type,
    form_of,
    given_schemas,
    table_columns,
)
from pointstamp.spark.run import arriving
from pointstamp.spark.task import controlled, rendezvous, reporting

Rows = Iterable[pa.RecordBatch]


class EpochJob:
    """One call of `maintain`: see there."""

    def __init__(
        self,
        spark: SparkSession,
        runs: EpochRuns,
        build: Callable[..., Any],
        changes: Mapping[str, DataFrame],
        form: str,
        diff: str | None,
        collections: Mapping[str, Any] | None,
        name: str | None,
    ) -> None:
        self.runs = runs
        self.committed = runs.committed(name)
        self._spark = spark
        self._forms = {name: self._form(name, changes[name], form, diff) for name in changes}
        schemas = self._schemas(changes, collections)
        for name, frame in changes.items():
            where, names = f"input {name!r}", frame.schema.names
            self._forms[name].check(frame.schema, schemas[name], where)
            if VERSION in names and VERSION not in schemas[name].names:
                check_type(frame.schema, VERSION, INTEGERS, where)
        # What is not needed, as others are shuffled.
        self._frames = {
            name: frame if TIMESTAMP in schemas[name].names else frame.drop(TIMESTAMP)
            for name, frame in changes.items()
        }
        self._spec = service_spec(build, {}, {}, {}, schemas)
        for name, schema in self._spec.maintained.items():
            feed_schema(schema, name)  # which raises if it has none

    def run(
        self,
        name: str | None,
        workers: int,
        certificates: Certificates | None,
        claim: CheckpointClaim,
    ) -> CommittedRun:
        """Run the epoch after the last, and commit it by a claim that still holds."""
        decode = {
            name: partial(form.changes, wire=columns_of_changes(self._spec.collections[name]))
            for name, form in self._forms.items()
        }
        run = self.runs.new_run(self._spec, decode, uuid.uuid4().hex)
        control = worker_config(self._spark, certificates)
        task = _EpochTask(run, tuple(self._frames), workers, new_secret(), control, certificates)
        awaited = AwaitedSlots.of(self._spark, control, workers)
        frame = arriving(dict(enumerate(self._frames.values())), workers, awaited)
        frame = frame.mapInArrow(task, "part string", barrier=True)
        remember(frame, control)
        try:
            with called_at(self._spark, call_site("maintain")):
                rows = frame.collect()
        except Exception as error:
            raise error_of(error, frame) from error
        parts = [EpochPart.from_json(json.loads(row.part)) for row in rows]
        # Two runs that began with one snapshot would be one epoch, and only the last would stay.
        claim.check()
        return self.runs.commit(run, parts, name)

    def feeds(self, committed: CommittedRun) -> dict[str, DataFrame]:
        """The change data feed of each output, of a run that counts."""
        return {
            name: self._feed(committed, name, schema)
            for name, schema in self._spec.maintained.items()
        }

    def _feed(self, committed: CommittedRun, name: str, schema: Schema) -> DataFrame:
        if name not in committed.outputs:
            raise UsageError(
                f"the run {committed.name!r} had no output {name!r}; it had "
                f"{', '.join(map(repr, committed.outputs))}"
            )
        reader = _StoredFeed(self.runs.checkpoint, committed, name, schema)
        n = max(1, len(reader.staged))
        numbers = self._spark.range(0, n, 1, n)
        return numbers.mapInArrow(reader, from_arrow_schema(feed_schema(schema, name)))

    def _form(self, name: str, frame: DataFrame, form: str, diff: str | None) -> FeedForm:
        """The form of what an input is given: whole tables are rows that are added."""
        found = form_of(form, f"input {name!r}", diff=diff)
        needed = change_column(found)
        if needed is None or needed in frame.columns:
            return found
        is_repeated = self.committed is not None and self.committed.epoch == 0
        if self.runs.is_first or is_repeated:
            return Append()
        raise SchemaError(
            f"what has changed of the input {name!r} has columns {', '.join(frame.columns)}, and "
            f"in the form {form!r} should have {needed!r} as well; a whole table is given to the "
            f"first run alone, which {self.runs.checkpoint} has"
        )

    def _schemas(
        self, changes: Mapping[str, DataFrame], collections: Mapping[str, Any] | None
    ) -> dict[str, Schema]:
        """Of all inputs; one of which nothing has changed may be left out after the first run."""
        before = self.runs.schemas
        if collections is not None:
            return given_schemas(collections, changes)
        found = {
            name: schema_of(table_columns(self._forms[name], frame.schema))
            for name, frame in changes.items()
        }
        return {**before, **with_schemas(found, before)}


@dataclass(frozen=True)
class _EpochTask:
    """The function for `mapInArrow(..., barrier=True)`: packed batches in, one row out."""

    run: EpochRun
    inputs: Sequence[str]
    workers: int
    secret: bytes
    control: WorkerConfig
    certificates: Certificates | None

    def __call__(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        with controlled(self.control, context.partitionId()) as control:
            communicator = rendezvous(
                context, self.workers, self.secret, control, self.certificates
            )
            arrivals = (
                (self.inputs[packed.input], packed.batch) for packed in packed_batches.unpack(rows)
            )
            with reporting(communicator, control):
                worker = Worker(communicator)
                with closing(worker), registered(worker):
                    part = self.run.work(worker, arrivals)
                    worker.finish()
        yield pa.RecordBatch.from_pydict({"part": [json.dumps(part.to_json())]})


@dataclass(frozen=True)
class _StoredFeed:
    """The function for `mapInArrow`: numbers of stored pieces in, the rows of their feed out."""

    checkpoint: Checkpoint
    committed: CommittedRun
    output: str
    schema: Schema

    @property
    def staged(self) -> list[Staged]:
        """What was stored of the output and has rows."""
        return [one for one in self.committed.outputs[self.output] if one.rows]

    def __call__(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        staged, committed = self.staged, self.committed
        for batch in rows:
            numbers: list[Any] = batch.column(0).to_pylist()
            pieces = [staged[number] for number in numbers if number < len(staged)]
            for changes in stored_changes(self.checkpoint, pieces):
                yield from feed_rows(
                    self.schema, changes, committed.epoch, committed.time, self.output
                )
