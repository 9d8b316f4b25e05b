"""What a dataflow may know of the worker that it is built on.

The runtime makes one for each worker and hands it down; so scopes, pacts and
operators need no worker, and can be built under a test's own environment.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from pointstamp.communication.communicator import Channel, Communicator
from pointstamp.dataflow.backpressure import LIMIT_BYTES, Backpressure, InFlight
from pointstamp.dataflow.channels import BUDGET, Pusher, Queue
from pointstamp.dataflow.durability import DataflowState
from pointstamp.dataflow.logging_protocol import Logger
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.explanation import Holder

if TYPE_CHECKING:
    from pointstamp.dataflow.event_loop import EventLoop


@dataclass
class Environment:
    """A worker's place among its peers, and the channels it has made."""

    watcher: ClassVar[Any] = None
    """An oracle, which operators and capabilities tell what they do: `holds(capability, time)`,
    `lets_go(capability)`, `told(operator)`. For tests; what is built under one keeps it."""

    communicator: Communicator
    eager: bool = False
    """Whether progress is sent at once, rather than on demand."""
    arrivals: dict[int, Callable[[], None]] = field(default_factory=dict)
    """By channel: what to call when messages have arrived on it."""
    channels: dict[int, Channel] = field(default_factory=dict)
    """The ends that are open, by channel."""
    inputs: list[Any] = field(default_factory=list)
    """The input handles made, so that those left open can be closed."""
    outbox: list[tuple[int, Any]] = field(default_factory=list)
    """(scope, changes) that the peers are to hear of; the runtime sends them."""
    n_scopes: int = 0
    note: Callable[[str, int], None] = field(default=lambda what, n: None)
    """Operators say here that they have done `n` more of `what`, for whoever watches."""
    fail: Callable[[BaseException], None] = field(default=lambda error: None)
    """Told of an error after which the counts are wrong, so that nobody who catches it goes on."""
    durable_state: DataflowState | None = None
    """Of the dataflow that is being built: what has its state outlast it; None: nothing does."""
    backpressure: Backpressure | None = None
    """Of the dataflow that is being built: what holds its sources back; None without a limit."""
    in_flight_bytes: int = LIMIT_BYTES
    """Of one channel to one peer, from which sources are held back."""
    budget: int = BUDGET
    """See `channels.BUDGET`."""
    in_flight: dict[int, tuple[InFlight, Any]] = field(default_factory=dict)
    """By channel: what counts its traffic, and the queue that it ends in."""
    took: Callable[[int, int, int], None] = field(default=lambda *told: None)
    """Has a peer hear how many records of a channel were taken: (channel, peer, records)."""
    calls: deque[Callable[[], object]] = field(default_factory=deque)
    """What other threads, and the collector of garbage, want called by the worker's next step."""
    closers: ExitStack = field(default_factory=ExitStack)
    """What to call when the dataflow that is being built ends, or is dropped, or the worker fails:
    for what its operators have begun outside of the worker. The worker takes them over."""
    n_outside: int = 0
    """How many things are under way outside that will have something called: a simulation
    with nothing else to do waits for them."""
    dropped: Counter[str] = field(default_factory=Counter)
    """By operator: how many records its code failed on that were dropped."""
    _event_loop: EventLoop | None = None
    later: Callable[[float, Callable[[], None]], None] = field(default=lambda seconds, call: None)
    """Calls a function after so many seconds; the clock is the worker's."""
    clock: Callable[[], float] = field(default=monotonic)
    """That clock: seconds since some moment; in a simulation it is drawn with the schedule."""
    log: Logger | None = None
    """What is built now tells this log what it does; None: nobody."""
    worker_log: Logger | None = None
    """The worker's log, if it has one: what is not logged itself can read it."""
    explain: Callable[[int, int, Any], list[Holder]] = field(default=lambda *place: [])
    """Who could still produce a time at input 0 of an operator: (scope, operator, time)."""

    @property
    def index(self) -> int:
        """This worker's number."""
        return self.communicator.index

    @property
    def peers(self) -> int:
        """How many workers there are."""
        return self.communicator.peers

    def channel(self, arrived: Callable[[], None]) -> Channel:
        """Make the next channel, and have `arrived` called on arrivals."""
        channel = self.communicator.channel()
        self.channels[channel.id] = channel
        self.arrivals[channel.id] = arrived
        return channel if self.log is None else self.log.channel(channel)

    def queue(
        self, wake: Callable[[], None], consumed: ChangeBatch, channel: Channel | None = None
    ) -> Queue:
        """Make the end of a stream; see `Queue`."""
        make = Queue if self.log is None else self.log.queue
        return make(wake, consumed, channel)

    def close_channel(self, channel: int) -> None:
        """Throw away what has come on a channel, and what comes."""
        del self.arrivals[channel]
        self.channels.pop(channel).close()
        self.in_flight.pop(channel, None)

    def call(self, function: Callable[[], object]) -> None:
        """Have the worker call `function()` in its next step, and wake it.

        The one thing that another thread may do to a worker, inside of anything. An
        operator that waits for something outside holds its capabilities meanwhile, and
        has its activation called: `environment.call(info.activate)`.
        """
        self.calls.append(function)
        self.communicator.unpark()

    def drop(self, operator: str, n_records: int) -> None:
        """Count records that `operator` failed on and was told to drop."""
        self.dropped[operator] += n_records
        self.note("dropped", n_records)

    def event_loop(self) -> EventLoop:
        """Where this worker's coroutines run; begun by the first call."""
        if self._event_loop is None:
            # Not at the top: it imports asyncio, and few need that.
            from pointstamp.dataflow.event_loop import EventLoop

            self._event_loop = EventLoop(f"pointstamp-coroutines-{self.index}", self._fail_outside)
        return self._event_loop

    def close(self) -> None:
        """End the event loop, if there is one."""
        if self._event_loop is not None:
            self._event_loop.close()
            self._event_loop = None

    def _fail_outside(self, error: BaseException) -> None:
        """Fail, and wake the worker to find out; for any thread."""
        self.fail(error)
        self.communicator.unpark()

    def bound(self, pusher: Pusher, queue: Queue) -> None:
        """Have a channel's traffic counted, and who reads it take turns with others."""
        in_flight = None
        if self.backpressure is not None and queue.channel is not None:
            number = queue.channel.id
            in_flight = InFlight(
                self.backpressure, self.in_flight_bytes, self.peers, partial(self.took, number)
            )
            self.in_flight[number] = (in_flight, queue)
            pusher.measure(in_flight)
        queue.bound(self.budget, self.backpressure, in_flight)

    def share(self, scope: int, updates: Any) -> None:
        """Have the peers' instances of `scope` hear of `updates`."""
        self.outbox.append((scope, updates))

    def next_scope(self) -> int:
        """The number of a new scope: the same on all workers."""
        self.n_scopes += 1
        return self.n_scopes - 1
