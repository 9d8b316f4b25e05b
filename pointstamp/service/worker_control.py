"""The control connection of a service's workers: they report, and are missed when they die.

Each worker connects to the `ControlServer` of the program that started it, reports where its
Flight server is, and is answered with the endpoints of all when all have reported. The
connection then stays: a worker that fails says why over it, the loss of one that dies is
noticed at once, and a worker whose program is gone ends.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from pointstamp.communication.control import (
    ControlClient,
    ControlConnection,
    ControlServer,
    WorkerConfig,
)
from pointstamp.communication.failure import Failure, dump, failure, first_cause, load
from pointstamp.communication.tls import Certificates
from pointstamp.errors import PeerLostError, RendezvousError, ServiceError, StoppedError
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig
from pointstamp.service.flight_server import FlightServer, token_of
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.termination import Termination

ARRIVE_S = 120.0
"""How long the workers may take to start."""

FIRST_WORD_S = 1.0
"""How long a worker that is only missed, or fails because a peer did, lets others report first."""

LOOK_S = 0.05


@dataclass(frozen=True)
class EndpointReady:
    """A worker's Flight server is there; answered with those of all, by index."""

    address: str


@dataclass(frozen=True)
class WorkerFailed:
    """Why a worker fails, as `failure.dump` gave it."""

    failure: bytes


@dataclass(frozen=True)
class ServiceWorkerConfig:
    """How a worker of a service reports, and opens its Flight server.

    Attributes
    ----------
    control : WorkerConfig
        Where to report.
    checkpoint : CheckpointConfig or None
    host, name : str, str or None
        See `FlightServer`.
    ports : tuple of int
        By index, those that the Flight servers had before, to be had again where they are free.
    """

    control: WorkerConfig
    checkpoint: CheckpointConfig | None = None
    host: str = "127.0.0.1"
    name: str | None = None
    ports: tuple[int, ...] = ()


def run_service_worker(worker: Worker, spec: ServiceSpec, config: ServiceWorkerConfig) -> None:
    """Run a worker of a service: it reports, serves, and goes on until it is to stop."""
    running: list[ServiceWorker] = []

    def end(connection: ControlConnection, reason: str | None) -> None:
        for each in running:
            each.fail(StoppedError("the program that runs the service has gone, or has aborted it"))

    with ControlClient.connect(config.control, worker.index, on_close=end) as control:
        try:
            _serve(worker, spec, config, control, running)
        except BaseException as cause:
            found = failure(worker.index, cause, time.monotonic())
            control.send(WorkerFailed(dump(found)))
            raise


def _serve(
    worker: Worker,
    spec: ServiceSpec,
    config: ServiceWorkerConfig,
    control: ControlClient,
    running: list[ServiceWorker],
) -> None:
    secret = config.control.secret
    service_worker = ServiceWorker(worker, spec, config.checkpoint, secret)
    server = _server(service_worker, config, token_of(secret))
    try:
        try:
            service_worker.endpoints = control.ask(EndpointReady(server.address), ARRIVE_S)
            running.append(service_worker)
            if not control.is_open:
                raise PeerLostError("it is closed")
        except PeerLostError as cause:
            raise StoppedError(
                "the service was given up before all its workers had arrived"
            ) from cause
        service_worker.run()
    finally:
        service_worker.end()  # what waits at the server is woken, else it would not close
        server.close()


def _server(worker: ServiceWorker, config: ServiceWorkerConfig, token: str) -> FlightServer:
    """The Flight server, at the port that it had before if that is free."""
    port = config.ports[worker.index] if config.ports else 0
    if port and not _is_free(config.host, port):
        port = 0
    certificates = config.control.certificates
    return FlightServer(worker, token, config.host, config.name, port, certificates)


def _is_free(host: str, port: int) -> bool:
    """Whether nothing listens at a port: gRPC would share it with another server, in silence."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


class WorkerControl:
    """The driver's end of the control connections; ends `termination` when a worker is lost.

    Parameters
    ----------
    workers : int
        How many will report.
    secret : bytes
        Of the job.
    termination : Termination
    host : str
        The address of this machine to listen at.
    """

    def __init__(
        self,
        workers: int,
        secret: bytes,
        termination: Termination,
        host: str = "127.0.0.1",
        certificates: Certificates | None = None,
    ) -> None:
        self._n_workers = workers
        self._termination = termination
        self._ready: dict[int, tuple[str, Future[list[str]]]] = {}
        self._changed = threading.Condition()
        self._failures: list[Failure] = []
        self._server = ControlServer(
            secret,
            host,
            handlers={EndpointReady: self._take_endpoint, WorkerFailed: self._take_failure},
            on_close=self._take_end,
            certificates=certificates,
        )
        self.address = self._server.address

    def endpoints(self, timeout_s: float = ARRIVE_S) -> Sequence[str]:
        """The addresses of all workers' Flight servers, by index, when all have reported.

        Raises
        ------
        RendezvousError
            If some have not in time; says which.
        WorkerError
            If one failed instead.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            while len(self._ready) < self._n_workers:
                self._termination.check()
                if time.monotonic() > until:
                    missing = sorted(set(range(self._n_workers)) - self._ready.keys())
                    raise RendezvousError(
                        f"worker {', '.join(map(str, missing))} of the service did not report at "
                        f"{self.address[0]}, port {self.address[1]}, in {timeout_s:g} s; the log "
                        "of its task or process says what keeps it"
                    )
                self._changed.wait(LOOK_S)
            endpoints = [self._ready[index][0] for index in range(self._n_workers)]
            for _, answer in self._ready.values():
                answer.set_result(endpoints)
        return endpoints

    def close(self) -> None:
        """Close the connections: workers that are still there end."""
        self._server.close()

    # In the thread of the control server.

    def _take_endpoint(
        self, connection: ControlConnection, message: EndpointReady
    ) -> Future[list[str]]:
        with self._changed:
            if connection.worker in self._ready:
                # As where Spark runs a stage again.
                raise ServiceError(
                    f"worker {connection.worker} of the service is there already; the one that "
                    "comes later is refused"
                )
            answer: Future[list[str]] = Future()
            self._ready[connection.worker] = message.address, answer
            self._changed.notify_all()
        return answer

    def _take_failure(self, connection: ControlConnection, message: WorkerFailed) -> None:
        failed = load(message.failure)
        self._note(failed, waits=failed.secondary)

    def _take_end(self, connection: ControlConnection, reason: str | None) -> None:
        if reason is not None:
            why = f"went away without a word: it was killed, or its machine is gone ({reason})"
            self._note(Failure(connection.worker, time.monotonic(), why), waits=True)

    def _note(self, failed: Failure, *, waits: bool) -> None:
        """Have the service end of this, unless a better reason comes."""
        self._failures.append(failed)
        if waits:
            later = threading.Timer(FIRST_WORD_S, self._end)
            later.daemon = True
            later.start()
        else:
            self._end()

    def _end(self) -> None:
        cause = first_cause(self._failures)
        error = cause.as_error()
        error.__cause__ = cause.cause
        self._termination.end(error)
