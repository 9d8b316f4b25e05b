"""The snapshots of a service: asked for in time, cut by each worker, sealed by worker 0.

A snapshot at an epoch has to be asked for on every worker before any goes past the epoch.
So worker 0 asks for one when the first input comes to its epoch, hears from each worker that
it has been asked, and lets no input past that epoch before all have said so: by the next
commit they have. Each worker writes its part when it has come to its cut there, and what
its outputs hold; when all parts are there, worker 0 seals the snapshot, and prunes what is
not needed any more.

A snapshot says that its epoch is over, for all inputs, in every life of the service. When
inputs close because the service ends, epochs that they never came to are complete, too; they are
not over, as the next life goes on with them, so no snapshot of them is sealed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointstamp.runtime.snapshots import Snapshot
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig, columns, told
from pointstamp.service.spec import ServiceSpec


@dataclass(frozen=True)
class SnapshotBegun:
    """A worker says that it has been asked for a snapshot."""

    worker: int
    epoch: int


@dataclass(frozen=True)
class PartWritten:
    """A worker says that its part is written, and where what its outputs held is."""

    worker: int
    epoch: int
    part: Any
    outputs: dict[str, Any]


class SnapshotWriter:
    """One worker's cuts; everything but `_write` runs in the worker's thread.

    Parameters
    ----------
    held : callable
        `held(epoch)`: what the outputs have up to an epoch, as pairs by output, or None if
        the epoch is not complete there yet.
    tell : callable
        Sends `SnapshotBegun` and `PartWritten` to worker 0.
    """

    def __init__(
        self,
        worker: Worker,
        config: CheckpointConfig,
        held: Callable[[int], dict[str, Any] | None],
        tell: Callable[[Any], None],
    ) -> None:
        self._worker = worker
        self._config = config
        self._held = held
        self._tell = tell
        self._asked: list[int] = []
        self._cut: Snapshot | None = None
        self._thread: threading.Thread | None = None

    def ask(self, epoch: int) -> None:
        """A snapshot is asked for; `go_on` sees to it, between steps."""
        self._asked.append(epoch)

    def go_on(self) -> None:
        """Ask our operators, and write what the outputs have when they are through."""
        while self._asked:
            epoch = self._asked.pop(0)
            self._cut = self._worker.snapshot(epoch)
            self._tell(SnapshotBegun(self._worker.index, epoch))
        if self._cut is not None and self._cut.done:
            held = self._held(self._cut.epoch)
            if held is not None:
                cut, self._cut = self._cut, None
                self._thread = threading.Thread(
                    target=self._write, args=(cut, held), name="pointstamp-outputs"
                )
                self._thread.start()

    def close(self) -> None:
        """Wait for the thread, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, cut: Snapshot, held: dict[str, Any]) -> None:
        environment, index = self._worker.environment, self._worker.index
        try:
            outputs = {
                name: self._config.store(name, cut.epoch, index, pairs)
                for name, pairs in held.items()
            }
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            environment.fail(error)
            environment.communicator.unpark()
            return
        written = PartWritten(index, cut.epoch, cut.part, outputs)
        environment.call(lambda: self._tell(written))


class SnapshotCoordinator:
    """What worker 0 knows of the snapshot that is on its way.

    Parameters
    ----------
    plan : ServiceSpec
        Of the service.
    discarded : callable
        The last epoch of each output that is discarded.
    may_seal : callable
        Whether the snapshot of an epoch is to be sealed, now that all parts are there.
    sealed : callable
        `sealed(epoch)`, on a thread of its own, when the snapshot is there: to ask for the next.
    fail : callable
        Told of an error on that thread.
    """

    def __init__(
        self,
        peers: int,
        config: CheckpointConfig,
        plan: ServiceSpec,
        discarded: Callable[[], dict[str, int]],
        may_seal: Callable[[int], bool],
        sealed: Callable[[int], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._peers = peers
        self._config = config
        self._plan = plan
        self._discarded = discarded
        self._may_seal = may_seal
        self._sealed = sealed
        self._fail = fail
        self.epoch: int | None = None
        """Of the next snapshot; None while one is sealed."""
        self.is_asked = False
        """Whether the workers are asked for it."""
        self.last = config.epoch
        """That of the last which is sealed."""
        self._ready: set[int] = set()
        self._written: dict[int, PartWritten] = {}
        self._thread: threading.Thread | None = None

    def aim_at(self, epoch: int) -> None:
        """Have the next snapshot be of this epoch."""
        self._ready, self._written, self.epoch, self.is_asked = set(), {}, epoch, False

    def give_up(self) -> None:
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
        return len(self._ready) == self._peers

    def hear(self, said: SnapshotBegun | PartWritten) -> None:
        """Take in what a worker says; in the thread of worker 0."""
        if isinstance(said, SnapshotBegun):
            self._ready.add(said.worker)
            return
        self._written[said.worker] = said
        if len(self._written) == self._peers and self._may_seal(said.epoch):
            self.close()
            # Not a daemon: half a manifest is none, but a whole one is better.
            self._thread = threading.Thread(target=self._seal, name="pointstamp-seal")
            self._thread.start()

    def close(self) -> None:
        """Wait for the thread, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _seal(self) -> None:
        assert self.epoch is not None
        try:
            outputs = {worker: said.outputs for worker, said in self._written.items()}
            parts = [self._written[worker].part for worker in range(self._peers)]
            meta = told(outputs, self._discarded())
            meta |= columns(self._plan.inputs, self._plan.outputs)
            self._config.checkpoint.seal(self.epoch, parts, meta)
            self._config.checkpoint.prune()
            self.last, self.epoch = self.epoch, None
            self._sealed(self.last)
        except BaseException as error:  # noqa: BLE001  (raised by the worker)
            self._fail(error)
