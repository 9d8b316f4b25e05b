"""Connects workers on any machines to each other: a list of addresses becomes a mesh.

Each worker listens at its own address and calls those of lower index; each
connection is authenticated (see `authentication`) before it counts. Where the
addresses are not known ahead, as in a stage of Spark, workers bind with `listen`
first, exchange what `Listener.address` says, and then `connect`.

Rules:

- A caller is not believed anything until it proved the secret. It is refused
  otherwise, and the place that it claimed stays free for the true peer. It has
  `HANDSHAKE_S` for that, and only so many may try at the same time.
- Where *we* call is by the list of addresses: what answers there and knows another
  secret, speaks another version or is another worker is an error at once. That
  nothing answers is not: the peer may start later, and we call again until
  `timeout_s` is over.

A machine that vanishes without ending its connections is noticed by keep-alive
after about `KEEP_ALIVE_S`; a process that ends, however, at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pointstamp.communication.authentication import Handshake
from pointstamp.communication.routes import Routes
from pointstamp.communication.segment_sharing import (
    ALONE,
    machine_number,
    machine_of_each,
    share,
    sharing,
)
from pointstamp.communication.tls import (
    Certificates,
    Stream,
    TlsStream,
    context,
    is_of_tls,
    waits_for_room,
)
from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    PeerLostError,
    RendezvousError,
    UsageError,
    VersionError,
)

if TYPE_CHECKING:
    from pointstamp.communication.mesh import MeshCommunicator

Address = tuple[str, int]
"""A host name or IP address, and a port."""

HANDSHAKE_S = 5.0
FIRST_RETRY_S = 0.02
LAST_RETRY_S = 0.25
MAX_CALLERS = 64
"""How many callers that have not proved anything yet may try at a time, beyond the peers."""

KEEP_ALIVE_S = 30

PER_WORKER, PER_MACHINE = "worker", "machine"
"""What has a connection to each other one of its kind."""

_RELAYS = 0x80
"""Beside what a worker wants compressed: that it has connections per machine."""

_Refusal = AuthenticationError | VersionError | RendezvousError


class Listener(contextlib.AbstractContextManager["Listener"]):
    """A bound socket at which the peers of a worker can call; made by `listen`."""

    def __init__(self, bound: socket.socket, host: str) -> None:
        self.socket = bound
        self.address: Address = (host, bound.getsockname()[1])
        """The host it was asked to listen at, and the port it has."""

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def listen(host: str = "127.0.0.1", port: int = 0) -> Listener:
    """Listen at `host`, an address of this machine; port 0 takes a free one.

    Raises
    ------
    RendezvousError
        When this machine cannot listen there.

    Examples
    --------
    >>> with listen() as listener:
    ...     listener.address[0]
    '127.0.0.1'
    """
    try:
        bound = _bind(host, port)
    except OSError as error:
        raise RendezvousError(
            f"cannot listen at {host}, port {port}: {error}; it must be an address of this "
            "machine, and the port must be free"
        ) from error
    return Listener(bound, host)


def _bind(host: str, port: int) -> socket.socket:
    """Listen at the first address of `host` at which it is possible."""
    errors: list[OSError] = []
    for family, kind, protocol, _, where in _resolve(host, port, socket.AI_PASSIVE):
        bound = None
        try:
            bound = socket.socket(family, kind, protocol)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(where)
            bound.listen(128)
        except OSError as error:
            errors.append(error)
            if bound is not None:
                bound.close()
        else:
            bound.setblocking(False)
            return bound
    raise errors[0]


def connect(
    index: int,
    addresses: Sequence[Address],
    secret: bytes,
    *,
    listener: Listener | None = None,
    timeout_s: float = 30.0,
    compression: str | None = None,
    certificates: Certificates | None = None,
    machine: bytes | None = None,
    warn: Callable[[str], None] | None = None,
    connections: str = PER_WORKER,
) -> MeshCommunicator:
    """Connect worker `index` to all others; returns when it is connected to each.

    Parameters
    ----------
    addresses
        Where each worker listens, by index; the same list on every worker.
    secret
        Known to these workers alone; at least 16 bytes.
    listener
        This worker's, from `listen`, which is closed in the end. Without one, the
        worker listens at `addresses[index]`.
    compression : {"lz4", "zstd"}, optional
        How the peers shall compress what they send to this worker: worth it where
        the network is slower than the codec. Each worker chooses for itself, and is
        given the choices of the others when they meet.
    certificates : Certificates, optional
        Encrypt every connection, by TLS of which both ends check the certificate.
    machine : bytes, optional
        16 bytes: workers with the same share memory. By default those do that run on one machine;
        `segment_sharing.ALONE` has this worker use its connections only.
    warn : callable, optional
        Called with a text, once for each peer that is missing, when a call in its name was
        refused; this worker goes on waiting.
    connections : {"worker", "machine"}
        Each two workers have a connection, or each two machines have one that carries what
        their workers send each other, see `relayed_link`; the same on every worker. A machine is
        then a host in `addresses`, letter by letter, as that is known before any
        connection is made; workers of one host are connected each to each as always.

    Raises
    ------
    RendezvousError
        When peers did not turn up in `timeout_s`; the message names them. When one has another
        choice of `connections`.
    AuthenticationError, VersionError
        When a peer knows another secret, or speaks another version.
    UsageError
        When this worker cannot unpack the compression that it asks for, and for other
        `connections` than those.
    """
    check_connections(connections)
    if not 0 <= index < len(addresses):
        raise UsageError(f"there is no worker {index}: {len(addresses)} addresses were given")
    until = time.monotonic() + timeout_s
    number = machine_number() if machine is None else machine
    routes = None if connections == PER_WORKER else Routes(index, machines_of_hosts(addresses))
    with listener or listen(*addresses[index]) as own:
        meeting = _Rendezvous(
            index,
            list(addresses),
            secret,
            own,
            _wanted(compression),
            number,
            certificates,
            warn,
            routes,
        )
        try:
            streams = meeting.meet(timeout_s)
            members = sharing(index, number, meeting.machines_that_may_share())
            shared = share(index, members, streams, until) if members else None
        except BaseException:
            meeting.let_go()
            raise
    compressions = {peer: name for peer, wants in meeting.wants.items() if (name := _name(wants))}
    from pointstamp.communication.mesh import MeshCommunicator  # with all that it carries

    return MeshCommunicator(
        index,
        len(addresses),
        streams,
        shared,
        compressions=compressions,
        members=members,
        machines=machine_of_each({**meeting.machines, index: number})
        if routes is None
        else routes.machines,
        routes=routes,
    )


def check_connections(connections: Any) -> None:
    """Refuse what says neither that each two workers are connected nor each two machines."""
    if connections not in (PER_WORKER, PER_MACHINE):
        raise UsageError(
            f'connections are one per "{PER_WORKER}" or per "{PER_MACHINE}", and not '
            f"{connections!r}"
        )


def machines_of_hosts(addresses: Sequence[Address]) -> list[int]:
    """By worker, the first one with the same host.

    >>> machines_of_hosts([("one", 1), ("two", 1), ("one", 2)])
    [0, 1, 0]
    """
    first: dict[str, int] = {}
    return [first.setdefault(host, worker) for worker, (host, _) in enumerate(addresses)]


def _wanted(compression: str | None) -> int:
    """The number of a codec, by which peers name it."""
    if compression is None:
        return 0
    from pointstamp.formats.compression import CODECS, check  # imports Arrow

    check(compression)
    return CODECS[compression]


def _name(number: int) -> str | None:
    """The codec that a peer asks for; None if this process cannot pack by it."""
    if not number:
        return None
    from pointstamp.formats.compression import available  # imports Arrow

    return available().get(number)


@dataclass(eq=False)
class _PendingConnection:
    """A connection whose other end has not proved yet which worker it is."""

    connection: Stream
    handshake: Handshake
    until: float
    called: _Call | None = None
    """The call that it belongs to; None where the other end called."""
    origin: Address | None = None
    """Where it was called from; None where we called."""
    is_open: bool = True


@dataclass(eq=False)
class _Call:
    """Our attempts to reach one peer."""

    peer: int
    address: Address
    due: float = 0.0
    retry_s: float = FIRST_RETRY_S
    n_tried: int = 0
    pending: _PendingConnection | None = None
    last_error: str = "not tried yet"


@dataclass
class _Rendezvous:
    """One worker's meeting with its peers."""

    index: int
    addresses: list[Address]
    secret: bytes
    listener: Listener
    compression: int = 0
    """What this worker wants to be sent."""
    machine: bytes = ALONE
    certificates: Certificates | None = None
    warn: Callable[[str], None] | None = None
    """Called with the text of a refusal."""
    routes: Routes | None = None
    """Which workers are connected, if not each to each."""
    connections: dict[int, Stream] = field(default_factory=dict)
    wants: dict[int, int] = field(default_factory=dict)
    """What the peers that are connected want to be sent."""
    machines: dict[int, bytes] = field(default_factory=dict)
    """The numbers of the machines of the peers that are connected."""
    calls: dict[int, _Call] = field(default_factory=dict)
    callers: dict[_PendingConnection, None] = field(default_factory=dict)
    refused: dict[int, _Refusal] = field(default_factory=dict)
    """The last reason to refuse one that claimed to be this peer."""
    refused_others: str = ""
    """The last reason to refuse one of which not even that is known."""
    refused_encryption: str = ""
    """What was said last of an end with which we do not agree on certificates."""

    def __post_init__(self) -> None:
        self._tls = {
            initiated: context(self.certificates, initiated=initiated)
            for initiated in (False, True)
            if self.certificates is not None
        }
        self._selector = selectors.DefaultSelector()
        everyone = (peer for peer in range(len(self.addresses)) if peer != self.index)
        self.neighbours = [*everyone] if self.routes is None else self.routes.neighbours
        self.calls = {
            peer: _Call(peer, self.addresses[peer]) for peer in self.neighbours if peer < self.index
        }

    @property
    def missing(self) -> list[int]:
        """The peers that are not connected yet."""
        return [peer for peer in self.neighbours if peer not in self.connections]

    def machines_that_may_share(self) -> dict[int, bytes]:
        """The numbers of the machines of the peers with which memory may be shared."""
        if self.routes is None:
            return self.machines
        # To others no more than one worker may be connected, and so not agree on it with them.
        members = self.routes.members
        return {peer: number for peer, number in self.machines.items() if peer in members}

    def meet(self, timeout_s: float) -> dict[int, Stream]:
        """Call and be called until every peer is connected."""
        until = time.monotonic() + timeout_s
        with self._selector:
            self._selector.register(self.listener.socket, selectors.EVENT_READ)
            while not self._is_complete():
                now = time.monotonic()
                if now >= until:
                    raise self._too_late(timeout_s)
                self._call_what_is_due(now)
                self._give_up_the_slow(now)
                for key, _ in self._selector.select(self._wait_s(until)):
                    if key.data is None:
                        self._answer()
                    elif isinstance(key.data, _PendingConnection):
                        self._talk(key.data)
                    else:
                        self._look_after(key.data)
            self._drop_callers()
        return self.connections

    def _is_complete(self) -> bool:
        """Whether everybody is here, and has not gone again."""
        if not self.missing:
            for peer in list(self.connections):
                self._look_after(peer)
        return not self.missing

    def let_go(self) -> None:
        """Close every connection, proved or not."""
        for call in self.calls.values():
            if call.pending is not None:
                call.pending.connection.close()
        for pending in self.callers:
            pending.connection.close()
        for connection in self.connections.values():
            connection.close()

    # Calling the peers of lower index.

    def _call_what_is_due(self, now: float) -> None:
        for call in self.calls.values():
            if call.pending is None and call.peer not in self.connections and call.due <= now:
                self._call(call, now)

    def _call(self, call: _Call, now: float) -> None:
        """Begin a connection to the next of the addresses that the peer's host has."""
        try:
            found = _resolve(*call.address)
            family, kind, protocol, _, where = found[call.n_tried % len(found)]
            connection = socket.socket(family, kind, protocol)
        except OSError as error:
            self._call_again(call, str(error))
            return
        call.n_tried += 1
        connection.setblocking(False)
        call.pending = _PendingConnection(
            connection, self._handshake(initiated=True), now + HANDSHAKE_S, call, is_open=False
        )
        status = connection.connect_ex(where)
        if status in (0, errno.EINPROGRESS):
            self._selector.register(connection, selectors.EVENT_WRITE, call.pending)
        else:
            connection.close()
            self._call_again(call, os.strerror(status))

    def _call_again(self, call: _Call, error: str) -> None:
        """Put the next attempt off, a little longer each time."""
        call.pending = None
        call.last_error = error
        call.due = time.monotonic() + call.retry_s
        call.retry_s = min(2 * call.retry_s, LAST_RETRY_S)

    def _opened(self, pending: _PendingConnection) -> None:
        """The connection that we asked for is there, or is not."""
        status = pending.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if status:
            self._hang_up(pending, os.strerror(status))
        elif pending.connection.getsockname() == pending.connection.getpeername():
            # Calling a free port of this machine may connect a socket to itself.
            self._hang_up(pending, "nothing listens")
        else:
            pending.is_open = True
            self._selector.unregister(pending.connection)  # which is another object from here on
            pending.connection = self._encrypted(pending.connection, initiated=True)
            self._selector.register(pending.connection, selectors.EVENT_WRITE, pending)

    # Being called by those of higher index.

    def _answer(self) -> None:
        """Accept callers."""
        while True:
            try:
                accepted, origin = self.listener.socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            accepted.setblocking(False)
            connection = self._encrypted(accepted, initiated=False)
            if len(self.callers) >= MAX_CALLERS + len(self.addresses):
                self._hang_up(next(iter(self.callers)), "too many call at a time")
            handshake = self._handshake(initiated=False)
            until = time.monotonic() + HANDSHAKE_S
            pending = _PendingConnection(connection, handshake, until, origin=origin[:2])
            self.callers[pending] = None
            self._selector.register(
                connection, selectors.EVENT_READ | selectors.EVENT_WRITE, pending
            )

    def _drop_callers(self) -> None:
        for pending in list(self.callers):
            self._hang_up(pending, "everyone is here")

    # Both.

    def _encrypted(self, connection: Stream, *, initiated: bool) -> Stream:
        """The connection, inside of TLS if there are certificates."""
        if not self._tls or isinstance(connection, TlsStream):
            return connection
        return TlsStream(connection, self._tls[initiated])

    def _handshake(self, *, initiated: bool) -> Handshake:
        return Handshake(
            self.secret,
            self.index,
            len(self.addresses),
            initiated=initiated,
            wants=self.compression | (_RELAYS if self.routes is not None else 0),
            machine=self.machine,
        )

    def _talk(self, pending: _PendingConnection) -> None:
        """Go on with a handshake as far as the connection lets us."""
        if pending.connection.fileno() < 0:
            return  # hung up since the selector saw it
        try:
            if not pending.is_open:
                self._opened(pending)
            if pending.is_open:
                pending.handshake.advance(pending.connection)
        except (PeerLostError, OSError) as error:
            if self._tls and is_of_tls(error):
                self._report_tls(pending, error)
            self._hang_up(pending, str(error))
        except (AuthenticationError, VersionError, RendezvousError) as refusal:
            self._refuse(pending, refusal)
        if pending.handshake.is_done:
            self._welcome(pending)
        elif pending.connection.fileno() >= 0:
            has_more = pending.handshake.unsent and waits_for_room(pending.connection)
            writing = selectors.EVENT_WRITE if has_more or not pending.is_open else 0
            self._selector.modify(pending.connection, selectors.EVENT_READ | writing, pending)

    def _welcome(self, pending: _PendingConnection) -> None:
        """Count a connection that proved to be a peer's."""
        peer = pending.handshake.peer
        assert peer is not None
        wants = pending.handshake.peer_wants
        if bool(wants & _RELAYS) != (self.routes is not None):
            theirs, ours = (PER_MACHINE, PER_WORKER)[:: 1 if wants & _RELAYS else -1]
            self._refuse(
                pending,
                RendezvousError(
                    f'worker {peer} has connections per "{theirs}", and this one per "{ours}": '
                    "give all workers the same"
                ),
            )
        elif pending.called is not None and peer != pending.called.peer:
            self._refuse(pending, RendezvousError(f"worker {peer} is there: the lists differ"))
        elif pending.called is None and (peer <= self.index or peer not in self.neighbours):
            self._refuse(
                pending, RendezvousError(f"worker {peer} should not call worker {self.index}")
            )
        else:
            self._forget(pending)
            # A peer that calls twice gave up its first connection.
            if peer in self.connections:
                self._part_from(peer)
            tune(pending.connection)
            self.connections[peer] = pending.connection
            self.wants[peer] = wants & ~_RELAYS
            self.machines[peer] = pending.handshake.peer_machine
            self._selector.register(pending.connection, selectors.EVENT_READ, peer)

    def _look_after(self, peer: int) -> None:
        """See whether a peer, whose meeting may have failed, is still there."""
        connection = self.connections.get(peer)
        if connection is None:
            return  # it went since the selector saw it
        try:
            is_there = connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return
        except OSError:
            is_there = False
        if is_there:
            # Its meeting is over and it sends already; the mesh will read that.
            with contextlib.suppress(KeyError):
                self._selector.unregister(connection)
            return
        self._part_from(peer)
        if peer in self.calls:
            self._call_again(self.calls[peer], "it went away again")

    def _part_from(self, peer: int) -> None:
        connection = self.connections.pop(peer)
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        connection.close()

    def _refuse(self, pending: _PendingConnection, refusal: _Refusal) -> None:
        """Hang up for a reason; an error if this worker called."""
        self._hang_up(pending, str(refusal))
        if pending.called is not None:
            host, port = pending.called.address
            raise type(refusal)(
                f"worker {self.index} called worker {pending.called.peer} at {host}, port {port}: "
                f"{refusal}"
            ) from refusal
        claimed = pending.handshake.claimed
        if claimed is not None:
            self._warn_of(pending, claimed, refusal)
            self.refused[claimed] = refusal
        else:
            self.refused_others = f"; others called, and were refused: {refusal}"

    def _warn_of(self, pending: _PendingConnection, claimed: int, refusal: _Refusal) -> None:
        """Report a refusal, once for each peer: a stranger may call again and again."""
        if self.warn is None or claimed in self.refused or claimed not in self.missing:
            return
        assert pending.origin is not None  # of our own calls it is an error
        host, port = pending.origin
        self.warn(
            f"refused what called from {host}, port {port}, as worker {claimed}, and wait on for "
            f"it: {refusal}"
        )

    def _report_tls(self, pending: _PendingConnection, error: BaseException) -> None:
        """Report, once, that another end and we do not take each other's certificates."""
        place = pending.origin if pending.called is None else pending.called.address
        assert place is not None  # where we did not call, we were called from somewhere
        why = (
            f"worker {self.index} and the other end at {place[0]}, port {place[1]}, do not take "
            f"each other's certificates: {error}"
        )
        if self.warn is not None and not self.refused_encryption:
            self.warn(f"{why}; wait on")
        self.refused_encryption = f"; {why}"

    def _hang_up(self, pending: _PendingConnection, why: str) -> None:
        self._forget(pending)
        pending.is_open = False
        pending.connection.close()
        if pending.called is not None:
            self._call_again(pending.called, why)

    def _forget(self, pending: _PendingConnection) -> None:
        """Take it out of what is waited for."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(pending.connection)
        self.callers.pop(pending, None)
        if pending.called is not None:
            pending.called.pending = None

    def _give_up_the_slow(self, now: float) -> None:
        all_pending = [
            *self.callers,
            *(call.pending for call in self.calls.values() if call.pending),
        ]
        for pending in all_pending:
            if pending.until <= now:
                self._hang_up(pending, f"it did not prove which worker it is in {HANDSHAKE_S:g} s")

    def _wait_s(self, until: float) -> float:
        """How long nothing is due."""
        moments = [until, *(pending.until for pending in self.callers)]
        for call in self.calls.values():
            if call.pending is not None:
                moments.append(call.pending.until)
            elif call.peer not in self.connections:
                moments.append(call.due)
        return max(0.0, min(moments) - time.monotonic())

    def _too_late(self, timeout_s: float) -> CommunicationError:
        """Why the meeting did not come about."""
        if self.refused.keys() >= set(self.missing):
            refusal = self.refused[self.missing[0]]
            return type(refusal)(f"worker {self.index} refused worker {self.missing[0]}: {refusal}")
        missing = "; ".join(self._absence(peer) for peer in self.missing)
        return RendezvousError(
            f"worker {self.index} waited {timeout_s:g} s for "
            f"{len(self.missing)} of {len(self.neighbours)} peers: {missing}"
            f"{self.refused_others}{self.refused_encryption}"
        )

    def _absence(self, peer: int) -> str:
        if peer in self.calls:
            host, port = self.addresses[peer]
            return f"worker {peer} at {host}, port {port} ({self.calls[peer].last_error})"
        host, port = self.listener.address
        why = f"was refused: {self.refused[peer]}" if peer in self.refused else "did not call"
        return f"worker {peer} ({why} at {host}, port {port})"


def _resolve(host: str, port: int, flags: int = 0) -> list[tuple[Any, ...]]:
    """The addresses of a host, for `socket.socket` and `connect`."""
    return socket.getaddrinfo(host or None, port, socket.AF_UNSPEC, socket.SOCK_STREAM, 0, flags)


def tune(connection: Stream) -> None:
    """Send small frames at once; notice a machine that is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEP_ALIVE_S // 3),
        ("TCP_KEEPINTVL", KEEP_ALIVE_S // 6),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", KEEP_ALIVE_S * 1000),
    ):
        if hasattr(socket, name):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
