"""Pools of workers of a service, which are started once, and how their life ends.

A pool runs its workers in a thread of its own: as threads of this process, as processes of
this machine, or as tasks of Spark (`pointstamp.spark.service_pool`). They report to it over the
control connection of their job, as to any program that starts workers; a worker that is in
this process calls it. A service that begins again makes another pool.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from pointstamp.communication import publishing
from pointstamp.communication.communicator import Communicator
from pointstamp.communication.processes import run_processes
from pointstamp.errors import RendezvousError, ServiceError, StoppedError
from pointstamp.operators.building import name_of
from pointstamp.runtime.execute import execute
from pointstamp.runtime.run_worker import run_worker
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig
from pointstamp.service.protocol import WorkerHandle, token_of
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import FlightConfig, ServiceSpec

ARRIVE_S = 120.0
"""How long the workers may take to start."""

LOOK_S = 0.05

ABORTED = "the service was aborted"


@dataclass(frozen=True)
class WorkerReady:
    """A request: this worker can be asked. The answer has the addresses of all, by index."""

    worker: int
    reached_at: ServiceWorker | str
    """Itself, where it is in the process of its pool, or the address of its Flight server."""


@dataclass(frozen=True)
class AwaitAbort:
    """A request: the answer comes when the worker is to end as it is."""


def run_service_worker(
    worker: Worker,
    spec: ServiceSpec,
    config: CheckpointConfig | None,
    flight: FlightConfig | None,
    report: Callable[[WorkerReady | AwaitAbort], Future[Any]],
) -> None:
    """Run a worker of a service: it reports, serves, and goes on until it is to stop."""
    secret = b"" if flight is None else flight.secret
    if spec.notes_lines:
        worker.environment.lines = {}
    with contextlib.ExitStack() as stack:
        if config is not None:
            stack.enter_context(config.shared_claim())
        service_worker = ServiceWorker(worker, spec, config, secret)
        reached_at: ServiceWorker | str = service_worker
        if flight is not None:
            # Not at the top: threads need no Flight, which takes its time to import.
            from pointstamp.service.flight_server import FlightServer

            server = FlightServer(service_worker, flight)
            stack.callback(server.close)
            reached_at = server.address
        stack.callback(service_worker.end)  # wakes what waits at the server, or it would not close
        service_worker.endpoints = report(WorkerReady(worker.index, reached_at)).result()
        gone = StoppedError("the program that runs the service has gone, or has aborted it")
        report(AwaitAbort()).add_done_callback(lambda _: service_worker.fail(gone))
        service_worker.run()


class Termination:
    """How the workers of a service have ended: the cause, of which a refusal is a consequence.

    >>> termination = Termination()
    >>> termination.check()
    >>> termination.end(ServiceError("worker 1 fell over"))
    >>> termination.check()
    Traceback (most recent call last):
    pointstamp.errors.ServiceError: worker 1 fell over
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self.error: BaseException | None = None
        """What they ended of."""
        self.wait = self._ended.wait
        """`wait(timeout_s)`: wait until they have ended; whether they have."""

    @property
    def has_ended(self) -> bool:
        """Whether the workers are gone."""
        return self._ended.is_set()

    def end(self, error: BaseException | None = None) -> None:
        """The workers have ended, of `error` or as they should; the first call counts."""
        if not self.has_ended:
            self.error = error
            self._ended.set()

    def check(self) -> None:
        """Raise what the workers ended of, if they have ended."""
        if self.has_ended:
            # One error is raised to any number of callers: each with a traceback of its own.
            error = self.error or StoppedError("the service has stopped")
            raise error.with_traceback(None) from error.__cause__


class WorkerPool:
    """Workers of one life of a service, on this machine; subclasses start them elsewhere.

    Without `flight` the workers are threads of this process, and have no Flight servers. With it
    they are processes; one alone is a thread.
    """

    def __init__(
        self,
        spec: ServiceSpec,
        workers: int,
        config: CheckpointConfig | None,
        flight: FlightConfig | None,
    ) -> None:
        self.termination = Termination()
        self.workers: Sequence[WorkerHandle] = ()
        """By index, when all are ready."""
        self._spec = spec
        self._n_workers = workers
        self._config = config
        self._flight = flight
        self._is_aborted = False
        self._ready: dict[int, WorkerReady] = {}
        self._waiting: list[Future[Any]] = []
        self._changed = threading.Condition()
        self._connections = contextlib.ExitStack()
        self._thread = threading.Thread(target=self._end, name="pointstamp-service", daemon=True)

    def start(self, timeout_s: float = ARRIVE_S) -> None:
        """Start the workers; returns when all are ready.

        Raises `RendezvousError` if some have not reported in time, and `WorkerError` if one failed.
        """
        self._thread.start()
        try:
            self._await_workers(time.monotonic() + timeout_s, timeout_s)
        except BaseException:
            self.abort()
            while not self.join(1.0):
                pass
            raise

    def abort(self) -> None:
        """Make the workers end, whatever they do."""
        self.termination.end(StoppedError(ABORTED))
        with self._changed:
            self._is_aborted = True
            waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer.set_exception(StoppedError(ABORTED))
        self._connections.close()

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing of the workers is left; whether that is so."""
        until = time.monotonic() + timeout_s
        # The thread that runs them waits only a moment for those at work when others fail.
        found = [ready.reached_at for ready in self._ready.values()]
        threads = [worker.thread for worker in found if isinstance(worker, ServiceWorker)]
        started = [thread for thread in (self._thread, *threads) if thread.ident is not None]
        for thread in started:
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                return False
        self._connections.close()
        return True

    def take(self, message: WorkerReady | AwaitAbort) -> Future[Any]:
        """The answer to what a worker reports; on any thread."""
        answer: Future[Any] = Future()
        with self._changed:
            if self._is_aborted:
                raise StoppedError(ABORTED)
            if isinstance(message, WorkerReady):
                if message.worker in self._ready:
                    # As where Spark runs a stage again.
                    raise ServiceError(
                        f"worker {message.worker} of the service is there already; the one that "
                        "comes later is refused"
                    )
                self._ready[message.worker] = message
                self._changed.notify_all()
            self._waiting.append(answer)
        return answer

    def _await_workers(self, until: float, timeout_s: float) -> None:
        with self._changed:
            while len(self._ready) < self._n_workers:
                self.termination.check()
                if time.monotonic() > until:
                    missing = sorted(set(range(self._n_workers)) - self._ready.keys())
                    raise RendezvousError(
                        f"worker {', '.join(map(str, missing))} of the service did not report in "
                        f"{timeout_s:g} s; the log of its task or process says what keeps it"
                    )
                self._changed.wait(LOOK_S)
            found = [self._ready[index].reached_at for index in range(self._n_workers)]
            self.workers = [self._handle(reached_at) for reached_at in found]
            answers, self._waiting = self._waiting, []
        for answer in answers:
            answer.set_result([worker.address for worker in self.workers])

    def _handle(self, reached_at: ServiceWorker | str) -> WorkerHandle:
        if isinstance(reached_at, ServiceWorker):
            return reached_at
        from pointstamp.service.flight_client import RemoteWorker

        assert self._flight is not None
        token = token_of(self._flight.secret)
        worker = RemoteWorker(reached_at, token, self._flight.certificates)
        return self._connections.enter_context(worker)

    def _end(self) -> None:
        """On the thread: run the workers to their end."""
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001  (raised where the service is used)
            self.termination.end(error)
        else:
            self.termination.end()

    def _run(self) -> None:
        spec, config, flight, n_workers = self._spec, self._config, self._flight, self._n_workers
        if flight is None or n_workers == 1:
            main = run_service_worker
            args = spec, config, flight, self.take
            execute(main, *args, workers=n_workers, threads=True, **spec.run_options)
            return

        def target(communicator: Communicator) -> None:
            report = publishing.request
            args = spec, config, flight, report
            run_worker(communicator, run_service_worker, *args, **spec.run_options)

        # What cannot be carried to the workers is reported under the name the caller knows.
        target.__qualname__ = name_of(spec.build)
        run_processes(target, n_workers, self.handlers)

    @property
    def handlers(self) -> dict[type, Callable[[object, Any], Future[Any]]]:
        """Of the messages that workers send over their control connections."""
        return dict.fromkeys((WorkerReady, AwaitAbort), lambda _, message: self.take(message))
