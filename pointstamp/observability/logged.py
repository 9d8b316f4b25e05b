"""The classes that record in a log what they do, made in place of those that do not.

Each does what the class that it is made of does, and records it; nothing here decides
anything. What is sent is recorded before it is sent, and what is received after, so that by
the clock nothing is received before it was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pointstamp.communication.communicator import Channel, Message
from pointstamp.containers.registry import n_records
from pointstamp.dataflow.capability import Capability, CapabilityCounts
from pointstamp.dataflow.channels import Queue
from pointstamp.dataflow.operator import Operator
from pointstamp.observability.buffer import Buffer
from pointstamp.observability.event_types import NONE
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import Changes, Operate, ProgressReport

Clock = Callable[[], int]


class LoggedOperator(Operator):
    """Records when it is active, and the frontiers that are delivered to it."""

    __slots__ = ("_frontiers", "_now", "_schedules", "number")

    def __init__(
        self, number: int, now: Clock, schedules: Buffer, frontiers: Buffer, *args: Any
    ) -> None:
        super().__init__(*args)
        self.number = number
        self._now = now
        self._schedules = schedules
        self._frontiers = frontiers

    def push_external_progress(self, changes: Changes) -> None:
        """As `Operator`."""
        for port, batch in enumerate(changes):
            if batch:
                at = self._now()
                for time, change in batch:
                    self._frontiers.add_with((time,), at, self.number, port, change)
        super().push_external_progress(changes)

    def pull_internal_progress(self) -> ProgressReport:
        """As `Operator`; what fails was active, too."""
        began = self._now()
        try:
            return super().pull_internal_progress()
        finally:
            self._schedules.add(self._now(), began, self.number)


class LoggedOperate:
    """Records when something else is active: a scope, or an operator of another make."""

    __slots__ = ("_now", "_number", "_operate", "_schedules")

    def __init__(self, number: int, now: Clock, schedules: Buffer, operate: Operate) -> None:
        self._number = number
        self._now = now
        self._schedules = schedules
        self._operate = operate

    def pull_internal_progress(self) -> ProgressReport:
        """As the other."""
        began = self._now()
        try:
            return self._operate.pull_internal_progress()
        finally:
            self._schedules.add(self._now(), began, self._number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operate, name)


class LoggedCapabilities(CapabilityCounts):
    """Records the capabilities that an operator holds."""

    __slots__ = ("_buffer", "_lost", "_now", "_number")

    def __init__(
        self,
        number: int,
        now: Clock,
        buffer: Buffer,
        lost: deque[tuple[int, int, Any]],
        *args: Any,
    ) -> None:
        super().__init__(*args)
        self._number = number
        self._now = now
        self._buffer = buffer
        self._lost = lost

    def add(self, time: Any) -> Capability:
        """As `CapabilityCounts`."""
        self._buffer.add_with((time,), self._now(), self._number, self.output, +1)
        return super().add(time)

    def remove(self, time: Any) -> None:
        """As `CapabilityCounts`."""
        self._buffer.add_with((time,), self._now(), self._number, self.output, -1)
        super().remove(time)

    def move(self, time: Any, new_time: Any) -> None:
        """As `CapabilityCounts`."""
        at = self._now()
        self._buffer.add_with((new_time,), at, self._number, self.output, +1)
        self._buffer.add_with((time,), at, self._number, self.output, -1)
        super().move(time, new_time)

    def collected(self, time: Any) -> None:
        """See `CapabilityCounts`. Logged later, by the worker: this may be any thread."""
        self._lost.append((self._number, self.output, time))
        super().collected(time)


class LoggedChannel:
    """Records what one worker sends to others, and receives."""

    __slots__ = ("_channel", "_index", "_messages", "_now", "id", "number")

    def __init__(self, channel: Channel, index: int, now: Clock, messages: Buffer) -> None:
        self._channel = channel
        self._index = index
        self._now = now
        self._messages = messages
        self.id = channel.id
        self.number = NONE
        """Of the stream; until it has one, nothing is recorded."""

    def send(self, peer: int, tag: Any, batch: Any) -> None:
        """As the channel."""
        if self.number != NONE:
            self._messages.add_with(
                (tag,), self._now(), self.number, n_records(batch), self._index, peer, True
            )
        self._channel.send(peer, tag, batch)

    def pull(self) -> Message | None:
        """As the channel."""
        message = self._channel.pull()
        if message is not None and self.number != NONE:
            sender, tag, batch = message
            self._messages.add_with(
                (tag,), self._now(), self.number, n_records(batch), sender, self._index, False
            )
        return message

    def waiting(self) -> list[Message]:
        """As the channel's."""
        return self._channel.waiting()

    def close(self) -> None:
        """As the channel."""
        self._channel.close()


class LoggedQueue(Queue):
    """Records what one worker sends to itself; what comes from others its channel records."""

    __slots__ = ("_add", "_index", "_now", "number")

    def __init__(
        self,
        index: int,
        now: Clock,
        messages: Buffer,
        wake: Callable[[], None],
        consumed: ChangeBatch,
        channel: Channel | None,
    ) -> None:
        super().__init__(wake, consumed, channel)
        self._index = index
        self._now = now
        self._add = messages.add_with  # looked up once: it is called for every batch
        self.number = NONE

    def connect(self, number: int) -> None:
        """It is the end of the stream of this number."""
        self.number = number
        if isinstance(self._channel, LoggedChannel):
            self._channel.number = number

    def push(self, time: Any, batch: Any) -> None:
        """As `Queue`."""
        if self.number != NONE:
            index = self._index
            self._add((time,), self._now(), self.number, n_records(batch), index, index, True)
        super().push(time, batch)

    def take(self) -> tuple[Any, Any] | None:
        """As `Queue`; what has to wait has been received all the same."""
        if not self._local:
            return super().take()
        item = super().take()
        if item is not None and self.number != NONE:
            index = self._index
            self._add((item[0],), self._now(), self.number, n_records(item[1]), index, index, False)
        return item
