"""Pools of workers of a service: as threads of this process, or as processes.

A pool starts its workers once. What ends them is in its `Termination`; a service that begins
again makes another pool.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from pointstamp.communication.control import WorkerConfig
from pointstamp.communication.tls import Certificates
from pointstamp.errors import StoppedError
from pointstamp.runtime.execute import execute
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.termination import Termination
from pointstamp.service.worker_handle import WorkerHandle

LOOK_S = 0.05


class WorkerPool(Protocol):
    """Workers of one life of a service."""

    termination: Termination

    def start(self) -> Sequence[WorkerHandle]:
        """Start the workers; their handles, by index, when all are ready."""

    def abort(self) -> None:
        """Make the workers end, whatever they do."""

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing of them is left; whether that is so."""


class ThreadWorkerPool:
    """Workers as threads of this process, started and ended by another one."""

    def __init__(self, spec: ServiceSpec, workers: int, config: CheckpointConfig | None) -> None:
        self.termination = Termination()
        self._spec = spec
        self._config = config
        self._n_workers = workers
        self._arrived: queue.SimpleQueue[ServiceWorker] = queue.SimpleQueue()
        self._workers: dict[int, ServiceWorker] = {}
        self._thread = threading.Thread(target=self._run, name="pointstamp-service", daemon=True)

    def start(self) -> Sequence[WorkerHandle]:
        """Start the workers; they, by index, when all are ready."""
        self._thread.start()
        try:
            while len(self._workers) < self._n_workers:
                self.termination.check()
                try:
                    arrived = self._arrived.get(timeout=LOOK_S)
                except queue.Empty:
                    continue
                self._workers[arrived.index] = arrived
        except BaseException:
            self.abort()
            self._thread.join()
            raise
        return [self._workers[index] for index in range(self._n_workers)]

    def abort(self) -> None:
        """Make the workers end at their next step."""
        self.termination.end(StoppedError("the service was aborted"))
        while not self._arrived.empty():
            arrived = self._arrived.get()
            self._workers[arrived.index] = arrived
        for worker in self._workers.values():
            worker.fail(StoppedError("the service was aborted"))

    def join(self, timeout_s: float) -> bool:
        """Wait until the workers have ended; whether they have."""
        until = time.monotonic() + timeout_s
        # The thread that runs them waits only a moment for those at work when others fail.
        for thread in (self._thread, *(worker.thread for worker in self._workers.values())):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                return False
        return True

    def _run(self) -> None:
        self.termination.end_with(
            lambda: execute(
                run_in_thread,
                self._spec,
                self._arrived.put,
                self._config,
                workers=self._n_workers,
                threads=True,
            )
        )


def run_in_thread(
    worker: Worker,
    spec: ServiceSpec,
    arrived: Callable[[ServiceWorker], object],
    config: CheckpointConfig | None,
) -> None:
    """Run a worker of a service in the process that drives it."""
    service_worker = ServiceWorker(worker, spec, config)
    arrived(service_worker)
    service_worker.run()


class RemoteWorkerPool:
    """Workers that report over a control connection, and are reached by Arrow Flight.

    Parameters
    ----------
    secret : bytes
        Of the service; the same in all its lives.
    ports : tuple of int
        See `ServiceWorkerConfig`.
    listen : str
        The address of this machine that the control server listens at.
    reached_at : str, optional
        By which the workers reach it, if that is another.
    """

    def __init__(
        self,
        spec: ServiceSpec,
        workers: int,
        certificates: Certificates | None,
        config: CheckpointConfig | None,
        secret: bytes,
        ports: tuple[int, ...] = (),
        *,
        listen: str = "127.0.0.1",
        reached_at: str | None = None,
    ) -> None:
        # Not at the top: threads need no Flight, which takes its time to import.
        from pointstamp.service.flight_client import RemoteWorker
        from pointstamp.service.worker_control import ServiceWorkerConfig, WorkerControl

        self.termination = Termination()
        self._spec = spec
        self._n_workers = workers
        self._certificates = certificates
        self._secret = secret
        self._control = WorkerControl(workers, secret, self.termination, listen, certificates)
        self._handles: list[RemoteWorker] = []
        address, port = self._control.address
        control = WorkerConfig((reached_at or address, port), secret, certificates=certificates)
        self._config = ServiceWorkerConfig(control, config, ports=ports)
        self._thread = threading.Thread(target=self._run, name="pointstamp-service", daemon=True)

    def start(self) -> Sequence[WorkerHandle]:
        """Start the workers; their handles, when all have reported."""
        from pointstamp.service.flight_client import RemoteWorker
        from pointstamp.service.flight_server import token_of

        self._thread.start()
        roots = None if self._certificates is None else self._certificates.roots
        try:
            token = token_of(self._secret)
            self._handles = [
                RemoteWorker(address, token, roots) for address in self._control.endpoints()
            ]
        except BaseException:
            self.abort()
            self.join(0.0)
            self._thread.join()
            raise
        return self._handles

    def abort(self) -> None:
        """Close the connections, at which the workers end."""
        self.termination.end(StoppedError("the service was aborted"))
        self._disconnect()

    def join(self, timeout_s: float) -> bool:
        """Wait until the workers have ended; whether they have."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        self._disconnect()
        return True

    def _disconnect(self) -> None:
        self._control.close()
        for handle in self._handles:
            handle.close()

    def _run(self) -> None:
        """Run the workers to their end, and end `termination`; in a thread of its own."""
        raise NotImplementedError


class ProcessWorkerPool(RemoteWorkerPool):
    """Workers as processes of this machine; one alone is a thread of this process."""

    def _run(self) -> None:
        from pointstamp.service.worker_control import run_service_worker

        self.termination.end_with(
            lambda: execute(run_service_worker, self._spec, self._config, workers=self._n_workers)
        )
