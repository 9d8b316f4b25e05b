"""The classes that count what they do, made in place of those that do not.

Each does what the class that it is made of does, and counts it: an operator its activations and
their time, the ends of a stream its records. Those of a log are made of these, so that a worker can
keep a log and count as well; without metrics they have no meter, and count nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pointstamp.communication.communicator import Channel
from pointstamp.dataflow.capability import Capability, CapabilityCounts
from pointstamp.dataflow.channels import Queue
from pointstamp.dataflow.operator import Operator
from pointstamp.metrics.meters import InputMeter, OperatorMeter, StreamMeter
from pointstamp.metrics.tick_clock import ticks
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.operate import ProgressReport


def metered(make: Callable[..., Any], meter: Any, *args: Any) -> Any:
    """What `make(*args)` gives, counting in `meter`."""
    made = make(*args)
    made.meter = meter
    return made


class MeteredOperator(Operator):
    """Counts its activations, and of a probe the epochs that are complete there."""

    __slots__ = ("meter",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.meter: OperatorMeter | None = None

    def pull_internal_progress(self) -> ProgressReport:
        """As `Operator`; what fails was active, too."""
        meter = self.meter
        if meter is None:
            return Operator.pull_internal_progress(self)
        if meter.probe is not None:
            meter.probe.look()
        began = ticks()
        try:
            return Operator.pull_internal_progress(self)
        finally:
            meter.activations += 1
            meter.busy_ticks += ticks() - began


class MeteredCapabilities(CapabilityCounts):
    """Counts, of an input of the program, where it is."""

    __slots__ = ("meter",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.meter: InputMeter | None = None

    def add(self, time: Any) -> Capability:
        """As `CapabilityCounts`."""
        if self.meter is not None:
            self.meter.move(time)
        return CapabilityCounts.add(self, time)

    def move(self, time: Any, new_time: Any) -> None:
        """As `CapabilityCounts`."""
        if self.meter is not None:
            self.meter.move(new_time)
        CapabilityCounts.move(self, time, new_time)

    def remove(self, time: Any) -> None:
        """As `CapabilityCounts`."""
        CapabilityCounts.remove(self, time)
        if self.meter is not None and not self.n_held:
            self.meter.close()


class MeteredQueue(Queue):
    """Counts what this worker sends to itself, and all that its operator takes."""

    __slots__ = ("meter",)

    def __init__(
        self, wake: Callable[[], None], consumed: ChangeBatch, channel: Channel | None = None
    ) -> None:
        super().__init__(wake, consumed, channel)
        self.meter: StreamMeter | None = None
        """None until it is known which stream it is the end of."""

    def push(self, time: Any, batch: Any) -> None:
        """As `Queue`."""
        if self.meter is not None:
            self.meter.sent(batch)
        Queue.push(self, time, batch)

    def take(self) -> tuple[Any, Any] | None:
        """As `Queue`."""
        before = self.n_taken
        item = Queue.take(self)
        if item is not None and self.meter is not None:
            self.meter.taken(self.n_taken - before)
        return item


class MeteredChannel:
    """Counts what one worker sends to others."""

    __slots__ = ("_channel", "close", "hold_in", "id", "meter", "pull", "waiting")

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.id = channel.id
        self.meter: StreamMeter | None = None
        # The rest is the channel's own, without a call in between.
        self.pull = channel.pull
        self.waiting = channel.waiting
        self.hold_in = channel.hold_in
        self.close = channel.close

    def send(self, peer: int, tag: Any, batch: Any) -> None:
        """As the channel."""
        if self.meter is not None:
            self.meter.sent(batch)
        self._channel.send(peer, tag, batch)
