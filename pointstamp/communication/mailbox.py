"""What has arrived for one worker, by channel: the half that all communicators share.

A carrier (a queue, a socket, a simulation) puts messages in, the worker takes
them out through its ends of the channels. Messages for a channel that the worker
has not made yet are kept, and are reported the moment it makes it. Nothing here
waits or knows how messages travel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pointstamp.communication.communicator import Message
from pointstamp.errors import UsageError

Carry = Callable[[int, int, Any, Any], None]
"""`carry(channel, peer, tag, batch)` takes a message from the worker to its carrier."""


_new = tuple.__new__

_NONE: list[int] = []
"""Stays empty: what is received in a step in which nothing has arrived."""


def message(sender: int, tag: Any, batch: Any) -> Message:
    """A `Message`, past its constructor: that is of Python, and takes as long as its delivery.

    >>> message(0, "tag", [1])
    Message(sender=0, tag='tag', batch=[1])
    """
    return _new(Message, (sender, tag, batch))


class ChannelEnd:
    """One worker's end of a channel: a queue to pull from and a carrier to send by."""

    __slots__ = ("_arrived", "_carry", "_forget", "_peers", "_replace", "id")

    def __init__(
        self,
        id: int,
        peers: int,
        arrived: deque[Message],
        carry: Carry,
        forget: Callable[[int], None],
        replace: Callable[[int, Any], None],
    ) -> None:
        self.id = id
        self._replace = replace
        self._forget = forget
        self._peers = peers
        self._arrived = arrived
        self._carry = carry

    def send(self, peer: int, tag: Any, batch: Any) -> None:
        """Send `batch` to worker `peer` (which may be this one)."""
        if not 0 <= peer < self._peers:
            raise UsageError(
                f"channel {self.id} cannot send to worker {peer}: "
                f"there are workers 0 to {self._peers - 1}"
            )
        self._carry(self.id, peer, tag, batch)

    def pull(self) -> Message | None:
        """The next message that arrived, or None."""
        return self._arrived.popleft() if self._arrived else None

    def close(self) -> None:
        """Throw away what has arrived, and what will; peers may go on sending."""
        self._arrived.clear()
        self._forget(self.id)

    def hold_in(self, queue: Any) -> None:
        """See `Channel.hold_in`."""
        queue.extend(self._arrived)
        self._arrived = queue
        self._replace(self.id, queue)

    def waiting(self) -> list[Message]:
        """The messages that arrived and were not pulled."""
        return list(self._arrived)


def end_of(channel: Any) -> ChannelEnd | None:
    """The channel, if it is a communicator's own, which compiled code calls directly."""
    return channel if type(channel) is ChannelEnd else None


class Mailbox:
    """The queues of one worker's channels, and which of them got something new."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[Message]] = {}
        self._n_made = 0
        self._touched: set[int] = set()

    def make(self, peers: int, carry: Carry) -> ChannelEnd:
        """The worker's end of the next channel, with what came early already in it."""
        id = self._n_made
        self._n_made += 1
        arrived = self._queues.setdefault(id, deque())
        if arrived:
            self._touched.add(id)
        return ChannelEnd(id, peers, arrived, carry, self._forget, self._replace)

    def put(self, channel: int, arrived: Message) -> None:
        """Keep a message that arrived, unless its channel is closed."""
        queue = self._queues.get(channel)
        if queue is None:
            if channel < self._n_made:
                return  # closed: with the message goes the memory in which it came
            queue = self._queues[channel] = deque()
        queue.append(arrived)
        if channel < self._n_made:
            self._touched.add(channel)

    def _forget(self, channel: int) -> None:
        """Have what comes for `channel` thrown away: from now on it has no queue."""
        self._queues.pop(channel, None)
        self._touched.discard(channel)

    def _replace(self, channel: int, queue: Any) -> None:
        """Have what comes for `channel` put into another queue."""
        self._queues[channel] = queue

    def early(self) -> list[tuple[int, Any]]:
        """(channel, batch) of what has come for channels that the worker has not made yet.

        >>> mailbox = Mailbox()
        >>> mailbox.put(0, message(1, "tag", ["a"]))
        >>> mailbox.early()
        [(0, ['a'])]
        """
        early = [(id, queue) for id, queue in self._queues.items() if id >= self._n_made]
        return [(id, arrived.batch) for id, queue in early for arrived in queue]

    def has_touched(self) -> bool:
        """Whether a channel got messages since `touched_channels` was last called."""
        return bool(self._touched)

    def touched_channels(self) -> list[int]:
        """The channels that got messages since the last call, each once, in order."""
        if not self._touched:
            return _NONE
        if len(self._touched) == 1:
            return [self._touched.pop()]
        touched = sorted(self._touched)
        self._touched.clear()
        return touched
