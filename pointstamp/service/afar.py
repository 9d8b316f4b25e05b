"""A worker of a service in another process than who drives it: its door, and its line."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from pointstamp.runtime.worker import Worker
from pointstamp.service.blueprint import Blueprint
from pointstamp.service.client import FlightLink
from pointstamp.service.desk import Desk, Line
from pointstamp.service.door import Certificates, Door, token_of
from pointstamp.service.fate import Fate
from pointstamp.service.keeping import Keeping
from pointstamp.service.resident import Resident

ARRIVE_S = 120.0
"""How long the workers may take to start."""


@dataclass(frozen=True)
class Appointment:
    """What a worker is told of where to report, and how to open its door.

    Attributes
    ----------
    desk : tuple of str and int
        The address to report at.
    secret : bytes
        Of the job.
    host, name : str, str or None
        See `Door`.
    certificates : Certificates or None
    keeping : Keeping or None
    """

    desk: tuple[str, int]
    secret: bytes
    host: str = "127.0.0.1"
    name: str | None = None
    certificates: Certificates | None = None
    keeping: Keeping | None = None


def reside_afar(worker: Worker, plan: Blueprint, appointment: Appointment) -> None:
    """The life of a worker: it reports, opens its door, and runs until it is told to stop."""
    secret = appointment.secret
    line = Line(appointment.desk, worker.index, worker.peers, secret)
    with contextlib.closing(line):
        try:
            resident = Resident(worker, plan, appointment.keeping, secret)
            door = Door(
                resident,
                token_of(secret),
                appointment.host,
                appointment.name,
                appointment.certificates,
            )
            try:
                door.all = line.arrive(door.address)
                line.watch(resident.fail)
                resident.run()
            finally:
                resident.end()  # who waits at the door is let go, else it would not close
                door.close()
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
        fate: Fate,
        host: str,
        certificates: Certificates | None,
    ) -> None:
        self._secret = secret
        self._roots = None if certificates is None else certificates.roots
        self._desk = Desk(workers, secret, fate, host)
        self._links: list[FlightLink] = []
        self.address = self._desk.address

    def meet(self, timeout_s: float = ARRIVE_S) -> Sequence[FlightLink]:
        """Wait for the workers; their links, by index."""
        doors = self._desk.doors(timeout_s)
        self._links = [FlightLink(door, token_of(self._secret), self._roots) for door in doors]
        return self._links

    def hang_up(self) -> None:
        """Let the workers know that they should end, and talk to them no more."""
        self._desk.close()
        for link in self._links:
            link.close()
