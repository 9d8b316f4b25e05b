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

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.errors import CheckpointError, ServiceError, StoppedError
from pointstamp.runtime.snapshots import Snapshot
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import OUTPUT, CheckpointConfig

if TYPE_CHECKING:
    from pointstamp.service.coordinator import Coordinator

LOGGER = logging.getLogger("pointstamp.service")

ASKED_S = 30.0
"""How long workers may take to begin a snapshot; an operator that is at work delays them."""


@dataclass(frozen=True)
class TakeSnapshot:
    """An order: have a snapshot made as of the end of this epoch."""

    epoch: int
    is_abandoned: bool = False
    """Write nothing more of it: it is given up."""


BEGUN, WRITTEN, FAILED, ABANDONED = "begun", "written", "failed", "abandoned"


@dataclass(frozen=True)
class SnapshotReport:
    """What a worker reports to the leader of a snapshot."""

    worker: int
    epoch: int
    stage: str
    """It has begun; its part is written; it cannot be; nothing more is, of what was given up."""
    part: Any = None
    outputs: dict[str, Any] = field(default_factory=dict)
    """Where that is which the outputs held, beside the part."""
    why: str = ""
    """It cannot be written."""


class SnapshotWriter:
    """One worker's part of the snapshots; everything but `_write` runs in the worker's thread.

    `held(epoch)` is what the outputs have up to an epoch, as pairs by output, or None if the epoch
    is not complete there yet; `report` sends to the leader.
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
        self._orders: list[TakeSnapshot] = []
        self._snapshot: Snapshot | None = None
        """The last that was begun."""
        self._steps: Iterator[None] = iter(())
        """What is still to do for the last order."""
        self._is_writing = False
        self._thread = ThreadPoolExecutor(1, "pointstamp-outputs")
        self.obey = self._orders.append
        """A snapshot is asked for, or given up; `go_on` sees to it, between steps."""
        self.close = self._thread.shutdown
        """Wait for what is being written."""

    def go_on(self) -> None:
        """Do what can be done of a snapshot now."""
        while self._orders:
            order = self._orders.pop(0)
            self._steps = (self._abandon if order.is_abandoned else self._take)(order.epoch)
            next(self._steps, None)
        next(self._steps, None)

    def _take(self, epoch: int) -> Iterator[None]:
        """Ask our operators, and have written what the outputs have when they are through."""
        self._snapshot = snapshot = self._worker.snapshot(epoch)
        snapshot.on_error = lambda error: self._send(epoch, FAILED, why=str(error))
        self._send(epoch, BEGUN)
        while not snapshot.done or (held := self._held(epoch)) is None:
            yield
        self._is_writing = True
        self._thread.submit(self._write, snapshot, held)

    def _abandon(self, epoch: int) -> Iterator[None]:
        """Have nothing more written, and say so when that is so."""
        snapshot = self._snapshot
        assert snapshot is not None
        assert snapshot.epoch == epoch
        self._worker.abandon_snapshot(snapshot)
        while not snapshot.is_over or self._is_writing:
            yield
        self._send(epoch, ABANDONED)

    def _send(self, epoch: int, stage: str, **said: Any) -> None:
        self._report(SnapshotReport(self._worker.index, epoch, stage, **said))

    def _write(self, snapshot: Snapshot, held: dict[str, Any]) -> None:
        """On the thread: write what the outputs hold."""
        environment, index, epoch = self._worker.environment, self._worker.index, snapshot.epoch
        try:
            outputs = {
                name: self._config.store(name, epoch, index, pairs) for name, pairs in held.items()
            }
            send = partial(self._send, epoch, WRITTEN, part=snapshot.part, outputs=outputs)
        except CheckpointError as error:
            send = partial(self._send, epoch, FAILED, why=str(error))
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            environment.fail(error)
            environment.communicator.unpark()
            return
        environment.call(partial(self._written, send))

    def _written(self, send: Callable[[], None]) -> None:
        self._is_writing = False
        send()


class SnapshotCoordinator:
    """What the leader knows of the snapshot that is on its way, and when the next is made.

    What it shares with the coordinator is under the lock of that, `deciding`.
    """

    def __init__(self, leader: Coordinator, config: CheckpointConfig, every: int) -> None:
        self._leader = leader
        self._worker = leader.worker
        self._config = config
        self._every = every
        self.last = config.epoch
        """That of the last which is committed."""
        self.epoch: int | None = None
        """Of the next snapshot; None while one is committed."""
        self.reports: dict[str, dict[int, SnapshotReport]] = {}
        """Of the next, by stage and worker."""
        self._is_asked = self._is_abandoned = False
        """Whether the workers are asked for it; whether it is given up."""
        self._lock = threading.Lock()
        # Its end is waited for: half a manifest is none, but a whole one is better.
        self._thread = ThreadPoolExecutor(1, "pointstamp-manifest")
        self.close = self._thread.shutdown
        """Wait for what is being committed."""

    # When the next is made.

    def plan_next(self) -> None:
        """Plan the snapshot after the last, of an epoch that no input is past."""
        with self._leader.deciding:
            positions = self._open_positions()
            if positions and not self._leader.is_finishing:
                self._aim_at(max(*positions, self.last + 1) - 1 + self._every)
                with contextlib.suppress(StoppedError):  # there is none to come, then
                    self._ask_in_time(max(positions))
        self._worker.notify()

    def plan_soon(self) -> None:
        """Have the next be of the epoch that the inputs are at, unless it is asked for."""
        with self._leader.deciding:
            positions = self._open_positions()
            if positions and self.epoch is not None and not self._is_asked:
                self._aim_at(max(positions))
                self._ask_in_time(max(positions))

    def ask_no_more(self) -> None:
        """Have no other snapshot than one that is asked for."""
        if not self._is_asked:
            self.epoch = None

    def let_past(self, until: int | None) -> None:
        """Let no input past the epoch of a snapshot before all workers have begun that."""

        def may_go() -> bool:
            at = self.epoch  # which another thread sets to None
            return at is None or (until is not None and until <= at) or self._have_all(BEGUN)

        self._ask_in_time(until)
        if not self._worker.wait_for(may_go, ASKED_S):
            raise ServiceError(
                f"not all workers have begun the snapshot of epoch {self.epoch} in "
                f"{ASKED_S:g} s, and no input can go past it before; nothing is changed: try again"
            )

    def _open_positions(self) -> list[int]:
        return [time for time in self._leader.positions.values() if time is not None]

    def _aim_at(self, epoch: int) -> None:
        self.reports = {stage: {} for stage in (BEGUN, WRITTEN, FAILED, ABANDONED)}
        self._is_abandoned = self._is_asked = False
        self.epoch = epoch

    def _ask_in_time(self, position: int | None) -> None:
        """Ask all for the planned snapshot if an input is to go to its epoch, or to close."""
        if self.epoch is None or self._is_asked:
            return
        if position is None or position >= self.epoch:
            self._is_asked = True
            self._config.checkpoint.note_snapshot(self.epoch)
            self._worker.order(TakeSnapshot(self.epoch))

    # How far it is.

    def receive(self, report: SnapshotReport) -> None:
        """Take in what a worker reports; in the thread of the leader."""
        self.reports[report.stage][report.worker] = report
        if report.stage == FAILED:
            self._give_up(report.epoch, report.why)
        elif report.stage == ABANDONED and self._have_all(ABANDONED):
            self._thread.submit(self._end, self._remove, report.epoch)
        elif report.stage == WRITTEN and self._have_all(WRITTEN) and self._is_over(report.epoch):
            self._thread.submit(self._end, self._commit, report.epoch)
        self._worker.notify()

    def _have_all(self, stage: str) -> bool:
        return len(self.reports[stage]) == self._worker.peers

    def _is_over(self, epoch: int) -> bool:
        """Whether an epoch is over for good, and not only because inputs are closed."""
        is_ending = self._is_abandoned or self._leader.is_finishing
        return not is_ending and epoch < self._worker.end_epoch

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
        self._worker.order(TakeSnapshot(epoch, is_abandoned=True))

    # On a thread of its own.

    def _end(self, end: Callable[[int], bool], epoch: int) -> None:
        """Have `end(epoch)` end the snapshot, and plan the next if that is so."""
        try:
            if end(epoch):
                self.epoch = None
                self.plan_next()
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            self._worker.fail(error)

    def _commit(self, epoch: int) -> bool:
        """Make the snapshot of the parts."""
        checkpoint, written = self._config.checkpoint, self.reports[WRITTEN]
        reports = [written[worker] for worker in range(self._worker.peers)]
        with self._leader.deciding:
            positions, feeds = dict(self._leader.positions), dict(self._leader.feeds)
            times, queries = dict(self._leader.times), dict(self._leader.queries)
            commits = dict(self._leader.commits)
        meta = self._config.meta(
            self._worker.spec,
            [report.outputs for report in reports],
            {name: buffer.discarded for name, buffer in self._worker.outputs.items()},
            positions,
            feeds,
            commits,
            times,
            queries,
        )
        try:
            checkpoint.commit_manifest(epoch, [report.part for report in reports], meta)
        except CheckpointError as error:
            self._give_up(epoch, str(error))
            return False
        try:
            checkpoint.prune()
        except CheckpointError as error:
            LOGGER.warning("%r is not pruned, and tried again later: %s", checkpoint, error)
        self.last = epoch
        return True

    def _remove(self, epoch: int) -> bool:
        """Remove what was written of a snapshot that is given up."""
        checkpoint = self._config.checkpoint
        try:
            checkpoint.discard_snapshot(epoch, [OUTPUT + name for name in self._worker.outputs])
        except CheckpointError as error:
            LOGGER.warning("%r: what was given up is not removed: %s", checkpoint, error)
        return True
