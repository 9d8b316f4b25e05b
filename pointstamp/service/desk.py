"""Where workers of a service that run elsewhere report to whoever started them.

Each worker calls the desk, proves that it knows the job's secret, and says where its server
is; when all have, each is told all endpoints. The connection then stays, and is a lifeline:
a worker that fails says why over it, one that dies is missed at once, and a worker
whose desk is gone ends. A `Line` is the worker's end.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from pointstamp.communication import tcp
from pointstamp.communication.authentication import Handshake
from pointstamp.communication.blocking_handshake import authenticate
from pointstamp.communication.failure import Failure, dump, failure, first_cause, load
from pointstamp.communication.framing import Frame, FrameKind, FrameReader, frame
from pointstamp.errors import CommunicationError, FileFormatError, RendezvousError, StoppedError
from pointstamp.service.termination import Termination

PROVE_S = 10.0
FIRST_WORD_S = 1.0
"""How long a worker that is only missed, or fails because a peer did, lets others speak first."""

LOOK_S = 0.05


class Desk:
    """Hears of the workers; `termination` is told when one fails or dies.

    Parameters
    ----------
    workers : int
        How many will call.
    secret : bytes
        Of the job.
    termination : Termination
    host : str
        The address of this machine to listen at.
    """

    def __init__(
        self, workers: int, secret: bytes, termination: Termination, host: str = "127.0.0.1"
    ) -> None:
        self._n_workers = workers
        self._secret = secret
        self._termination = termination
        self._listener = tcp.listen(host)
        self.address = self._listener.address
        self._changed = threading.Condition()
        self._doors: dict[int, str] = {}
        self._lines: dict[int, socket.socket] = {}
        self._failures: list[Failure] = []
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._begin(self._answer)

    def endpoints(self, timeout_s: float) -> list[str]:
        """The addresses of all workers' endpoints, by index, when all have called.

        Raises
        ------
        RendezvousError
            If some have not in time; says which.
        WorkerError
            If one failed instead.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            while len(self._doors) < self._n_workers:
                self._termination.check()
                if time.monotonic() > until:
                    missing = sorted(set(range(self._n_workers)) - self._doors.keys())
                    raise RendezvousError(
                        f"worker {', '.join(map(str, missing))} of the service did not report at "
                        f"{self.address[0]}, port {self.address[1]}, in {timeout_s:g} s; the log "
                        "of its task or process says what keeps it"
                    )
                self._changed.wait(LOOK_S)
            endpoints = [self._doors[index] for index in range(self._n_workers)]
            for line in self._lines.values():
                _tell(line, FrameKind.RESULT, json.dumps(endpoints).encode())
        return endpoints

    def close(self) -> None:
        """Hang up: workers that are still there end."""
        with self._changed:
            self._is_closed = True
            for line in self._lines.values():
                with contextlib.suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _begin(self, run: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=run, args=args, name="pointstamp-desk", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _is_wanted(self) -> bool:
        return not self._is_closed

    def _answer(self) -> None:
        """Hear who calls, until all have."""
        # Closed then, so that a stage which Spark runs again is refused, and does not wait for us.
        with self._listener:
            self._listener.socket.settimeout(LOOK_S)
            while not self._is_closed and len(self._lines) < self._n_workers:
                with contextlib.suppress(TimeoutError, ConnectionError):
                    connection, _ = self._listener.socket.accept()
                    self._begin(self._hear, connection)

    def _hear(self, connection: socket.socket) -> None:
        """Talk with one who called, to the end."""
        with connection:
            handshake = Handshake(self._secret, 0, self._n_workers, initiated=False)
            try:
                authenticate(connection, handshake, time.monotonic() + PROVE_S, self._is_wanted)
            except (CommunicationError, OSError):
                return  # a stranger; who should have called is missed by `endpoints`
            assert handshake.peer is not None
            index = handshake.peer
            with self._changed:
                self._lines[index] = connection
                if self._is_closed:
                    return
            self._hear_worker(index, connection)

    def _hear_worker(self, index: int, connection: socket.socket) -> None:
        reader = FrameReader()
        connection.settimeout(None)
        with contextlib.suppress(OSError, FileFormatError):
            while n_bytes := connection.recv_into(reader.space()):
                for found in reader.advance(n_bytes):
                    if self._take(index, found):
                        return
        if not self._is_closed:
            what = "went away without a word: it was killed, or its machine is gone"
            self._note(Failure(index, time.monotonic(), what), wait=True)

    def _take(self, index: int, found: Frame) -> bool:
        """Take in what a worker says; whether it is the last that it says."""
        if found.kind is FrameKind.RESULT:
            with self._changed:
                self._doors[index] = str(json.loads(bytes(found.body)))
                self._changed.notify_all()
            return False
        if found.kind is FrameKind.FAILURE:
            failed = load(found.body)
            self._note(failed, wait=failed.secondary)
        return True

    def _note(self, failed: Failure, *, wait: bool) -> None:
        """Have the service end of this, unless a better reason comes."""
        self._failures.append(failed)
        if wait and self._termination.wait(FIRST_WORD_S):
            return
        cause = first_cause(self._failures)
        error = cause.as_error()
        error.__cause__ = cause.cause
        self._termination.end(error)


class Line:
    """A worker's connection to the desk.

    Parameters
    ----------
    address : tuple of str and int
        Of the desk.
    """

    def __init__(self, address: tuple[str, int], index: int, peers: int, secret: bytes) -> None:
        self._index = index
        self._is_closed = False
        self._thread: threading.Thread | None = None
        try:
            self._connection = socket.create_connection(address, PROVE_S)
        except OSError as cause:
            raise RendezvousError(
                f"worker {index} cannot reach the program that runs the service, at {address[0]}, "
                f"port {address[1]}: {cause}"
            ) from cause
        try:
            handshake = Handshake(secret, index, peers, initiated=True)
            authenticate(self._connection, handshake, time.monotonic() + PROVE_S)
        except BaseException:
            self._connection.close()
            raise
        self._connection.settimeout(None)

    def arrive(self, server: str) -> list[str]:
        """Say where this worker's server is; the endpoints of all, when all have arrived.

        Raises
        ------
        StoppedError
            If the desk closes instead.
        """
        _tell(self._connection, FrameKind.RESULT, json.dumps(server).encode())
        reader = FrameReader()
        with contextlib.suppress(OSError):
            while n_bytes := self._connection.recv_into(reader.space()):
                for found in reader.advance(n_bytes):
                    endpoints: list[str] = json.loads(bytes(found.body))
                    return endpoints
        raise StoppedError("the service was given up before all its workers had arrived")

    def watch(self, gone: Callable[[BaseException], object]) -> None:
        """From now on, call `gone(error)` when the desk goes away."""
        self._thread = threading.Thread(
            target=self._watch, args=(gone,), name="pointstamp-line", daemon=True
        )
        self._thread.start()

    def fail(self, cause: BaseException) -> None:
        """Say why this worker fails."""
        told = dump(failure(self._index, cause, time.monotonic()))
        _tell(self._connection, FrameKind.FAILURE, told)

    def leave(self) -> None:
        """Say that this worker ends as it should; the desk may hang up then."""
        self._is_closed = True
        _tell(self._connection, FrameKind.GOODBYE, b"")

    def close(self) -> None:
        """Hang up."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def _watch(self, gone: Callable[[BaseException], object]) -> None:
        with contextlib.suppress(OSError):
            while self._connection.recv(1):
                pass
        if not self._is_closed:
            gone(StoppedError("the program that runs the service has gone, or has aborted it"))


def _tell(connection: socket.socket, kind: FrameKind, body: bytes) -> None:
    """Send a frame; one that is gone is found out by who reads."""
    with contextlib.suppress(OSError):
        for piece in frame(kind, 0, [body]):
            connection.sendall(piece)
