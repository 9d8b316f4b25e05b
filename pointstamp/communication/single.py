"""The communicator of a worker that has no peers: every send is to itself.

Nothing is copied or encoded. Two threads may be involved all the same: another
one may `unpark` the worker, so parking waits on an event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.communication.mailbox import ChannelEnd, Mailbox, message
from pointstamp.communication.signal import Signal


class SingleCommunicator:
    """A worker alone.

    >>> alone = SingleCommunicator()
    >>> channel = alone.channel()
    >>> channel.send(0, "tag", [1, 2])
    >>> alone.receive(), channel.pull()
    ([0], Message(sender=0, tag='tag', batch=[1, 2]))
    """

    index = 0
    peers = 1
    is_urgent = False

    def __init__(self) -> None:
        self._mailbox = Mailbox()
        self._awake = Signal()

    def channel(self) -> ChannelEnd:
        """Make the next channel."""
        return self._mailbox.make(1, self._carry)

    def _carry(self, channel: int, peer: int, tag: Any, batch: Any) -> None:
        self._mailbox.put(channel, message(peer, tag, batch))

    def receive(self) -> list[int]:
        """The channels that were sent to since the last call."""
        return self._mailbox.touched_channels()

    def flush(self) -> None:
        """Nothing to do: what is sent has arrived."""

    def park(self, timeout_s: float | None = None) -> None:
        """Wait for an `unpark`, unless there is something to receive."""
        if not self._mailbox.has_touched():
            self._awake.wait(timeout_s)
        self._awake.clear()

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Nothing to do: what is sent has been carried."""

    def unpark(self) -> None:
        """End a `park`, this one or the next; callable from any thread."""
        self._awake.set()

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """See `Communicator.objects_under_way`."""
        return self._mailbox.early()

    def close(self) -> None:
        """Nothing to wait for: there are no peers."""

    def abort(self, cause: BaseException | None = None) -> None:
        """There are no peers to notify."""
