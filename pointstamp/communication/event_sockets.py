"""Captured streams over sockets: from one computation to another, as they flow.

One connection carries one part. One end listens and the other dials, and one captures
and the other replays, in any combination. Both prove that they know a secret, since the
bytes are unpickled, and say which of the two they do; then the bytes of
`event_streams.py` follow, and when the replaying end has all of them it says so. So a
capture that is complete has arrived, and a connection that ends before is an error at
both ends. With certificates both ends present one, and all of this is inside of TLS.

Threads at each end wait for the connection and its bytes, and no worker ever does: it is
woken. What has arrived and was not taken is bounded, so that a slow replay slows the
capture down, which leaves its batches where they are.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pointstamp.communication.authentication import Handshake
from pointstamp.communication.blocking_stream import LOOK_S, BlockingStream, authenticate
from pointstamp.communication.tls import Certificates, Stream, TlsStream, context, is_of_tls
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    PeerLostError,
    PointstampError,
    RendezvousError,
    TruncatedError,
)
from pointstamp.formats.events import CapturedPart, Event

if TYPE_CHECKING:
    import ssl

TIMEOUT_S = 30.0
"""How long the two ends may take to find each other."""

_PROOF_S = 5.0
"""How long a connection may take to prove itself."""

_CALL_S = 1.0
"""How long one attempt to connect may take."""

_MAX_CANDIDATES = 64
"""How many connections that have not proved the secret are read at a time."""

_MAX_WAITING = 64
"""Events that wait between a thread and its worker."""

_CAPTURES, _REPLAYS, _GOT_ALL = b"C", b"R", b"A"

Wake = Callable[[], None]


class _End(Protocol):
    """What makes connections."""

    @property
    def name(self) -> str:
        """For messages."""

    def connect(self, is_wanted: Callable[[], bool]) -> BlockingStream:
        """A connection, proved; raises when the time is over, or it is not wanted any more."""


class Connect:
    """The connecting end of a captured stream, to an `Accept`; a target or a source.

    Parameters
    ----------
    host, port
        Where the other end listens. It may begin to later than this end dials.
    secret : bytes
        At least 16 bytes, the same at both ends.
    timeout_s : float
        Seconds to wait for the other end.
    certificates : Certificates, optional
        Encrypt, and demand a certificate of the same roots (mutual TLS); at both ends, or at
        neither.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        secret: bytes,
        timeout_s: float = TIMEOUT_S,
        certificates: Certificates | None = None,
    ) -> None:
        self.address = (host, port)
        self._secret = _checked(secret)
        self._tls = None if certificates is None else context(certificates, initiated=True)
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.address[0]}:{self.address[1]}"

    def writer(self, part: CapturedPart, wake: Wake) -> SocketWriter:
        """Captures to one connection."""
        return SocketWriter(self, part, wake)

    def reader(self, times: str, wake: Wake) -> SocketReader:
        """Replays from one connection."""
        return SocketReader(self, times, wake)

    def connect(self, is_wanted: Callable[[], bool]) -> BlockingStream:
        """Connect until something answers."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                connection = socket.create_connection(self.address, timeout=_CALL_S)
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise RendezvousError(
                        f"nothing answered at {self.name} in {self._timeout_s} s: {error}"
                    ) from error
            _wait_a_moment(is_wanted, self.name)
        return BlockingStream(self._proved(connection, until, is_wanted))

    def _proved(
        self, connection: socket.socket, until: float, is_wanted: Callable[[], bool]
    ) -> Stream:
        """The connection, inside of TLS if asked; both ends know the secret, or this raises."""
        stream: Stream = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            if self._tls is not None:
                stream = TlsStream(connection, self._tls)
            authenticate(stream, Handshake(self._secret, 1, 2, initiated=True), until, is_wanted)
        except BaseException as error:
            stream.close()
            if is_of_tls(error):
                raise AuthenticationError(
                    f"{self.name} and this end do not agree on certificates: {error}"
                ) from error
            raise
        return stream


class Accept(contextlib.AbstractContextManager["Accept"]):
    """The listening end of a captured stream over a socket; a target or a source.

    It can be used for several parts: each takes a connection. Close it when all have
    theirs, or at the end.

    Parameters
    ----------
    host, port
        Where to listen; port 0 takes a free one, see `address`.
    secret : bytes
        At least 16 bytes, the same at both ends. A caller that does not know it is turned away.
    timeout_s : float
        Seconds to wait for the other end.
    certificates : Certificates, optional
        As of `Connect`.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        secret: bytes,
        timeout_s: float = TIMEOUT_S,
        certificates: Certificates | None = None,
    ) -> None:
        tls = None if certificates is None else context(certificates, initiated=False)
        self._secret = _checked(secret)
        self._timeout_s = timeout_s
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise CommunicationError(f"cannot listen at {host}:{port}: {error}") from error
        self._socket.setblocking(False)
        self._admission = _Admission(self._socket, self._secret, tls, self)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.address[0]}:{self.address[1]}"

    def writer(self, part: CapturedPart, wake: Wake) -> SocketWriter:
        """Captures to the next connection."""
        return SocketWriter(self, part, wake)

    def reader(self, times: str, wake: Wake) -> SocketReader:
        """Replays from the next connection."""
        return SocketReader(self, times, wake)

    def connect(self, is_wanted: Callable[[], bool]) -> BlockingStream:
        """Wait for a connection that knows the secret."""
        until = time.monotonic() + self._timeout_s
        while time.monotonic() < until and is_wanted():
            connection = self._admission.step()
            if connection is not None:
                return connection
        refused = self._admission.refused
        raise RendezvousError(f"nothing connected to {self.name} in {self._timeout_s} s{refused}")

    def close(self) -> None:
        """Stop listening. Connections that were made stay."""
        self._admission.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(eq=False)
class _Candidate:
    """A connection that has not proved the secret yet."""

    connection: Stream
    handshake: Handshake
    until: float


class _Admission:
    """Lets connections prove the secret, many at a time, for all threads that wait for one.

    One thread goes on with all of them while the others wait; a connection that is
    proved goes to the thread that asks next, whichever went on with it.
    """

    def __init__(
        self, listener: socket.socket, secret: bytes, tls: ssl.SSLContext | None, end: Accept
    ) -> None:
        self._listener = listener
        self._secret = secret
        self._tls = tls
        self._end = end
        self._turn = threading.Lock()
        self._candidates: list[_Candidate] = []
        self._proved: deque[BlockingStream] = deque()
        self.refused = ""
        """Why the last one was refused."""

    def step(self) -> BlockingStream | None:
        """Go on for a moment; a connection that has proved itself, if there is one."""
        if not self._turn.acquire(timeout=LOOK_S):
            return None
        try:
            if not self._proved:
                self._go_on()
            return self._proved.popleft() if self._proved else None
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close the listener, and what was not asked for."""
        self._listener.close()
        with self._turn:
            for candidate in self._candidates:
                candidate.connection.close()
            for connection in self._proved:
                connection.close()
            self._candidates.clear()
            self._proved.clear()

    def _go_on(self) -> None:
        try:
            waiting = select.poll()
            for each in (self._listener, *(each.connection for each in self._candidates)):
                waiting.register(each, select.POLLIN)
            ready = {fd for fd, _ in waiting.poll(LOOK_S * 1e3)}
            if self._listener.fileno() in ready:
                self._accept()
        except (OSError, ValueError) as error:
            raise CommunicationError(f"{self._end.name} listens no more: {error}") from error
        for candidate in list(self._candidates):
            if candidate.connection.fileno() in ready:
                self._go_on_with(candidate)
            elif time.monotonic() > candidate.until:
                self._refuse(candidate, f"it did not prove itself in {_PROOF_S:g} s")

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        if len(self._candidates) >= _MAX_CANDIDATES:
            self._refuse(self._candidates[0], "too many connect at a time")
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection if self._tls is None else TlsStream(connection, self._tls)
        handshake = Handshake(self._secret, 0, 2, initiated=False)
        until = time.monotonic() + _PROOF_S
        candidate = _Candidate(stream, handshake, until)
        self._candidates.append(candidate)
        self._go_on_with(candidate)

    def _go_on_with(self, candidate: _Candidate) -> None:
        try:
            is_proved = candidate.handshake.advance(candidate.connection)
        except (CommunicationError, OSError) as error:
            self._refuse(candidate, str(error))
        else:
            if is_proved:
                self._candidates.remove(candidate)
                self._proved.append(BlockingStream(candidate.connection))

    def _refuse(self, candidate: _Candidate, reason: str) -> None:
        candidate.connection.close()
        if candidate in self._candidates:
            self._candidates.remove(candidate)
        self.refused = f"; a connection was refused: {reason}"


class _EventThread:
    """A thread with a connection, between which and the worker events wait.

    All that both touch is touched with `_turn` held.
    """

    def __init__(self, end: _End, wake: Wake, role: bytes) -> None:
        self._end = end
        self._wake = wake
        self._role = role
        self._turn = threading.Condition()
        self._waiting: deque[Event] = deque()
        self._connection: BlockingStream | None = None
        self._is_closed = False
        self._is_done = False
        self._failure: PointstampError | None = None
        name = f"pointstamp events {end.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and the connection with it."""
        with self._turn:
            self._is_closed = True
            if self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
            self._turn.notify_all()
        self._thread.join()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            connection = self._end.connect(lambda: not self._is_closed)
            with contextlib.closing(connection):
                self._begin(connection)
                self._carry(connection)
        except (TruncatedError, PeerLostError, OSError) as error:
            # What is cut off here was not cut in a file: the other end has gone.
            what = "" if isinstance(error, TruncatedError) else f": {error}"
            self._fail(
                PeerLostError(
                    f"the connection of a captured stream at {self._end.name} was lost before its "
                    f"end{what}"
                )
            )
        except PointstampError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  (a thread has no other way to say it)
            self._fail(
                CommunicationError(f"the captured stream at {self._end.name} failed: {error!r}")
            )
        finally:
            with self._turn:
                self._connection = None
                self._is_done = True
            if not self._is_closed:
                self._wake()

    def _begin(self, connection: BlockingStream) -> None:
        """Agree on what each end does."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        with self._turn:
            self._connection = connection
            if self._is_closed:
                raise PeerLostError("it was closed here")
        connection.send_all(self._role)
        theirs = connection.recv(1)
        if theirs == self._role:
            what = "captures" if theirs == _CAPTURES else "replays"
            raise RendezvousError(
                f"both ends of the connection at {self._end.name} would {what[:-1]}: one has to "
                "capture and the other to replay"
            )
        if not theirs:
            raise PeerLostError("the other end closed it at once")

    def _carry(self, connection: BlockingStream) -> None:
        raise NotImplementedError

    def _fail(self, error: PointstampError) -> None:
        with self._turn:
            self._failure = error


class SocketWriter(_EventThread):
    """Sends the events of one part."""

    def __init__(self, end: _End, part: CapturedPart, wake: Wake) -> None:
        self._part = part
        self._was_full = False
        self._answer: bytes | None = None
        """What the other end said; empty if it has gone."""
        super().__init__(end, wake, _CAPTURES)

    def push(self, event: Event) -> None:
        """Have the thread send `event`; never waits."""
        with self._turn:
            self._check()
            self._waiting.append(event)
            self._turn.notify_all()

    def has_room(self) -> bool:
        """Whether the thread keeps up."""
        with self._turn:
            self._was_full = len(self._waiting) >= _MAX_WAITING
            return not self._was_full

    def is_finished(self) -> bool:
        """Whether the other end has all, and said so. Raises what went wrong."""
        with self._turn:
            self._check()
            return self._is_done

    def _carry(self, connection: BlockingStream) -> None:
        # One thread sends, and one waits for the answer, or for the end that comes too early.
        name = f"{threading.current_thread().name} answer"
        hears = threading.Thread(target=self._hear, args=(connection,), name=name, daemon=True)
        hears.start()
        try:
            self._send(connection)
            hears.join()
        finally:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            hears.join()
        if self._answer != _GOT_ALL:
            raise PeerLostError("the other end did not say that it has all of it")

    def _hear(self, connection: BlockingStream) -> None:
        try:
            answer = connection.recv(1)
        except OSError:
            answer = b""
        with self._turn:
            self._answer = answer
            self._turn.notify_all()

    def _send(self, connection: BlockingStream) -> None:
        from pointstamp.formats.event_streams import EventStreamWriter

        with connection.writer() as file:
            events = EventStreamWriter(file, self._part)
            while not events.is_complete:
                events.write(self._next())
                if not self._waiting:
                    file.flush()

    def _next(self) -> Event:
        with self._turn:
            while not self._waiting and self._answer is None and not self._is_closed:
                self._turn.wait()
            if self._is_closed:
                raise PeerLostError("it was closed here")
            if self._answer is not None:
                raise PeerLostError("the other end closed it")
            event = self._waiting.popleft()
            is_room = self._was_full and 2 * len(self._waiting) < _MAX_WAITING
            if is_room:
                self._was_full = False
        if is_room:
            self._wake()
        return event


class SocketReader(_EventThread):
    """Receives the events of one part."""

    def __init__(self, end: _End, times: str, wake: Wake) -> None:
        self._times = times
        super().__init__(end, wake, _REPLAYS)

    def take(self) -> Event | None:
        """The next event, if it is here. Raises what went wrong, after what had arrived."""
        with self._turn:
            if not self._waiting:
                self._check()
                return None
            self._turn.notify_all()
            return self._waiting.popleft()

    def is_ended(self) -> bool:
        """Whether all was given."""
        with self._turn:
            return self._is_done and not self._waiting and self._failure is None

    def _carry(self, connection: BlockingStream) -> None:
        from pointstamp.formats.event_streams import EventStreamReader

        with connection.reader() as file:
            events = EventStreamReader(file, self._end.name, self._times)
            while (event := events.read()) is not None:
                self._put(event)
        connection.send_all(_GOT_ALL)

    def _put(self, event: Event) -> None:
        with self._turn:
            while len(self._waiting) >= _MAX_WAITING and not self._is_closed:
                self._turn.wait()
            if self._is_closed:
                raise PeerLostError("it was closed here")
            self._waiting.append(event)
        self._wake()


def _checked(secret: bytes) -> bytes:
    """`secret`, if it is long enough: before anything is opened."""
    Handshake(secret, 0, 2, initiated=True)
    return secret


def _wait_a_moment(is_wanted: Callable[[], bool], name: str) -> None:
    time.sleep(LOOK_S)
    if not is_wanted():
        raise PeerLostError(f"{name} is not connected to any more: it was closed here")
