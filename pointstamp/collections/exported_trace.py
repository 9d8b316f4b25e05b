"""Traces that are read from outside of their dataflow, also when that has ended.

What an arrangement keeps lives as long as anything reads it. An operator beside it follows which
times are complete, and passes that on to where it is imported, in other dataflows of the same
worker: they get each batch once, and read the same spine (`trace_import.py`).

What a dataflow has of a snapshot that it begins with is one batch, as of the snapshot's epoch. As
of that epoch it can be read at once, before any time has moved, and as of none before it.

Source: differential-dataflow `operators/arrange/agent.rs`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.batch_merges import as_one
from pointstamp.collections.changes import CollectionSnapshot, missing_row
from pointstamp.collections.schema import Column, Schema
from pointstamp.collections.spine import Spine, SpineReader
from pointstamp.collections.trace_import import (
    ImportedArrangement,
    TraceImport,
    import_stream,
    noted_import,
)
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import DataflowState
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.dataflow.texts_held import Holding, TextsHeld
from pointstamp.errors import (
    AsOfError,
    BuildError,
    CheckpointStructureError,
    DataError,
    UndeclaredStateError,
    UsageError,
)
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.kernels.matches import match_batches
from pointstamp.operators.transform import PIPELINE, transform
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.collections.arranged import ArrangedCollection

MakeCollection = Callable[[StreamCore[Any], Schema], Any]
"""A collection of a stream of updates."""


class TraceExport:
    """What is known of an arrangement outside of its dataflow: how far it has come.

    Attributes
    ----------
    spine : Spine
    begin : optional
        The first time that it can be read as of: that of the snapshot, if it begins with one.
    upper : optional
        All before it is there; None where all is.
    path : str
        The name of the arrangement in snapshots.
    """

    def __init__(self, arrangement: Arrangement, schema: Schema, make: MakeCollection) -> None:
        self.arrangement = arrangement
        self.make = make
        self.spine: Spine = arrangement.spine
        self.schema = schema
        self.scope: Any = arrangement.batches.scope
        self.path: str = self.scope.path_of(arrangement.batches.source[0])
        self.begin: Any = self.spine.timestamp.minimum
        self.upper: Any = self.begin
        self.durable_state: DataflowState | None = self.scope.environment.durable_state
        if self.durable_state is not None and self.durable_state.is_restored:
            self.upper = self.durable_state.first_epoch
            self.begin = self.upper - 1
        self._began_empty = self.spine.newest is None
        self._imports: list[TraceImport] = []
        self._dropped: deque[SpineReader] = deque()
        self._texts = TextsHeld()
        self._texts.holdings.append(_held_by(weakref.ref(self)))
        weakref.finalize(self, setattr, self._texts, "is_over", True).atexit = False
        _follow(arrangement.batches, self, self._texts)

    def has(self, time: Any) -> bool:
        """Whether all up to a time is there."""
        return self.upper is None or not self.spine.less_equal(self.upper, time)

    def has_apart(self, first: Any) -> bool:
        """Whether no batch has both what a snapshot had and what came since, from `first` on."""
        if self._began_empty:
            return True
        return any(not self.spine.less_equal(first, time) for time, _ in self.spine.listed())

    def moved(self, batches: list[tuple[Any, Rows]], frontier: list[Any]) -> None:
        """Take note of batches, and of the times that may still come, one at most."""
        upper = frontier[0] if frontier else None
        if upper is not None and self.spine.less_equal(upper, self.upper):
            upper = self.upper  # what a snapshot has is there before anything moves
        self.sweep()
        if not batches and upper == self.upper:
            return
        self.upper = upper
        for one in self._imports:
            one.take(batches, upper)

    def lead_to(self, found: TraceImport, *, goes_on: bool) -> None:
        """Have an import begin, and follow what comes."""
        found.begin(self.upper, goes_on=goes_on)
        if self.upper is not None:
            self._imports.append(found)

    def forget(self, found: TraceImport) -> None:
        """The dataflow of an import has ended, or is dropped."""
        if found in self._imports:
            self._imports.remove(found)
        found.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Have no texts swept in a block that reads, on whatever thread.

        Raises
        ------
        UsageError
            If texts may be gone, as the worker has ended.
        """
        self._texts.n_given += 1
        try:
            if self._texts.is_over and self.arrangement.texts:
                raise UsageError(
                    "the trace of a worker that has ended cannot be read: its texts may be gone"
                )
            yield
        finally:
            self._texts.n_given -= 1

    def drop(self, reader: SpineReader) -> None:
        """Close a reader when it is safe to: a collector of garbage may call in between."""
        self._dropped.append(reader)

    def sweep(self) -> None:
        """Close the readers of handles that were let go of."""
        while self._dropped:
            self._dropped.popleft().close()


class TraceHandle:
    """A handle to read an arrangement as of a time, or to import it into another dataflow.

    What there is from `since` on is kept for it, until it allows less, is closed, or is
    forgotten.
    """

    def __init__(self, export: TraceExport) -> None:
        self._export = export
        newest = export.spine.newest
        if newest is not None and not export.spine.is_kept:
            raise UsageError(
                "trace() is asked for what is arranged, and that was let go when its last reader "
                "was closed, or ended with its dataflow: make the handle before, and keep it open"
            )
        self._since = export.begin if newest is None else newest
        """What is there already may be merged, and is exact from its last time on."""
        self._reader = export.spine.reader()
        self._reader.acknowledge(self._since)
        weakref.finalize(self, export.drop, self._reader).atexit = False

    @property
    def since(self) -> Any:
        """The first time that may be asked for."""
        return self._since

    @property
    def upper(self) -> Any:
        """All times before it are complete; None where all are."""
        return self._export.upper

    @property
    def schema(self) -> Schema:
        """Of the records: the columns of the key, then the others."""
        return self._export.schema

    @property
    def n_updates(self) -> int:
        """How many updates this worker keeps of the arrangement."""
        return self._export.spine.n_updates

    def as_of(self, time: Any) -> TraceAsOf:
        """What was there at a time, of the keys of this worker.

        Raises
        ------
        AsOfError
            If `time` is before `since`, or is not complete yet: at or after `upper`.
        UsageError
            If the handle was closed.
        """
        self._check(time)
        return TraceAsOf(self, time)

    def allow_compaction(self, time: Any) -> None:
        """Never ask again for what was before `time`: what came and went before may go.

        Raises
        ------
        AsOfError
            If `time` is before `since`.
        UsageError
            If the handle was closed.
        """
        self._check_open()
        time = self._export.spine.timestamp.check(time)
        if not self._export.spine.less_equal(self._since, time):
            raise AsOfError(
                f"compaction up to {time!r} is allowed, but was up to {self._since!r} before"
            )
        self._since = time
        self._reader.acknowledge(time)

    def import_into(self, scope: Any, *, name: str = "Import") -> ArrangedCollection:
        """The arrangement in another dataflow, which has the same times: nothing is copied.

        It begins with what is there now, and follows what comes, also when the dataflow that it
        is of has ended. Every worker has to do it. If that dataflow is dropped before it is
        complete, what is imported waits for ever; drop its dataflow, too.

        In a durable dataflow that begins with a snapshot it goes on after the snapshot's epoch.
        If it is new there, it begins with all that is kept, at the epoch after that one. The
        dataflow that it is of has to be durable, too.

        Parameters
        ----------
        scope : Scope
            That of a dataflow of this worker that is being built; of its own dataflow it is what
            is arranged there.
        name : str
            In snapshots, too: it is new where it was not imported by this name.

        Returns
        -------
        ArrangedCollection
            Of the columns of the key, then the others; without the records with a null in the key.

        Raises
        ------
        BuildError
            If it is no scope, or one of another worker, with other times, or inside of a loop.
        UndeclaredStateError
            If its dataflow is durable, and the one that the trace is of is not.
        CheckpointStructureError
            If the snapshot has an import of something else by this name; and when the dataflow
            is built, if it does not know it and `allow_new` does not say that it is new.
        AsOfError
            If it is to go on after a snapshot, and compaction was allowed beyond that, or what
            came since was merged before there was a handle.
        UsageError
            If the handle was closed.
        """
        self._check_open()
        export = self._export
        if not isinstance(scope, ScopeCore):
            raise BuildError(
                f"import_into is given {scope!r}, and needs the scope of a dataflow that is being "
                "built"
            )
        if scope.environment is not export.scope.environment:
            raise BuildError(
                f"the trace of worker {export.scope.index} cannot be imported into a dataflow of "
                f"worker {scope.index}: each worker imports its own"
            )
        if scope.parent is not None or scope.timestamp != export.spine.timestamp:
            raise BuildError(
                f"a trace with times {export.spine.timestamp.name} cannot be imported into "
                f"{scope.path}, whose times are {scope.timestamp.name}; import it into a dataflow "
                "that has the same, and use it in a loop from there"
            )
        arrangement = export.arrangement
        if scope is not export.scope:
            arrangement = self._imported(scope, name)
        as_updates = _as_updates(export.schema)
        updates = transform(arrangement.batches, f"{name}Updates", as_updates, of_updates=True)
        collection = export.make(updates, export.schema)
        key = export.schema.names[: arrangement.n_key]
        collection.has_arranged(key, arrangement)
        found: ArrangedCollection = collection.arrange(*key)
        return found

    def _imported(self, scope: Any, name: str) -> ImportedArrangement:
        """The arrangement in the scope of another dataflow."""
        export, old = self._export, self._export.arrangement
        state: DataflowState | None = scope.environment.durable_state
        first = state.first_epoch if state is not None and state.is_restored else None
        found = TraceImport(old.spine, old.texts, first)
        # What is imported again comes from where it was first: an import that is new behind a
        # snapshot gives what was before at a later time, at which it would come once more.
        source = old.trace.source if isinstance(old, ImportedArrangement) else export
        found.source = source
        if state is None:
            batches, goes_on = import_stream(scope, found, name), False
        else:
            if export.durable_state is None:
                raise UndeclaredStateError(
                    f"a trace of dataflow {export.scope.name!r} cannot be imported into the "
                    f"durable dataflow {state.dataflow!r}: {export.scope.name!r} is not durable, "
                    "and would begin with nothing when the program starts again; build it with "
                    "durable=, too"
                )
            stream = import_stream(scope, found, f"{name}Source")
            batches, goes_on = noted_import(stream, export.path, name)
            if goes_on:
                self._check_goes_on(state, name, source)
        scope.environment.closers.callback(source.forget, found)
        source.lead_to(found, goes_on=goes_on)
        return ImportedArrangement(batches, old.spine, old.n_key, old.texts, found)

    def _check_goes_on(self, state: DataflowState, name: str, source: TraceExport) -> None:
        """Raise unless what is kept still has apart what came after a snapshot."""
        path, manifest = self._export.path, state.durable.manifest
        if manifest is not None and path not in manifest.structure:
            raise CheckpointStructureError(
                f"the snapshot at {manifest.epoch} has what dataflow {state.dataflow!r} made of "
                f"{path!r} by the import {name!r}, and not {path!r} itself: import it by another "
                "name, as something new, or begin with another checkpoint"
            )
        if not self._export.spine.less_equal(self._since, state.first_epoch):
            raise AsOfError(
                f"the import {name!r} of dataflow {state.dataflow!r} goes on after the snapshot at "
                f"{state.first_epoch - 1}, and needs each epoch from {state.first_epoch} on; "
                f"compaction was allowed up to since, {self._since!r}: import before that"
            )
        if not source.has_apart(state.first_epoch):
            raise AsOfError(
                f"the import {name!r} of dataflow {state.dataflow!r} goes on after the snapshot at "
                f"{state.first_epoch - 1}, and what that has is merged with what came since, as no "
                "handle kept it apart: make the handle before that comes"
            )

    def close(self) -> None:
        """Ask for nothing more. Closing twice is closing once."""
        self._reader.close()

    def __enter__(self) -> TraceHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TraceHandle({self.schema}; since {self.since!r}, upper {self.upper!r})"

    def rows_as_of(self, time: Any) -> list[Rows]:
        """The batches of a time, 64 at most. Raises as `as_of` does."""
        self._check(time)
        return self._reader.through(time)

    def _check(self, time: Any) -> None:
        self._check_open()
        export = self._export
        time = export.spine.timestamp.check(time)
        if not (export.spine.less_equal(self._since, time) and export.has(time)):
            raise AsOfError(
                f"time {time!r} cannot be read: it should be at or after since, "
                f"{self._since!r}, and before upper, {self.upper!r}"
                + ("" if self.upper is not None else " (all times are complete)")
            )

    def _check_open(self) -> None:
        self._export.sweep()
        if self._reader.is_over:
            raise UsageError(
                "the handle of a trace was closed; make another one, by trace(), before that"
            )


class TraceAsOf:
    """An arrangement as of a time, for the keys of this worker."""

    def __init__(self, handle: TraceHandle, time: Any) -> None:
        self._handle = handle
        self._time = time

    def lookup(self, **key: Any) -> CollectionSnapshot:
        """The records of a key, by its columns.

        Costs a search in each batch. Of a key of another worker there are none here.

        Raises
        ------
        UsageError
            If the columns are not those of the key.
        AsOfError
            If compaction was allowed in the meantime.
        DataError
            If a value does not fit its column, or more copies of a record were deleted than
            there were.
        """
        handle = self._handle
        schema, n_key = handle.schema, handle._export.arrangement.n_key
        columns = Schema(tuple(Column(c.name, c.type) for c in schema.columns[:n_key]))
        if set(key) != set(columns.names):
            raise UsageError(
                f"a lookup is given {list(key)}, and needs a value for each of {columns.names}"
            )
        values = tuple(key[c] for c in columns.names)
        recipe = [*range(n_key), *(~word for word in range(n_key, schema.n_words))]
        with handle._export.reading():
            asked = columns.to_updates([values], 1, "a lookup").rows
            batches = handle.rows_as_of(self._time)
            return self._snapshot(match_batches(asked, batches, n_key, np.array(recipe, np.int32)))

    def snapshot(self) -> CollectionSnapshot:
        """All records that this worker has. Raises as `lookup` does."""
        none = np.empty((0, self._handle.schema.n_words + 1), np.int64)
        with self._handle._export.reading():
            return self._snapshot(as_one(self._handle.rows_as_of(self._time), none))

    def _snapshot(self, rows: Rows) -> CollectionSnapshot:
        if (row := missing_row(self._handle.schema, rows)) is not None:
            raise DataError(
                f"as of {self._time!r} the row {row!r} is there fewer than no times: more copies "
                "of it were deleted than there were"
            )
        return CollectionSnapshot(self._handle.schema, rows)

    def __repr__(self) -> str:
        return f"TraceAsOf({self._time!r}, {self._handle!r})"


def _as_updates(schema: Schema) -> Callable[[Any, Any], Updates]:
    def updates(time: Any, message: list[Rows]) -> Updates:
        return schema.updates(message[0] if len(message) == 1 else consolidate_all(message))

    return updates


def _held_by(reference: weakref.ref[TraceExport]) -> Holding:
    """What can be read of an export, as long as something may."""

    def held() -> list[tuple[Rows, tuple[int, ...]]]:
        export = reference()
        if export is None:
            return []
        return [(rows, export.arrangement.texts) for _, rows in export.spine.listed()]

    return held


def _follow(batches: StreamCore[Any], export: TraceExport, texts: TextsHeld) -> None:
    """Have an export know which batches come, and how far they have come.

    texts : is asked, from here on, for what can be read of it
    """
    builder = OperatorBuilder(batches.scope, "Export")
    builder.new_input(batches, PIPELINE, Interest.ALWAYS)

    def build(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        info.keeps_nothing()  # the arrangement does
        of_dataflow = info.environment.texts_held
        if of_dataflow is not None and of_dataflow.can_be_outlived:
            info.states.holds_no_texts()
            of_dataflow.outliving.append(texts)

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            came = [(time.time, rows) for time, message in inputs[0] for rows in message]
            frontier: Frontier = inputs[0].frontier
            export.moved(came, frontier.elements)

        return logic

    builder.build(build)
