"""Traces that are read from outside of their dataflow, also when that has ended.

What an arrangement keeps lives as long as anything reads it. An operator beside it follows which
times are complete, and passes that on to where it is imported, in other dataflows of the same
worker: they get each batch once, and read the same spine.

An import begins with what there is, as of the last time that each batch of it has; so what it
gives differs from the original at none of the times that the handle may be asked for.

Source: differential-dataflow `operators/arrange/agent.rs`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.batch_merges import as_one
from pointstamp.collections.changes import CollectionSnapshot, missing_row
from pointstamp.collections.schema import Column, Schema
from pointstamp.collections.spine import Spine, SpineReader
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import AsOfError, BuildError, DataError, UsageError
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.kernels.matches import match_batches
from pointstamp.operators.transform import PIPELINE, transform
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.collections.arranged import ArrangedCollection

Wake = Callable[[], None]
MakeCollection = Callable[[StreamCore[Any], Schema], Any]
"""A collection of a stream of updates."""


class TraceExport:
    """What is known of an arrangement outside of its dataflow: how far it has come.

    Attributes
    ----------
    spine : Spine
    upper : optional
        All before it is there; None where all is.
    """

    def __init__(self, arrangement: Arrangement, schema: Schema, make: MakeCollection) -> None:
        self.arrangement = arrangement
        self.make = make
        self.spine: Spine = arrangement.spine
        self.schema = schema
        self.scope: Any = arrangement.batches.scope
        self.upper: Any = self.spine.timestamp.minimum
        self._imports: list[TraceImport] = []
        self._dropped: deque[SpineReader] = deque()
        _follow(arrangement.batches, self)

    def has(self, time: Any) -> bool:
        """Whether all up to a time is there."""
        return self.upper is None or not self.spine.less_equal(self.upper, time)

    def moved(self, batches: list[tuple[Any, Rows]], frontier: list[Any]) -> None:
        """Take note of batches, and of the times that may still come, one at most."""
        upper = frontier[0] if frontier else None
        self.sweep()
        if not batches and upper == self.upper:
            return
        self.upper = upper
        for one in self._imports:
            one.take(batches, upper)

    def imported(self) -> TraceImport:
        """A new import, with all that is there so far."""
        found = TraceImport(self.spine, self.upper)
        if self.upper is not None:
            self._imports.append(found)
        return found

    def drop(self, reader: SpineReader) -> None:
        """Close a reader when it is safe to: a collector of garbage may call in between."""
        self._dropped.append(reader)

    def sweep(self) -> None:
        """Close the readers of handles that were let go of."""
        while self._dropped:
            self._dropped.popleft().close()


class TraceImport:
    """Batches on their way into another dataflow: those of a spine, and then what comes.

    A batch may be in the spine already, merged with others, that is still under way to the
    export. It is not to come again: its readers would not find it at the time that it comes at.
    """

    def __init__(self, spine: Spine, upper: Any) -> None:
        self._spine = spine
        self._newest = spine.newest
        self.upper = upper
        self.batches: deque[tuple[Any, Rows]] = deque(spine.listed())
        self.wake: Wake = lambda: None

    def take(self, batches: list[tuple[Any, Rows]], upper: Any) -> None:
        """More batches, and how far all is there now."""
        for time, rows in batches:
            if self._newest is None or not self._spine.less_equal(time, self._newest):
                self.batches.append((time, rows))
        self.upper = upper
        self.wake()


class TraceHandle:
    """Reads an arrangement as of a time, or in another dataflow; see `ArrangedCollection.trace`.

    What there is from `since` on is kept for it, until it allows less, is closed, or is
    forgotten.
    """

    def __init__(self, export: TraceExport) -> None:
        self._export = export
        newest = export.spine.newest
        self._since = export.spine.timestamp.minimum if newest is None else newest
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

        Parameters
        ----------
        scope : Scope
            That of a dataflow of this worker that is being built.

        Returns
        -------
        ArrangedCollection
            Of the columns of the key, then the others; without the records with a null in the key.

        Raises
        ------
        BuildError
            If the scope is of another worker, has other times, or is inside of a loop.
        UndeclaredStateError
            If its dataflow is durable.
        UsageError
            If the handle was closed.
        """
        self._check_open()
        export = self._export
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
        old = export.arrangement
        batches = _imported(scope, export.imported(), name)
        arrangement = Arrangement(batches, old.spine, old.n_key, old.texts)
        updates = transform(batches, f"{name}Updates", _as_updates(export.schema))
        collection = export.make(updates, export.schema)
        key = export.schema.names[: old.n_key]
        collection.has_arranged(key, arrangement)
        found: ArrangedCollection = collection.arrange(*key)
        return found

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
            raise UsageError("the handle of a trace was closed; make another one, by trace()")


class TraceAsOf:
    """What an arrangement was at a time, of the keys of this worker."""

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
        asked = columns.to_updates([tuple(key[c] for c in columns.names)], 1, "a lookup").rows
        recipe = [*range(n_key), *(~word for word in range(n_key, schema.n_words))]
        batches = handle.rows_as_of(self._time)
        return self._snapshot(match_batches(asked, batches, n_key, np.array(recipe, np.int32)))

    def snapshot(self) -> CollectionSnapshot:
        """All records that this worker has. Raises as `lookup` does."""
        batches = self._handle.rows_as_of(self._time)
        none = np.empty((0, self._handle.schema.n_words + 1), np.int64)
        return self._snapshot(as_one(batches, none))

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


def _follow(batches: StreamCore[Any], export: TraceExport) -> None:
    """Have an export know which batches come, and how far they have come."""
    builder = OperatorBuilder(batches.scope, "Export")
    builder.new_input(batches, PIPELINE, Interest.ALWAYS)
    builder.states.refuse(
        "what a handle may still read would not be there when the next run begins"
    )

    def build(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            came = [(time.time, rows) for time, message in inputs[0] for rows in message]
            frontier: Frontier = inputs[0].frontier
            export.moved(came, frontier.elements)

        return logic

    builder.build(build)


def _imported(scope: Any, found: TraceImport, name: str) -> StreamCore[Any]:
    """A stream of the batches that an import gets, at their times."""
    builder: OperatorBuilder[Any] = OperatorBuilder(scope, name)
    builder.states.refuse("a trace is of a run, and is not there when the next one begins")
    stream: StreamCore[Any] = builder.new_output()

    def build(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        held: list[Capability] = [capabilities.pop()]
        found.wake = info.activate

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            if not held:
                return
            while found.batches:
                time, rows = found.batches.popleft()
                with held[0].delayed(time) as later:
                    outputs[0].session(later).give(rows)
            if found.upper is None:
                held.pop().drop()
            elif held[0].time != found.upper:
                held[0].downgrade(found.upper)

        info.activate()
        return logic

    builder.build(build)
    return stream
