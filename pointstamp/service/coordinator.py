"""What worker 0 of a service decides for all: commits, discards, snapshots, and the end.

A commit names the attempts of an (input, epoch) that count. The first commit of it counts, is
written to the checkpoint where there is one, and is then an order to all workers to admit
theirs. So it does not matter where a client that commits fails: before the decision nothing
happened, after it all of it will.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.checkpoint.input_log import Staged
from pointstamp.errors import (
    CheckpointStructureError,
    EpochError,
    ServiceError,
    StoppedError,
    UsageError,
)
from pointstamp.service.checkpoint_config import CheckpointConfig, columns, output_meta
from pointstamp.service.orders import (
    AbandonSnapshot,
    AdmitEpoch,
    DiscardOutput,
    DropAttempts,
    StopWorkers,
    TakeSnapshot,
)
from pointstamp.service.protocol import (
    NEVER,
    Abort,
    AdvanceInput,
    AwaitCompletion,
    AwaitSnapshot,
    Commit,
    Discard,
    Finish,
    GetPosition,
    RequestSnapshot,
    StagingHandle,
    Stop,
)
from pointstamp.service.snapshotting import SnapshotCoordinator, SnapshotReport

if TYPE_CHECKING:
    from pointstamp.service.service_worker import ServiceWorker

ASKED_S = 30.0
"""How long workers may take to begin a snapshot; an operator that is at work delays them."""


class Coordinator:
    """Decides for all workers of a service; the requests of its verbs come to worker 0.

    Parameters
    ----------
    worker : ServiceWorker
        Worker 0.
    leading : mapping
        The inputs that lead to each output.
    secret : bytes
        By which staging handles are signed.
    """

    def __init__(
        self, worker: ServiceWorker, leading: Mapping[str, Sequence[str]], secret: bytes
    ) -> None:
        self._worker = worker
        self._spec = worker.spec
        self._checkpoint = worker.checkpoint
        self._leading = leading
        self._secret = secret
        self._deciding = threading.Lock()
        # What is decided, which the inputs of the workers may be behind.
        self._positions: dict[str, int | None] = dict.fromkeys(self._spec.inputs, worker.first)
        self._aborted: set[tuple[str, int, int, str]] = set()
        """Attempts that are dropped, of epochs that are not decided."""
        self._is_finishing = False
        self._every = 0
        self.snapshots: SnapshotCoordinator | None = None

    def begin_again(self, config: CheckpointConfig) -> None:
        """Have admitted what the checkpoint has, and plan the next snapshot."""
        self._replay(config)
        if config.every is not None:
            self._every = config.every
            self.snapshots = SnapshotCoordinator(
                self._worker.peers,
                config,
                list(self._spec.outputs),
                self._snapshot_meta,
                self._may_commit_snapshot,
                lambda epoch: self._worker.order(AbandonSnapshot(epoch)),
                self._plan_next,
                self._worker.fail,
            )
            self._plan_next(config.epoch)

    def _replay(self, config: CheckpointConfig) -> None:
        """Have all workers admit what the log has, distributed to as many as there are now."""
        checkpoint, gone = config.checkpoint, config.unknown(self._spec.inputs)
        if gone:
            raise CheckpointStructureError(
                f"{checkpoint} has records of input {', '.join(map(repr, gone))}, which this "
                f"service has not: its inputs are {', '.join(map(repr, self._spec.inputs))}; serve "
                "the dataflow that they were sent to, or with another folder"
            )
        peers = self._worker.peers
        for input in self._spec.inputs:
            for epoch, stored in checkpoint.committed(input, config.epoch):
                handles = tuple(
                    StagingHandle(input, epoch, one.name, n % peers, one.rows, one.to_json())
                    for n, one in enumerate(stored)
                )
                self._positions[input] = epoch + 1
                self._worker.order(AdmitEpoch(input, epoch, handles, epoch + 1))
            # Readers may have acted on it that nothing more comes before that.
            now, reached = self._positions[input], checkpoint.reached(input)
            config.check_reached(input, reached)
            assert now is not None  # none is closed yet
            if now < reached:
                self._positions[input] = reached
                self._worker.order(AdmitEpoch(input, now, (), reached))

    def close(self) -> None:
        """Wait for what is under way."""
        if self.snapshots is not None:
            self.snapshots.close()

    # Requests; each is handled by the method of its verb.

    def position(self, request: GetPosition) -> int | None:
        """The first epoch of an input that may still be committed; None if it is closed."""
        self._worker.known(self._spec.inputs, request.input, "input")
        self._worker.check_alive()
        with self._deciding:
            return self._positions[request.input]

    def commit(self, request: Commit) -> bool:
        """Admit the attempts at `epoch`, and have the input go on to `until`.

        Once it has returned, it happens, whatever becomes of the caller, and with a checkpoint
        whatever becomes of the workers: it is written. What else is staged for the input up to
        `epoch` is dropped.

        Returns
        -------
        bool
            False, and nothing is changed, if the input is past `epoch` already: it was
            committed before.
        """
        input, epoch, handles = request.input, request.epoch, request.attempts
        until = None if request.close else epoch + 1 if request.until is None else request.until
        self._worker.known(self._spec.inputs, input, "input")
        if until is not None and until <= epoch:
            raise UsageError(
                f"input {input!r} cannot go on from epoch {epoch} to {until}: that is not later"
            )
        if until is not None and until > NEVER:
            raise UsageError(f"input {input!r} cannot go on to {until}: epochs end at {NEVER}")
        _check_handles(input, epoch, handles)
        with self._deciding:
            position = self._positions[input]
            if position is None or epoch < position:
                return False
            with self._worker.changed:
                self._worker.check_alive()
                self._check_usable(handles)
                # Raises for what is not here, before the decision.
                self._worker.staging.take(handles)
            self._ask_in_time(until)
            self._let_past_snapshot(until)
            handles = tuple({(one.worker, one.attempt): one for one in handles}.values())
            if handles or until is not None:
                # A close with nothing is no epoch: the next life may go on with it.
                self._write(input, epoch, handles, until)
            self._positions[input] = until
            self._aborted = {key for key in self._aborted if key[0] != input or key[1] > epoch}
            self._worker.order(AdmitEpoch(input, epoch, handles, until))
        return True

    def advance(self, request: AdvanceInput) -> bool:
        """Have an input go on to an epoch, with nothing more at those before."""
        now = self.position(GetPosition(request.input))
        if now is None or request.epoch <= now:
            return False
        return self.commit(Commit(request.input, now, (), request.epoch))

    def abort(self, request: Abort) -> None:
        """Drop what is staged, except what a commit has named; again is no error."""
        for handle in request.attempts:
            self._check_genuine(handle)
        with self._deciding:
            undecided = [one for one in request.attempts if not self._is_decided(one)]
            for handle in undecided:
                if self._checkpoint is not None and handle.stored is not None:
                    stored = Staged.from_json(handle.stored)
                    self._checkpoint.abort(handle.input, handle.epoch, stored)
            self._aborted.update(map(_key, undecided))
            self._worker.order(DropAttempts(tuple(undecided)))

    def await_completion(self, request: AwaitCompletion) -> bool:
        """Wait until an epoch is as complete as inputs that are behind it allow.

        An input that is behind holds back the outputs that it leads to, and no others.
        """
        return self._worker.wait_for(lambda: self._is_complete(request.epoch), request.wait_s)

    def discard(self, request: Discard) -> None:
        """Have all workers discard an output's epochs up to this one, which is complete."""
        worker, output, upto = self._worker, request.output, request.upto
        worker.known(self._spec.outputs, output, "output")
        if not worker.now.is_complete(output, upto):
            raise EpochError(worker.why_incomplete(output, upto))
        with worker.changed:
            worker.outputs[output].discard(upto)  # at once, so that the next read here fails
        worker.order(DiscardOutput(output, upto))

    def snapshot(self, request: RequestSnapshot) -> dict[str, int | None]:
        """The epochs of the last snapshot that is there (-1: none), and of the next.

        With `soon`, the next is of the epoch that the inputs are at, unless it is asked for
        already: it is made when they all have gone on.
        """
        snapshots = self._snapshots()
        if request.soon:
            with self._deciding:
                positions = self._open_positions()
                if positions and snapshots.epoch is not None and not snapshots.is_asked:
                    snapshots.aim_at(max(positions))
                    self._ask_in_time(max(positions))
        return {"committed": snapshots.last, "asked": snapshots.epoch}

    def await_snapshot(self, request: AwaitSnapshot) -> bool:
        """Wait until a snapshot of an epoch, or of a later one, is there; whether it is."""
        snapshots = self._snapshots()
        return self._worker.wait_for(lambda: snapshots.last >= request.epoch, request.wait_s)

    def finish(self, request: Finish) -> None:
        """Commit no more snapshots: what closes from here on, goes on in the next life."""
        with self._deciding:
            self._is_finishing = True
            if self.snapshots is not None:
                self.snapshots.ask_no_more()

    def stop(self, request: Stop) -> None:
        """Have all workers leave, as it is: `finish`, close the inputs before, and wait."""
        self._worker.order(StopWorkers())

    # Commits.

    def _check_usable(self, handles: Sequence[StagingHandle]) -> None:
        for handle in handles:
            self._check_genuine(handle)
            if _key(handle) in self._aborted:
                raise ServiceError(
                    f"attempt {handle.attempt!r} for epoch {handle.epoch} of input "
                    f"{handle.input!r} was aborted: stage it again"
                )

    def _check_genuine(self, handle: StagingHandle) -> None:
        if not handle.is_genuine(self._secret):
            raise UsageError(
                f"the staging handle of attempt {handle.attempt!r} is none of this service, or was "
                "changed: hand back what staging gave"
            )

    def _write(
        self, input: str, epoch: int, handles: Sequence[StagingHandle], until: int | None
    ) -> None:
        """Make the decision outlast us, where there is a checkpoint."""
        if self._checkpoint is None:
            return
        stored = [Staged.from_json(one.stored) for one in handles if one.stored is not None]
        if not self._checkpoint.commit(input, epoch, stored, until):
            raise ServiceError(
                f"epoch {epoch} of input {input!r} is in {self._checkpoint} already, and not by "
                "this service: another one uses the folder; only one may, so end this one, or "
                "that, and serve again"
            )

    def _is_decided(self, handle: StagingHandle) -> bool:
        position = self._positions.get(handle.input)
        return position is None or handle.epoch < position

    # What is complete.

    def _is_complete(self, epoch: int) -> bool:
        return all(
            self._worker.now.is_complete(output, self._reachable(epoch, inputs))
            for output, inputs in self._leading.items()
        )

    def _reachable(self, epoch: int, inputs: Iterable[str]) -> int:
        """The last epoch up to `epoch` that can be complete where these inputs lead to."""
        # By what is decided: the inputs themselves may be behind that.
        positions = [self._positions[input] for input in inputs]
        return min([epoch + 1, *(time for time in positions if time is not None)]) - 1

    # Snapshots; see `snapshotting`.

    def receive(self, report: SnapshotReport) -> None:
        """Take in what a worker reports of a snapshot."""
        assert self.snapshots is not None
        self.snapshots.receive(report)
        with self._worker.changed:
            self._worker.changed.notify_all()

    def _snapshots(self) -> SnapshotCoordinator:
        self._worker.check_alive()
        if self.snapshots is None:
            raise ServiceError(
                "this service makes no snapshots: serve with checkpoint= and snapshot_every="
            )
        return self.snapshots

    def _plan_next(self, last: int) -> None:
        """Plan the snapshot after that of epoch `last`, of an epoch that no input is past."""
        assert self.snapshots is not None
        with self._deciding:
            positions = self._open_positions()
            if positions:
                self.snapshots.aim_at(max(*positions, last + 1) - 1 + self._every)
                with contextlib.suppress(StoppedError):  # there is none to come, then
                    self._ask_in_time(max(positions))
        with self._worker.changed:
            self._worker.changed.notify_all()

    def _ask_in_time(self, position: int | None) -> None:
        """Ask all for the planned snapshot if an input is to go to its epoch, or to close."""
        snapshots = self.snapshots
        if snapshots is not None and snapshots.is_due(position):
            assert snapshots.epoch is not None
            snapshots.is_asked = True
            self._worker.order(TakeSnapshot(snapshots.epoch))

    def _let_past_snapshot(self, until: int | None) -> None:
        """Let no input past the epoch of a snapshot before all workers have begun that."""
        snapshots = self.snapshots
        if snapshots is not None and not self._worker.wait_for(
            lambda: snapshots.lets_past(until), ASKED_S
        ):
            raise ServiceError(
                f"not all workers have begun the snapshot of epoch {snapshots.epoch} in "
                f"{ASKED_S:g} s, and no input can go past it before; nothing is changed: try again"
            )

    def _open_positions(self) -> list[int]:
        return [time for time in self._positions.values() if time is not None]

    def _snapshot_meta(self, outputs: dict[int, Any]) -> dict[str, Any]:
        """What a snapshot says beside the state."""
        discarded = {name: buffer.discarded for name, buffer in self._worker.outputs.items()}
        meta = output_meta(outputs, discarded) | columns(self._spec.inputs, self._spec.outputs)
        with self._deciding:
            meta["reached"] = {
                name: position for name, position in self._positions.items() if position is not None
            }
        return meta

    def _may_commit_snapshot(self, epoch: int) -> bool:
        """Whether an epoch is over for good, and not only because inputs are closed."""
        return not self._is_finishing and epoch < self._worker.end_epoch


def _check_handles(input: str, epoch: int, handles: Sequence[StagingHandle]) -> None:
    """Raise for what was staged for something else."""
    for handle in handles:
        if (handle.input, handle.epoch) != (input, epoch):
            raise UsageError(
                f"a commit of epoch {epoch} of input {input!r} names attempt "
                f"{handle.attempt!r}, which was staged for epoch {handle.epoch} of "
                f"{handle.input!r}"
            )


def _key(handle: StagingHandle) -> tuple[str, int, int, str]:
    return handle.input, handle.epoch, handle.worker, handle.attempt
