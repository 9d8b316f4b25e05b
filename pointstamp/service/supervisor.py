"""Keeps a service running: starts its workers, and starts them again when one is lost.

With a checkpoint nothing that was committed is lost with a worker. So where a policy allows
it, the workers are started anew: they take up the last snapshot, and admit again what the log
has. Requests wait meanwhile, until what was true of the service (`Reached`) is so again.
"""

from __future__ import annotations

import _thread
import logging
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.errors import (
    CheckpointStructureError,
    CorruptCheckpointError,
    ServiceError,
    StoppedError,
    TruncatedCheckpointError,
    UndeclaredStateError,
    UsageError,
)
from pointstamp.service import protocol
from pointstamp.service.protocol import TICK_S, Status, WorkerHandle
from pointstamp.service.restart_policy import RestartPolicy
from pointstamp.service.worker_pools import ABORTED, LOOK_S, Termination, WorkerPool

if TYPE_CHECKING:
    from pointstamp.service.service_metrics import ServiceMetrics

Answer = TypeVar("Answer")

LOGGER = logging.getLogger("pointstamp.service")

END_S = 10.0
"""How long workers that are to end may take."""

CAUSE_S = 10.0
"""How long the cause may take to be known after a worker is found gone."""


@dataclass
class Reached:
    """What was true of a service, and has to be so again when its workers have started anew."""

    closed: set[str] = field(default_factory=set)
    """Inputs."""
    frontiers: dict[str, int] = field(default_factory=dict)
    """By output, the first epoch that was not complete, as far as that is known."""
    discarded: dict[str, int] = field(default_factory=dict)
    is_finishing: bool = False

    def note(self, status: Status) -> None:
        """A worker has said how far it is."""
        for output in status.outputs:
            self.note_complete(output, status.last_complete(output))
        self.closed |= {input for input, position in status.inputs.items() if position is None}

    def note_complete(self, output: str, epoch: int) -> None:
        """An epoch is complete at an output."""
        self.frontiers[output] = max(self.frontiers.get(output, 0), epoch + 1)

    def note_discarded(self, output: str, epoch: int) -> None:
        """An epoch, which is complete, is discarded."""
        self.note_complete(output, epoch)
        self.discarded[output] = max(self.discarded.get(output, -1), epoch)

    def restore(self, leader: WorkerHandle) -> None:
        """Have it so again; raises `StoppedError` if a worker is lost meanwhile."""
        if self.is_finishing:
            leader.ask(protocol.Finish())
        for input in sorted(self.closed):
            position = leader.ask(protocol.GetPosition(input))
            if position is not None:
                leader.ask(protocol.Commit(input, position, close=True))
        # As far as the inputs let it be: one that another client has closed is open again.
        last = max(self.frontiers.values(), default=0) - 1
        while not leader.ask(protocol.AwaitCompletion(last, TICK_S)):
            pass
        status = leader.ask(protocol.GetStatus())
        for output, upto in self.discarded.items():
            leader.ask(protocol.Discard(output, min(upto, status.last_complete(output))))


class Restarting(ServiceError):
    """The workers are being started again, and are not there in time."""


class Supervisor:
    """Starts the workers of a service, and starts them again by a policy.

    `make_pool(former)` is a pool that begins with the last snapshot there is; it is given the
    handles of the workers before, of which there are none at first. Without a policy the service
    ends when a worker is lost. `release()` is called when it has ended, once or more often: by
    then the workers alone hold what it releases, until they end.
    """

    def __init__(
        self,
        make_pool: Callable[[Sequence[WorkerHandle]], WorkerPool],
        policy: RestartPolicy | None,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        self.termination = Termination()
        self.reached = Reached()
        self.announce: Callable[[Sequence[WorkerHandle]], object] = lambda workers: None
        """Called when they have started again."""
        self.retire: Callable[[], object] = lambda: None
        """Called when the service has ended."""
        self.n_restarts = 0
        """How often the workers were started again, or that was tried."""
        self._process = os.getpid()
        """The only one that has its threads; one that is forked off shares its connections."""
        self._make_pool = make_pool
        self._policy = policy
        self._release = release
        self._changed = threading.Condition()
        self._pool = make_pool(())
        self._starting: WorkerPool | None = None
        self._is_ending = threading.Event()
        self._restarts: deque[float] = deque()
        self._thread = threading.Thread(target=self._watch, name="pointstamp-restart", daemon=True)

    def start(self) -> None:
        """Start the workers; returns when all are ready."""
        self._pool.start()
        self._thread.start()
        n_workers = len(self._pool.workers)
        LOGGER.info(
            "a service is ready: its %d workers are connected",
            n_workers,
            extra={"workers": n_workers},
        )

    @property
    def workers(self) -> Sequence[WorkerHandle]:
        """Those that are there, or were last."""
        return self._pool.workers

    @property
    def is_restarting(self) -> bool:
        """Whether the workers are lost, and not there again."""
        return self._pool.termination.has_ended

    @property
    def may_restart(self) -> bool:
        """Whether there is a policy by which workers are started again."""
        return self._policy is not None

    @property
    def is_here(self) -> bool:
        """Whether it is of this process, and not of one that this was forked off."""
        return os.getpid() == self._process

    def check_process(self) -> None:
        """Raise `UsageError` in a process that was forked off its own.

        Both would read each other's answers, and wait for ever.
        """
        if not self.is_here:
            raise UsageError(
                f"a service of process {self._process} is used in process {os.getpid()}, which was "
                "forked off: only the process that started it can; have that send and read"
            )

    def pool(self, until: float | None = None) -> WorkerPool:
        """The workers that are there; waits while they are started again.

        Raises what the service ended of, or `Restarting` if they are not there at `until`, by
        the monotonic clock, or as `check_process` does.
        """
        self.check_process()
        with self._changed:
            while True:
                self.termination.check()
                if not self._pool.termination.has_ended:
                    return self._pool
                if until is not None and time.monotonic() >= until:
                    raise Restarting("the workers of the service are being started again")
                self._changed.wait(LOOK_S)

    def ask(
        self, question: Callable[[Sequence[WorkerHandle]], Answer], until: float | None = None
    ) -> Answer:
        """What `question(workers)` gives; asked again of the next workers, if these are lost."""
        while True:
            pool = self.pool(until)
            try:
                return question(pool.workers)
            except StoppedError as refusal:
                if not pool.termination.wait(CAUSE_S):
                    raise ServiceError(f"{refusal}; why is not known") from refusal

    def end(self) -> None:
        """Start nothing again: the workers are about to end."""
        self._is_ending.set()

    def abort(self) -> None:
        """End the workers as they are."""
        self.end()
        self.termination.end(StoppedError(ABORTED))
        with self._changed:
            pools = [self._pool] if self._starting is None else [self._starting, self._pool]
            self._changed.notify_all()
        for pool in pools:
            pool.abort()
        self._release()

    def join(self, timeout_s: float) -> bool:
        """Wait until the workers have ended; whether they have."""
        until = time.monotonic() + timeout_s
        if not (self._starting or self._pool).join(timeout_s):
            return False
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    # In the thread of its own.

    def _watch(self) -> None:
        while True:
            ended = self._pool.termination
            ended.wait()
            error = ended.error
            if error is not None and not self._is_ending.is_set():
                first = str(error).partition("\n")[0]
                LOGGER.info("the workers of a service have ended: %s", first)
            if error is None or not self._may_restart(error) or not self._restart(error):
                self.termination.end(error)
                with self._changed:
                    self._changed.notify_all()
                self.retire()
                self._release()
                return

    def _may_restart(self, error: BaseException) -> bool:
        """Whether starting again could do better than ending of this."""
        if self._policy is None or self._is_ending.is_set():
            return False
        hopeless = (
            UsageError,
            StoppedError,
            CheckpointStructureError,
            UndeclaredStateError,
            # What is damaged is as damaged the next time.
            CorruptCheckpointError,
            TruncatedCheckpointError,
        )
        return not isinstance(error.__cause__ or error, hopeless)

    def _restart(self, first: BaseException) -> bool:
        """Start the workers until they are there; False if they are not to be."""
        assert self._policy is not None
        error, former, pool = first, self._pool.workers, self._pool
        _end(pool)
        while self._is_allowed():
            delay_s = self._policy.delay_s if len(self._restarts) > 1 else 0.0
            LOGGER.warning(
                "a service has lost its workers, and starts them again in %g s (restart %d of %d "
                "within %g s): %s",
                delay_s,
                len(self._restarts),
                self._policy.attempts,
                self._policy.within_s,
                error,
            )
            self.n_restarts += 1
            if self._is_ending.wait(delay_s):
                return False
            try:
                pool = self._make_pool(former)
                with self._changed:
                    self._starting = pool
                if self._is_ending.is_set():  # too early for `abort` to have found this one
                    return False
                pool.start()
                self.reached.restore(pool.workers[0])
                self.announce(pool.workers)
            except Exception as failure:  # noqa: BLE001  (it is tried again, or said)
                _end(pool)
                if self._is_ending.is_set():
                    return False
                error = failure
            else:
                with self._changed:
                    self._pool, self._starting = pool, None
                    self._changed.notify_all()
                LOGGER.info(
                    "a service has its %d workers again, after restart %d",
                    *(len(pool.workers), self.n_restarts),
                    extra={"workers": len(pool.workers), "restarts": self.n_restarts},
                )
                if self._is_ending.is_set():
                    pool.abort()
                return True
        first.add_note(
            f"the workers of the service were started again {self._policy.attempts} times within "
            f"{self._policy.within_s:g} s, as its RestartPolicy allows; the last time they ended "
            f"of: {error}"
        )
        return False

    def _is_allowed(self) -> bool:
        """Whether the policy allows another restart now, which then counts."""
        assert self._policy is not None
        now = time.monotonic()
        while self._restarts and now - self._restarts[0] > self._policy.within_s:
            self._restarts.popleft()
        if len(self._restarts) >= self._policy.attempts:
            return False
        self._restarts.append(now)
        return True


def _end(pool: WorkerPool) -> None:
    pool.abort()
    pool.join(END_S)


def abandoned(supervisor: Supervisor, page: Any, metrics: ServiceMetrics) -> None:
    """Nothing holds the service any more: without this its workers would stay to the end."""
    if not supervisor.is_here:
        return
    if page is not None and not page.is_closed:
        _thread.start_new_thread(page.close, ())
    metrics.abandon()
    if not supervisor.termination.has_ended:
        text = "a service that was never stopped is aborted: leave its block, or call stop()"
        supervisor.end()
        supervisor.termination.end(StoppedError(text))
        # Collection may come anywhere, where locks are held too: so no `threading`, which has some.
        _thread.start_new_thread(supervisor.abort, ())
        warnings.warn(text, ResourceWarning, stacklevel=2)
