"""The snapshots of a service: asked for in time, written by each worker, committed by worker 0.

A snapshot at an epoch has to be asked for on every worker before any goes past the epoch.
So worker 0, the leader, asks for one when the first input comes to its epoch, waits until each
worker has begun, and lets no input past that epoch before: by the next commit they have. Each
worker writes its part when all its operators have handed out their state, and what its
outputs hold; when all parts are there, the leader commits the manifest, and prunes what is
not needed any more.

A snapshot says that its epoch is over, for all inputs, in every life of the service. When
inputs close because the service ends, epochs that they never came to are complete, too; they are
not over, as the next life goes on with them, so no snapshot of them is committed.

A snapshot that cannot be written, as on a disk that is full, is given up: the log has all that it
would have. The leader has every worker abandon it, removes what was written, and plans the next
one as if it had been made. After that, parts are of everything.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pointstamp.errors import CheckpointError
from pointstamp.runtime.snapshots import Snapshot
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import OUTPUT, CheckpointConfig

LOGGER = logging.getLogger("pointstamp.service")


@dataclass(frozen=True)
class SnapshotBegun:
    """A worker has been asked for a snapshot."""

    worker: int
    epoch: int


@dataclass(frozen=True)
class PartWritten:
    """A worker's part is written, and where what its outputs held is."""

    worker: int
    epoch: int
    part: Any
    outputs: dict[str, Any]


@dataclass(frozen=True)
class SnapshotFailed:
    """A worker cannot write its part."""

    worker: int
    epoch: int
    why: str


@dataclass(frozen=True)
class SnapshotAbandoned:
    """A worker writes nothing more of a snapshot that was given up."""

    worker: int
    epoch: int


SnapshotReport = SnapshotBegun | PartWritten | SnapshotFailed | SnapshotAbandoned
"""What a worker reports to the leader."""


class SnapshotWriter:
    """One worker's part of the snapshots; everything but `_write` runs in the worker's thread.

    Parameters
    ----------
    held : callable
        `held(epoch)`: what the outputs have up to an epoch, as pairs by output, or None if
        the epoch is not complete there yet.
    report : callable
        Sends a `SnapshotReport` to the leader.
    """

    def __init__(
        self,
        worker: Worker,
        config: CheckpointConfig,
        held: Callable[[int], dict[str, Any] | None],
        report: Callable[[SnapshotReport], None],
    ) -> None:
        self._worker = worker
        self._config = config
        self._held = held
        self._report = report
        self._asked: list[int] = []
        self._snapshot: Snapshot | None = None
        """The last that was begun."""
        self._awaits_outputs = False
        """Whether what the outputs hold of it is still to be written."""
        self._is_abandoning = False
        self._thread: threading.Thread | None = None

    def ask(self, epoch: int) -> None:
        """A snapshot is asked for; `go_on` sees to it, between steps."""
        self._asked.append(epoch)

    def abandon(self, epoch: int) -> None:
        """A snapshot that was asked for is given up."""
        self._begin_asked()
        assert self._snapshot is not None
        assert self._snapshot.epoch == epoch
        self._worker.abandon_snapshot(self._snapshot)
        self._awaits_outputs, self._is_abandoning = False, True

    def go_on(self) -> None:
        """Ask our operators, and write what the outputs have when they are through."""
        self._begin_asked()
        snapshot = self._snapshot
        if snapshot is None:
            return
        if self._awaits_outputs and snapshot.done:
            held = self._held(snapshot.epoch)
            if held is not None:
                self._awaits_outputs = False
                self._thread = threading.Thread(
                    target=self._write, args=(snapshot, held), name="pointstamp-outputs"
                )
                self._thread.start()
        if self._is_abandoning and snapshot.is_over and not self._is_writing():
            self._is_abandoning = False
            self._report(SnapshotAbandoned(self._worker.index, snapshot.epoch))

    def close(self) -> None:
        """Wait for the thread, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _begin_asked(self) -> None:
        for epoch in self._asked:
            self._snapshot = self._worker.snapshot(epoch)
            self._snapshot.on_error = partial(self._failed, epoch)
            self._awaits_outputs = True
            self._report(SnapshotBegun(self._worker.index, epoch))
        self._asked = []

    def _is_writing(self) -> bool:
        return self._thread is not None

    def _failed(self, epoch: int, error: BaseException) -> None:
        self._report(SnapshotFailed(self._worker.index, epoch, str(error)))

    def _write(self, snapshot: Snapshot, held: dict[str, Any]) -> None:
        """On the thread: write what the outputs hold."""
        environment, index = self._worker.environment, self._worker.index
        try:
            outputs = {
                name: self._config.store(name, snapshot.epoch, index, pairs)
                for name, pairs in held.items()
            }
            report: SnapshotReport = PartWritten(index, snapshot.epoch, snapshot.part, outputs)
        except CheckpointError as error:
            report = SnapshotFailed(index, snapshot.epoch, str(error))
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            environment.fail(error)
            environment.communicator.unpark()
            return
        environment.call(partial(self._written, report))

    def _written(self, report: SnapshotReport) -> None:
        self.close()
        self._thread = None
        self._report(report)


class SnapshotCoordinator:
    """What the leader knows of the snapshot that is on its way.

    Parameters
    ----------
    meta : callable
        What a snapshot says beside the state, of what the workers have written of outputs.
    may_commit : callable
        Whether the snapshot of an epoch is to be committed, now that all parts are there.
    abandon : callable
        `abandon(epoch)`: have every worker abandon the snapshot.
    ended : callable
        `ended(epoch)`, on a thread of its own, when the snapshot is there or given up, with
        the epoch of the last that is there: to plan the next.
    fail : callable
        Called with an error on that thread.
    """

    def __init__(
        self,
        peers: int,
        config: CheckpointConfig,
        outputs: list[str],
        meta: Callable[[dict[int, Any]], dict[str, Any]],
        may_commit: Callable[[int], bool],
        abandon: Callable[[int], None],
        ended: Callable[[int], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._peers = peers
        self._config = config
        self._outputs = outputs
        self._meta = meta
        self._may_commit = may_commit
        self._abandon = abandon
        self._ended = ended
        self._fail = fail
        self.epoch: int | None = None
        """Of the next snapshot; None while one is committed."""
        self.is_asked = False
        """Whether the workers are asked for it."""
        self.last = config.epoch
        """That of the last which is committed."""
        self._is_abandoned = False
        self._begun: set[int] = set()
        self._written: dict[int, PartWritten] = {}
        self._released: set[int] = set()
        """The workers that have abandoned it."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def aim_at(self, epoch: int) -> None:
        """Have the next snapshot be of this epoch."""
        self._begun, self._written, self._released = set(), {}, set()
        self._is_abandoned = False
        self.epoch, self.is_asked = epoch, False

    def ask_no_more(self) -> None:
        """Have no other snapshot than one that is asked for."""
        if not self.is_asked:
            self.epoch = None

    def is_due(self, position: int | None) -> bool:
        """Whether to ask for the next, now that an input goes on to `position` (None: closes)."""
        if self.epoch is None or self.is_asked:
            return False
        return position is None or position >= self.epoch

    def lets_past(self, epoch: int | None) -> bool:
        """Whether inputs may go on to `epoch`, or close for None."""
        if self.epoch is None or (epoch is not None and epoch <= self.epoch):
            return True
        return len(self._begun) == self._peers

    def receive(self, report: SnapshotReport) -> None:
        """Take in what a worker reports; in the thread of the leader."""
        if isinstance(report, SnapshotBegun):
            self._begun.add(report.worker)
        elif isinstance(report, SnapshotFailed):
            self._give_up(report.epoch, report.why)
        elif isinstance(report, SnapshotAbandoned):
            self._released.add(report.worker)
            if len(self._released) == self._peers:
                self._run(self._remove)
        else:
            self._written[report.worker] = report
            is_whole = len(self._written) == self._peers
            if is_whole and not self._is_abandoned and self._may_commit(report.epoch):
                self._run(self._commit)

    def _run(self, function: Callable[[], None]) -> None:
        self.close()
        # Not a daemon: half a manifest is none, but a whole one is better.
        self._thread = threading.Thread(target=function, name="pointstamp-manifest")
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _give_up(self, epoch: int, why: str) -> None:
        with self._lock:
            if self._is_abandoned:
                return
            self._is_abandoned = True
        LOGGER.warning(
            "the snapshot of epoch %d is given up, and the next one is tried later; nothing is "
            "lost, as the log of inputs has it: %s",
            epoch,
            why,
        )
        self._abandon(epoch)

    def _commit(self) -> None:
        """On the thread: make the snapshot of the parts."""
        assert self.epoch is not None
        checkpoint = self._config.checkpoint
        try:
            outputs = {worker: report.outputs for worker, report in self._written.items()}
            parts = [self._written[worker].part for worker in range(self._peers)]
            try:
                checkpoint.commit_manifest(self.epoch, parts, self._meta(outputs))
            except CheckpointError as error:
                self._give_up(self.epoch, str(error))
                return
            try:
                checkpoint.prune()
            except CheckpointError as error:
                LOGGER.warning("%r is not pruned, and tried again later: %s", checkpoint, error)
            self.last, self.epoch = self.epoch, None
            self._ended(self.last)
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            self._fail(error)

    def _remove(self) -> None:
        """On the thread: remove what was written of a snapshot that is given up."""
        assert self.epoch is not None
        checkpoint = self._config.checkpoint
        try:
            try:
                checkpoint.discard_snapshot(self.epoch, [OUTPUT + name for name in self._outputs])
            except CheckpointError as error:
                LOGGER.warning("%r: what was given up is not removed: %s", checkpoint, error)
            self.epoch = None
            self._ended(self.last)
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            self._fail(error)
