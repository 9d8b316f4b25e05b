"""A link between two processes of one machine: a ring of records in shared memory.

*Small* messages lie in the ring itself. *Large* ones are written into a block of
the sender's arena, and the ring carries the block's number: the receiver reads
them where they are. Where no block is free, a large message goes through the ring
*in pieces*, which costs a second copy, but needs nothing of anybody except that
the receiver reads; so a receiver that keeps everything it was sent cannot bring
the sender to a halt. What the ring does not take is kept by the sender.

The socket carries no message. A byte on it wakes a peer that sleeps, its end
shows that the peer is gone. A peer that is awake finds what came by looking at
the ring, and no system call is made on either side.

Going to sleep. The one that sends publishes, and *then* looks whether the peer is
parked; the one that parks says so, and *then* looks into its rings. With a fence
between the two steps on both sides, one of them sees the other. The same holds for
a writer that waits for room (`starved`) and the reader that makes it.

After a crash of the peer, what it published is whole, and is read before its end
is reported.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pointstamp.communication.arena import Arena
from pointstamp.communication.framing import Buffer, FrameKind, unset_bytes
from pointstamp.communication.link import Shutdown, Unsent
from pointstamp.communication.mailbox import Mailbox, message
from pointstamp.communication.relayed_link import PassOn, addressed, read_address
from pointstamp.communication.ring import (
    MAX_CHANNEL,
    MAX_RECORD_BYTES,
    RingReader,
    RingWriter,
    described,
)
from pointstamp.communication.segment import Segment
from pointstamp.communication.tls import Stream
from pointstamp.containers.codec import decode, decode_rows, encode, encode_rows
from pointstamp.containers.registry import kind_named, kind_of
from pointstamp.containers.small_rows import RowsReader, is_quicker, pack_columns_head, pack_rows
from pointstamp.errors import ContainerError, FileFormatError, SerializationError

if TYPE_CHECKING:
    from pointstamp.communication.block_leases import BlockLeases

INLINE_BYTES = 1 << 15
"""Messages up to this size lie in the ring: copying them costs less than leasing a block."""

VALUES_BYTES = 1 << 12
"""Messages of rows of plain values up to this size are written as these are, see `small_rows`."""

MAX_RECORDS = 1 << 8

TAG_BYTES = 1 << 9
"""The room for what is beside the columns in a message of them: the tag, the name of the kind."""

EAGER_BYTES = 1 << 16
"""With this much put, and not published, `send` publishes: the peer may begin to read."""

_ROWS = int(FrameKind.ROWS)
_VALUES = int(FrameKind.VALUES)
_COLUMNS = int(FrameKind.COLUMNS)
_WRITES_VALUES = is_quicker()
_DATA = int(FrameKind.DATA)
_BLOCK = int(FrameKind.BLOCK)
_START = int(FrameKind.START)
_PIECE = int(FrameKind.PIECE)
_RELAYED = int(FrameKind.RELAYED)

# Compiled, numbers of C.
_INLINE_BYTES, _VALUES_BYTES, _EAGER_BYTES = INLINE_BYTES, VALUES_BYTES, EAGER_BYTES
_MAX_RECORDS, _MAX_CHANNEL = MAX_RECORDS, MAX_CHANNEL

_PLACE = struct.Struct("<BQQQ")
_SIZE = struct.Struct("<BQ")


class SharedLink:
    """The link of worker `index` to `peer`: through `segment`, with a socket beside it.

    `ranks` has the places of all workers that share the segment; `pass_on` is called with what
    comes from or for another worker than these two.
    """

    def __init__(
        self,
        ranks: Mapping[int, int],
        index: int,
        peer: int,
        connection: Stream,
        mailbox: Mailbox,
        segment: Segment,
        arena: Arena,
        pass_on: PassOn | None = None,
    ) -> None:
        connection.setblocking(False)
        self.peer = peer
        self.connection = connection
        self.fd = connection.fileno()
        self.waits_for_socket = False
        self.is_blocked = False
        self.is_broken = False
        self.discards_input = False
        self.shutdown = Shutdown()
        self.n_unsent = 0
        self.n_sent_bytes = 0
        self._unsent: deque[Unsent] = deque()
        self._pieces: deque[memoryview] = deque()  # of the first of them, if it was started
        self._writer = RingWriter(segment, ranks[index], ranks[peer])
        self._reader = RingReader(segment, ranks[peer], ranks[index])
        self._mailbox = mailbox
        self._words = segment.words
        self._memory = segment.memory
        self._octets = memoryview(segment.memory)
        self._rows = RowsReader(segment.memory)
        self._fence = segment.fence
        self._arena = arena
        self._parked_word = segment.layout.parked_word(ranks[peer])
        self._woken_word = segment.layout.woken_word(ranks[peer])
        self._segment = segment
        self._peer_rank = ranks[peer]
        self._n_sharing = len(ranks)
        self._leases: BlockLeases | None = None
        self._body: memoryview | None = None  # of a message that comes in pieces
        self._body_kind = 0
        self._body_channel = 0
        self._filled = 0
        self._pass_on = pass_on

    # Sending.

    def send(self, channel: int, tag: Any, batch: Any) -> None:
        """Put a message into the ring, or queue it where that is full."""
        if channel > _MAX_CHANNEL:
            raise _too_high(channel)
        # Rows have a framing of their own in a ring, one pickle with the tag; see `encode_rows`.
        if type(batch) is list:
            if _WRITES_VALUES and not self.n_unsent and self._put_values(channel, tag, batch):
                return
            data = encode_rows(batch, tag)
            self.n_sent_bytes += len(data)
            if len(data) <= _INLINE_BYTES:
                self._put_small(_ROWS, channel, data)
            else:
                self._put_large(Unsent(_ROWS, channel, [data], len(data)))
            return
        if _WRITES_VALUES and not self.n_unsent and self._put_columns(channel, tag, batch):
            return
        buffers = encode(batch, tag)
        n_bytes = sum(map(len, buffers))
        self.n_sent_bytes += n_bytes
        if n_bytes <= _INLINE_BYTES:
            self._put_small(_DATA, channel, b"".join(buffers))
        else:
            self._put_large(Unsent(_DATA, channel, buffers, n_bytes))

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """See `Link`."""
        queue = make()
        queue.extend(self._unsent)
        self._unsent = queue

    def _put_values(self, channel: int, tag: Any, batch: list[Any]) -> bool:
        """Write a message of a few plain values where it is read; whether it is one, and fits."""
        if len(batch) > _MAX_RECORDS:
            return False
        at = self._writer.reserve(_VALUES_BYTES)
        if at < 0:
            return False
        end = pack_rows(self._octets, at, at + _VALUES_BYTES, tag, batch)
        if end < 0:
            return False
        self._writer.commit(described(_VALUES, channel), end - at)
        self.n_sent_bytes += end - at
        if self._writer.n_unpublished() > _EAGER_BYTES:
            self._publish()
        return True

    def _put_columns(self, channel: int, tag: Any, batch: Any) -> bool:
        """Write a message of a small batch of columns where it is read, if it is one, and fits."""
        kind = kind_of(batch)
        packed = kind.pack_small(batch)
        if packed is None:
            return False
        header, block = packed
        n_head = len(header) + TAG_BYTES
        n_block = len(block)
        at = self._writer.reserve(n_head + n_block)
        if at < 0:
            return False
        name = kind.name.encode()
        end = pack_columns_head(self._octets, at, at + n_head, tag, name, header)
        if end < 0:
            return False
        self._memory[end : end + n_block] = block
        self._writer.commit(described(_COLUMNS, channel), end + n_block - at)
        self.n_sent_bytes += end + n_block - at
        if self._writer.n_unpublished() > _EAGER_BYTES:
            self._publish()
        return True

    def relay(
        self, kind: int, channel: int, source: int, target: int, buffers: list[Buffer]
    ) -> None:
        """Put what `source` says to `target` into the ring, or queue it where that is full."""
        if channel > _MAX_CHANNEL:
            raise _too_high(channel)
        body = addressed(kind, source, target, buffers)
        n_bytes = sum(map(len, body))
        if n_bytes <= _INLINE_BYTES:
            self._put_small(_RELAYED, channel, b"".join(body))
        else:
            self._put_large(Unsent(_RELAYED, channel, body, n_bytes))

    def say(self, kind: FrameKind, body: bytes = b"") -> None:
        """Put a word into the ring."""
        self._put_small(int(kind), 0, body)

    def _put_small(self, kind: int, channel: int, data: bytes) -> None:
        if self.n_unsent or not self._writer.put(described(kind, channel), data):
            self._keep(Unsent(kind, channel, [data], len(data)))
        elif self._writer.n_unpublished() > _EAGER_BYTES:
            self._publish()

    def _put_large(self, message: Unsent) -> None:
        """Put a message into a block; what is as large should be on its way at once."""
        self._keep(message)
        self.write()

    def _keep(self, message: Unsent) -> None:
        self._unsent.append(message)
        # A message of no bytes counts as well, so that zero means that there is none.
        self.n_unsent += message.n_bytes + 1

    def write(self) -> None:
        """Put what the ring takes, and let the peer have it."""
        if self.n_unsent:
            self._put_unsent()
        if self._writer.n_unpublished():
            self._publish()

    def _put_unsent(self) -> None:
        self.is_blocked = False
        while self._unsent:
            message = self._unsent[0]
            is_put = self._put(message)
            if self.is_broken:  # as seen when it was woken: nothing is left to be sent
                return
            if is_put:
                self._unsent.popleft()
                self.n_unsent -= message.n_bytes + 1
            else:
                # What was put must be published, or the peer would make no room.
                self._publish()
                if not self._writer.starve():
                    self.is_blocked = True
                    return

    def _put(self, message: Unsent) -> bool:
        """Put a message, or as many pieces of it as fit; whether that was all."""
        what = described(message.kind, message.channel)
        if self._pieces:
            return self._put_pieces()
        if message.n_bytes <= _INLINE_BYTES or message.kind not in (
            _ROWS,
            _DATA,
            _RELAYED,
        ):
            return self._writer.put(what, b"".join(message.buffers))
        if not self._writer.has_room_for(_PLACE.size):
            return False
        block = self._arena.take(message.n_bytes)
        if block is None:
            head = _SIZE.pack(message.kind, message.n_bytes)
            self._writer.put(described(_START, message.channel), head)
            self._pieces.extend(memoryview(buffer) for buffer in message.buffers)
            return self._put_pieces()
        at = block.start
        for buffer in message.buffers:
            self._memory[at : at + len(buffer)] = buffer
            at += len(buffer)
        place = _PLACE.pack(message.kind, block.number, block.start, message.n_bytes)
        return self._writer.put(described(_BLOCK, message.channel), place)

    def _put_pieces(self) -> bool:
        while self._pieces:
            piece = self._pieces[0]
            if not self._writer.put(described(_PIECE, 0), piece[:MAX_RECORD_BYTES]):
                return False
            if len(piece) > MAX_RECORD_BYTES:
                self._pieces[0] = piece[MAX_RECORD_BYTES:]
            else:
                self._pieces.popleft()
            if self._writer.n_unpublished() > _EAGER_BYTES:
                self._publish()
        return True

    def _publish(self) -> None:
        self._writer.publish()
        self._fence.full()
        if self._words[self._parked_word]:
            self._wake()

    def _wake(self) -> None:
        """Wake the peer, which is about to sleep or does."""
        self._words[self._woken_word] = time.monotonic_ns()
        self._words[self._parked_word] = 0
        try:
            self.connection.send(b"\0")
        except BlockingIOError:
            pass  # there are bytes that it has not read: they wake it
        except OSError:
            self.is_broken = True  # reading shows it
            self._forget()

    def can_write(self) -> bool:
        """Whether it is blocked no more."""
        return self.is_blocked and self._writer.has_more_room()

    # Receiving.

    def has_records(self) -> bool:
        """Whether there is something in the ring."""
        return self._reader.has_records()

    def read(self) -> None:
        """Take in what is in the ring."""
        if self._leases is not None:
            self._leases.return_unused()
        reader = self._reader
        reader.look()
        try:
            while reader.advance():
                if reader.kind == _VALUES:
                    self._deliver_values(reader.channel, reader.at, reader.n_bytes)
                elif reader.kind == _COLUMNS:
                    self._deliver_columns(reader.channel, reader.at, reader.n_bytes)
                else:
                    self._take(reader.kind, reader.channel, reader.data())
        finally:
            if reader.release() and self._words[self._parked_word]:
                self._wake()

    def _take(self, kind: int, channel: int, data: bytes) -> None:
        """Do what a record asks for that is no message of values."""
        if kind in (_ROWS, _DATA, _RELAYED):
            self._deliver(kind, channel, data)
        elif kind == _BLOCK:
            kind, number, start, n_bytes = _PLACE.unpack(data)
            self._deliver(kind, channel, self._borrow(number, start, n_bytes))
        elif kind == _START:
            self._body_kind, n_bytes = _SIZE.unpack(data)
            self._body, self._body_channel = unset_bytes(n_bytes), channel
            self._filled = 0
        elif kind == _PIECE:
            self._add(data)
        else:
            self.shutdown.take(FrameKind(kind), data)

    def _deliver(self, kind: int, channel: int, body: Buffer) -> None:
        if kind == _RELAYED:
            self._deliver_relayed(channel, body)
        elif not self.discards_input:
            tag, batch = decode_rows(body) if kind == _ROWS else decode([body])
            self._mailbox.put(channel, message(self.peer, tag, batch))

    def _deliver_relayed(self, channel: int, body: Buffer) -> None:
        if self._pass_on is None:
            raise FileFormatError(f"worker {self.peer} relays, and this mesh has no relays")
        kind, source, target, buffers = read_address(body)
        self._pass_on(self.peer, kind, channel, source, target, buffers)

    def _deliver_values(self, channel: int, at: int, n_bytes: int) -> None:
        if not self.discards_input:
            tag, batch = self._rows.read(at, at + n_bytes)
            self._mailbox.put(channel, message(self.peer, tag, batch))

    def _deliver_columns(self, channel: int, at: int, n_bytes: int) -> None:
        if self.discards_input:
            return
        tag, name, header, block = self._rows.read_columns(at, at + n_bytes)
        try:
            batch = kind_named(name.decode()).unpack_small(header, block)
        except ContainerError as error:
            raise SerializationError(f"a message of columns cannot be read: {error}") from error
        self._mailbox.put(channel, message(self.peer, tag, batch))

    def _borrow(self, number: int, start: int, n_bytes: int) -> memoryview:
        if self._leases is None:
            from pointstamp.communication.block_leases import BlockLeases  # imports NumPy

            self._leases = BlockLeases(self._segment, self._peer_rank, self._n_sharing)
        return self._leases.lease(number, start, n_bytes)

    def _add(self, data: bytes) -> None:
        """Add a piece to the message that was started, which may complete it."""
        body = self._body
        if body is None:
            raise FileFormatError("a piece of a message came, and no message was started")
        body[self._filled : self._filled + len(data)] = data
        self._filled += len(data)
        if self._filled == len(body):
            self._body = None
            self._deliver(self._body_kind, self._body_channel, body)

    def hear(self) -> str | None:
        """Forget what woke us; how the link ended, if it did."""
        how = None
        try:
            if self.connection.recv(256) == b"":
                how = "its connection ended"
        except BlockingIOError:
            pass
        except OSError as error:
            how = f"its connection broke ({error})"
        # What it said before it ended was published before, and is all here.
        self.read()
        return how

    def close(self) -> None:
        """Close the socket; blocks that are leased out stay readable while they are used."""
        self._forget()
        self.connection.close()

    def _forget(self) -> None:
        self.is_blocked = False
        self._unsent.clear()
        self._pieces.clear()
        self.n_unsent = 0


def _too_high(channel: int) -> SerializationError:
    return SerializationError(
        f"channel {channel} has no number in shared memory: there can be {MAX_CHANNEL + 1}"
    )
