"""Communicators for threads of one process: messages are passed by reference.

A worker's inbox is a `deque` that every thread appends to and its owner takes
from; appends and pops of a deque are atomic, so sending takes no lock. An event
per worker ends its `park`. The order that makes this sound: a sender appends and
then sets the event; a worker that was woken clears the event and then looks into
its inbox. So whatever is appended is seen, at worst by a park that ends early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pointstamp.communication.communicator import Message
from pointstamp.communication.failure import Notice, notice
from pointstamp.communication.mailbox import ChannelEnd, Mailbox
from pointstamp.communication.signal import Signal


@dataclass
class _Group:
    """What the threads of one computation share."""

    inboxes: list[deque[tuple[int, Message]]]
    awake: list[Signal]
    closed: set[int] = field(default_factory=set)
    notices: list[Notice] = field(default_factory=list)

    def wake_all(self) -> None:
        for event in self.awake:
            event.set()


def communicators(workers: int) -> list[ThreadCommunicator]:
    """One communicator for each of `workers` threads of this process.

    >>> zero, one = communicators(2)
    >>> zero.channel().send(1, "tag", ["a"])
    >>> channel = one.channel()
    >>> one.receive(), channel.pull()
    ([0], Message(sender=0, tag='tag', batch=['a']))
    """
    group = _Group([deque() for _ in range(workers)], [Signal() for _ in range(workers)])
    return [ThreadCommunicator(index, group) for index in range(workers)]


class ThreadCommunicator:
    """A thread's place among the threads of its group; see `communicators`."""

    def __init__(self, index: int, group: _Group) -> None:
        self.index = index
        self.peers = len(group.inboxes)
        self.is_urgent = False
        self._group = group
        self._inbox = group.inboxes[index]
        self._awake = group.awake[index]
        self._mailbox = Mailbox()
        self._is_done = False

    def channel(self) -> ChannelEnd:
        """Make this worker's end of the next channel."""
        return self._mailbox.make(self.peers, self._carry)

    def _carry(self, channel: int, peer: int, tag: Any, batch: Any) -> None:
        self._group.inboxes[peer].append((channel, Message(self.index, tag, batch)))
        awake = self._group.awake[peer]
        if not awake.is_set():
            awake.set()

    def receive(self) -> list[int]:
        """Take in what has arrived, without waiting; see `Communicator.receive`."""
        if self._group.notices:
            self._raise_notice()
        while self._inbox:
            self._mailbox.put(*self._inbox.popleft())
        return self._mailbox.touched_channels()

    def flush(self) -> None:
        """Nothing to do: what is sent has arrived."""

    def park(self, timeout_s: float | None = None) -> None:
        """Wait for something to receive or an `unpark`."""
        if not (self._inbox or self._mailbox.has_touched() or self._group.notices):
            self._awake.wait(timeout_s)
        self._awake.clear()
        if self._group.notices:
            self._raise_notice()

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Nothing to do: what is sent has been carried."""

    def unpark(self) -> None:
        """End a `park`, this one or the next; callable from any thread."""
        self._awake.set()

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """See `Communicator.objects_under_way`."""
        # Copies, as a worker that has failed may have left a thread that sends.
        arriving = [each for inbox in self._group.inboxes for each in inbox.copy()]
        return [(id, arrived.batch) for id, arrived in arriving] + self._mailbox.early()

    def close(self) -> None:
        """Wait until every thread of the group has closed."""
        if self._is_done:
            return
        group = self._group
        group.closed.add(self.index)
        group.wake_all()
        while len(group.closed) < self.peers:
            if group.notices:
                self._raise_notice()
            self._awake.wait()
            self._awake.clear()
        self._is_done = True

    def abort(self, cause: BaseException | None = None) -> None:
        """Make every other thread of the group stop at its next call."""
        if self._is_done:
            return
        self._is_done = True
        self._group.notices.append(notice(self.index, cause))
        self._group.wake_all()

    def _raise_notice(self) -> NoReturn:
        """Raise the first notice; later ones are its consequences."""
        raise self._group.notices[0].as_error()
