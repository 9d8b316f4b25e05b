"""Links to workers of other machines by way of neighbours: one connection for two machines.

Of two machines with the workers `a` and `b`, in order, one worker of each holds the
connection: those at the places that `Routes` says, which spread over the workers, so that none
relays for all. A message goes from its sender to that worker of its machine, from
there to the one of the other machine, and on to its receiver: three links at most. Each is one
of the mesh's, in which it is a frame RELAYED, whose body ends with who sent it, who
gets it and what it is. A relay looks at no more than that.

Order is kept, as there is one way from a worker to another and each link on it keeps the order.
No relay refuses to read because it cannot write: it keeps what a link does not take, as a worker
keeps its own, so that relays cannot wait for each other in a circle. What bounds that is what bounds
a worker's own: flow control, where the meaning of messages is known, and its limit of memory.

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
from pointstamp.communication.tls import Stream
from pointstamp.containers.codec import decode, encode
from pointstamp.errors import FileFormatError

PassOn = Callable[[int, int, int, int, int, list[Buffer]], None]
"""`pass_on(via, kind, channel, source, target, buffers)`: what came by the link to `via`."""

N_WORDS = 2
"""How many words each worker says to each other one before it may go: GOODBYE and RECEIVED."""

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


class Routes:
    """Which worker is connected to which, where each two machines share one connection.

    Parameters
    ----------
    index : int
        The worker whose view this is.
    machines : sequence of int
        By worker, a number of its machine; the same on every worker.

    Examples
    --------
    Two machines of two workers: 0 and 1, 2 and 3.

    >>> [Routes(worker, [0, 0, 2, 2]).neighbours for worker in range(4)]
    [[1], [0, 3], [3], [1, 2]]
    >>> Routes(0, [0, 0, 2, 2]).via(2), Routes(1, [0, 0, 2, 2]).via(2)
    (1, 3)
    """

    def __init__(self, index: int, machines: Sequence[int]) -> None:
        self.index = index
        self.machines = list(machines)
        self._members: dict[int, list[int]] = {}
        for worker, machine in enumerate(machines):
            self._members.setdefault(machine, []).append(worker)
        self._places = {machine: place for place, machine in enumerate(self._members)}
        own = machines[index]
        self.members = self._members[own]
        """The workers of this machine."""
        self.neighbours = sorted(
            {
                *(peer for peer in self.members if peer != index),
                *(
                    self._holder(other, own)
                    for other in self._members
                    if other != own and self._holder(own, other) == index
                ),
            }
        )
        """The workers to which this one is connected."""
        self.to_come = dict.fromkeys(self.neighbours, 0)
        """By neighbour, how many words from other workers have yet to come by its link."""
        self.to_go = dict.fromkeys(self.neighbours, 0)
        """By neighbour, how many words for other workers have yet to go by its link."""
        self._count()

    def _holder(self, machine: int, other: int) -> int:
        """The worker of `machine` that holds its connection to `other`."""
        members = self._members[machine]
        # By the sum, so that with as many machines as workers each of them has about one.
        return members[(self._places[machine] + self._places[other]) % len(members)]

    def path(self, source: int, target: int) -> list[int]:
        """The workers that a message from `source` to `target` visits, in order, both included."""
        here, there = self.machines[source], self.machines[target]
        if here == there:
            return [source, target]
        visited = [source, self._holder(here, there), self._holder(there, here), target]
        return list(dict.fromkeys(visited))

    def via(self, target: int) -> int:
        """The neighbour to whom a message for `target` goes."""
        return self.path(self.index, target)[1]

    def _count(self) -> None:
        """Count the words that will pass here, of which both ends are not on one link."""
        for other, members in self._members.items():
            if other == self.machines[self.index]:
                continue
            for here in self.members:
                for there in members:
                    self._count_path(self.path(here, there))

    def _count_path(self, path: list[int]) -> None:
        if len(path) == 2 or self.index not in path:
            return
        at = path.index(self.index)
        for place in (at - 1, at + 1):
            if 0 <= place < len(path):
                # As many in each direction, as the way back is the same.
                self.to_come[path[place]] += N_WORDS
                self.to_go[path[place]] += N_WORDS

    @property
    def is_done(self) -> bool:
        """Whether nothing has to pass here any more."""
        return not any(self.to_come.values()) and not any(self.to_go.values())


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
        self.waits_for_socket = carrier.waits_for_socket
        self.fd = carrier.fd
        self._mailbox = mailbox
        self._routes = routes

    @property
    def connection(self) -> Stream:
        """The carrier's."""
        return self.carrier.connection

    @property
    def is_blocked(self) -> bool:
        """Whether the carrier is."""
        return self.carrier.is_blocked

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
