"""The engine of control connections: one thread that reads and writes any number of them.

Both ends have one, `ControlServer` and `ControlClient` of `control`, which says what travels
and by which rules. State changes in the loop's thread; other threads queue what is to
be sent, and wake it.
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
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication import listening, publishing
from pointstamp.communication.authentication import Handshake
from pointstamp.communication.explanations import ProgramQuestion
from pointstamp.communication.failure import revived, survivor
from pointstamp.communication.framing import Buffer, Frame, FrameKind, FrameReader, frame
from pointstamp.communication.local_door import LocalDoor
from pointstamp.communication.tls import Stream, TlsStream
from pointstamp.errors import (
    CommunicationError,
    FileFormatError,
    InternalError,
    PeerLostError,
    RendezvousError,
    UsageError,
)

NO_GOODBYE = "the connection ended without a goodbye"

Handler = Callable[["ControlConnection", Any], Any]
"""`handler(connection, message)`; what it returns answers a request."""

HANDSHAKE_S = 5.0
MAX_PENDING = 64
READS_PER_EVENT = 16
WRITES_PER_EVENT = 16

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Introduction:
    """The first message of a client: which worker it is, and where it runs."""

    worker: int
    group: str = ""
    machine: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)


class ControlConnection:
    """One end of a control connection; made by `ControlServer` and `ControlClient`.

    Attributes
    ----------
    worker : int
        The worker at the client's end; -1 until it has introduced itself.
    group : str
        The group of that worker.
    machine, process : str and int
        Where it runs; empty and 0 if that is not known.
    is_open : bool
        Whether messages can still be sent.
    """

    def __init__(self, loop: ControlLoop, stream: Stream, worker: int = -1) -> None:
        self.worker = worker
        self.group = ""
        self.machine = ""
        self.process = 0
        self.is_local = False
        """Whether it came by the door of this machine, and may only ask for explanations."""
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
        self.put(frame(FrameKind.MESSAGE, 0, [pickled(message)]))

    def request(self, message: Any) -> Future[Any]:
        """Ask for an answer, which the future gets.

        It fails with what the other end's handler raised, or with `PeerLostError` where
        the connection ends first.
        """
        body = pickled(message)
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


class ControlLoop:
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
        self.listener: listening.Listener | None = None
        self.door: LocalDoor | None = None
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

    def listen(self, listener: listening.Listener, handshake: Callable[[], Handshake]) -> None:
        """Accept connections, each of which has to prove itself."""
        self.listener, self.handshake = listener, handshake
        self.selector.register(listener.socket, selectors.EVENT_READ, listener)

    def open(self, door: LocalDoor) -> None:
        """Let other processes of this user ask, which are no workers."""
        self.door = door
        self.selector.register(door.socket, selectors.EVENT_READ, door)

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
                    elif isinstance(key.data, LocalDoor):
                        self._admit(key.data)
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
            listening.tune(accepted)
            stream = accepted if self.tls is None else TlsStream(accepted, self.tls)
            connection = ControlConnection(self, stream)
            connection.handshake = self.handshake()
            connection.until = time.monotonic() + HANDSHAKE_S
            with self.lock:
                self.connections[connection] = None
            self._watch(connection, selectors.EVENT_READ)
            self._serve(connection, selectors.EVENT_READ)  # which greets it

    def _admit(self, door: LocalDoor) -> None:
        while (accepted := door.accept()) is not None:
            connection = ControlConnection(self, accepted)
            connection.is_local = True
            with self.lock:
                self.connections[connection] = None
            self._watch(connection, selectors.EVENT_READ)

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
        except ConnectionError:  # so it shows where the other end had not read all
            self._lose(connection, NO_GOODBYE)
        except Exception as error:  # noqa: BLE001  (of this connection; the others go on)
            self._lose(connection, str(error) or type(error).__name__)

    def _read(self, connection: ControlConnection) -> None:
        with contextlib.suppress(BlockingIOError):
            if connection.handshake is not None and connection.handshake.advance(connection.stream):
                connection.handshake = None
            n_reads = 0
            while connection.is_open and connection.handshake is None:
                n_reads += 1
                if n_reads > READS_PER_EVENT and not _pending(connection.stream):
                    return
                n_bytes = connection.stream.recv_into(connection.reader.space())
                if n_bytes == 0:
                    self._lose(connection, NO_GOODBYE)
                    return
                for found in connection.reader.advance(n_bytes):
                    if connection.is_open:
                        self._take(connection, found)

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
        if connection.is_local:
            raise FileFormatError("what comes by the door of this machine is no worker")
        if not isinstance(introduction, Introduction):
            raise FileFormatError(f"a client introduces itself first, and sent {introduction!r}")
        connection.worker, connection.group = introduction.worker, introduction.group
        connection.machine, connection.process = introduction.machine, introduction.process
        if self.on_open is not None:
            self._call(self.on_open, connection)

    def _handler(self, connection: ControlConnection, message: Any) -> Any:
        if connection.is_local and not isinstance(message, ProgramQuestion):
            raise UsageError(
                f"by the door of this machine one may ask what a program does, and send no "
                f"{type(message).__name__}"
            )
        handler = self.handlers.get(type(message)) or publishing.handlers.get(type(message))
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
        if self.door is not None:
            self.door.close()
        self.selector.close()
        self._wake_reader.close()
        self._wake_writer.close()


def _pending(stream: Stream) -> int:
    return stream.pending() if isinstance(stream, TlsStream) else 0


def _take_off(unsent: deque[Buffer], n_bytes: int) -> None:
    """Take the first `n_bytes` off what is to be written."""
    while unsent and len(unsent[0]) <= n_bytes:
        n_bytes -= len(unsent.popleft())
    if n_bytes:
        unsent[0] = memoryview(unsent[0])[n_bytes:]


def pickled(message: Any) -> bytes:
    """`message` as the body of a frame."""
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
        body = pickled(done.result())
    except BaseException as error:  # noqa: BLE001  (raised at the other end)
        kind = FrameKind.REFUSAL
        body = pickled((f"{type(error).__name__}: {error}", survivor(error)))
    connection.put(frame(kind, number, [body]))
