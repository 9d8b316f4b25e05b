"""The classes that count what they do, made in place of those that do not.

Each does what the class that it is made of does, and counts it: an operator its activations and
their time, the ends of a stream its records. So that a worker can keep a log and count as well,
they are made of whatever class is there, of one that logs or of one that does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from time import perf_counter_ns
from typing import Any

from pointstamp.containers.registry import kind_of, n_records
from pointstamp.metrics.meters import InputMeter, OperatorMeter, StreamMeter

_FEW = 64
"""Lists of fewer records are not asked for their size each time."""

_N_ESTIMATES = 32

_OF_BASE: tuple[str, ...] = ()
"""The slots of what is mixed in: the one that it needs is in the class that is made of it."""


def counting(make: Callable[..., Any], mixin: type, meter: Any) -> Callable[..., Any]:
    """What makes the same as `make`, a class or a `partial` of one, that counts in `meter`."""
    if isinstance(make, partial):
        return partial(_derived(make.func, mixin), meter, *make.args, **make.keywords)
    return partial(_derived(make, mixin), meter)


@cache
def _derived(base: Any, mixin: type) -> Any:
    name = f"{mixin.__name__.removesuffix('Counts')}{base.__name__}"
    return type(name, (mixin, base), {"__slots__": ("meter",), "__module__": __name__})


class OperatorActivityCounts:
    """Of an `Operator`: its activations, and of a probe its frontier."""

    __slots__ = _OF_BASE

    meter: OperatorMeter

    def __init__(self, meter: OperatorMeter, *args: Any) -> None:
        super().__init__(*args)
        self.meter = meter

    def pull_internal_progress(self) -> Any:
        """As `Operator`; what fails was active, too."""
        began = perf_counter_ns()
        probe = self.meter.probe
        if probe is not None:
            # It runs whenever its frontier has moved.
            frontier = self.frontiers[0].frontier  # type: ignore[attr-defined]  # of its base
            if frontier != probe.frontier:
                probe.moved(frontier[:], began)
        try:
            return super().pull_internal_progress()  # type: ignore[misc]  # likewise
        finally:
            meter = self.meter
            meter.activations += 1
            meter.busy_ns += perf_counter_ns() - began


class InputCapabilityCounts:
    """Of the `CapabilityCounts` of an input of the program: where it is."""

    __slots__ = _OF_BASE

    meter: InputMeter

    def __init__(self, meter: InputMeter, *args: Any) -> None:
        super().__init__(*args)
        self.meter = meter

    def add(self, time: Any) -> Any:
        """As `CapabilityCounts`."""
        self.meter.move(time)
        return super().add(time)  # type: ignore[misc]  # of what it is mixed into

    def move(self, time: Any, new_time: Any) -> None:
        """As `CapabilityCounts`."""
        self.meter.move(new_time)
        super().move(time, new_time)  # type: ignore[misc]  # likewise

    def remove(self, time: Any) -> None:
        """As `CapabilityCounts`."""
        super().remove(time)  # type: ignore[misc]  # likewise
        if not self.n_held:  # type: ignore[attr-defined]  # likewise
            self.meter.close()


class QueueTrafficCounts:
    """Of a `Queue`: what this worker sends to itself, and all that its operator takes."""

    __slots__ = _OF_BASE

    meter: StreamMeter | None

    def __init__(self, meter: StreamMeter | None, *args: Any) -> None:
        super().__init__(*args)
        self.meter = meter
        """None until it is known which stream it is the end of."""

    def push(self, time: Any, batch: Any) -> None:
        """As `Queue`."""
        if self.meter is not None:
            self.meter.sent(batch, n_records(batch))
        super().push(time, batch)  # type: ignore[misc]  # of what it is mixed into

    def take(self) -> tuple[Any, Any] | None:
        """As `Queue`."""
        item: tuple[Any, Any] | None = super().take()  # type: ignore[misc]  # likewise
        if item is not None and self.meter is not None:
            self.meter.taken(n_records(item[1]))
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
            self.meter.sent(batch, n_records(batch))
        self._channel.send(peer, tag, batch)


class BatchSizer:
    """How many bytes the batches of a stream have: of short lists, as those before had.

    As `backpressure.InFlight` estimates it: only rows have to be asked record by record.
    """

    __slots__ = ("_n_small", "_record_bytes")

    def __init__(self) -> None:
        self._record_bytes = 0.0
        self._n_small = 0

    def __call__(self, batch: Any, n_records: int) -> int:
        """About how many bytes."""
        if type(batch) is not list or n_records >= _FEW:
            return int(kind_of(batch).n_bytes(batch))
        if not n_records:
            return 0
        if self._n_small % _N_ESTIMATES == 0:
            self._record_bytes = kind_of(batch).n_bytes(batch) / n_records
        self._n_small += 1
        return int(n_records * self._record_bytes)
