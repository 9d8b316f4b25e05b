"""A link over a connected socket: frames on a stream of bytes.

Small frames are put together; the buffers of large ones are handed to the system
as they are, many in one call, and arrive in memory of their own that columns can
be views of: between the column that is sent and the socket nothing is copied,
unless it is to be compressed.

To be compressed is what the *receiver* chooses, which said so when they met.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from pointstamp.communication.framing import Buffer, Frame, FrameKind, FrameReader, frame
from pointstamp.communication.link import Shutdown, Unsent
from pointstamp.communication.mailbox import Mailbox, message
from pointstamp.communication.relayed_link import PassOn, addressed, read_address
from pointstamp.communication.tls import Stream, TlsStream
from pointstamp.containers.codec import decode, encode
from pointstamp.errors import FileFormatError

EAGER_BYTES = 1 << 18
"""With this much queued, `send` already tries to write."""

READS_PER_CALL = 16
"""How often one `hear` reads, so that a busy peer starves no other."""

PIECES_PER_WRITE = 512
PACK_BYTES = 1 << 12
"""Messages below this size are not compressed: it would save less than it costs."""


class StreamLink:
    """The link to `peer` over `connection`.

    Parameters
    ----------
    compression : str, optional
        What the peer wants to be sent: "lz4", "zstd", or nothing compressed.
    pass_on : callable, optional
        Called with what comes from or for another worker than the two of this link.
    """

    def __init__(
        self,
        peer: int,
        connection: Stream,
        mailbox: Mailbox,
        compression: str | None = None,
        pass_on: PassOn | None = None,
    ) -> None:
        connection.setblocking(False)
        self.peer = peer
        self.connection = connection
        self.fd = connection.fileno()
        self.compression = compression
        self.waits_for_socket = True
        self.is_blocked = False
        self.is_broken = False
        self.discards_input = False
        self.shutdown = Shutdown()
        self.n_unsent = 0
        self.n_sent_bytes = 0
        self.unsent: deque[Buffer] = deque()
        self._backlog: Any = None
        """What comes behind `unsent`, if that is limited."""
        self._is_encrypted = isinstance(connection, TlsStream)
        self._reader = FrameReader()
        self._mailbox = mailbox
        self._pass_on = pass_on

    def send(self, channel: int, tag: Any, batch: Any) -> None:
        """Queue a message; write if that makes much."""
        buffers = encode(batch, tag)
        packed = self._packed(buffers)
        kind = FrameKind.DATA if packed is None else FrameKind.PACKED
        pieces = frame(kind, channel, packed or buffers)
        self.n_sent_bytes += sum(map(len, pieces))
        self.queue(pieces)
        if self.n_unsent > EAGER_BYTES:
            self.write()

    def relay(
        self, kind: int, channel: int, source: int, target: int, buffers: list[Buffer]
    ) -> None:
        """Queue what `source` says to `target`, which the peer is or passes it on to."""
        packed = self._packed(buffers)
        body = addressed(kind, source, target, packed or buffers, is_packed=packed is not None)
        self.queue(frame(FrameKind.RELAYED, channel, body))
        if self.n_unsent > EAGER_BYTES:
            self.write()

    def _packed(self, buffers: list[Buffer]) -> list[Buffer] | None:
        """Buffers as the peer wants them compressed; None if they go as they are."""
        if self.compression is None or sum(map(len, buffers)) < PACK_BYTES:
            return None
        from pointstamp.formats.compression import pack  # imports Arrow

        return pack(buffers, self.compression)

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """See `Link`; as much as is written at once waits here all the same."""
        self._backlog = make()

    def say(self, kind: FrameKind, body: bytes = b"") -> None:
        """Queue a word."""
        self.queue(frame(kind, 0, [body]))

    def queue(self, pieces: list[Buffer]) -> None:
        """Add a frame to what is to be written."""
        n_bytes = sum(map(len, pieces))
        if self._backlog is not None and (self._backlog or self.n_unsent > EAGER_BYTES):
            self._backlog.append(Unsent(0, 0, pieces, n_bytes))
        else:
            self.unsent.extend(pieces)
        self.n_unsent += n_bytes

    def write(self) -> None:
        """Write what the socket takes; `is_blocked` says whether some is left."""
        try:
            while self.unsent or self._backlog:
                if not self.unsent:
                    self.unsent.extend(self._backlog.popleft().buffers)
                self._written(self._write_some())
            self.is_blocked = False
        except BlockingIOError:
            self.is_blocked = True
        except OSError:
            # The peer is gone. What it said before is still to be read, and the
            # end of that stream is what is reported.
            self.is_broken = True
            self._forget()

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

    def hear(self) -> str | None:
        """Take in what came; how the stream ended, if it did."""
        reader = self._reader
        try:
            n_reads = 0
            while True:
                n_reads += 1
                space = reader.space()
                n_bytes = self.connection.recv_into(space)
                if n_bytes == 0:
                    return "its connection ended"
                for found in reader.advance(n_bytes):
                    self._take(found)
                if self._is_encrypted and self._n_decrypted():
                    continue  # `poll` does not see it
                if n_bytes < len(space) or n_reads >= READS_PER_CALL:
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            return f"its connection broke ({error})"
        except FileFormatError as error:
            return f"it sent what cannot be read ({error})"
        return None

    def _n_decrypted(self) -> int:
        return self.connection.pending() if isinstance(self.connection, TlsStream) else 0

    def _take(self, found: Frame) -> None:
        if found.kind is FrameKind.DATA:
            buffers = [found.body]
        elif found.kind is FrameKind.PACKED:
            from pointstamp.formats.compression import unpack  # imports Arrow

            buffers = unpack(found.body)
        elif found.kind is FrameKind.RELAYED and self._pass_on is not None:
            kind, source, target, said = read_address(found.body)
            self._pass_on(self.peer, kind, found.channel, source, target, said)
            return
        else:
            self.shutdown.take(found.kind, found.body)
            return
        if not self.discards_input:
            tag, batch = decode(buffers)
            self._mailbox.put(found.channel, message(self.peer, tag, batch))

    def close(self) -> None:
        """Close the socket; what was not written is lost."""
        self._forget()
        self.connection.close()

    def _forget(self) -> None:
        self.is_blocked = False
        self.unsent.clear()
        if self._backlog is not None:
            self._backlog.clear()
        self.n_unsent = 0
