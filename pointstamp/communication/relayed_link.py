"""Links to workers of other machines by way of relays: one connection for two machines.

A machine with several workers has a relay, a process of its own (see `relay_process`), to which
all of them are connected, as are the relays of any two machines; `routes` says so in detail. A
message goes from its sender to the relay of its machine, from there to the one of the other
machine, and on to its receiver. Each of these links is one of the mesh's, in which it is a frame
RELAYED, whose body ends with its sender, its receiver and what it is. A relay looks at no more
than that.

Order is kept, as there is one way from a worker to another and each link on it keeps the order.
No relay refuses to read because it cannot write: it keeps what a link does not take, as a worker
does, so that what one worker does not read holds up nothing for others. What bounds that is what
bounds a worker's own: flow control, where the meaning of messages is known, and the limit of
memory, of which a relay has as much as the worker that started it.

A relay computes nothing. So messages, and word that a worker failed, wait for no operator.

The end. GOODBYE and RECEIVED go from end to end, and each is the last but one, and the last, of
its kind. So a relay knows how many words are still to pass by each of its links. While it is not
all of them, it stays; and a link that ends before is a peer lost.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from pointstamp.communication.framing import Buffer, FrameKind
from pointstamp.communication.link import Link, Shutdown
from pointstamp.communication.mailbox import Mailbox, message
from pointstamp.communication.routes import Routes
from pointstamp.communication.tls import Stream
from pointstamp.containers.codec import decode, encode
from pointstamp.errors import FileFormatError

PassOn = Callable[[int, int, int, int, int, list[Buffer]], None]
"""`pass_on(via, kind, channel, source, target, buffers)`: what came by the link to `via`."""

_ADDRESS = struct.Struct("<IIBB")  # source, target, kind, whether it is compressed
_N_ADDRESS = _ADDRESS.size


def addressed(
    kind: int, source: int, target: int, buffers: Sequence[Buffer], *, is_packed: bool = False
) -> list[Buffer]:
    """The body of a frame RELAYED; the address is behind, as columns are aligned to the front."""
    return [*buffers, _ADDRESS.pack(source, target, kind, is_packed)]


def read_address(body: Buffer) -> tuple[int, int, int, list[Buffer]]:
    """Kind, source, target and buffers of such a body.

    >>> read_address(b"".join(addressed(1, 5, 7, [b"seven"])))[:3]
    (1, 5, 7)

    Raises
    ------
    FileFormatError
        If it is too short.
    """
    view = memoryview(body)
    if len(view) < _N_ADDRESS:
        raise FileFormatError(f"a relayed message of {len(view)} bytes has no address")
    source, target, kind, is_packed = _ADDRESS.unpack(view[-_N_ADDRESS:])
    buffers: list[Buffer] = [view[:-_N_ADDRESS]]
    if is_packed:
        from pointstamp.formats.compression import unpack  # imports Arrow

        buffers = list(unpack(buffers[0]))
    return kind, source, target, buffers


class RelayedLink:
    """The link of worker `index` to `peer` by way of `carrier`, a link to a neighbour."""

    def __init__(
        self, index: int, peer: int, carrier: Link, mailbox: Mailbox, routes: Routes
    ) -> None:
        self.index = index
        self.peer = peer
        self.carrier = carrier
        self.shutdown = Shutdown()
        self.discards_input = False
        self.n_unsent = 0
        """What waits does so in the carrier."""
        self.n_sent_bytes = 0
        self.waits_for_socket = carrier.waits_for_socket
        self.fd = carrier.fd
        self._mailbox = mailbox
        self._routes = routes

    @property
    def connection(self) -> Stream:
        """The carrier's."""
        return self.carrier.connection

    @connection.setter
    def connection(self, value: Stream) -> None:
        self.carrier.connection = value

    @property
    def is_blocked(self) -> bool:
        """Whether the carrier is."""
        return self.carrier.is_blocked

    @is_blocked.setter
    def is_blocked(self, value: bool) -> None:
        self.carrier.is_blocked = value

    @property
    def is_broken(self) -> bool:
        """Whether the carrier is."""
        return self.carrier.is_broken

    @is_broken.setter
    def is_broken(self, value: bool) -> None:
        self.carrier.is_broken = value

    def send(self, channel: int, tag: Any, batch: Any) -> None:
        """Have the carrier take a message."""
        buffers = encode(batch, tag)
        self.n_sent_bytes += sum(map(len, buffers))
        self.carrier.relay(FrameKind.DATA, channel, self.index, self.peer, buffers)

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """See `Link`: the carrier does."""

    def say(self, kind: FrameKind, body: bytes = b"") -> None:
        """Have the carrier take a word."""
        self.carrier.relay(kind, 0, self.index, self.peer, [body])
        if kind in (FrameKind.GOODBYE, FrameKind.RECEIVED):
            self._routes.to_go[self.carrier.peer] -= 1

    def write(self) -> None:
        """Have the carrier write."""
        self.carrier.write()

    def relay(
        self, kind: int, channel: int, source: int, target: int, buffers: list[Buffer]
    ) -> None:
        """Have the carrier take a message of another worker."""
        self.carrier.relay(kind, channel, source, target, buffers)

    def take(self, kind: int, channel: int, buffers: list[Buffer]) -> None:
        """Take in what came from the peer."""
        if kind != FrameKind.DATA:
            self.shutdown.take(FrameKind(kind), b"".join(buffers))
        elif not self.discards_input:
            tag, batch = decode(buffers)
            self._mailbox.put(channel, message(self.peer, tag, batch))

    def hear(self) -> str | None:
        """Nothing: what comes does so by the carrier."""
        return None

    def close(self) -> None:
        """Nothing: the carrier is closed itself."""
