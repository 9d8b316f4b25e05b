"""The control connection between a worker and the process that started it.

One connection per worker carries everything that is not data: addresses of the mesh,
results, the first cause of a failure, counts of progress, commands. A `ControlServer`,
one thread with any number of connections, is in the process that starts workers; each
worker has a `ControlClient`. Either end sends messages, which arrive in their order, and
asks requests, which the other end answers. A message is any object that can be pickled,
by convention a frozen dataclass; its type chooses the handler.

On the wire: over TCP the handshake of `authentication` (inside of TLS where there are
certificates), then frames as in `framing`. The body is a pickled object:

    MESSAGE   the first of a client is its `Introduction`
    REQUEST   the frame's channel is the number of the request
    RESPONSE  to the request of that number
    REFUSAL   likewise; the body is the exception that answering it raised
    GOODBYE   no body: the sender closes the connection, and nothing is wrong

Rules:

- Nothing is unpickled of a connection that has not proved the secret, and it has
  `HANDSHAKE_S` for that; `MAX_PENDING` may try at a time, of which the eldest goes first.
- Handlers run in the thread of their end, one after the other: they must not wait. To
  answer a request later, a handler returns a `concurrent.futures.Future`.
- A connection that ends without a goodbye is *lost*: `on_close` gets the reason, and
  requests that were not answered fail with `PeerLostError`.
- Other processes of the same user may ask without the secret, by a door of this machine, which
  the system authenticates (`local_door`); they are no workers.
- A process that was forked off has no control connection: what it sends is dropped.
  The thread of the connection stays behind in the parent.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pointstamp.communication import explanations, listening
from pointstamp.communication.authentication import Handshake
from pointstamp.communication.blocking_stream import authenticate
from pointstamp.communication.control_loop import (
    ControlConnection,
    ControlLoop,
    Handler,
    Introduction,
    pickled,
)
from pointstamp.communication.framing import FrameKind, frame
from pointstamp.communication.local_door import LocalDoor, open_door
from pointstamp.communication.tls import Certificates, Stream, TlsStream, context
from pointstamp.errors import PeerLostError, RendezvousError

__all__ = [
    "Address",
    "ControlClient",
    "ControlConnection",
    "ControlServer",
    "Handler",
    "WorkerConfig",
]

Address = tuple[str, int]
CONNECT_S = 10.0
"""How long a client tries to reach its server."""


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker is given before it starts: where to report, and how to prove itself.

    Attributes
    ----------
    control : tuple of str and int
        The address of the control server.
    secret : bytes
        Of the job; known to its workers, and to the process that started them.
    group : str
        Of workers that belong together, where a server has several jobs.
    certificates : Certificates, optional
        Encrypt the connections of the mesh and of control.
    """

    control: Address
    secret: bytes = field(repr=False)
    group: str = ""
    certificates: Certificates | None = None


class ControlServer(contextlib.AbstractContextManager["ControlServer"]):
    """Takes the control connections of workers; in the process that starts them.

    Parameters
    ----------
    secret : bytes
        What a client has to know; at least 16 bytes.
    host : str, optional
        The address of this machine to listen at, on a free port; None listens nowhere, and
        connections come by `adopt` alone.
    handlers : mapping of type to callable, optional
        `handler(connection, message)` for each type of message; what it returns, or the
        future that it returns, answers a request.
    on_open : callable, optional
        `on_open(connection)` when a worker has introduced itself.
    on_close : callable, optional
        `on_close(connection, reason)` when a worker's connection has ended: None after a
        goodbye, and else what happened. Not called for what `close` ends.
    certificates : Certificates, optional
        Encrypt, and demand a certificate of the same roots.
    door : LocalDoor, optional
        Where processes of this user ask; one of its own if not given.

    Examples
    --------
    >>> from pointstamp.communication.authentication import new_secret
    >>> secret = new_secret()
    >>> with ControlServer(secret, handlers={int: lambda _, n: n + 1}) as server:
    ...     with ControlClient.connect(WorkerConfig(server.address, secret), 3) as client:
    ...         client.ask(41, timeout_s=10.0)
    42
    """

    def __init__(
        self,
        secret: bytes = b"",
        host: str | None = "127.0.0.1",
        *,
        handlers: Mapping[type, Handler] | None = None,
        on_open: Callable[[ControlConnection], object] | None = None,
        on_close: Callable[[ControlConnection, str | None], object] | None = None,
        certificates: Certificates | None = None,
        door: LocalDoor | None = None,
    ) -> None:
        self.address: Address = ("", 0)
        """Where it listens."""
        listener = tls = None
        if host is not None:
            _handshake(secret, initiated=False)  # a short secret is refused here
            tls = None if certificates is None else context(certificates, initiated=False)
            listener = listening.listen(host)
            self.address = listener.address
        self._loop = ControlLoop(
            handlers, on_open, on_close, "pointstamp-control-server", is_client=False
        )
        if listener is not None:
            self._loop.tls = tls
            self._loop.listen(listener, lambda: _handshake(secret, initiated=False))
        door = door or open_door()
        if door is not None:
            self._loop.open(door)
        explanations.add_server(self)
        self._loop.start()

    def handle(self, kind: type, handler: Handler) -> None:
        """Have `handler` take messages of `kind` from now on."""
        self._loop.handlers[kind] = handler

    def adopt(self, connection: socket.socket, worker: int, process: int = 0) -> ControlConnection:
        """Talk to `worker` over a connected socket that only its process, here, can have."""
        connection.setblocking(False)
        adopted = ControlConnection(self._loop, connection, worker)
        adopted.machine, adopted.process = socket.gethostname(), process
        self._loop.adopt(adopted)
        return adopted

    def broadcast(self, message: Any, group: str = "") -> None:
        """Send a message to every worker of a group; it is pickled once."""
        pieces = frame(FrameKind.MESSAGE, 0, [pickled(message)])
        for connection in self.connections(group).values():
            connection.put(pieces)

    def connections(self, group: str = "") -> dict[int, ControlConnection]:
        """The open connections of a group, by worker: of two of one worker the newer."""
        with self._loop.lock:
            return {
                each.worker: each
                for each in self._loop.connections
                if each.worker >= 0 and each.group == group
            }

    def close(self, timeout_s: float = 1.0) -> None:
        """Say goodbye to every worker and end; waits so long until that is sent."""
        explanations.remove_server(self)
        self._loop.end(timeout_s)

    def workers(self) -> list[ControlConnection]:
        """The open connections of all groups, and of all jobs."""
        with self._loop.lock:
            return [each for each in self._loop.connections if each.worker >= 0]

    def __exit__(self, *exception: object) -> None:
        self.close()


class ControlClient(ControlConnection, contextlib.AbstractContextManager["ControlClient"]):
    """A worker's control connection; made by `connect`, or of a socket that was inherited.

    Parameters
    ----------
    stream : socket
        Connected, and authenticated.
    worker : int
        Which one this is.
    handlers, on_close
        As of `ControlServer`.
    """

    def __init__(
        self,
        stream: Stream,
        worker: int,
        handlers: Mapping[type, Handler] | None = None,
        on_close: Callable[[ControlConnection, str | None], object] | None = None,
    ) -> None:
        loop = ControlLoop(handlers, None, on_close, "pointstamp-control", is_client=True)
        stream.setblocking(False)
        super().__init__(loop, stream, worker)
        loop.adopt(self)
        loop.start()

    @classmethod
    def connect(
        cls,
        config: WorkerConfig,
        worker: int,
        handlers: Mapping[type, Handler] | None = None,
        on_close: Callable[[ControlConnection, str | None], object] | None = None,
        timeout_s: float = CONNECT_S,
    ) -> Self:
        """Reach the server of `config`, prove the secret, and introduce this worker.

        Raises
        ------
        RendezvousError
            When nothing answers there in `timeout_s`.
        AuthenticationError, VersionError
            When something else answers, or another version, or with another secret.
        """
        until = time.monotonic() + timeout_s
        try:
            stream = _reached(config, until)
        except (OSError, PeerLostError) as error:
            host, port = config.control
            raise RendezvousError(
                f"worker {worker} cannot reach the process that started the workers, at {host}, "
                f"port {port}: {error}"
            ) from error
        client = cls(stream, worker, handlers, on_close)
        client.group = config.group
        client.send(Introduction(worker, config.group))
        return client

    def handle(self, kind: type, handler: Handler) -> None:
        """Have `handler` take messages of `kind` from now on."""
        self._loop.handlers[kind] = handler

    def end(self, timeout_s: float = 1.0) -> None:
        """Say goodbye, and wait so long until it is sent; ends the connection's thread."""
        self._loop.end(timeout_s)

    def __exit__(self, *exception: object) -> None:
        self.end()


def _handshake(secret: bytes, *, initiated: bool) -> Handshake:
    """One of two: the worker's number is sent behind it."""
    return Handshake(secret, int(initiated), 2, initiated=initiated)


def _reached(config: WorkerConfig, until: float) -> Stream:
    """A connection to the server, authenticated."""
    connection = socket.create_connection(config.control, max(0.01, until - time.monotonic()))
    stream: Stream = connection
    try:
        listening.tune(connection)
        connection.setblocking(False)
        if config.certificates is not None:
            stream = TlsStream(connection, context(config.certificates, initiated=True))
        authenticate(stream, _handshake(config.secret, initiated=True), until)
    except BaseException:
        stream.close()
        raise
    return stream
