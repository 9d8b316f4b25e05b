"""Connects workers on any machines to each other: a list of addresses becomes a mesh.

Each worker listens at its own address and calls those of lower index (with relays, see
`relay_process`, those of higher index); each connection is authenticated before it counts.
Where the addresses are not known ahead, as in a stage of Spark, workers bind with `listen`
first, exchange what `Listener.address` says, and then `connect`.

Rules:

- A caller is not believed anything until it proved the secret. It is refused
  otherwise, and the place that it claimed stays free for the true peer. It has
  `HANDSHAKE_S` for that, and only so many may try at the same time.
- Where *we* call is by the list of addresses: what answers there and knows another
  secret, speaks another version or is another worker is an error at once. That
  nothing answers is not: the peer may start later, and we call again until
  `timeout_s` is over.

A machine that vanishes without ending its connections is noticed by keep-alive (see `tune`); a
process that ends, however, at once.
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
from pointstamp.communication.listening import Address, Listener, listen, resolve, tune
from pointstamp.communication.routes import Routes, machines_of_hosts
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
    PointstampError,
    RendezvousError,
    UsageError,
    VersionError,
)

if TYPE_CHECKING:
    from pointstamp.communication.mesh import MeshCommunicator
    from pointstamp.communication.relay_process import RelayProcess, RelayTask

HANDSHAKE_S = 5.0
FIRST_RETRY_S = 0.02
LAST_RETRY_S = 0.25
MAX_CALLERS = 64
"""How many callers that have not proved anything yet may try at a time, beyond the peers."""

PER_WORKER, PER_MACHINE = "worker", "machine"
"""What has a connection to each other one of its kind."""

_RELAYS = 0x80
"""Beside what a worker wants compressed: that it has connections per machine."""

_Refusal = AuthenticationError | VersionError | RendezvousError


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
        connection is made; workers of one host are connected each to each as always. The
        first one of several starts a process that relays for them, with its own
        `compression` and at its own address.

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
        if routes is not None and routes.starts_relay:
            from pointstamp.communication.relay_process import RelayProcess, RelayTask

            task = RelayTask(
                index,
                list(addresses),
                secret,
                timeout_s,
                until,
                compression,
                number,
                certificates,
            )
            meeting.relay = RelayProcess(task, own.socket)
            own.close()  # what calls there calls the relay
        return _mesh(meeting, timeout_s, until)


def connect_relay(task: RelayTask, listener: Listener) -> MeshCommunicator:
    """Connect the relay of a machine; raises as `connect`."""
    routes = Routes(task.index, machines_of_hosts(task.addresses))
    assert routes.relay is not None  # or it would not have been started
    routes = Routes(routes.relay, routes.machines)
    with listener:
        meeting = _Rendezvous(
            routes.number,
            task.addresses,
            task.secret,
            listener,
            _wanted(task.compression),
            task.machine,
            task.certificates,
            routes=routes,
        )
        return _mesh(meeting, task.timeout_s, task.until)


def _mesh(meeting: _Rendezvous, timeout_s: float, until: float) -> MeshCommunicator:
    """Have them meet, and share memory where they can."""
    index, routes, number = meeting.index, meeting.routes, meeting.machine
    try:
        streams = meeting.meet(timeout_s, until)
        meeting.agree()
        members = sharing(index, number, meeting.machines_that_may_share())
        shared = share(index, members, streams, until) if members else None
    except BaseException as error:
        if routes is not None and routes.is_relay and isinstance(error, PointstampError):
            meeting.excuse(routes, error)
        meeting.let_go()
        raise
    near = [] if routes is None else routes.local  # which no network is between
    compressions = {
        peer: name
        for peer, wants in meeting.wants.items()
        if peer not in near and (name := _name(wants))
    }
    from pointstamp.communication.mesh import MeshCommunicator  # with all that it carries

    return MeshCommunicator(
        index,
        len(meeting.addresses),
        streams,
        shared,
        compressions=compressions,
        members=members,
        machines=machine_of_each({**meeting.machines, index: number})
        if routes is None
        else routes.machines,
        routes=routes,
        relay=meeting.relay,
    )


def check_connections(connections: Any) -> None:
    """Refuse what says neither that each two workers are connected nor each two machines."""
    if connections not in (PER_WORKER, PER_MACHINE):
        raise UsageError(
            f'connections are one per "{PER_WORKER}" or per "{PER_MACHINE}", and not '
            f"{connections!r}"
        )


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
    relay: RelayProcess | None = None
    """The relay that this worker has started, which is called in its place."""
    until: float = 0.0
    """When the time to meet is over."""
    has_agreed: bool = False
    """Whether it is known that the relay has met the others."""
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
        if self.routes is None:
            self.neighbours = [peer for peer in range(len(self.addresses)) if peer != self.index]
            called = [(peer, self.addresses[peer]) for peer in self.neighbours if peer < self.index]
        else:
            # The other way round: so nothing calls the first worker of a machine, in whose place
            # its relay listens, and relays have the highest numbers.
            self.neighbours = self.routes.neighbours
            places = self.routes.with_relays(self.addresses)
            called = [(peer, places[peer]) for peer in self.neighbours if peer > self.index]
        self.calls = {peer: _Call(peer, address) for peer, address in called}

    def name(self, number: int) -> str:
        """What a worker, or relay, is called in messages."""
        return f"worker {number}" if self.routes is None else self.routes.name(number)

    @property
    def missing(self) -> list[int]:
        """The peers that are not connected yet."""
        return [peer for peer in self.neighbours if peer not in self.connections]

    def machines_that_may_share(self) -> dict[int, bytes]:
        """The numbers of the machines of the peers with which memory may be shared."""
        if self.routes is None:
            return self.machines
        # To others no more than one worker may be connected, and so not agree on it with them.
        near = self.routes.local
        return {peer: number for peer, number in self.machines.items() if peer in near}

    def agree(self) -> None:
        """Let the workers of a machine go on once their relay has met the others."""
        routes = self.routes
        if routes is None or routes.relay is None or self.has_agreed:
            return
        from pointstamp.communication.relay_process import VERDICT_S, await_verdict, send_verdict

        self.has_agreed = True
        if routes.is_relay:
            send_verdict([self.connections[peer] for peer in routes.members], None)
        else:
            stream = self.connections[routes.relay]
            await_verdict(stream, self.name(routes.relay), self.until + VERDICT_S)

    def excuse(self, routes: Routes, error: PointstampError) -> None:
        """Let the workers of a machine know why their relay has not met the others."""
        from pointstamp.communication.relay_process import LATE_S, send_verdict

        for call in self.calls.values():
            if call.pending is not None:
                self._hang_up(call.pending, str(error))
        self.calls, self.neighbours = {}, routes.members
        self._selector = selectors.DefaultSelector()
        # Those that are about to prove themselves may; others are late, and call yet.
        for pending in self.callers:
            self._selector.register(pending.connection, selectors.EVENT_READ, pending)
        for peer in routes.members:
            if peer in self.connections:
                self._selector.register(self.connections[peer], selectors.EVENT_READ, peer)
        with contextlib.suppress(PointstampError):
            self.meet(LATE_S, time.monotonic() + LATE_S)
        # The first worker last, as it ends this process.
        there = [self.connections[peer] for peer in routes.members if peer in self.connections]
        send_verdict(there[::-1], error)

    def meet(self, timeout_s: float, until: float) -> dict[int, Stream]:
        """Call and be called until every peer is connected."""
        self.until = until
        with self._selector:
            if self.relay is None:
                self._selector.register(self.listener.socket, selectors.EVENT_READ)
            else:
                self._selector.register(self.relay.stream, selectors.EVENT_READ, self.relay)
            while not self._is_complete():
                now = time.monotonic()
                if now >= until:
                    raise self._too_late(timeout_s)
                self._call_what_is_due(now)
                self._give_up_the_slow(now)
                for key, _ in self._selector.select(self._wait_s(until)):
                    if key.data is None:
                        self._answer()
                    elif key.data is self.relay:
                        raise self.relay.error()
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
        if self.relay is not None:
            self.relay.kill()

    # Calling those that this one calls.

    def _call_what_is_due(self, now: float) -> None:
        for call in self.calls.values():
            if call.pending is None and call.peer not in self.connections and call.due <= now:
                self._call(call, now)

    def _call(self, call: _Call, now: float) -> None:
        """Begin a connection to the next of the addresses that the peer's host has."""
        try:
            found = resolve(*call.address)
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

    # Being called by the others.

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
            end=None if self.routes is None else self.routes.end,
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
                    f'{self.name(peer)} has connections per "{theirs}", and this one per "{ours}": '
                    "give all workers the same"
                ),
            )
        elif pending.called is not None and peer != pending.called.peer:
            self._refuse(pending, RendezvousError(f"{self.name(peer)} is there: the lists differ"))
        elif pending.called is None and (peer in self.calls or peer not in self.neighbours):
            self._refuse(
                pending,
                RendezvousError(f"{self.name(peer)} should not call {self.name(self.index)}"),
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
            if self.routes is not None and peer == self.routes.relay:
                self.agree()  # at once, as it may say that all is in vain
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
                f"{self.name(self.index)} called {self.name(pending.called.peer)} at {host}, "
                f"port {port}: {refusal}"
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
            f"refused what called from {host}, port {port}, as {self.name(claimed)}, and wait on "
            f"for it: {refusal}"
        )

    def _report_tls(self, pending: _PendingConnection, error: BaseException) -> None:
        """Report, once, that another end and we do not take each other's certificates."""
        place = pending.origin if pending.called is None else pending.called.address
        assert place is not None  # where we did not call, we were called from somewhere
        why = (
            f"{self.name(self.index)} and the other end at {place[0]}, port {place[1]}, do not "
            f"take each other's certificates: {error}"
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
            names = self.name(self.index), self.name(self.missing[0])
            return type(refusal)(f"{names[0]} refused {names[1]}: {refusal}")
        missing = "; ".join(self._absence(peer) for peer in self.missing)
        return RendezvousError(
            f"{self.name(self.index)} waited {timeout_s:g} s for "
            f"{len(self.missing)} of {len(self.neighbours)} peers: {missing}"
            f"{self.refused_others}{self.refused_encryption}"
        )

    def _absence(self, peer: int) -> str:
        if peer in self.calls:
            host, port = self.calls[peer].address
            return f"{self.name(peer)} at {host}, port {port} ({self.calls[peer].last_error})"
        host, port = self.listener.address
        why = f"was refused: {self.refused[peer]}" if peer in self.refused else "did not call"
        return f"{self.name(peer)} ({why} at {host}, port {port})"
