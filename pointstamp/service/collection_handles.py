"""What a program holds of a service's collections: rows go in, changes and snapshots come out.

What is inserted and deleted waits here until `advance`, which stages it at the workers and has
the coordinator commit all of it as one epoch. So what one program sends is in an epoch whole,
whatever other programs send meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from pointstamp.collections.changes import Changes, CollectionSnapshot, missing_row
from pointstamp.collections.inputs import check_insertions
from pointstamp.collections.schema import Schema
from pointstamp.collections.upserts import EventForm
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.text_sweep import SWEEPS
from pointstamp.containers.updates import Updates
from pointstamp.errors import DataError, InputError, PointstampError, StoppedError
from pointstamp.runtime.run_options import memory_bytes
from pointstamp.service import protocol
from pointstamp.service.changes_columns import added_up, to_columns
from pointstamp.service.clocks import ClockFeed, ClockTicker
from pointstamp.service.conversions import ShareOfWorker, check_staged, epoch_of
from pointstamp.service.output_handle import TIMEOUT_S, OutputHandle
from pointstamp.service.protocol import StagingHandle
from pointstamp.service.staging_room import StagingRoom
from pointstamp.service.upsert_feed import UpsertFeed

if TYPE_CHECKING:
    from pointstamp.dataflow.spillable import WorkerMemory
    from pointstamp.service.service import Service
    from pointstamp.service.spec import ServiceSpec


class CollectionFeed:
    """An input of a service that is a collection; `service.advance()` commits what is sent.

    Rows are tuples in the order of the columns, dicts, or columns: a `pyarrow.Table` or
    `RecordBatch`, a data frame of pandas or polars. Any thread may use it.
    """

    def __init__(self, feeds: CollectionFeeds, name: str, schema: Schema) -> None:
        self.feeds = feeds
        """All of the service."""
        self._where = f"the input {name!r}"
        self.name = name
        self.schema = schema

    @property
    def time(self) -> int | None:
        """The epoch that `advance` would commit now; None when the collections are closed."""
        return self.feeds.service.position_of(self.name)

    def insert(self, rows: Any) -> None:
        """Add each row once.

        Raises
        ------
        DataError
            If one does not fit the schema. None is added then.
        StoppedError
            If the service has stopped.
        """
        with SWEEPS.held_back():
            self._send(self.schema.to_updates(rows, 1, self._where))

    def delete(self, rows: Any) -> None:
        """Remove each row once; raises as `insert` does."""
        with SWEEPS.held_back():
            self._send(self.schema.to_updates(rows, -1, self._where))

    def update(self, changes: Iterable[tuple[Any, int]]) -> None:
        """Add each row as often as the diff beside it says, or remove it where that is below 0.

        Raises as `insert` does.
        """
        with SWEEPS.held_back():
            self._send(self.schema.to_pairs(changes, self._where))

    def upsert(self, rows: Any) -> NoReturn:
        """Raises `InputError`: an input without a key has no upserts."""
        raise InputError(
            f"{self._where} has no key, and takes no upserts: change it by insert and delete, or "
            f"declare it as ps.UpsertInput({str(self.schema)!r}, key=...)"
        )

    remove = upsert

    def __repr__(self) -> str:
        return f"CollectionFeed({self.name!r}, {self.schema})"

    def _send(self, updates: Updates) -> None:
        if self.name in self.feeds.append_only:
            check_insertions(self.schema, updates, self._where)
        if len(updates):
            self.feeds.hold(self.name, to_columns(self.schema, updates.rows))


NewFeed = Callable[["CollectionFeeds", str, Schema], CollectionFeed]
"""Makes what a program holds of an input that is a collection."""


NewUpserts = Callable[["CollectionFeeds", str, EventForm], UpsertFeed]
"""The same of one of upserts."""


class CollectionFeeds:
    """Those of a service, and its clocks, which go on together."""

    def __init__(
        self,
        service: Service,
        spec: ServiceSpec,
        new_feed: NewFeed = CollectionFeed,
        new_upserts: NewUpserts = UpsertFeed,
    ) -> None:
        self.service = service
        self.by_name: dict[str, CollectionFeed | UpsertFeed | ClockFeed] = {}
        for name, schema in spec.collections.items():
            if name in spec.clocks:
                self.by_name[name] = ClockFeed(self, name, spec.clocks[name])
            elif name in spec.upserts:
                self.by_name[name] = new_upserts(self, name, spec.upserts[name])
            else:
                self.by_name[name] = new_feed(self, name, schema)
        self.append_only = spec.append_only
        """Inputs from which nothing is ever deleted."""
        self.ticker = ClockTicker(self, spec.clocks)
        self._memory = memory_of(spec.run_options)
        """What of the inserted rows is held in memory here; None where there is no limit."""
        self._held: dict[str, Any] = {}
        """By input, a sequence of batches."""
        self._held_bytes = 0
        self._is_closed = False
        self._pending: _PendingCommit | None = None
        """What is being committed; if that fails, what the next call commits first."""
        self._next_epoch: int | None = None
        """Where the collections are, as far as is known here."""
        self._lock = threading.Lock()
        self._advancing = threading.Lock()

    def hold(self, name: str, batch: pa.RecordBatch) -> None:
        """Have a batch go with the next epoch."""
        with self._lock:
            if self._is_closed or self.service.is_over:
                raise StoppedError(f"the service has stopped: input {name!r} takes nothing more")
            if name not in self._held:
                self._held[name] = [] if self._memory is None else self._memory.list()
            held = self._held[name]
            for start in range(0, batch.num_rows, PREFERRED_RECORDS):
                held.append(batch.slice(start, PREFERRED_RECORDS))
            self._held_bytes += batch.nbytes

    def advance(self, max_staged_bytes: int | None = None, timeout_s: float | None = None) -> int:
        """See `Service.advance`."""
        SWEEPS.advance_alone()
        if max_staged_bytes is not None:
            # Without the lock: clocks go on meanwhile.
            self.await_room(max_staged_bytes, timeout_s)
        with self._advancing:
            if self._pending is not None:
                epoch = self._commit(self._pending)
                if not self._held:
                    return epoch
            return self._commit(self._taken())

    def await_room(self, max_staged_bytes: int, timeout_s: float | None) -> None:
        """Wait until what is held makes, with all that waits at the workers, no more than this."""
        check_staged(max_staged_bytes)
        room = StagingRoom(self.service.ask, list(self.by_name), "the collections")
        n_bytes = self._held_bytes
        if n_bytes > max_staged_bytes:
            room.never(
                n_bytes,
                max_staged_bytes,
                "so many were inserted and deleted since the last epoch; they are kept: allow "
                "more, and insert less at a time",
            )
        room.wait(n_bytes, max_staged_bytes, self.service.workers, timeout_s)

    def end(self) -> None:
        """The service has ended: nothing is held any more. Again does nothing."""
        self.ticker.stop()
        with self._lock:
            self._held.clear()
            self._pending = None
            memory, self._memory = self._memory, None
            if memory is not None:
                memory.close()

    def tick(self, values: Mapping[str, pa.RecordBatch]) -> bool:
        """Commit values of clocks as an epoch of their own; False if the collections are closed.

        What programs have sent stays for theirs.
        """
        with self._advancing:
            if self._pending is not None:
                return True  # what failed comes first: the next call of `advance` commits it
            named = {name: [batch] for name, batch in values.items()}
            return self._decided(_PendingCommit(uuid.uuid4().hex, named)) is not None

    def close(self) -> None:
        """Commit what is held, and close the collections. Again does nothing.

        Raises `StoppedError` if something is held, and another program has closed them.
        """
        self.ticker.stop()
        with self._advancing:
            if not self.by_name:
                return
            for last in (self._pending, self._taken(is_last=True)):
                if last is not None and last.held:
                    self._commit(last)
            self.service.ask(protocol.CommitEpoch(uuid.uuid4().hex, close=True))
            self.service.note_closed(self.by_name)

    def _taken(self, *, is_last: bool = False) -> _PendingCommit:
        """What is held, to be committed; nothing more is, behind the last."""
        with self._lock:
            self._is_closed |= is_last
            held, self._held = self._held, {}
            self._held_bytes = 0
        return _PendingCommit(uuid.uuid4().hex, held)

    def _commit(self, pending: _PendingCommit) -> int:
        """Stage and commit; what fails is committed by the next call, under the same name."""
        self._pending = pending
        committed = self._decided(pending)
        self._pending = None
        if committed is None:
            lost = ", ".join(map(repr, pending.held))
            raise StoppedError(
                "the collections of the service are closed, and take nothing more"
                + (f": what was sent to {lost} is in no epoch" if lost else "")
            )
        return committed

    def _decided(self, pending: _PendingCommit) -> int | None:
        """Stage and commit; the epoch, or None if the collections are closed."""
        service, name = self.service, pending.name
        # Not known behind a commit that fails: what is staged for an epoch that is long over is
        # pruned with it.
        epoch, self._next_epoch = self._next_epoch, None
        if epoch is None and pending.held:
            epoch = self._at()
        handles: list[StagingHandle] = []
        try:
            handles.extend(
                service.stage_at(number, input, epoch, share)
                for input, batches in pending.held.items()
                for number in range(service.workers)
                if epoch is not None
                and (share := ShareOfWorker(batches, number, service.workers, epoch))
            )
            committed = service.ask(protocol.CommitEpoch(name, tuple(handles)))
        except PointstampError:
            # It is staged anew by the next call. If it was decided after all, this drops nothing.
            with contextlib.suppress(PointstampError):
                service.ask(protocol.Abort(tuple(handles)))
            raise
        if committed is not None:
            self._next_epoch = committed + 1
        return committed

    def _at(self) -> int | None:
        """The epoch that the collections are at; None if they are closed."""
        return self.service.ask(protocol.GetPosition(next(iter(self.by_name))))


def memory_of(run_options: Mapping[str, Any]) -> WorkerMemory | None:
    """What a program may hold of what it has inserted: as much as each worker of what waits."""
    limit_bytes = memory_bytes(run_options.get("memory_limit"))
    if limit_bytes is None:
        return None
    # Not at the top: few services have a limit.
    from pointstamp.dataflow.spillable import WorkerMemory

    given = run_options.get("spill_directory")
    # On Spark it is a directory of the executors' machines, and need not be on this one.
    is_here = given is not None and Path(given).is_dir()
    return WorkerMemory(limit_bytes, os.fspath(given) if given is not None and is_here else None)


@dataclass(frozen=True)
class _PendingCommit:
    """What one commit is of: its name, and batches by input."""

    name: str
    held: Mapping[str, Sequence[pa.RecordBatch]]


class CollectionOutput(OutputHandle):
    """An output of a service that is a collection: what changed in complete epochs, and what is.

    What is discarded is added up: changes of it cannot be read any more, and snapshots as of later
    epochs can.
    """

    keeps_discarded = True

    def __init__(self, service: Service, name: str, schema: Schema) -> None:
        super().__init__(service, name)
        self.schema = schema
        """Of its records."""

    def changes(
        self,
        upto: int | None = None,
        *,
        after: int | None = None,
        timeout_s: float | None = TIMEOUT_S,
    ) -> Changes:
        """What changed in an epoch, or in several together.

        Parameters
        ----------
        upto : int, optional
            The epoch, which is waited for; the last that is complete, if not given. Once the
            service is stopped, that is the last that changed something.
        after : int, optional
            The epoch before the first; the one before `upto`, if not given.
        timeout_s : float, optional
            How long to wait; None as long as it takes.

        Raises
        ------
        EpochError
            If `upto` is not complete in time, or something of it is discarded.
        """
        if upto is None:
            upto = self._last()
        upto = epoch_of(upto)
        pairs = self._pairs(upto, upto - 1 if after is None else epoch_of(after), timeout_s)
        return self._changes(batch for _, batch in pairs)

    def read(
        self,
        upto: int | None = None,
        *,
        after: int | None = None,
        timeout_s: float | None = TIMEOUT_S,
    ) -> list[tuple[int, Changes]]:
        """(epoch, changes) of each epoch that changed something, in order.

        The arguments are those of `changes`; without `after` from the first that is not discarded.
        """
        upto = self._last() if upto is None else epoch_of(upto)
        pairs = self._pairs(upto, None if after is None else epoch_of(after), timeout_s)
        by_epoch: dict[int, list[pa.RecordBatch]] = {}
        for epoch, batch in pairs:
            by_epoch.setdefault(epoch, []).append(batch)
        return [(epoch, self._changes(batches)) for epoch, batches in sorted(by_epoch.items())]

    def __iter__(self) -> Iterator[tuple[int, Changes]]:
        """What `read` gives of the epochs that are complete now."""
        return iter(self.read())

    def snapshot(
        self, epoch: int | None = None, *, timeout_s: float | None = TIMEOUT_S
    ) -> CollectionSnapshot:
        """The records as of the end of an epoch, which is waited for; of the last that is complete.

        Raises
        ------
        EpochError
            If it is not complete in time, or is before what is discarded.
        DataError
            If more copies of a row were deleted than there were.
        """
        epoch = self._last() if epoch is None else epoch_of(epoch)
        batches = [batch for _, batch in self._as_of(epoch, timeout_s)]
        SWEEPS.advance_alone()
        with SWEEPS.held_back():
            rows = added_up(self.schema, batches, f"output {self.name!r}")
            if (row := missing_row(self.schema, rows)) is not None:
                raise DataError(
                    f"output {self.name!r} has the row {row!r} fewer than no times as of epoch "
                    f"{epoch}: more copies of what it comes of were deleted than there were"
                )
            return CollectionSnapshot(self.schema, rows)

    def _changes(self, batches: Iterable[pa.RecordBatch]) -> Changes:
        SWEEPS.advance_alone()
        with SWEEPS.held_back():
            return Changes(self.schema, added_up(self.schema, batches, f"output {self.name!r}"))
