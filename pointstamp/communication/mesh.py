"""The communicator over streams: one connected socket to each of the peers.

It does not know where the sockets are from: `launch` makes pairs of them for the
processes that it starts, `tcp` connects machines. Whoever made them has made
sure who is at the other end; here, everything that arrives is unpickled.

Theory of operation. Everything happens in the worker's own thread, in the calls
that the worker makes; sockets never block. `send` encodes and queues, and writes
only when much is queued. `flush` writes what the sockets take. What they do not
take is written by later calls, among them `park`, which waits for room in a
socket as well as for something to read. Reading takes whatever has come, as
long as that is: there is no limit on what may be queued on either side, so two
workers that send each other more than the sockets hold cannot wait for each
other. Flow is controlled where the meaning of a message is known, not here.

Ending. A worker that closes sends GOODBYE, and answers the GOODBYE of a peer,
which comes after all its data, with RECEIVED. With both of each, nothing is
under way and the socket can go. A stream that ends before is a peer lost. A
worker that fails sends ABORT behind what is queued, and lingers a moment until
it is taken, so that a peer that can listen hears the cause.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import select
import socket
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pointstamp.communication.communicator import Message
from pointstamp.communication.failure import Notice, notice
from pointstamp.communication.framing import Buffer, Frame, FrameKind, FrameReader, frame
from pointstamp.communication.mailbox import ChannelEnd, Mailbox
from pointstamp.containers.codec import decode, encode
from pointstamp.errors import CommunicationError, FileFormatError

EAGER_BYTES = 1 << 18
"""With this much queued for a peer, `send` already tries to write."""

READS_PER_CALL = 16
"""How often one `receive` reads from one socket, so that a busy peer starves nobody."""

PIECES_PER_WRITE = 512
SPIN_S = 50e-6
"""How long `park` looks again and again before it sleeps: about what being woken costs."""

MAX_SKIPPED_SPINS = 63
LINGER_S = 0.3
"""How long a worker that fails waits for its peers to take the news."""

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


class _Link:
    """The connection to one peer: what is queued for it, and what was said about ending."""

    def __init__(self, peer: int, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.peer = peer
        self.connection = connection
        self.fd = connection.fileno()
        self.reader = FrameReader()
        self.unsent: deque[Buffer] = deque()
        self.n_unsent = 0
        self.is_blocked = False
        self.is_broken = False
        self.heard_goodbye = False
        self.heard_received = False

    @property
    def is_done(self) -> bool:
        """Whether both sides know that the other has all it was sent."""
        return self.heard_goodbye and self.heard_received and not self.unsent

    def queue(self, pieces: list[Buffer]) -> None:
        """Add a frame to what is to be written."""
        self.unsent.extend(pieces)
        self.n_unsent += sum(map(len, pieces))

    def write(self) -> None:
        """Write what the socket takes; `is_blocked` says whether some is left."""
        try:
            while self.unsent:
                self._written(self._write_some())
            self.is_blocked = False
        except BlockingIOError:
            self.is_blocked = True
        except OSError:
            # The peer is gone. What it said before is still to be read, and the
            # end of that stream is what is reported.
            self.is_broken = True
            self.is_blocked = False
            self.unsent.clear()
            self.n_unsent = 0

    def _write_some(self) -> int:
        if len(self.unsent) == 1:
            return self.connection.send(self.unsent[0])
        return self.connection.sendmsg(islice(self.unsent, PIECES_PER_WRITE))

    def _written(self, n_bytes: int) -> None:
        """Take the first `n_bytes` off the queue."""
        self.n_unsent -= n_bytes
        while self.unsent and len(self.unsent[0]) <= n_bytes:
            n_bytes -= len(self.unsent.popleft())
        if n_bytes:
            self.unsent[0] = memoryview(self.unsent[0])[n_bytes:]


class _Spin:
    """Whether to look again and again before sleeping; learned from whether it paid.

    Two workers that answer each other at once then need 22 us for a round trip
    instead of 72 (measured on two cores), as neither is put to sleep. Each spin in
    vain doubles the number of parks that go without, so that workers who wait for
    slow things, or share a core, do not burn it.
    """

    def __init__(self, peers: int) -> None:
        self._is_allowed = 1 < peers <= _n_processors()
        self._to_skip = 0
        self._penalty = 0

    def is_due(self) -> bool:
        """Whether this park should spin."""
        if self._to_skip:
            self._to_skip -= 1
            return False
        return self._is_allowed

    def learn(self, *, paid: bool) -> None:
        """Take in whether what was waited for came while spinning."""
        self._penalty = 0 if paid else min(2 * self._penalty + 1, MAX_SKIPPED_SPINS)
        self._to_skip = self._penalty


def _n_processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class MeshCommunicator:
    """A worker connected to each of its peers by a stream.

    Parameters
    ----------
    index, peers : int
        This worker's place.
    connections : mapping of int to socket
        A connected, authenticated stream for each other worker; owned by the
        communicator from here on.
    """

    def __init__(self, index: int, peers: int, connections: Mapping[int, socket.socket]) -> None:
        missing = set(range(peers)) - {index} - connections.keys()
        if missing or len(connections) != peers - 1:
            raise CommunicationError(
                f"worker {index} of {peers} needs one connection to each other worker, "
                f"and has them to {sorted(connections)}"
            )
        self.index = index
        self.peers = peers
        self._mailbox = Mailbox()
        self._links = {peer: _Link(peer, connections[peer]) for peer in sorted(connections)}
        self._by_fd = {link.fd: link for link in self._links.values()}
        self._to_flush: set[_Link] = set()
        self._failure: Notice | None = None
        self._is_closed = False
        self._was_polled = False
        self._spin = _Spin(peers)
        self._is_woken = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._wake_reader, select.POLLIN)
        for link in self._links.values():
            self._poll.register(link.fd, select.POLLIN)

    def channel(self) -> ChannelEnd:
        """Make this worker's end of the next channel."""
        return self._mailbox.make(self.peers, self._carry)

    def _carry(self, channel: int, peer: int, tag: Any, batch: Any) -> None:
        if peer == self.index:
            self._mailbox.put(channel, Message(peer, tag, batch))
            return
        link = self._links[peer]
        if link.is_broken or self._is_closed:
            return  # `receive`, `park` and `close` say why
        link.queue(frame(FrameKind.DATA, channel, encode(batch, tag)))
        if link.n_unsent > EAGER_BYTES:
            self._write(link)
        else:
            self._to_flush.add(link)

    def receive(self) -> list[int]:
        """Take in what has arrived, without waiting; see `Communicator.receive`."""
        if self._was_polled:
            self._was_polled = False  # by `park`, a moment ago
        elif self._by_fd:
            self._serve(0)
        if self._failure is not None:
            raise self._failure.as_error()
        return self._mailbox.news()

    def flush(self) -> None:
        """Write what was sent, as far as the sockets take it now."""
        for link in self._to_flush:
            self._write(link)
        self._to_flush.clear()

    def park(self, timeout_s: float | None = None) -> None:
        """Wait for something to receive or an `unpark`; write meanwhile what is left over."""
        self.flush()
        until = None if timeout_s is None else time.monotonic() + timeout_s
        if not self._is_roused and self._spin.is_due():
            self._spin_for(SPIN_S if timeout_s is None else min(SPIN_S, timeout_s))
        while not self._is_roused:
            wait_ms = None if until is None else _milliseconds(until - time.monotonic())
            self._serve(wait_ms)
            self._was_polled = True
            if wait_ms == 0:
                break
        self._clear_wake()
        if self._failure is not None:
            raise self._failure.as_error()

    @property
    def _is_roused(self) -> bool:
        """Whether there is a reason not to sleep."""
        return self._mailbox.has_news or self._is_woken or self._failure is not None

    def _spin_for(self, spin_s: float) -> None:
        until = time.monotonic() + spin_s
        while not self._is_roused and time.monotonic() < until:
            self._serve(0)
        self._was_polled = True
        self._spin.learn(paid=self._is_roused)

    def unpark(self) -> None:
        """End a `park`, this one or the next; callable from any thread."""
        if self._is_woken:
            return
        self._is_woken = True
        # An error: it is full, so there is a wake-up to be read; or the worker has closed.
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"\0")

    def close(self) -> None:
        """Exchange goodbyes with every peer; everything sent has arrived when this returns."""
        if self._is_closed:
            return
        for link in self._links.values():
            link.queue(frame(FrameKind.GOODBYE, 0, []))
            self._write(link)
        while self._failure is None and not all(link.is_done for link in self._links.values()):
            self._serve(None)
            self._clear_wake()  # nobody is there to be woken, and it would wake for ever
        if self._failure is not None:
            raise self._failure.as_error()
        self._let_go()

    def abort(self, cause: BaseException | None = None) -> None:
        """Tell the peers that this worker fails, wait a moment, and let go of everything."""
        if self._is_closed:
            return
        self._is_closed = True
        said = notice(self.index, cause)
        body = pickle.dumps((said.worker, said.lost, said.text))
        for link in self._links.values():
            link.queue(frame(FrameKind.ABORT, 0, [body]))
            self._write(link)
        self._linger(time.monotonic() + LINGER_S)
        self._let_go()

    def _linger(self, until: float) -> None:
        """Wait for the peers to end their streams, which says that they heard.

        Reading goes on, because a TCP socket that is closed with something unread
        resets the connection, and takes back what it had sent.
        """
        while self._by_fd and (wait_ms := _milliseconds(until - time.monotonic())):
            self._serve(wait_ms)
            self._clear_wake()
            for link in self._by_fd.values():
                if not link.unsent and not link.is_broken:
                    _end_writing(link)

    def _let_go(self) -> None:
        self._is_closed = True  # before the sockets, as `unpark` may come from another thread
        self._by_fd.clear()
        self._to_flush.clear()
        for link in self._links.values():
            link.unsent.clear()
            link.connection.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _serve(self, wait_ms: int | None) -> None:
        """Wait for a socket that can be read or has room, and do that; None waits for ever."""
        for fd, event in self._poll.poll(wait_ms):
            link = self._by_fd.get(fd)
            if link is None:
                self._is_woken = True
                continue
            if event & select.POLLOUT:
                self._write(link)
            if event & _READABLE:
                self._read(link)

    def _write(self, link: _Link) -> None:
        was_blocked = link.is_blocked
        link.write()
        if link.is_blocked != was_blocked and link.fd in self._by_fd:
            writable = select.POLLOUT if link.is_blocked else 0
            self._poll.modify(link.fd, select.POLLIN | writable)

    def _read(self, link: _Link) -> None:
        """Take in what came from one peer."""
        try:
            for _ in range(READS_PER_CALL):
                space = link.reader.space()
                n_bytes = link.connection.recv_into(space)
                if n_bytes == 0:
                    self._ended(link, "its connection ended")
                    return
                for found in link.reader.advance(n_bytes):
                    self._take(link, found)
                if n_bytes < len(space):
                    return
        except BlockingIOError:
            pass
        except OSError as error:
            self._ended(link, f"its connection broke ({error})")
        except FileFormatError as error:
            self._ended(link, f"it sent what cannot be read ({error})")

    def _take(self, link: _Link, found: Frame) -> None:
        """Do what a frame asks for."""
        kind = found.kind
        if kind is FrameKind.DATA:
            if self._is_closed:
                return  # this worker fails: nobody will pull it
            tag, batch = decode([found.body])
            self._mailbox.put(found.channel, Message(link.peer, tag, batch))
        elif kind is FrameKind.GOODBYE:
            link.heard_goodbye = True
            link.queue(frame(FrameKind.RECEIVED, 0, []))
            self._write(link)
        elif kind is FrameKind.RECEIVED:
            link.heard_received = True
        elif kind is FrameKind.ABORT:
            self._fail(Notice(*pickle.loads(found.body)))
        else:
            raise FileFormatError(f"a frame of kind {kind.name}, which workers do not exchange")

    def _ended(self, link: _Link, how: str) -> None:
        """The stream of a peer is at its end, as it should be or not."""
        self._poll.unregister(link.fd)
        del self._by_fd[link.fd]
        link.is_broken = True
        if not (link.heard_goodbye and link.heard_received):
            text = f"worker {self.index} lost worker {link.peer}: {how} without a goodbye"
            self._fail(Notice(link.peer, True, text))

    def _fail(self, found: Notice) -> None:
        """Keep why this worker cannot go on; a peer's word counts more than its silence."""
        if self._failure is None or (self._failure.lost and not found.lost):
            self._failure = found

    def _clear_wake(self) -> None:
        """Forget wake-ups: the flag first, so that one that comes meanwhile is not lost."""
        if not self._is_woken:
            return
        self._is_woken = False
        # An error: the flag was set, and the byte is under way; one park will end early.
        with contextlib.suppress(BlockingIOError):
            self._wake_reader.recv(64)


def _milliseconds(seconds: float) -> int:
    """For `poll`, rounded up: a wait that rounds to nothing would spin."""
    return max(0, math.ceil(seconds * 1e3))


def _end_writing(link: _Link) -> None:
    """Tell the peer that no more comes."""
    try:
        link.connection.shutdown(socket.SHUT_WR)
    except OSError:
        link.is_broken = True  # it is gone
