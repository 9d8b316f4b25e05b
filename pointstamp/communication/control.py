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
- A process that was forked off has no control connection: what it sends is dropped.
  The thread of the connection stays behind in the parent.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication import tcp
from pointstamp.communication.authentication import Handshake
from pointstamp.communication.failure import revived, survivor
from pointstamp.communication.framing import Buffer, Frame, FrameKind, FrameReader, frame
from pointstamp.communication.tls import Certificates, Stream, TlsStream, context
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    FileFormatError,
    InternalError,
    PeerLostError,
    RendezvousError,
    UsageError,
    VersionError,
)

Address = tuple[str, int]
Handler = Callable[["ControlConnection", Any], Any]
"""`handler(connection, message)`; what it returns answers a request."""

HANDSHAKE_S = 5.0
CONNECT_S = 10.0
"""How long a client tries to reach its server."""

MAX_PENDING = 64
READS_PER_EVENT = 16
WRITES_PER_EVENT = 16

_log = logging.getLogger(__name__)


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


@dataclass(frozen=True)
class Introduction:
    """The first message of a client: which worker it is."""

    worker: int
    group: str = ""


class ControlConnection:
    """One end of a control connection; made by `ControlServer` and `ControlClient`.

    Attributes
    ----------
    worker : int
        The worker at the client's end; -1 until it has introduced itself.
    group : str
        The group of that worker.
    is_open : bool
        Whether messages can still be sent.
    """

    def __init__(self, loop: _ControlLoop, stream: Stream, worker: int = -1) -> None:
        self.worker = worker
        self.group = ""
        self.is_open = True
        self.stream = stream
        self.handshake: Handshake | None = None
        self.until = 0.0
        self.unsent: deque[Buffer] = deque()
        self.is_closing = False
        self.reader = FrameReader()
        self.requests: dict[int, Future[Any]] = {}
        self.drained = threading.Event()
        self.drained.set()
        self._loop = loop
        self._numbers = itertools.count(1)
        self._process = os.getpid()

    def send(self, message: Any) -> None:
        """Send a message; never waits. Dropped if the connection is not open any more."""
        self.put(frame(FrameKind.MESSAGE, 0, [_pickled(message)]))

    def request(self, message: Any) -> Future[Any]:
        """Ask for an answer, which the future gets.

        It fails with what the other end's handler raised, or with `PeerLostError` where
        the connection ends first.
        """
        body = _pickled(message)
        future: Future[Any] = Future()
        number = next(self._numbers)
        self.requests[number] = future
        if not self.put(frame(FrameKind.REQUEST, number, [body])):
            self.fail_requests("it is closed")
        return future

    def ask(self, message: Any, timeout_s: float | None = None) -> Any:
        """The answer to a request; waits for it.

        Raises
        ------
        RendezvousError
            When there is none in `timeout_s`.
        PeerLostError
            When the connection ends first.
        """
        if threading.current_thread() is self._loop.thread:
            raise InternalError(
                f"a handler of control messages waits for an answer to {message!r}, which only "
                f"its own thread could receive: return a future instead"
            )
        try:
            return self.request(message).result(timeout_s)
        except TimeoutError:
            raise RendezvousError(
                f"{self.other_end} did not answer {type(message).__name__} in {timeout_s:g} s"
            ) from None

    @property
    def other_end(self) -> str:
        """For messages."""
        return "the process that started the workers" if self._loop.is_client else str(self)

    def __str__(self) -> str:
        of = f" of {self.group}" if self.group else ""
        return f"worker {self.worker}{of}"

    def put(self, pieces: list[Buffer]) -> bool:
        """Queue the pieces of a frame; whether the connection takes any."""
        if self._process != os.getpid():
            return False
        with self._loop.lock:
            if not self.is_open or self.is_closing:
                return False
            self.unsent.extend(pieces)
            self.drained.clear()
        self._loop.wake()
        return True

    def drain(self, timeout_s: float = 5.0) -> None:
        """Wait until what has arrived is read, and its handlers called.

        For a process that has ended: after this there is nothing more of it.
        """
        read = threading.Event()
        self._loop.post(lambda: self._loop.drain(self, read))
        read.wait(timeout_s)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until all that was sent is handed to the system; whether it was."""
        return self.drained.wait(timeout_s) and self.is_open

    def close(self) -> None:
        """Say goodbye behind what was sent, and close; does not wait."""
        with self._loop.lock:
            self.is_closing = self.put(frame(FrameKind.GOODBYE, 0, [])) or self.is_closing
        self._loop.wake()

    def fail_requests(self, reason: str) -> None:
        """No answer comes any more."""
        waiting, self.requests = self.requests, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(PeerLostError(f"{self.other_end} is gone: {reason}"))


class _ControlLoop:
    """A thread that reads and writes control connections, and calls their handlers."""

    def __init__(
        self,
        handlers: Mapping[type, Handler] | None,
        on_open: Callable[[ControlConnection], object] | None,
        on_close: Callable[[ControlConnection, str | None], object] | None,
        name: str,
        *,
        is_client: bool,
    ) -> None:
        self.lock = threading.RLock()  # a signal's handler may send while its thread does
        self.is_client = is_client
        self.handlers: dict[type, Handler] = dict(handlers or {})
        self.on_open = on_open
        self.on_close = on_close
        self.connections: dict[ControlConnection, None] = {}
        self.listener: tcp.Listener | None = None
        self.handshake: Callable[[], Handshake] | None = None
        self.tls: Any = None
        self.is_ending = False
        self.selector = selectors.DefaultSelector()
        self._posted: deque[Callable[[], None]] = deque()
        self._is_woken = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self.selector.register(self._wake_reader, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to read and write."""
        self.thread.start()

    def listen(self, listener: tcp.Listener, handshake: Callable[[], Handshake]) -> None:
        """Accept connections, each of which has to prove itself."""
        self.listener, self.handshake = listener, handshake
        self.selector.register(listener.socket, selectors.EVENT_READ, listener)

    def adopt(self, connection: ControlConnection) -> None:
        """Take over a connection that is authenticated; from any thread."""
        with self.lock:
            self.connections[connection] = None
        self.post(lambda: self._begin(connection))

    def post(self, call: Callable[[], None]) -> None:
        """Have the thread call `call`; from any thread."""
        self._posted.append(call)
        self.wake()

    def wake(self) -> None:
        """Have the thread look for what there is to write; from any thread."""
        if self._is_woken:
            return
        self._is_woken = True
        with contextlib.suppress(OSError):  # full: it is woken; closed: it has ended
            self._wake_writer.send(b"\0")

    def end(self, timeout_s: float) -> None:
        """Close all connections with a goodbye, and the thread; waits so long for the peers."""
        self.on_close = None  # what ends here is ended by us
        for connection in list(self.connections):
            connection.close()
        until = time.monotonic() + timeout_s
        for connection in list(self.connections):
            connection.drained.wait(max(0.0, until - time.monotonic()))
        self.is_ending = True
        self._is_woken = False
        self.wake()
        if self.thread.ident is not None and threading.current_thread() is not self.thread:
            self.thread.join()

    # All below runs in the thread.

    def _run(self) -> None:
        try:
            while not self.is_ending:
                self._do_posted()
                for key, events in self.selector.select(self._wait_s()):
                    if key.fileobj is self._wake_reader:
                        self._clear_wake()
                    elif isinstance(key.data, ControlConnection):
                        self._serve(key.data, events)
                    else:
                        self._accept()
                self._expire()
        finally:
            self._let_go()

    def _wait_s(self) -> float | None:
        dues = [each.until for each in self.connections if each.handshake is not None]
        return max(0.0, min(dues) - time.monotonic()) if dues else None

    def _clear_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_reader.recv(64)
        # Then the flag: what comes in between is looked for below. The other way round its byte
        # would be read here, and nothing would wake us any more.
        self._is_woken = False

    def _begin(self, connection: ControlConnection) -> None:
        """Watch a connection that was adopted."""
        self._watch(connection, selectors.EVENT_READ)
        if self.on_open is not None and connection.worker >= 0:
            self._call(self.on_open, connection)
        self._serve(connection, selectors.EVENT_READ)  # TLS may have read ahead

    def drain(self, connection: ControlConnection, read: threading.Event) -> None:
        """Read what has come of `connection`, then set `read`."""
        while connection.is_open and connection.stream.fileno() >= 0:
            with selectors.DefaultSelector() as ready:
                ready.register(connection.stream, selectors.EVENT_READ)
                if not ready.select(0):
                    break
            self._serve(connection, selectors.EVENT_READ)
        read.set()

    def _do_posted(self) -> None:
        """Do what was posted, and write what was queued."""
        while self._posted:
            self._posted.popleft()()
        for connection in list(self.connections):
            if connection.is_open and (connection.unsent or connection.is_closing):
                self._serve(connection, selectors.EVENT_WRITE)

    def _watch(self, connection: ControlConnection, events: int) -> None:
        if connection.stream.fileno() < 0:
            return
        try:
            self.selector.modify(connection.stream, events, connection)
        except KeyError:
            self.selector.register(connection.stream, events, connection)

    def _accept(self) -> None:
        assert self.listener is not None
        assert self.handshake is not None
        while True:
            try:
                accepted, _ = self.listener.socket.accept()
            except OSError:
                return  # there is none, or no descriptor left for it
            pending = [each for each in self.connections if each.handshake is not None]
            if len(pending) >= MAX_PENDING:
                self._lose(pending[0], "too many connect at a time")
            accepted.setblocking(False)
            tcp.tune(accepted)
            stream = accepted if self.tls is None else TlsStream(accepted, self.tls)
            connection = ControlConnection(self, stream)
            connection.handshake = self.handshake()
            connection.until = time.monotonic() + HANDSHAKE_S
            connection.unsent.append(connection.handshake.greeting)
            with self.lock:
                self.connections[connection] = None
            self._watch(connection, selectors.EVENT_READ)
            self._serve(connection, selectors.EVENT_WRITE)

    def _expire(self) -> None:
        now = time.monotonic()
        for connection in list(self.connections):
            if connection.handshake is not None and connection.until <= now:
                self._lose(connection, f"it did not prove itself in {HANDSHAKE_S:g} s")

    def _serve(self, connection: ControlConnection, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                self._read(connection)
            if connection.is_open:
                self._write(connection)
        except (AuthenticationError, VersionError, RendezvousError) as refusal:
            with contextlib.suppress(OSError):  # so that the other end can say why, too
                for piece in connection.unsent:
                    connection.stream.send(piece)
            self._lose(connection, str(refusal))
        except Exception as error:  # noqa: BLE001  (of this connection; the others go on)
            self._lose(connection, str(error) or type(error).__name__)

    def _read(self, connection: ControlConnection) -> None:
        with contextlib.suppress(BlockingIOError):
            if connection.handshake is not None:
                self._authenticate(connection, connection.handshake)
            n_reads = 0
            while connection.is_open and connection.handshake is None:
                n_reads += 1
                if n_reads > READS_PER_EVENT and not _pending(connection.stream):
                    return
                n_bytes = connection.stream.recv_into(connection.reader.space())
                if n_bytes == 0:
                    self._lose(connection, "the connection ended without a goodbye")
                    return
                for found in connection.reader.advance(n_bytes):
                    if connection.is_open:
                        self._take(connection, found)

    def _authenticate(self, connection: ControlConnection, handshake: Handshake) -> None:
        # Not a byte more than the handshake: what follows are frames.
        while handshake.n_missing:
            data = connection.stream.recv(handshake.n_missing)
            if not data:
                raise PeerLostError("it closed the connection before it proved itself")
            with self.lock:
                connection.unsent.append(handshake.receive(data))
        connection.handshake = None

    def _write(self, connection: ControlConnection) -> None:
        try:
            while connection.unsent:
                n_bytes = connection.stream.sendmsg(
                    itertools.islice(connection.unsent, WRITES_PER_EVENT)
                )
                with self.lock:
                    _take_off(connection.unsent, n_bytes)
        except BlockingIOError:
            self._watch(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
            return
        self._watch(connection, selectors.EVENT_READ)
        with self.lock:
            if connection.unsent:
                return  # queued meanwhile, and the thread is woken
            connection.drained.set()
        if connection.is_closing:
            self._close(connection, None)

    def _take(self, connection: ControlConnection, found: Frame) -> None:
        """Do what a frame asks for."""
        if found.kind is FrameKind.GOODBYE:
            self._close(connection, None)
        elif found.kind in (FrameKind.RESPONSE, FrameKind.REFUSAL):
            self._take_answer(connection, found)
        elif found.kind is FrameKind.MESSAGE and connection.worker < 0:
            self._introduce(connection, found)
        elif found.kind is FrameKind.MESSAGE:
            self._call(lambda: self._handler(connection, _loaded(found.body)))
        elif found.kind is FrameKind.REQUEST:
            self._answer(connection, found)
        else:
            raise FileFormatError(f"a frame of kind {found.kind.name} in a control connection")

    def _introduce(self, connection: ControlConnection, found: Frame) -> None:
        introduction = _loaded(found.body)
        if not isinstance(introduction, Introduction):
            raise FileFormatError(f"a client introduces itself first, and sent {introduction!r}")
        connection.worker, connection.group = introduction.worker, introduction.group
        if self.on_open is not None:
            self._call(self.on_open, connection)

    def _handler(self, connection: ControlConnection, message: Any) -> Any:
        handler = self.handlers.get(type(message))
        if handler is None:
            known = ", ".join(sorted(each.__name__ for each in self.handlers)) or "none"
            raise UsageError(
                f"no handler takes a control message of type {type(message).__name__}; the types "
                f"that are taken: {known}"
            )
        return handler(connection, message)

    def _call(self, function: Callable[..., object], *args: Any) -> None:
        """Call what must not end this thread."""
        try:
            function(*args)
        except Exception:  # noqa: BLE001  (it is said, and the other connections go on)
            _log.exception("a handler of the control connection failed")

    def _answer(self, connection: ControlConnection, found: Frame) -> None:
        try:
            answer = self._handler(connection, _loaded(found.body))
        except Exception as error:  # noqa: BLE001  (raised at the other end)
            answer = _failed(error)
        if not isinstance(answer, Future):
            answer = _done(answer)
        # Where it is done already, this answers at once.
        answer.add_done_callback(lambda done: _respond(connection, found.channel, done))

    def _take_answer(self, connection: ControlConnection, found: Frame) -> None:
        future = connection.requests.pop(found.channel, None)
        if future is None or not future.set_running_or_notify_cancel():
            return  # it is not waited for any more
        try:
            if found.kind is FrameKind.RESPONSE:
                future.set_result(_loaded(found.body))
                return
            said, error = _loaded(found.body)
            future.set_exception(revived(error) or CommunicationError(said))
        except Exception as error:  # noqa: BLE001  (raised where the answer is waited for)
            future.set_exception(error)

    def _lose(self, connection: ControlConnection, reason: str) -> None:
        self._close(connection, reason)

    def _close(self, connection: ControlConnection, reason: str | None) -> None:
        """Close a connection; of a reason, or with a goodbye."""
        with self.lock:
            if not connection.is_open:
                return
            connection.is_open = False
            connection.unsent.clear()
            self.connections.pop(connection, None)
            connection.drained.set()
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(connection.stream)
        with contextlib.suppress(OSError):
            connection.stream.shutdown(socket.SHUT_WR)
        connection.stream.close()
        connection.fail_requests(reason or "it closed the connection")
        if self.on_close is not None and connection.worker >= 0:
            self._call(self.on_close, connection, reason)

    def _let_go(self) -> None:
        for connection in list(self.connections):
            self._close(connection, None)
        if self.listener is not None:
            self.listener.close()
        self.selector.close()
        self._wake_reader.close()
        self._wake_writer.close()


class ControlServer:
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
    ) -> None:
        self.address: Address = ("", 0)
        """Where it listens."""
        listener = tls = None
        if host is not None:
            _handshake(secret, initiated=False)  # a short secret is refused here
            tls = None if certificates is None else context(certificates, initiated=False)
            listener = tcp.listen(host)
            self.address = listener.address
        self._loop = _ControlLoop(
            handlers, on_open, on_close, "pointstamp-control-server", is_client=False
        )
        if listener is not None:
            self._loop.tls = tls
            self._loop.listen(listener, lambda: _handshake(secret, initiated=False))
        self._loop.start()

    def handle(self, kind: type, handler: Handler) -> None:
        """Have `handler` take messages of `kind` from now on."""
        self._loop.handlers[kind] = handler

    def adopt(self, connection: socket.socket, worker: int) -> ControlConnection:
        """Talk to `worker` over a connected socket that nothing else can have."""
        connection.setblocking(False)
        adopted = ControlConnection(self._loop, connection, worker)
        self._loop.adopt(adopted)
        return adopted

    def broadcast(self, message: Any, group: str = "") -> None:
        """Send a message to every worker of a group; it is pickled once."""
        pieces = frame(FrameKind.MESSAGE, 0, [_pickled(message)])
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
        self._loop.end(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ControlClient(ControlConnection):
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
        loop = _ControlLoop(handlers, None, on_close, "pointstamp-control", is_client=True)
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
        except OSError as error:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


def _handshake(secret: bytes, *, initiated: bool) -> Handshake:
    """One of two: the worker's number is sent behind it."""
    return Handshake(secret, int(initiated), 2, initiated=initiated)


def _reached(config: WorkerConfig, until: float) -> Stream:
    """A connection to the server, authenticated."""
    connection = socket.create_connection(config.control, max(0.01, until - time.monotonic()))
    stream: Stream = connection
    try:
        tcp.tune(connection)
        connection.setblocking(False)
        if config.certificates is not None:
            stream = TlsStream(connection, context(config.certificates, initiated=True))
        handshake = _handshake(config.secret, initiated=True)
        unsent = handshake.greeting
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while handshake.n_missing or unsent:
                wait_s = until - time.monotonic()
                if wait_s <= 0:
                    raise TimeoutError("it did not prove itself in time")
                with contextlib.suppress(BlockingIOError):
                    while unsent:
                        unsent = unsent[stream.send(unsent) :]
                try:
                    while handshake.n_missing:
                        data = stream.recv(handshake.n_missing)
                        if not data:
                            raise ConnectionError("it closed the connection, unproved")
                        unsent += handshake.receive(data)
                except BlockingIOError:
                    selector.select(min(wait_s, 0.05) if unsent else wait_s)
    except BaseException:
        stream.close()
        raise
    return stream


def _pending(stream: Stream) -> int:
    return stream.pending() if isinstance(stream, TlsStream) else 0


def _take_off(unsent: deque[Buffer], n_bytes: int) -> None:
    """Take the first `n_bytes` off what is to be written."""
    while unsent and len(unsent[0]) <= n_bytes:
        n_bytes -= len(unsent.popleft())
    if n_bytes:
        unsent[0] = memoryview(unsent[0])[n_bytes:]


def _pickled(message: Any) -> bytes:
    data: bytes = cloudpickle.dumps(message)
    return data


def _loaded(body: memoryview) -> Any:
    return pickle.loads(body)


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _failed(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _respond(connection: ControlConnection, number: int, done: Future[Any]) -> None:
    """Send the answer to a request."""
    kind = FrameKind.RESPONSE
    try:
        body = _pickled(done.result())
    except BaseException as error:  # noqa: BLE001  (raised at the other end)
        kind = FrameKind.REFUSAL
        body = _pickled((f"{type(error).__name__}: {error}", survivor(error)))
    connection.put(frame(kind, number, [body]))
