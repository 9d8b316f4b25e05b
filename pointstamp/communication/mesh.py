"""A worker's links to its peers, as one communicator.

It does not know what the links are made of: `processes` connects workers of one
machine by shared memory (`shared_link`), `tcp` connects machines (`stream_link`).
What connected them has made sure which worker is at the other end; here, everything
that arrives is unpickled.

Theory of operation. Everything happens in the worker's own thread, in the calls
that the worker makes; sockets never block. `send` encodes and hands over to the
link, `flush` makes it go out. What a link does not take is kept and written by
later calls, among them `park`, which waits for room as well as for something to
read. Reading takes whatever has come, as long as that is: there is no limit on
what may be queued on either side, so two workers that send each other more than
the carriers hold cannot wait for each other. Flow is controlled where the meaning
of a message is known, not here.

Looking into shared memory costs nothing, so `receive` always does that; asking
the system costs a microsecond. A worker without streams asks every `LOOK_S`
while it is busy, only to learn of the deaths of peers.

Shutdown. A worker that closes says GOODBYE, and answers the GOODBYE of a peer,
which comes after all its data, with RECEIVED. With both of each, nothing is
under way and the link can go. A link that ends before is a peer lost. A
worker that fails says ABORT behind what is queued, and lingers a moment until
it is taken, so that a peer that can listen hears the cause.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pointstamp.communication.arena import Arena
from pointstamp.communication.failure import Notice, notice
from pointstamp.communication.framing import Buffer, FrameKind
from pointstamp.communication.link import Link, end_writing, is_done
from pointstamp.communication.mailbox import ChannelEnd, Mailbox, message
from pointstamp.communication.relayed_link import RelayedLink
from pointstamp.communication.routes import Routes
from pointstamp.communication.segment import Segment
from pointstamp.communication.shared_link import SharedLink
from pointstamp.communication.spin import Spin, now_s
from pointstamp.communication.stream_link import StreamLink
from pointstamp.communication.tls import Stream
from pointstamp.errors import CommunicationError, FileFormatError

if TYPE_CHECKING:
    from pointstamp.communication.relay_process import RelayProcess

LOOK_S = 0.05
"""How often a busy worker asks the system whether its peers live."""

LINGER_S = 0.3
"""How long a worker that fails waits for its peers to take the reason."""

N_LOOKS = 32
"""How often to look into the rings before others have the processor."""

# Compiled, a number of C.
_N_LOOKS = N_LOOKS

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


class MeshCommunicator:
    """A worker connected to each of its peers.

    Parameters
    ----------
    index, peers : int
        This worker's place.
    connections : mapping of int to socket
        A connected, authenticated stream for each other worker; owned by the
        communicator from here on.
    segment : Segment, optional
        The memory that these workers share, owned by the communicator too; messages
        go through it, and the streams only wake, and show deaths.
    members : sequence of int, optional
        The workers that share the segment, in order, where these are not all: to the others
        messages go by the streams.
    compressions : mapping of int to str, optional
        For each peer that wants what streams to it compressed, how.
    machines : sequence of int, optional
        By worker, a number of its machine; by default all are on one.
    routes : Routes, optional
        Which workers are connected, where not each is to each: there are connections to its
        neighbours, and to the others messages go by way of these.
    relay : RelayProcess, optional
        The relay that this worker has started, owned by the communicator.
    """

    def __init__(
        self,
        index: int,
        peers: int,
        connections: Mapping[int, Stream],
        segment: Segment | None = None,
        compressions: Mapping[int, str] | None = None,
        members: Sequence[int] = (),
        machines: Sequence[int] = (),
        routes: Routes | None = None,
        relay: RelayProcess | None = None,
    ) -> None:
        wanted = {*range(peers)} - {index} if routes is None else {*routes.neighbours}
        if {*connections} != wanted:
            raise CommunicationError(
                f"worker {index} of {peers} needs one connection to each of {sorted(wanted)}, "
                f"and has them to {sorted(connections)}"
            )
        self.index = index
        self.peers = peers
        self.machines = list(machines) or [0] * peers
        self._mailbox = Mailbox()
        self._segment = segment
        # The place of each worker among those that share the segment.
        self._ranks = {peer: rank for rank, peer in enumerate(members or range(peers))}
        self._arena: Arena | None = None
        self._links: dict[int, Link] = {}
        self._shared: list[SharedLink] = []
        self._routes = routes
        self._to_write: set[Link] = set()
        for peer in sorted(connections):
            self._connect(peer, connections[peer], (compressions or {}).get(peer))
        self._by_fd = {link.fd: link for link in self._links.values()}
        self._has_streams = len(self._shared) < len(self._links)
        self._relay = relay
        self._n_passed_on = 0
        if routes is not None and not routes.is_relay:
            self._connect_by_way_of_others(routes)
        self._to_flush: set[Link] = set()
        self._failure: Notice | None = None
        self._is_closed = self.is_urgent = False
        self._was_polled = False
        self._look_at = 0.0
        self._spin = Spin(peers)
        self._is_woken = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._wake_reader, select.POLLIN)
        for fd in self._by_fd:
            self._poll.register(fd, select.POLLIN)

    def _connect(self, peer: int, connection: Stream, compression: str | None) -> None:
        if self._segment is None or peer not in self._ranks:
            self._links[peer] = StreamLink(
                peer, connection, self._mailbox, compression, self._pass_on
            )
            return
        if self._arena is None:
            self._arena = Arena(self._segment, self._ranks[self.index])
        link = SharedLink(
            self._ranks,
            self.index,
            peer,
            connection,
            self._mailbox,
            self._segment,
            self._arena,
            self._pass_on,
        )
        self._links[peer] = link
        self._shared.append(link)

    def _connect_by_way_of_others(self, routes: Routes) -> None:
        for peer in range(self.peers):
            if peer != self.index and peer not in self._links:
                carrier = self._links[routes.via(peer)]
                self._links[peer] = RelayedLink(self.index, peer, carrier, self._mailbox, routes)

    def _pass_on(
        self, via: int, kind: int, channel: int, source: int, target: int, buffers: list[Buffer]
    ) -> None:
        """Take in, or send on, what came by way of `via`."""
        routes = self._routes
        if self._is_closed:
            return  # this worker fails, and says so to its neighbours
        link = None
        if routes is not None and 0 <= target < self.peers:
            link = self._links.get(source if target == self.index else routes.via(target))
        if routes is None or link is None or (target != self.index and not routes.is_relay):
            raise FileFormatError(f"a message from worker {source} for {target}, which came here")
        is_word = kind in (FrameKind.GOODBYE, FrameKind.RECEIVED)
        routes.to_come[via] -= is_word
        if target == self.index:
            assert isinstance(link, RelayedLink)
            link.take(kind, channel, buffers)
            if link.shutdown.has_changed:
                self._heed(link)
            return
        was_blocked = link.is_blocked
        link.relay(kind, channel, source, target, buffers)
        if link.is_blocked != was_blocked:
            self._watch(link)
        routes.to_go[link.peer] -= is_word
        self._to_write.add(link)
        self._n_passed_on += 1

    def _write_relayed(self) -> None:
        """Let go out what was passed on, at once: this worker may be about to sleep."""
        while self._to_write:
            self._write(self._to_write.pop())

    def channel(self) -> ChannelEnd:
        """Make this worker's end of the next channel."""
        return self._mailbox.make(self.peers, self._carry)

    def _carry(self, channel: int, peer: int, tag: Any, batch: Any) -> None:
        if peer == self.index:
            self._mailbox.put(channel, message(peer, tag, batch))
            return
        link = self._links.get(peer)
        if type(link) is SharedLink:
            self._put_into_ring(link, channel, tag, batch)
            return
        if link is None or link.is_broken:
            return  # `receive`, `park` and `close` say why
        was_blocked = link.is_blocked
        link.send(channel, tag, batch)
        if link.is_blocked != was_blocked:
            self._watch(link)
        self._to_flush.add(link)
        if self.is_urgent and not link.is_blocked:  # which is written when there is room
            self._write(link)

    def _put_into_ring(self, link: SharedLink, channel: int, tag: Any, batch: Any) -> None:
        """Do the same with a ring, which waits for no socket: by calls of C."""
        if not link.is_broken:
            link.send(channel, tag, batch)
            self._to_flush.add(link)
            if self.is_urgent and not link.is_blocked:
                link.write()

    @property
    def n_sent_bytes(self) -> int:
        """How many bytes all messages to peers had so far; see `Communicator`."""
        return sum(link.n_sent_bytes for link in self._links.values())

    def receive(self) -> list[int]:
        """Take in what has arrived, without waiting; see `Communicator.receive`."""
        self._look()
        if self._was_polled:
            self._was_polled = False  # by `park`, a moment ago
        elif self._by_fd and (self._has_streams or now_s() >= self._look_at):
            self._serve(0)
        if self._failure is not None:
            raise self._failure.as_error()
        return self._mailbox.touched_channels()

    def flush(self) -> None:
        """Let go out what was sent, as far as the links take it now."""
        while self._to_flush:
            self._write(self._to_flush.pop())

    def park(self, timeout_s: float | None = None) -> None:
        """Wait for something to receive or an `unpark`; write meanwhile what is left over."""
        self.flush()
        if not self._is_roused():
            self._wait(timeout_s)
        self._clear_wake()
        if self._failure is not None:
            raise self._failure.as_error()

    def _wait(self, timeout_s: float | None) -> None:
        began = now_s()
        until = math.inf if timeout_s is None else began + timeout_s
        if self._spin.is_due():
            self._look_until(min(until, began + self._spin.seconds))
            if self._is_roused():
                return
        while not self._is_roused():
            wait_ms = None if timeout_s is None else _milliseconds(until - now_s())
            self._sleep(wait_ms)
            self._was_polled = True
            if wait_ms == 0:
                return
        self._spin.slept(now_s() - began)

    def _is_roused(self) -> bool:
        """Whether there is a reason not to sleep."""
        return self._mailbox.has_touched() or self._is_woken or self._failure is not None

    def _look_until(self, until: float) -> None:
        """Look again and again, and let others have the processor in between."""
        while now_s() < until:
            for _i in range(_N_LOOKS):
                self._look()
                if self._is_roused():
                    return
            if self._has_streams:
                self._serve(0)
                self._was_polled = True
                if self._is_roused():
                    return
            if not self._spin.hand_over():
                return

    def _look(self) -> None:
        """Take in what is in the rings, and put there what had no room."""
        for link in self._shared:
            if link.has_records():
                self._read(link)
            if link.can_write():
                link.write()

    def _sleep(self, wait_ms: int | None) -> None:
        """Let the system wake us, unless the rings have something to do; None waits for ever."""
        segment = self._segment
        if segment is None:
            self._serve(wait_ms)
            return
        rank = self._ranks[self.index]
        parked_word = segment.layout.parked_word(rank)
        segment.words[parked_word] = 1
        segment.fence.full()
        # What comes after this look finds that we are parked.
        for link in self._shared:
            if link.has_records() or link.can_write():
                wait_ms = 0
        self._serve(wait_ms)
        if wait_ms != 0 and not segment.words[parked_word]:
            woken = segment.words[segment.layout.woken_word(rank)]
            self._spin.woken((time.monotonic_ns() - woken) * 1e-9)
        segment.words[parked_word] = 0
        self._look()

    def unpark(self) -> None:
        """End a `park`, this one or the next; callable from any thread."""
        if self._is_woken:
            return
        self._is_woken = True
        # An error: it is full, so there is a wake-up to be read; or the worker has closed.
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"\0")

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """See `Communicator.hold_unsent_in`: a queue for each link."""
        for link in self._links.values():
            link.hold_unsent_in(make)
        if self._relay is not None:
            self._relay.hold_unsent_in(make)

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """See `Communicator.objects_under_way`."""
        return self._mailbox.early()

    def close(self) -> None:
        """Exchange goodbyes with every peer; everything sent has arrived when this returns."""
        if self._is_closed:
            return
        self._say_goodbye()
        while self._failure is None and not self._is_done():
            self._sleep(None)
            self._clear_wake()  # nothing is there to be woken, and it would wake for ever
        if self._failure is not None:
            raise self._failure.as_error()
        self._let_go()

    def pass_on_for_others(self, heed: Callable[[], None]) -> None:
        """Be a relay, until all workers have said goodbye; calls `heed` after an `unpark`."""
        self._say_goodbye()  # to the neighbours: it has nothing to send of its own
        while self._failure is None and not self._is_done():
            n_passed_on = self._n_passed_on
            began = now_s()
            if self._spin.is_due():
                self._look_until(began + self._spin.seconds)
            if n_passed_on == self._n_passed_on and not self._is_roused():
                self._sleep(None)
                self._spin.slept(now_s() - began)
            if self._is_woken:
                self._clear_wake()
                heed()
        if self._failure is not None:
            raise self._failure.as_error()
        self._let_go()

    def _say_goodbye(self) -> None:
        for link in self._links.values():
            link.say(FrameKind.GOODBYE)
            self._write(link)

    def _is_done(self) -> bool:
        """Whether nothing is under way to or from this worker, nor by way of it."""
        if self._routes is not None and not self._routes.is_done:
            return False
        return all(map(is_done, self._links.values()))

    def abort(self, cause: BaseException | None = None) -> None:
        """Notify the peers that this worker fails, wait a moment, and let go of everything."""
        if self._is_closed:
            return
        self._is_closed = True
        routes = self._routes
        said = notice(self.index if routes is None else routes.first_of(self.index), cause)
        body = pickle.dumps((said.worker, said.lost, said.text))
        for link in self._links.values():
            link.discards_input = True
            link.say(FrameKind.ABORT, body)
            self._write(link)
        self._linger(now_s() + LINGER_S)
        self._let_go()

    def _linger(self, until: float) -> None:
        """Wait for the peers to end their streams, which says that they received it.

        Reading goes on, because a TCP socket that is closed with something unread
        resets the connection, and takes back what it had sent.
        """
        while self._by_fd and (wait_ms := _milliseconds(until - now_s())):
            for link in self._by_fd.values():
                if not link.n_unsent and not link.is_broken:
                    end_writing(link)
            self._sleep(wait_ms)
            self._clear_wake()

    def _let_go(self) -> None:
        self._is_closed = True  # before the sockets, as `unpark` may come from another thread
        self._by_fd.clear()
        self._to_flush.clear()
        self._to_write.clear()
        for link in self._links.values():
            link.close()
        if self._segment is not None:
            self._segment.close()
        # What refers to the mapping goes, so that only batches that lie in it keep it.
        self._links.clear()
        self._shared.clear()
        self._segment = self._arena = None
        self._wake_reader.close()
        self._wake_writer.close()
        if self._relay is not None:
            self._relay.end()
            self._relay = None

    def _serve(self, wait_ms: int | None) -> None:
        """Wait for a socket that can be read or has room, and do that; None waits for ever."""
        self._look_at = now_s() + LOOK_S
        for fd, event in self._poll.poll(wait_ms):
            link = self._by_fd.get(fd)
            if link is None:
                self._is_woken = True
                continue
            if event & select.POLLOUT:
                self._write(link)
            if event & _READABLE:
                how = link.hear()
                self._heed(link)
                self._write_relayed()
                if how is not None:
                    self._ended(link, how)

    def _write(self, link: Link) -> None:
        if type(link) is SharedLink:
            self._write_ring(link)
            return
        was_blocked = link.is_blocked
        link.write()
        if link.is_blocked != was_blocked:
            self._watch(link)

    def _write_ring(self, link: SharedLink) -> None:
        link.write()  # of C, with its type

    def _watch(self, link: Link) -> None:
        """Wait for room in a socket as long as it has none; a ring's reader gives notice."""
        if link.waits_for_socket and link.fd in self._by_fd:
            writable = select.POLLOUT if link.is_blocked else 0
            self._poll.modify(link.fd, select.POLLIN | writable)

    def _read(self, link: SharedLink) -> None:
        """Take in what is in a ring."""
        link.read()
        if link.shutdown.has_changed:
            self._heed(link)
        if self._routes is not None:
            self._write_relayed()

    def _heed(self, link: Link) -> None:
        """Do what a peer's words about ending ask for."""
        ending = link.shutdown
        ending.has_changed = False
        if ending.got_goodbye and not ending.is_answered:
            ending.is_answered = True
            link.say(FrameKind.RECEIVED)
            self._write(link)
        if ending.notice is not None:
            self._fail(ending.notice)

    def _ended(self, link: Link, how: str) -> None:
        """The stream of a peer is at its end, as it should be or not."""
        self._poll.unregister(link.fd)
        del self._by_fd[link.fd]
        link.is_broken = True
        has_words_left = self._routes is not None and (
            self._routes.to_come[link.peer] or self._routes.to_go[link.peer]
        )
        if has_words_left or not (link.shutdown.got_goodbye and link.shutdown.got_received):
            self._fail(self._loss(link.peer, f"{how} without a goodbye"))

    def _loss(self, peer: int, how: str) -> Notice:
        routes = self._routes
        if routes is None:
            return Notice(peer, True, f"worker {self.index} lost worker {peer}: {how}")
        # A relay counts as the worker that started it: callers know of no others.
        text = f"{routes.name(self.index)} lost {routes.name(peer)}: {how}"
        return Notice(routes.first_of(peer), True, text)

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
