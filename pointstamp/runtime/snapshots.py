"""A worker's part of a snapshot: collected as each operator is aligned, and written.

Operators are aligned at different moments, between which the worker goes on. When
the last one has handed out what it has, all of it is written, on a thread: what was handed
out does not change. One part is written at a time, in the order of epochs, since each
refers to the one before it.

A part that cannot be written fails the worker, unless the snapshot may be given up (`on_error`,
`abandon`): then the next part is of everything, since what the tables have handed out is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.durability import DataflowState
from pointstamp.dataflow.environment import Environment
from pointstamp.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from pointstamp.checkpoint.deltas import TableDelta


Write = Callable[[int, Any], Any]
"""`write(epoch, tables)`, tables being deltas by (operator, table)."""


class Snapshot:
    """A worker's part of a snapshot, on its way.

    Attributes
    ----------
    epoch : int
        The state is that when all times of this epoch were complete.
    done : bool
        Whether it is written.
    is_over : bool
        Whether nothing more happens: it is written, or given up.
    part : object
        What the writing gave, when it is done: a `SnapshotPart`, to be committed with those of the
        other workers.
    seconds : float
        What the writing took.
    began_s, ended_s : float
        When it was asked for, and when it was over, in seconds since 1970.
    on_error : callable, optional
        Called with the `CheckpointError` for which it is given up; without, that fails the
        worker.
    """

    def __init__(self, epoch: int, n_operators: int, write: Write) -> None:
        self.epoch = epoch
        self.done = False
        self.is_over = False
        self.is_abandoned = False
        self.on_error: Callable[[CheckpointError], object] | None = None
        self.part: Any = None
        self.seconds = 0.0
        self.began_s, self.ended_s = time(), 0.0
        self.tables: dict[tuple[str, str], TableDelta] = {}
        self._n_missing = n_operators
        self._write = write

    def take(self, operator: str, tables: Mapping[str, TableDelta]) -> None:
        """The state of one operator."""
        self._n_missing -= 1
        self.tables.update({(operator, name): delta for name, delta in tables.items()})

    @property
    def is_aligned(self) -> bool:
        """Whether all operators have handed out what they have."""
        return not self._n_missing

    def write(self) -> None:
        """Write it; on any thread."""
        began = perf_counter()
        self.part = self._write(self.epoch, self.tables)
        self.seconds = perf_counter() - began

    def finish(self) -> None:
        """It is written, or given up."""
        self.tables = {}
        self.ended_s = time()
        self.is_over = True
        self.done = not self.is_abandoned

    def __repr__(self) -> str:
        return f"Snapshot(epoch={self.epoch}, done={self.done})"


class WorkerSnapshots:
    """The snapshots of one worker.

    Parameters
    ----------
    environment : Environment
        The worker's.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.durable_states: list[DataflowState] = []
        self._waiting: deque[Snapshot] = deque()
        self._thread: Thread | None = None
        self._in_background = True
        self._former: Any = None
        """The last part that was written."""
        self._last: Snapshot | None = None

    def add(self, durable_state: DataflowState) -> None:
        """Another durable dataflow."""
        if (
            self.durable_states
            and self.durable_states[0].durable.manifest != durable_state.durable.manifest
        ):
            raise UsageError(
                f"dataflow {durable_state.dataflow!r} begins at epoch "
                f"{durable_state.durable.epoch}, and {self.durable_states[0].dataflow!r} of the "
                "same worker at "
                f"{self.durable_states[0].durable.epoch}: one snapshot is of all of them"
            )
        if not self.durable_states:
            environment = self._environment
            self._former = durable_state.durable.part(environment.index, environment.peers)
        self.durable_states.append(durable_state)

    def begin(self, epoch: int, write: Write | None, *, background: bool) -> Snapshot:
        """See `Worker.snapshot`."""
        if not self.durable_states:
            raise UsageError(
                f"worker {self._environment.index} has no durable dataflow to make a snapshot of; "
                "build one with worker.dataflow(name, durable=Durable(checkpoint))"
            )
        if type(epoch) is not int or epoch < self.durable_states[0].first_epoch:
            raise UsageError(
                "a snapshot is at an integer epoch from "
                f"{self.durable_states[0].first_epoch} on; found {epoch!r}"
            )
        self._in_background = background
        aligners = sum(len(durable_state.aligners) for durable_state in self.durable_states)
        snapshot = Snapshot(epoch, aligners, write or self._write_part)
        for durable_state in self.durable_states:
            durable_state.check_in_time(epoch)
        self._waiting.append(snapshot)
        self.durable_states[0].durable.checkpoint.note_snapshot(epoch)
        for durable_state in self.durable_states:
            durable_state.hold(epoch, partial(self._take, snapshot))
        self._write_next()
        return snapshot

    def _take(self, snapshot: Snapshot, operator: str, tables: Mapping[str, TableDelta]) -> None:
        snapshot.take(operator, tables)
        self._write_next()

    def abandon(self, snapshot: Snapshot) -> None:
        """Give up a snapshot, even one that is written here; the next is of everything."""
        if snapshot.is_over:
            self._begin_anew()
        snapshot.is_abandoned = True
        self._write_next()

    def _begin_anew(self) -> None:
        """What was handed out for one snapshot is lost, and those that wait build on it."""
        self._former = None
        for snapshot in self._waiting:
            snapshot.is_abandoned = True
        for durable_state in self.durable_states:
            durable_state.begin_anew()

    def _write_next(self) -> None:
        while self._thread is None and self._waiting and self._waiting[0].is_aligned:
            snapshot = self._waiting[0]
            if snapshot.is_abandoned:
                self._end(snapshot)
            elif not self._in_background:
                snapshot.write()
                self._end(snapshot)
            else:
                self._environment.n_outside += 1
                name = f"pointstamp-snapshot-{self._environment.index}"
                self._thread = Thread(target=self._write, args=(snapshot,), name=name)
                self._thread.start()

    def _write(self, snapshot: Snapshot) -> None:
        """On the thread: write, and have the worker take note of it."""
        error: BaseException | None = None
        try:
            snapshot.write()
        except BaseException as failure:  # noqa: BLE001  (raised by the worker)
            error = failure
        self._environment.call(partial(self._written, snapshot, error))

    def _written(self, snapshot: Snapshot, error: BaseException | None) -> None:
        self.close()
        self._environment.n_outside -= 1
        if error is not None:
            if snapshot.on_error is None or not isinstance(error, CheckpointError):
                raise error
            snapshot.is_abandoned = True
            snapshot.on_error(error)
        self._end(snapshot)
        self._write_next()

    def _end(self, snapshot: Snapshot) -> None:
        self._waiting.popleft()
        if snapshot.is_abandoned:
            self._begin_anew()
        else:
            self._former = snapshot.part
            self._last = snapshot
        snapshot.finish()

    def _write_part(self, epoch: int, tables: Any) -> Any:
        checkpoint = self.durable_states[0].durable.checkpoint
        return checkpoint.write_part(epoch, self._environment.index, tables, self._former)

    def forget(self, durable_state: DataflowState | None) -> None:
        """The dataflow is to be dropped.

        Raises
        ------
        UsageError
            If a snapshot of it is not written yet.
        """
        if durable_state in self.durable_states:
            if self._waiting:
                raise UsageError(
                    f"dataflow {durable_state.dataflow!r} cannot be dropped before its snapshot at "
                    f"{self._waiting[0].epoch} is done; step until then"
                )
            self.durable_states.remove(durable_state)

    def recent(self) -> list[Snapshot]:
        """The last that was written here, if any was, and those that are under way."""
        return [*([] if self._last is None else [self._last]), *self._waiting]

    @property
    def is_busy(self) -> bool:
        """Whether any is asked for that is not written."""
        return bool(self._waiting)

    def close(self) -> None:
        """Wait for the thread, if there is one."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
