"""One epoch of a dataflow of collections, from one snapshot to the next, on workers that end.

A service stays, and logs what it is sent. A program that runs once in a while needs neither: it
begins with a snapshot, takes in what has changed, and leaves the next snapshot, with the changes
of its outputs beside it. The manifest is written last, by one for all workers, and with it the
epoch counts. A run that fails before has changed nothing: repeated, it begins with the same
snapshot. A run that has counted is known by its name, and what came out of it is still there.

Nothing here knows what runs the workers, and brings their shares.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.durable import Durable
from pointstamp.checkpoint.manifest import Manifest, SnapshotPart
from pointstamp.checkpoint.staged import Staged
from pointstamp.collections.collection import Collection
from pointstamp.collections.schema import Column, Schema
from pointstamp.collections.upserts import VERSION
from pointstamp.containers.updates import Updates
from pointstamp.containers.words import type_named
from pointstamp.errors import CheckpointError, CheckpointStructureError, DataError, UsageError
from pointstamp.operators.probe import Probe
from pointstamp.runtime.worker import Worker
from pointstamp.service.changes_columns import to_columns, to_updates
from pointstamp.service.checkpoint_config import OUTPUT
from pointstamp.service.spec import ServiceSpec

LOGGER = logging.getLogger("pointstamp.service")

Decode = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes of a batch that is brought, in whatever form, columns of changes."""

MOST_NAMES = 1024
"""Of so many runs the names are known."""

_KEY = "epoch run"
"""Under which a manifest has what is said here."""


@dataclass(frozen=True)
class EpochPart:
    """What one worker has written of an epoch; small, and sent to the one that commits.

    Attributes
    ----------
    part : SnapshotPart
    outputs : mapping of str to Staged
        What changed of each output, as columns of changes.
    versions : mapping of str to int
        By input, the last version of a change data feed, where there was one.
    """

    part: SnapshotPart
    outputs: Mapping[str, Staged]
    versions: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a message."""
        outputs = {name: staged.to_json() for name, staged in self.outputs.items()}
        return {"part": self.part.to_json(), "outputs": outputs, "versions": dict(self.versions)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> EpochPart:
        """Of what `to_json` gave."""
        outputs = {name: Staged.from_json(each) for name, each in record["outputs"].items()}
        return EpochPart(SnapshotPart.from_json(record["part"]), outputs, record["versions"])


@dataclass(frozen=True)
class EpochRun:
    """What each worker of a run does; travels to them by cloudpickle.

    Attributes
    ----------
    spec : ServiceSpec
        Of collections alone.
    decode : mapping of str to callable
        By input, what makes columns of changes of a batch that is brought.
    durable : Durable
        The snapshot that the run begins with; its epoch is the one after.
    attempt : str
        A name of its own, under which outputs are stored.
    versions : mapping of str to int
        By input, the last version of its feed that is in the snapshot.
    """

    spec: ServiceSpec
    decode: Mapping[str, Decode]
    durable: Durable
    attempt: str
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The one that is run."""
        return self.durable.epoch + 1

    def work(self, worker: Worker, arrivals: Iterable[tuple[str, pa.RecordBatch]]) -> EpochPart:
        """Work off a worker's share of (input, batch), and write what there is to keep.

        Raises
        ------
        SchemaError, DataError
            If a batch does not fit its form and the schema, or a version of a feed is null, or not
            later than those of the snapshot.
        """
        kept: dict[str, list[pa.RecordBatch]] = {name: [] for name in self.spec.outputs}
        with worker.dataflow("collections", durable=self.durable) as scope:
            made = {name: scope.new_input(name) for name in self.spec.collections}
            given = [Collection(made[name][1], self.spec.collections[name]) for name in made]
            probe = Probe()
            for name, result in self.spec.results(scope, given).items():
                assert isinstance(result, Collection)  # there is nothing else in the spec
                # So that of an epoch no record has two changes, on whichever workers they came up.
                keep = partial(_keep, kept[name], result.schema)
                result.consolidate(name="Output").watched_by(probe, keep)
        # Before the first step: no worker can have gone past the epoch without this one.
        snapshot = worker.snapshot(self.epoch)
        versions: dict[str, int] = {}
        for name, batch in arrivals:
            made[name][0].send_batch(self._taken(name, batch, versions))
            worker.step()
        for handle, _ in made.values():
            handle.close()
        worker.step_while(lambda: not (probe.done and snapshot.done))
        outputs = {name: self._store(name, worker.index, kept[name]) for name in kept}
        return EpochPart(snapshot.part, outputs, versions)

    def _taken(self, name: str, batch: pa.RecordBatch, versions: dict[str, int]) -> Updates:
        """A batch as updates, with a note of its versions."""
        schema, where = self.spec.collections[name], f"the input {name!r}"
        if VERSION in batch.schema.names and VERSION not in schema.names:
            if batch.column(VERSION).null_count:
                raise DataError(
                    f"a change for {where} has no {VERSION}, by which it is known whether it is in "
                    f"{self.durable.checkpoint} already: give each its version, or leave out the "
                    "column"
                )
            found = pc.min_max(batch.column(VERSION))
            least, last = found["min"].as_py(), found["max"].as_py()
            if last is not None:
                self._check_versions(name, least)
                versions[name] = max(last, versions.get(name, last))
        return to_updates(schema, self.decode[name](batch), where)

    def _check_versions(self, name: str, least: int) -> None:
        last = self.versions.get(name)
        if last is not None and least <= last:
            raise DataError(
                f"a change for the input {name!r} is of version {least} of its table, and those up "
                f"to version {last} are in {self.durable.checkpoint}: read the feed from version "
                f"{last + 1} on; to repeat a run and get its changes again, give it the same name"
            )

    def _store(self, output: str, worker: int, batches: list[pa.RecordBatch]) -> Staged:
        """Write what changed of an output, in the log: there it goes with the snapshot.

        It belongs to the epoch after, as what a service stores of its outputs: so it stays as
        long as one may begin with the snapshot.
        """
        checkpoint, attempt = self.durable.checkpoint, f"worker {worker}, {self.attempt}"
        return checkpoint.stage(OUTPUT + output, self.epoch + 1, attempt, batches)


@dataclass(frozen=True)
class CommittedRun:
    """A run that counts, and what came out of it."""

    epoch: int
    name: str | None
    time: dt.datetime
    """When it was committed."""
    outputs: Mapping[str, tuple[Staged, ...]]


class EpochRuns:
    """The runs of a dataflow that a checkpoint has; of one program at a time."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._manifest = checkpoint.latest()
        self._said = {} if self._manifest is None else dict(self._manifest.meta.get(_KEY, {}))
        others = any(not input.startswith(OUTPUT) for input in checkpoint.inputs())
        if others or (self._manifest is not None and not self._said):
            raise CheckpointStructureError(
                f"{checkpoint} is that of a service or of another program, and not of runs of one "
                "epoch: use another folder"
            )

    @property
    def schemas(self) -> dict[str, Schema]:
        """Of the inputs, as the first run had them; none before it."""
        found: dict[str, Any] = self._said.get("schemas", {})
        return {name: _schema(columns) for name, columns in found.items()}

    @property
    def is_first(self) -> bool:
        """Whether nothing was run yet."""
        return self._manifest is None

    @property
    def last(self) -> str | None:
        """The name of the last run; None if it had none, or nothing was run yet."""
        name: str | None = self._said.get("name")
        return name

    def committed(self, name: str | None) -> CommittedRun | None:
        """The run of a name, which counts already; None if there is none.

        Raises
        ------
        UsageError
            If it is not the last one, so that what came out of it is not kept.
        """
        epoch = None if name is None else self._said.get("names", {}).get(name)
        if epoch is None:
            return None
        assert self._manifest is not None  # which has the names
        if epoch != self._manifest.epoch:
            raise UsageError(
                f"the run {name!r} was epoch {epoch} of {self.checkpoint}, and counts; what came "
                f"out of it is not kept, as the last run is epoch {self._manifest.epoch}: "
                f"{self._said['name']!r}. A run that is to be another one needs another name"
            )
        return _committed(self._manifest)

    def new_run(self, spec: ServiceSpec, decode: Mapping[str, Decode], attempt: str) -> EpochRun:
        """The run after the last.

        Raises
        ------
        CheckpointStructureError
            If the inputs are not those that the first run had.
        UsageError
            If one is of upserts, or a clock.
        """
        check_inputs(spec)
        before = {name: str(schema) for name, schema in self.schemas.items()}
        now = {name: str(schema) for name, schema in spec.collections.items()}
        if before not in ({}, now):
            raise CheckpointStructureError(
                f"the inputs are {_listed(now)}, and in {self.checkpoint} they are "
                f"{_listed(before)}: give those, or another folder"
            )
        versions = self._said.get("versions", {})
        return EpochRun(spec, decode, Durable(self.checkpoint, self._manifest), attempt, versions)

    def commit(self, run: EpochRun, parts: Iterable[EpochPart], name: str | None) -> CommittedRun:
        """Have a run count, by the parts of all its workers."""
        found = list(parts)
        names = dict(self._said.get("names", {}))
        if name is not None:
            names[name] = run.epoch
        versions = dict(run.versions)
        for part in found:
            for input, version in part.versions.items():
                versions[input] = max(version, versions.get(input, version))
        said = {
            "name": name,
            "names": dict(list(names.items())[-MOST_NAMES:]),
            "time": dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
            "schemas": {name: _columns(schema) for name, schema in run.spec.collections.items()},
            "versions": versions,
            "outputs": {
                output: [part.outputs[output].to_json() for part in found]
                for output in run.spec.outputs
            },
        }
        manifest = self.checkpoint.commit_manifest(
            run.epoch, [part.part for part in found], {_KEY: said}
        )
        try:
            self.checkpoint.prune()
        except CheckpointError as error:
            LOGGER.warning("%r is not pruned, and is by the next run: %s", self.checkpoint, error)
        return _committed(manifest)


def check_inputs(spec: ServiceSpec) -> None:
    """Raise `UsageError` if an input is of upserts, or a clock."""
    others = ", ".join(map(repr, {**spec.upserts, **spec.clocks}))
    if others:
        raise UsageError(
            f"the input {others} is of upserts, or a clock, which only services have: give "
            "rows that come and go, by a change data feed or with diffs"
        )


def stored_changes(checkpoint: Checkpoint, staged: Iterable[Staged]) -> Iterator[pa.RecordBatch]:
    """What was stored of an output, as columns of changes."""
    for each in staged:
        yield from checkpoint.read(each)


def with_schemas(given: Mapping[str, Schema], before: Mapping[str, Schema]) -> dict[str, Schema]:
    """Schemas of frames, each as the first run had it where they differ in order and nulls alone.

    What a frame says of nulls depends on where it comes from, as does the order of its columns:
    those of a table and those of its feed may differ.

    >>> from pointstamp.collections.schema import schema_of
    >>> both = schema_of("a long, b string?"), schema_of("a long?, b string?")
    >>> str(with_schemas({"t": both[1]}, {"t": both[0]})["t"])
    'a long, b string?'
    >>> str(with_schemas({"t": schema_of("b string, a long")}, {"t": both[0]})["t"])
    'a long, b string?'
    """
    return {
        name: before[name]
        if name in before and _without_nulls(schema) == _without_nulls(before[name])
        else schema
        for name, schema in given.items()
    }


def _columns(schema: Schema) -> list[list[Any]]:
    """A schema as plain values."""
    return [[column.name, column.type.name, column.nullable] for column in schema.columns]


def _schema(columns: Iterable[tuple[str, str, bool]]) -> Schema:
    return Schema(tuple(Column(name, type_named(kind), null) for name, kind, null in columns))


def _without_nulls(schema: Schema) -> set[Column]:
    return {replace(column, nullable=False) for column in schema.columns}


def _committed(manifest: Manifest) -> CommittedRun:
    said = manifest.meta[_KEY]
    outputs = {
        name: tuple(map(Staged.from_json, staged)) for name, staged in said["outputs"].items()
    }
    time = dt.datetime.fromisoformat(said["time"])
    return CommittedRun(manifest.epoch, said["name"], time, outputs)


def _keep(into: list[pa.RecordBatch], schema: Schema, epoch: int, batch: Updates) -> None:
    if len(batch):
        into.append(to_columns(schema, batch.rows))


def _listed(schemas: Mapping[str, str]) -> str:
    return "; ".join(f"{name!r}: {schema}" for name, schema in schemas.items())
