"""What worker 0 of a service decides for all: commits, discards, snapshots, and the end.

A commit names the attempts of an (input, epoch) that count. The first commit of it counts, is
written to the checkpoint where there is one, and is then an order to all workers to admit
theirs. So it does not matter where a client that commits fails: before the decision nothing
happened, after it all of it will.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pointstamp.checkpoint.checkpoint import Checkpoint
from pointstamp.checkpoint.input_log import BEFORE_ALL, UNRECORDED
from pointstamp.errors import EpochError, ServiceError, UsageError
from pointstamp.service import protocol
from pointstamp.service.checkpoint_config import COLLECTIONS, CheckpointConfig
from pointstamp.service.protocol import NEVER, StagingHandle, StagingKey
from pointstamp.service.snapshotting import SnapshotCoordinator
from pointstamp.service.spec import known
from pointstamp.service.worker_buffers import MOST_JOBS

if TYPE_CHECKING:
    from pointstamp.service.service_worker import ServiceWorker


LOGGER = logging.getLogger("pointstamp.service")

MOST_ABORTED = 16_384
"""So many attempts that were aborted are known, and so many that were committed."""
MOST_NAMES = 1_024
"""So many commits to collections are known by name: one may be repeated as its answer was lost."""


class Coordinator:
    """Decides for all workers of a service; the requests of its verbs come to worker 0.

    `leading` has the inputs that lead to each output; staging handles are signed by `secret`.
    """

    def __init__(
        self, worker: ServiceWorker, leading: Mapping[str, Sequence[str]], secret: bytes
    ) -> None:
        self.worker = worker
        self.deciding = threading.Lock()
        self.positions: dict[str, int | None] = dict.fromkeys(worker.spec.inputs, worker.first)
        """What is decided, which the inputs of the workers may be behind."""
        self.is_finishing = False
        self.snapshots: SnapshotCoordinator | None = None
        self._check_claim: Callable[[], None] = lambda: None
        self._leading = leading
        self._secret = secret
        self.commits: dict[str, int] = {}
        """By the names of the last commits to collections: their epochs."""
        self.feeds: dict[str, tuple[int, int]] = {}
        """By feed of collections: the number of its last batch, and its epoch."""
        self.times: dict[int, int] = {}
        """By epoch of collections that is not discarded: when it was committed, in us."""
        self.queries: dict[str, tuple[int, str | None]] = {}
        """By input: the last epoch that had attempts, and of which query these were, if of one."""
        self._restored: dict[str, int] = {}
        """By input: the first epoch that no life before has committed."""
        self._aborted: dict[StagingKey, None] = {}
        """Attempts that were dropped last, which a commit that comes late does not find."""
        self._aborted_jobs: deque[str] = deque(maxlen=MOST_JOBS)
        """Jobs all of whose attempts were."""
        self._committed: dict[StagingKey | str, None] = {}
        """Attempts to collections that were committed last: another commit may not name them."""

    def begin_again(self, config: CheckpointConfig) -> None:
        """Have admitted what the checkpoint has, and plan the next snapshot."""
        config.checkpoint.begin()
        self._check_claim = config.check_claim
        self._replay(config)
        if config.every is not None:
            self.snapshots = SnapshotCoordinator(self, config, config.every)
            self.snapshots.plan_next()

    def _replay(self, config: CheckpointConfig) -> None:
        """Have all workers admit what the log has, distributed to as many as there are now."""
        peers = self.worker.peers
        collections = self.worker.spec.collections
        self.queries = config.queries()
        if collections:
            self._replay_collections(config)
        for input in [name for name in self.positions if name not in collections]:
            now = self.worker.first
            for record in config.checkpoint.records(input, BEFORE_ALL):
                if record.attempts:
                    self.queries[input] = record.epoch, record.query
                if record.epoch <= config.epoch:
                    continue  # the snapshot has it
                handles = tuple(
                    StagingHandle(input, record.epoch, one.name, n % peers, one.rows, one)
                    for n, one in enumerate(record.attempts)
                )
                now = record.epoch + 1
                self.worker.order(protocol.Commit(input, record.epoch, handles))
            # Readers may have acted on it that nothing more comes before that.
            reached = max(now, config.reached(input))
            if now < reached:
                self.worker.order(protocol.Commit(input, now, until=reached))
            self.positions[input] = self._restored[input] = reached

    def _replay_collections(self, config: CheckpointConfig) -> None:
        """The same of all collections, which have one log."""
        now, peers = self.worker.first, self.worker.peers
        inputs = list(self.worker.spec.collections)
        self.feeds, self.times = config.feeds(), config.times()
        self.commits = config.commits()
        for record in config.checkpoint.records(COLLECTIONS, BEFORE_ALL):
            self._note_commit(record.commit, record.batch, record.epoch)
            if record.time_us is not None:
                self.times[record.epoch] = record.time_us
            self._committed.update(dict.fromkeys(one.name for one in record.attempts))
            _forget_oldest(self._committed, MOST_ABORTED)
            if record.epoch < now:
                continue  # the snapshot has it
            handles = [
                StagingHandle(one.input, one.epoch, one.name, n % peers, one.rows, one)
                for n, one in enumerate(record.attempts)
            ]
            now = record.until
            self._admit(inputs, record.epoch, handles, now)
        reached = max(now, config.reached(inputs[0], COLLECTIONS))
        if now < reached:
            self._admit(inputs, now, [], reached)
        self.positions.update(dict.fromkeys(inputs, reached))

    def _admit(
        self, inputs: Iterable[str], epoch: int, handles: Sequence[StagingHandle], until: int | None
    ) -> None:
        """Have all workers admit what is of each collection, and all collections go on."""
        for input in inputs:
            mine = tuple(one for one in handles if one.input == input)
            self.worker.order(protocol.Commit(input, epoch, mine, until, until is None))

    # Requests; each is handled by the method of its verb.

    def position(self, request: protocol.GetPosition) -> int | None:
        """The first epoch of an input that may still be committed; None if it is closed."""
        known(self.worker.spec.inputs, request.input, "input")
        self.worker.check_alive()
        with self.deciding:
            return self.positions[request.input]

    def commit(self, request: protocol.Commit) -> bool:
        """Admit the attempts at `epoch`, and have the input go on; False if it is past that.

        Once it has returned, it happens, whatever becomes of the caller, and with a checkpoint
        whatever becomes of the workers: it is written. What else is staged for the input up to
        `epoch` is dropped.
        """
        input, epoch, until = request.input, request.epoch, request.next_epoch
        known(self.worker.spec.inputs, input, "input")
        if input in self.worker.spec.collections:
            return self._close_collections(request)
        if until is not None and until <= epoch:
            raise UsageError(
                f"input {input!r} cannot go on from epoch {epoch} to {until}: that is not later"
            )
        if until is not None and until > NEVER:
            raise UsageError(f"input {input!r} cannot go on to {until}: epochs end at {NEVER}")
        for handle in request.attempts:
            if (handle.input, handle.epoch) != (input, epoch):
                raise UsageError(
                    f"a commit of epoch {epoch} of input {input!r} names attempt "
                    f"{handle.attempt!r}, which was staged for epoch {handle.epoch} of "
                    f"{handle.input!r}"
                )
        with self.deciding:
            position = self.positions[input]
            if position is None or epoch < position:
                self._check_repeated(request, position)
                return False
            with self.worker.changed:
                self.worker.check_alive()
                for handle in request.attempts:
                    self._check_usable(handle)
                # Raises for what is not here, before the decision.
                self.worker.staging.take(request.attempts)
            if self.snapshots is not None:
                self.snapshots.let_past(until)
            attempts = {handle.key: handle for handle in request.attempts}
            decided = replace(request, attempts=tuple(attempts.values()))
            if decided.attempts or until is not None:
                # A close with nothing is no epoch: the next life may go on with it.
                self._write(decided)
            self.positions[input] = until
            if request.attempts:
                self.queries[input] = epoch, request.query
            LOGGER.debug(
                "epoch %d of input %r is committed, with %d attempts",
                epoch,
                input,
                len(attempts),
                extra={"epoch": epoch, "input": input},
            )
            self.worker.order(decided)
        return True

    def _check_repeated(self, request: protocol.Commit, position: int | None) -> None:
        """Raise `EpochError` if a batch of a query is new, and its records would be lost.

        A query repeats its last batch alone. Whose batch the last of a life before was is not
        known where a former version has committed it.
        """
        n_records = sum(handle.rows for handle in request.attempts)
        if request.query is None or not n_records:
            return
        last, query = self.queries.get(request.input, (BEFORE_ALL, None))
        if (last, query) == (request.epoch, request.query):
            return
        if query == UNRECORDED and request.epoch + 1 == self._restored.get(request.input):
            return
        what = f"the batch of query {request.query} for epoch {request.epoch}, {n_records} records,"
        if position is None:
            raise EpochError(
                f"input {request.input!r} is closed and takes nothing more: {what} is not in it"
            )
        raise EpochError(
            f"input {request.input!r} is at epoch {position}, and {what} is not in it: another "
            "query, or the program, has committed that epoch; one query at a time writes to an "
            f'input, and a new one begins with option("first_epoch", {position}) or later'
        )

    def commit_epoch(self, request: protocol.CommitEpoch) -> int | None:
        """Admit the attempts at the epoch that the collections are at, and have all go on.

        As with `commit`, it happens once it has returned; repeated, it has happened.
        """
        collections = self.worker.spec.collections
        for handle in request.attempts:
            known(collections, handle.input, "collection")
        with self.deciding:
            repeated = self._repeated(request)
            if repeated is not None:
                # Behind the order that admits them, if they are the ones that were committed.
                self.worker.order(protocol.Abort(request.attempts))
                return repeated
            epoch = self._collections_at()
            if epoch is None:
                return None
            with self.worker.changed:
                self.worker.check_alive()
                for handle in request.attempts:
                    self._check_usable(handle)
                self.worker.staging.take(request.attempts)
            until = None if request.close else epoch + 1
            if self.snapshots is not None:
                self.snapshots.let_past(until)
            attempts = {handle.key: handle for handle in request.attempts}
            handles = tuple(attempts.values())
            if handles or until is not None:
                # A close with nothing is no epoch: the next life may go on with it.
                time_us = self.times[epoch] = self._now_us()
                self._write_epoch(request, epoch, handles, time_us)
            self._note_commit(request.commit, request.batch, epoch)
            self._committed.update(dict.fromkeys(map(_name_of, handles)))
            _forget_oldest(self._committed, MOST_ABORTED)
            self.positions.update(dict.fromkeys(collections, until))
            LOGGER.debug(
                "epoch %d of the collections is committed, with %d attempts",
                epoch,
                len(attempts),
                extra={"epoch": epoch},
            )
            self._admit(collections, epoch, handles, until)
            return epoch

    def _now_us(self) -> int:
        """The time of a commit, which is not before that of the last, if the clock is set back."""
        last = next(reversed(self.times.values()), 0)
        return max(time.time_ns() // 1_000, last)

    def epoch_times(self, request: protocol.GetEpochTimes) -> dict[str, int]:
        """When epochs of the collections were committed."""
        with self.deciding:
            return {
                str(epoch): time_us
                for epoch, time_us in self.times.items()
                if request.first <= epoch <= request.upto
            }

    def batch(self, request: protocol.GetBatch) -> int | None:
        """The number of the last batch that a feed has committed; None for none."""
        self.worker.check_alive()
        with self.deciding:
            return self.feeds.get(request.commit, (None,))[0]

    def _collections_at(self) -> int | None:
        """The epoch that all collections are at; None if they are closed."""
        collections = self.worker.spec.collections
        if not collections:
            raise UsageError("the service has no collections; its inputs are streams")
        return self.positions[next(iter(collections))]

    def _repeated(self, request: protocol.CommitEpoch) -> int | None:
        """The epoch of a commit that was decided before; None if it was not."""
        if request.batch is None:
            return self.commits.get(request.commit)
        last, epoch = self.feeds.get(request.commit, (request.batch - 1, 0))
        return epoch if request.batch <= last else None

    def _note_commit(self, name: str, batch: int | None, epoch: int) -> None:
        if batch is not None:
            self.feeds[name] = max(self.feeds.get(name, (batch, epoch)), (batch, epoch))
            return
        self.commits[name] = epoch
        _forget_oldest(self.commits, MOST_NAMES)

    def _close_collections(self, request: protocol.Commit) -> bool:
        """Closing one collection closes all, as they go on together; else raises `UsageError`."""
        if not request.close or request.attempts:
            raise UsageError(
                f"input {request.input!r} is a collection, and all collections of a service go on "
                "together: commit_epoch, or service.advance(), has them do so"
            )
        return self.commit_epoch(protocol.CommitEpoch(uuid.uuid4().hex, close=True)) is not None

    def advance(self, request: protocol.AdvanceInput) -> bool:
        """Have an input go on to an epoch, with nothing more at those before."""
        now = self.position(protocol.GetPosition(request.input))
        if now is None or request.epoch <= now:
            return False
        return self.commit(protocol.Commit(request.input, now, until=request.epoch))

    def abort(self, request: protocol.Abort) -> None:
        """Drop what is staged, except what a commit has named; again is no error."""
        for handle in request.attempts:
            self._check_genuine(handle)
        with self.deciding:
            undecided = tuple(one for one in request.attempts if not self._is_decided(one))
            for handle in undecided:
                # Of collections another epoch may name it, which `prune` knows.
                is_stream = handle.input not in self.worker.spec.collections
                if self.worker.checkpoint is not None and handle.stored is not None and is_stream:
                    self.worker.checkpoint.abort(handle.input, handle.epoch, handle.stored)
            self._aborted.update((handle.key, None) for handle in undecided)
            _forget_oldest(self._aborted, MOST_ABORTED)
            if request.job:
                self._aborted_jobs.append(request.job)
            self.worker.order(protocol.Abort(undecided, request.job))

    def await_completion(self, request: protocol.AwaitCompletion) -> bool:
        """Whether an epoch is complete; an input that is behind holds back what it leads to."""

        def is_complete() -> bool:
            return all(
                self.worker.now.is_complete(output, self._reachable(request.epoch, inputs))
                for output, inputs in self._leading.items()
            )

        return self.worker.wait_for(is_complete, request.wait_s)

    def discard(self, request: protocol.Discard) -> None:
        """Raises `EpochError` if the epoch is not complete."""
        worker, output, upto = self.worker, request.output, request.upto
        known(worker.spec.outputs, output, "output")
        if not worker.now.is_complete(output, upto):
            raise worker.incomplete(output, upto)
        with worker.changed:
            worker.outputs[output].discard(upto)  # at once, so that the next read here fails
        worker.order(request)
        with self.deciding:
            needed = min(worker.outputs[name].discarded for name in worker.spec.outputs)
            for epoch in [epoch for epoch in self.times if epoch < needed]:
                del self.times[epoch]

    def snapshot(self, request: protocol.RequestSnapshot) -> dict[str, int | None]:
        """With `soon`, the next is of where the inputs are, unless it is asked for already."""
        snapshots = self._there_are_snapshots()
        if request.soon:
            snapshots.plan_soon()
        return {"committed": snapshots.last, "asked": snapshots.epoch}

    def await_snapshot(self, request: protocol.AwaitSnapshot) -> bool:
        """Whether a snapshot of an epoch, or of a later one, is there."""
        snapshots = self._there_are_snapshots()
        return self.worker.wait_for(lambda: snapshots.last >= request.epoch, request.wait_s)

    def finish(self, request: protocol.Finish) -> None:
        """What closes from here on, goes on in the next life."""
        with self.deciding:
            self.is_finishing = True
            if self.snapshots is not None:
                self.snapshots.ask_no_more()

    def stop(self, request: protocol.Stop) -> None:
        """Have all workers leave, as it is."""
        self.worker.order(request)

    def _there_are_snapshots(self) -> SnapshotCoordinator:
        self.worker.check_alive()
        if self.snapshots is None:
            raise ServiceError(
                "this service makes no snapshots: serve with checkpoint= and snapshot_every="
            )
        return self.snapshots

    # Commits.

    def _check_usable(self, handle: StagingHandle) -> None:
        self._check_genuine(handle)
        is_of_aborted = handle.attempt.startswith(tuple(self._aborted_jobs))
        if is_of_aborted or handle.key in self._aborted:
            raise ServiceError(
                f"attempt {handle.attempt!r} for epoch {handle.epoch} of input {handle.input!r} "
                "was aborted: stage it again"
            )
        if _name_of(handle) in self._committed:
            raise ServiceError(
                f"attempt {handle.attempt!r} to collection {handle.input!r} was committed before, "
                "by a commit of another name: stage it again, if it is to count twice"
            )

    def _check_genuine(self, handle: StagingHandle) -> None:
        if not handle.is_genuine(self._secret):
            raise UsageError(
                f"the staging handle of attempt {handle.attempt!r} is none of this service, or was "
                "changed: hand back what staging gave"
            )

    def _write(self, decided: protocol.Commit) -> None:
        """Make the decision outlast us, where there is a checkpoint."""
        checkpoint, input, epoch = self.worker.checkpoint, decided.input, decided.epoch
        if checkpoint is None:
            return
        self._check_claim()
        stored = [one.stored for one in decided.attempts if one.stored is not None]
        query = decided.query
        if not checkpoint.commit(input, epoch, stored, decided.next_epoch, query=query):
            raise _used_by_another(f"epoch {epoch} of input {input!r}", checkpoint)

    def _write_epoch(
        self,
        request: protocol.CommitEpoch,
        epoch: int,
        handles: Iterable[StagingHandle],
        time_us: int,
    ) -> None:
        """The same of a commit to collections, which is one record for all of them."""
        checkpoint = self.worker.checkpoint
        if checkpoint is None:
            return
        self._check_claim()
        stored = [one.stored for one in handles if one.stored is not None]
        name, batch = request.commit, request.batch
        if not checkpoint.commit(
            COLLECTIONS, epoch, stored, commit=name, batch=batch, time_us=time_us
        ):
            raise _used_by_another(f"epoch {epoch} of the collections", checkpoint)

    def _is_decided(self, handle: StagingHandle) -> bool:
        if handle.input in self.worker.spec.collections:
            return False  # what was committed is not staged any more, so to drop it drops nothing
        position = self.positions.get(handle.input)
        return position is None or handle.epoch < position

    def _reachable(self, epoch: int, inputs: Iterable[str]) -> int:
        """The last epoch up to `epoch` that can be complete where these inputs lead to."""
        # By what is decided: the inputs themselves may be behind that.
        positions = [self.positions[input] for input in inputs]
        return min([epoch + 1, *(time for time in positions if time is not None)]) - 1


def _name_of(handle: StagingHandle) -> StagingKey | str:
    """By which an attempt is known in the next life, too, where the checkpoint has it."""
    return handle.key if handle.stored is None else handle.stored.name


def _forget_oldest(entries: dict[Any, Any], most: int) -> None:
    while len(entries) > most:
        del entries[next(iter(entries))]


def _used_by_another(what: str, checkpoint: Checkpoint) -> ServiceError:
    return ServiceError(
        f"{what} is in {checkpoint} already, and not by this service: another one uses the folder; "
        "only one may, so end this one, or that, and serve again"
    )
