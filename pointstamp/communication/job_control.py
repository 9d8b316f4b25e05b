"""What the process that starts a job knows of its workers: addresses, and the first cause.

For workers that something else starts, as the tasks of a Spark job. Each reports where it
listens, and gets the addresses of all when all have (`JoinMesh`); one that fails reports of
what (`FailureReport`), and gets the first cause in return, which the process that started the
job has then, too. A connection that is lost is a failure as well.

Rules:

- Workers that join are of one attempt. What joins again, as its stage is run again, takes the
  place of what joined before; a worker that ends takes its address along.
- Failures are ordered by their arrival here, since machines have clocks of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pointstamp.communication.control import Address, ControlConnection, ControlServer, Handler
from pointstamp.communication.failure import Failure, dump, first_cause, load
from pointstamp.communication.tls import Certificates
from pointstamp.errors import StoppedError

LOST = (
    "went away without a word: it was killed, or its machine is gone; if memory was short, "
    "fewer workers, or more memory for each, help"
)


@dataclass(frozen=True)
class JoinMesh:
    """A request: this worker listens at `address`. The answer has all addresses, by index."""

    attempt: int
    workers: int
    address: Address


@dataclass(frozen=True)
class LeaveMesh:
    """A request: forget the address. The answer is None, or all addresses: then it is too late."""

    attempt: int


@dataclass(frozen=True)
class FailureReport:
    """A request: this worker failed. The answer is the first cause, as `failure.dump` has it."""

    failure: bytes


_Place = tuple[ControlConnection, Address, Future[list[Address]]]
_Watch = tuple[Mapping[type, Handler], Callable[[Failure], object]]


class JobControl:
    """A control server that brings the workers of jobs together, and keeps why they failed.

    Parameters
    ----------
    secret, host, certificates
        As of `ControlServer`. A job is a group of its connections.
    """

    def __init__(
        self, secret: bytes, host: str = "127.0.0.1", certificates: Certificates | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._joined: dict[tuple[str, int], dict[int, _Place]] = {}
        self._met: dict[tuple[str, int, ControlConnection], list[Address]] = {}
        self._failures: dict[str, list[Failure]] = {}
        self._asking: dict[str, list[Future[bytes]]] = {}
        self._watches: dict[str, _Watch] = {}
        self.server = ControlServer(
            secret,
            host,
            handlers={
                JoinMesh: self._join,
                LeaveMesh: self._leave,
                FailureReport: self._failed,
            },
            on_close=self._closed,
            certificates=certificates,
        )

    def first_cause(self, group: str) -> Failure | None:
        """What the last attempt of a job failed of; None if its workers did not."""
        with self._lock:
            failures = self._failures.get(group)
        return first_cause(failures) if failures else None

    @contextmanager
    def watching(
        self,
        group: str,
        handlers: Mapping[type, Handler],
        on_failure: Callable[[Failure], object],
    ) -> Iterator[None]:
        """Have `handlers` take a job's own messages, and `on_failure` its first cause, at once."""
        self._watches[group] = handlers, on_failure
        for kind in handlers:
            self.server.handle(kind, self._pass_on)
        try:
            yield
        finally:
            del self._watches[group]

    def close(self) -> None:
        """End the server."""
        self.server.close()

    # In the server's thread.

    def _join(self, connection: ControlConnection, message: JoinMesh) -> Future[list[Address]]:
        key = connection.group, message.attempt
        answer: Future[list[Address]] = Future()
        with self._lock:
            joined = self._joined.setdefault(key, {})
            joined[connection.worker] = (connection, message.address, answer)
            if len(joined) < message.workers:
                return answer
            del self._joined[key]
            self._failures.pop(connection.group, None)
            addresses = [joined[worker][1] for worker in sorted(joined)]
            for member, _, _ in joined.values():
                self._met[*key, member] = addresses
        for _, _, future in joined.values():
            future.set_result(addresses)
        return answer

    def _leave(self, connection: ControlConnection, message: LeaveMesh) -> list[Address] | None:
        key = connection.group, message.attempt
        with self._lock:
            met = self._met.get((*key, connection))
            if met is None:
                self._joined.get(key, {}).pop(connection.worker, None)
            return met

    def _failed(self, connection: ControlConnection, message: FailureReport) -> Any:
        found = replace(load(message.failure), at=time.monotonic())
        answer: Future[bytes] = Future()
        with self._lock:
            self._asking.setdefault(connection.group, []).append(answer)
        self._note(connection.group, found)
        return answer

    def _closed(self, connection: ControlConnection, reason: str | None) -> None:
        with self._lock:
            for place in [key for key in self._met if key[2] is connection]:
                del self._met[place]
            for joined in self._joined.values():
                if joined.get(connection.worker, (None,))[0] is connection:
                    del joined[connection.worker]
        if reason is not None:
            self._note(connection.group, Failure(connection.worker, time.monotonic(), LOST))

    def _pass_on(self, connection: ControlConnection, message: Any) -> Any:
        watch = self._watches.get(connection.group)
        if watch is None:
            raise StoppedError("the job has ended")
        return watch[0][type(message)](connection, message)

    def _note(self, group: str, found: Failure) -> None:
        """Keep a failure; once there is one that follows from no other, answer with the first."""
        with self._lock:
            failures = self._failures.setdefault(group, [])
            failures.append(found)
            cause = first_cause(failures)
            if cause.secondary:
                return
            asking = self._asking.pop(group, [])
        watch = self._watches.get(group)
        if watch is not None:
            watch[1](cause)
        for answer in asking:
            if not answer.done():
                answer.set_result(dump(cause))
