"""A worker of a service in another process than who drives it: its server, and its line."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pointstamp.communication.authentication import new_secret
from pointstamp.communication.tls import Certificates
from pointstamp.runtime.worker import Worker
from pointstamp.service.checkpoint_config import CheckpointConfig
from pointstamp.service.desk import Desk, Line
from pointstamp.service.flight_client import RemoteWorker
from pointstamp.service.flight_server import FlightServer, token_of
from pointstamp.service.service_worker import ServiceWorker
from pointstamp.service.spec import ServiceSpec
from pointstamp.service.staging import StagingHandle
from pointstamp.service.termination import Termination

ARRIVE_S = 120.0
"""How long the workers may take to start."""


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker is told of where to report, and how to open its server.

    Attributes
    ----------
    desk : tuple of str and int
        The address to report at.
    secret : bytes
        Of the job.
    host, name : str, str or None
        See `FlightServer`.
    certificates : Certificates or None
    config : CheckpointConfig or None
    """

    desk: tuple[str, int]
    secret: bytes = field(repr=False)
    host: str = "127.0.0.1"
    name: str | None = None
    certificates: Certificates | None = None
    config: CheckpointConfig | None = None


def run_service_worker(worker: Worker, plan: ServiceSpec, appointment: WorkerConfig) -> None:
    """The life of a worker: it reports, opens its server, and runs until it is told to stop."""
    secret = appointment.secret
    line = Line(appointment.desk, worker.index, worker.peers, secret)
    with contextlib.closing(line):
        try:
            resident = ServiceWorker(worker, plan, appointment.config, secret)
            server = FlightServer(
                resident,
                token_of(secret),
                appointment.host,
                appointment.name,
                appointment.certificates,
            )
            try:
                server.all = line.arrive(server.address)
                line.watch(resident.fail)
                resident.run()
            finally:
                resident.end()  # who waits at the server is let go, else it would not close
                server.close()
        except BaseException as cause:
            line.fail(cause)
            raise
        line.leave()


class Reception:
    """The driver's side: a desk, and, when all have reported, the links to the workers."""

    def __init__(
        self,
        workers: int,
        secret: bytes,
        termination: Termination,
        host: str,
        certificates: Certificates | None,
    ) -> None:
        self._secret = secret
        self._roots = None if certificates is None else certificates.roots
        self._desk = Desk(workers, secret, termination, host)
        self._links: list[RemoteWorker] = []
        self.address = self._desk.address

    def meet(self, timeout_s: float = ARRIVE_S) -> Sequence[RemoteWorker]:
        """Wait for the workers; their links, by index."""
        endpoints = self._desk.endpoints(timeout_s)
        self._links = [
            RemoteWorker(server, token_of(self._secret), self._roots) for server in endpoints
        ]
        return self._links

    def hang_up(self) -> None:
        """Let the workers know that they should end, and talk to them no more."""
        self._desk.close()
        for link in self._links:
            link.close()


class RemoteWorkerPool:
    """The pool of a service whose workers report to a desk here.

    Parameters
    ----------
    listen : str
        The address of this machine that the desk listens at.
    desk : str, optional
        By which the workers reach it, if that is another.
    """

    def __init__(
        self,
        plan: ServiceSpec,
        workers: int,
        certificates: Certificates | None,
        config: CheckpointConfig | None,
        *,
        listen: str = "127.0.0.1",
        desk: str | None = None,
    ) -> None:
        self.termination = Termination()
        self._plan = plan
        self._n_workers = workers
        secret = new_secret()
        self.token: str | None = token_of(secret)
        self._reception = Reception(workers, secret, self.termination, listen, certificates)
        address, port = self._reception.address
        self._appointment = WorkerConfig(
            (desk or address, port), secret, certificates=certificates, config=config
        )
        self._thread = threading.Thread(target=self._run, name="pointstamp-service", daemon=True)

    def start(self) -> Sequence[RemoteWorker]:
        """Start the workers; their links, when all have reported."""
        self._thread.start()
        try:
            return self._reception.meet()
        except BaseException:
            self.abort()
            self.join(0.0)
            self._thread.join()
            raise

    def abort(self) -> None:
        """Hang up, at which the workers end."""
        self._reception.hang_up()

    def join(self, timeout_s: float) -> bool:
        """Wait until the workers have ended; whether they have."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        self._reception.hang_up()
        return True

    def stage(self, service: Any, input: str, epoch: int, data: Any) -> list[StagingHandle] | None:
        """Nothing is known here that the service does not know."""
        return None

    def _run(self) -> None:
        """Run the workers to their end, and tell `termination` of that; in a thread of its own."""
        raise NotImplementedError
