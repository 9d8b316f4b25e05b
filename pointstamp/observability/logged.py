# cython: boundscheck=False, wraparound=False
"""The classes that record in a log what they do, made in place of those that do not.

Each does what the class that it is made of does, and records it; nothing here decides
anything. They are made of those that count, for a worker that has metrics as well. What is sent
is recorded before it is sent, and what is received after, so that by the clock nothing is received
before it was sent.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pointstamp.communication.communicator import Channel, Message
from pointstamp.containers.registry import n_records
from pointstamp.dataflow.capability import Capability
from pointstamp.metrics.metering import MeteredCapabilities, MeteredOperator, MeteredQueue
from pointstamp.observability.buffer import Buffer
from pointstamp.observability.clock import LogClock
from pointstamp.observability.event_types import NONE
from pointstamp.progress.change_batch import PAIRS, ChangeBatch
from pointstamp.progress.operate import (
    Changes,
    CountObserver,
    DirectOperate,
    Operate,
    ProgressReport,
)

_NO_LOCATIONS = array("q", [0])

_PAIRS = PAIRS  # compiled, a number of C


class LoggedOperator(MeteredOperator):
    """Records when it is active, and the frontiers that are delivered to it."""

    __slots__ = ("_clock", "_frontiers", "_schedules", "number")

    def __init__(
        self, number: int, clock: LogClock, schedules: Buffer, frontiers: Buffer, *args: Any
    ) -> None:
        super().__init__(*args)
        self.number = number
        self._clock = clock
        self._schedules = schedules
        self._frontiers = frontiers

    def push_external_progress(self, changes: Changes) -> None:
        """As `Operator`."""
        for port, batch in enumerate(changes):
            if not batch.is_empty():
                self._record(port, batch)
        MeteredOperator.push_external_progress(self, changes)

    def _record(self, port: int, batch: ChangeBatch) -> None:
        """Record the changes of a frontier, which stay in their batch."""
        at, number = self._clock.recent(), self.number
        n = batch.n_numbers()
        for place in range(n):
            first = 3 * place
            outer, inner = batch.entries[first], batch.entries[first + 1]
            change = batch.entries[first + 2]
            if batch.kind == _PAIRS:
                self._frontiers.add_pair(outer, inner, at, number, port, change, 0, 0)
            else:
                self._frontiers.add_number(inner, at, number, port, change, 0, 0)
        if n < 0:
            for place in range(batch.gather()):
                time = batch.items[place]
                self._frontiers.add_at(time, at, number, port, batch.changes[place], 0, 0)

    def pull_internal_progress(self) -> ProgressReport:
        """As `Operator`; what fails was active, too."""
        began = self._clock.now()
        try:
            return MeteredOperator.pull_internal_progress(self)
        finally:
            self._schedules.add(self._clock.now(), began, self.number, 0, 0, 0)


class LoggedScope(DirectOperate):
    """Records when a scope is active."""

    __slots__ = ("_clock", "_number", "_schedules", "_scope")

    def __init__(
        self, number: int, clock: LogClock, schedules: Buffer, scope: DirectOperate
    ) -> None:
        self._number = number
        self._clock = clock
        self._schedules = schedules
        self._scope = scope

    @property
    def logged(self) -> DirectOperate:
        """The scope."""
        return self._scope

    def push_external_progress(self, changes: Changes) -> None:
        """As the scope."""
        self._scope.push_external_progress(changes)

    def pull_internal_progress(self) -> ProgressReport:
        """As the scope."""
        began = self._clock.now()
        try:
            return self._scope.pull_internal_progress()
        finally:
            self._schedules.add(self._clock.now(), began, self._number, 0, 0, 0)

    def holds(self) -> bool:
        """As the scope."""
        return self._scope.holds()

    def is_complete(self) -> bool:
        """As the scope."""
        return self._scope.is_complete()

    def abandon(self) -> None:
        """As the scope."""
        self._scope.abandon()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scope, name)


class LoggedOperate:
    """Records when something else is active: an operator of another make."""

    __slots__ = ("_clock", "_number", "_operate", "_schedules")

    def __init__(self, number: int, clock: LogClock, schedules: Buffer, operate: Operate) -> None:
        self._number = number
        self._clock = clock
        self._schedules = schedules
        self._operate = operate

    def pull_internal_progress(self) -> ProgressReport:
        """As the other."""
        began = self._clock.now()
        try:
            return self._operate.pull_internal_progress()
        finally:
            self._schedules.add(self._clock.now(), began, self._number, 0, 0, 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operate, name)


class LoggedCapabilities(MeteredCapabilities):
    """Records the capabilities that an operator holds."""

    __slots__ = ("_buffer", "_clock", "_lost", "_number")

    def __init__(
        self,
        number: int,
        clock: LogClock,
        buffer: Buffer,
        lost: list[tuple[int, int, Any]],
        *args: Any,
    ) -> None:
        super().__init__(*args)
        self._number = number
        self._clock = clock
        self._buffer = buffer
        self._lost = lost

    def add(self, time: Any) -> Capability:
        """As `CapabilityCounts`."""
        self._buffer.add_at(time, self._clock.now(), self._number, self.output, +1, 0, 0)
        return MeteredCapabilities.add(self, time)

    def remove(self, time: Any) -> None:
        """As `CapabilityCounts`."""
        self._buffer.add_at(time, self._clock.now(), self._number, self.output, -1, 0, 0)
        MeteredCapabilities.remove(self, time)

    def move(self, time: Any, new_time: Any) -> None:
        """As `CapabilityCounts`."""
        at = self._clock.now()
        self._buffer.add_at(new_time, at, self._number, self.output, +1, 0, 0)
        self._buffer.add_at(time, at, self._number, self.output, -1, 0, 0)
        MeteredCapabilities.move(self, time, new_time)

    def collected(self, time: Any) -> None:
        """See `CapabilityCounts`. Where this is any thread, it is logged later, by the worker."""
        if self._buffer.is_open():
            self._buffer.add_at(time, self._clock.now(), self._number, self.output, -1, 0, 0)
        else:
            self._lost.append((self._number, self.output, time))
        MeteredCapabilities.collected(self, time)


class LoggedCounts(CountObserver):
    """Records the changes of the counts of a scope."""

    __slots__ = (
        "_buffer",
        "_clock",
        "_operators",
        "_places",
        "_scope",
        "_within",
    )

    def __init__(
        self,
        scope: int,
        within: int,
        operators: Mapping[tuple[int, int], int],
        clock: LogClock,
        buffer: Buffer,
    ) -> None:
        self._scope = scope
        self._within = within
        self._operators = operators
        self._clock = clock
        self._buffer = buffer
        self._places: Any = _NO_LOCATIONS
        """Per location: the number of the operator, the port, and whether it is an input."""

    def lay_out(self, ports: Sequence[tuple[int, int, bool]]) -> None:
        """See `CountObserver`."""
        places = array("q")
        for node, port, is_input in ports:
            number = self._operators.get((self._scope, node), NONE) if node else self._within
            places.extend((number, port, is_input))
        if ports:
            self._places = places

    def changed(self, location: int, time: Any, change: int) -> None:
        """See `CountObserver`."""
        self._buffer.add_at(
            time,
            self._clock.recent(),
            self._within,
            self._places[3 * location],
            self._places[3 * location + 1],
            self._places[3 * location + 2],
            change,
        )

    def changed_number(
        self, location: int, outer: int, inner: int, is_pair: bool, change: int
    ) -> None:
        """See `CountObserver`."""
        at = self._clock.recent()
        number = self._places[3 * location]
        port = self._places[3 * location + 1]
        is_input = self._places[3 * location + 2]
        if is_pair:
            self._buffer.add_pair(outer, inner, at, self._within, number, port, is_input, change)
        else:
            self._buffer.add_number(inner, at, self._within, number, port, is_input, change)


class LoggedChannel:
    """Records what one worker sends to others, and receives."""

    __slots__ = ("_channel", "_clock", "_index", "_messages", "id", "number")

    def __init__(self, channel: Channel, index: int, clock: LogClock, messages: Buffer) -> None:
        self._channel = channel
        self._index = index
        self._clock = clock
        self._messages = messages
        self.id = channel.id
        self.number = NONE
        """Of the stream; until it has one, nothing is recorded."""

    def send(self, peer: int, tag: Any, batch: Any) -> None:
        """As the channel."""
        if self.number != NONE:
            self._messages.add_at(
                tag, self._clock.now(), self.number, n_records(batch), self._index, peer, True
            )
        self._channel.send(peer, tag, batch)

    def pull(self) -> Message | None:
        """As the channel."""
        message = self._channel.pull()
        if message is not None and self.number != NONE:
            sender, tag, batch = message
            self._messages.add_at(
                tag, self._clock.now(), self.number, n_records(batch), sender, self._index, False
            )
        return message

    def waiting(self) -> list[Message]:
        """As the channel's."""
        return self._channel.waiting()

    def hold_in(self, queue: Any) -> None:
        """As the channel."""
        self._channel.hold_in(queue)

    def close(self) -> None:
        """As the channel."""
        self._channel.close()


class LoggedQueue(MeteredQueue):
    """Records what one worker sends to itself; what comes from others its channel records."""

    __slots__ = ("_clock", "_index", "_messages", "number")

    def __init__(
        self,
        index: int,
        clock: LogClock,
        messages: Buffer,
        wake: Callable[[], None],
        consumed: ChangeBatch,
        channel: Channel | None,
    ) -> None:
        super().__init__(wake, consumed, channel)
        self._index = index
        self._clock = clock
        self._messages = messages
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
            self._messages.add_at(
                time, self._clock.now(), self.number, n_records(batch), index, index, True
            )
        MeteredQueue.push(self, time, batch)

    def take(self) -> tuple[Any, Any] | None:
        """As `Queue`; what has to wait has been received all the same."""
        if self._next is None and not self._local:
            return MeteredQueue.take(self)
        item = MeteredQueue.take(self)
        if item is not None and self.number != NONE:
            index = self._index
            self._messages.add_at(
                item[0], self._clock.now(), self.number, n_records(item[1]), index, index, False
            )
        return item
