"""What a dataflow may know of the worker that it is built on.

The runtime makes one for each worker and hands it down; so scopes, pacts and
operators need no worker, and can be built under a test's own environment.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from pointstamp.communication.communicator import Channel, Communicator
from pointstamp.containers.text_users import TextUser
from pointstamp.dataflow.backpressure import Backpressure, InFlight
from pointstamp.dataflow.channels import BUDGET, Pusher, Queue
from pointstamp.dataflow.collector import collector_off
from pointstamp.dataflow.comparisons import Comparisons
from pointstamp.dataflow.durability import DataflowState
from pointstamp.dataflow.idle_work import IdleWork
from pointstamp.dataflow.limits import LIMIT_BYTES
from pointstamp.dataflow.logging_protocol import Logger
from pointstamp.dataflow.program_lines import Lines
from pointstamp.dataflow.run_epochs import RunEpochs
from pointstamp.dataflow.source_counts import SourceCounts
from pointstamp.dataflow.texts_held import TextsHeld
from pointstamp.progress.change_batch import ChangeBatch

if TYPE_CHECKING:
    from pointstamp.dataflow.event_loop import EventLoop
    from pointstamp.dataflow.spillable import WorkerMemory
    from pointstamp.progress.explanation import Holder


class Closers(ExitStack):
    """Functions to call at an end, of which one can ask whether there are any."""

    def __init__(self) -> None:
        super().__init__()
        self.is_empty = True

    def push(self, exit: Any) -> Any:
        """See `ExitStack`."""
        self.is_empty = False
        return super().push(exit)

    def callback(self, *args: Any, **kwargs: Any) -> Any:
        """See `ExitStack`."""
        self.is_empty = False
        return super().callback(*args, **kwargs)

    def at_end(self, function: Callable[[], object]) -> None:
        """Call a function that ends nothing outside of the worker, and so is not asked for."""
        super().callback(function)

    def hand_over(self) -> Closers:
        """All of them in another one; there are none here then."""
        other = self.pop_all()
        other.is_empty, self.is_empty = self.is_empty, True
        return other


@dataclass
class BuiltParts:
    """What the building of one dataflow has made in an environment, for its end."""

    inputs: list[Any] = field(default_factory=list)
    """The input handles."""
    channels: list[int] = field(default_factory=list)
    """The numbers of its channels."""
    closers: Closers = field(default_factory=Closers)
    """What to call when it ends, however it does."""
    texts_held: TextsHeld = field(default_factory=TextsHeld)
    """What its operators say of texts."""


@dataclass
class Environment:
    """A worker's place among its peers, its services, and the channels that it has made.

    The services come from the worker, with the constructor; those that a test does not give
    do nothing.
    """

    watcher: ClassVar[Any] = None
    """An oracle to which operators and capabilities report: `holds(capability, time)`,
    `lets_go(capability)`, `notified(operator)`. For tests; what is built under one keeps it."""

    communicator: Communicator
    eager: bool = False
    """Whether progress is sent at once, rather than on demand."""
    share: Callable[[int, Any], None] = field(default=lambda scope, updates: None)
    """Has the peers' instances of a scope receive updates of counts: (scope, updates)."""
    report_taken: Callable[[int, int, int], None] = field(default=lambda *taken: None)
    """Acknowledges to a peer what was taken: (channel, peer, how many records)."""
    comparisons: Comparisons = field(default_factory=Comparisons)
    """What operators compare with the same ones of other workers while they run."""
    fail: Callable[[BaseException], None] = field(default=lambda error: None)
    """Takes an error after which the counts are wrong, so that no code that catches it goes on."""
    later: Callable[[float, Callable[[], None]], None] = field(default=lambda seconds, call: None)
    """Calls a function after so many seconds; the clock is the worker's."""
    clock: Callable[[], float] = field(default=monotonic)
    """That clock: seconds since some moment; in a simulation it is drawn with the schedule."""
    explain: Callable[[int, int, Any], list[Holder]] = field(default=lambda *place: [])
    """What could still produce a time at input 0 of an operator: (scope, operator, time)."""
    worker_log: Logger | None = None
    """The worker's log, if it has one: what is not logged itself can read it."""
    in_flight: dict[int, tuple[InFlight, Any]] = field(default_factory=dict)
    """By channel: what counts its traffic, and the queue that it ends in."""
    in_flight_bytes: int = LIMIT_BYTES
    """Of one channel to one peer, from which sources are held back."""
    memory: WorkerMemory | None = None
    """What has what waits go to disk where it does not fit; None: it is all in memory."""
    budget: int = BUDGET
    """See `channels.BUDGET`."""
    arrivals: dict[int, Callable[[], None]] = field(default_factory=dict)
    """By channel: what to call when messages have arrived on it."""
    channels: dict[int, Channel] = field(default_factory=dict)
    """The ends that are open, by channel."""
    inputs: list[Any] = field(default_factory=list)
    """The input handles made, so that those left open can be closed."""
    connectors: list[tuple[str, Any]] = field(default_factory=list)
    """The sources and sinks of dataflows that have not ended, each with its operator's name."""
    n_scopes: int = 0
    observers: list[Callable[[str, int], None]] = field(default_factory=list)
    """Called when operators have done more of something: (what, how much more)."""
    calls: deque[Callable[[], object]] = field(default_factory=deque)
    """What other threads, and the collector of garbage, want called by the worker's next step."""
    closers: Closers = field(default_factory=Closers)
    """What to call when the dataflow that is being built ends, or is dropped, or the worker fails:
    for what its operators have begun outside of the worker. The worker takes them over."""
    is_called: bool = False
    """Whether other threads have the worker call functions, or may: what it waits for may be
    theirs to do."""
    n_outside: int = 0
    """How many things are under way outside that will have something called: a simulation
    with nothing else to do waits for them."""
    run_epochs: RunEpochs | None = None
    """The run that the dataflow is built for which is being built, if its epochs are those of one;
    see `runtime/run_flow.py`."""
    dropped: Counter[str] = field(default_factory=Counter)
    """By operator: how many records its code failed on that were dropped."""
    durable_state: DataflowState | None = None
    """Of the dataflow that is being built: what has its state outlast it, if anything does."""
    backpressure: Backpressure | None = None
    """Of the dataflow that is being built: what holds its sources back; None without a limit."""
    log: Logger | None = None
    """Where what is being built logs what it does; None: nowhere."""
    texts: Any = field(default_factory=TextUser)
    """Says that operators may hold numbers of texts, or, once there are collections, which."""
    texts_held: TextsHeld | None = None
    """Is given what operators say of those: of a `View`, or of the dataflow that is being built."""
    lines: Lines | None = None
    """Where in the program operators are made; None if that is not noted."""
    source_counts: SourceCounts | None = None
    """What counts how far sources have come; None if nothing shows it."""
    idle: IdleWork = field(init=False)
    """What can wait until the worker has nothing else to do."""
    _event_loop: EventLoop | None = None

    def __post_init__(self) -> None:
        self.idle = IdleWork(self.fail)

    @contextmanager
    def building(
        self,
        *,
        backpressure: Backpressure | None = None,
        durable_state: DataflowState | None = None,
        is_logged: bool = True,
    ) -> Iterator[BuiltParts]:
        """Have what is made in the block belong to one dataflow; its parts are there at the end.

        If the block raises, what it has made is given up.
        """
        n_inputs, known_channels, built = len(self.inputs), set(self.arrivals), BuiltParts()
        self.backpressure, self.durable_state = backpressure, durable_state
        self.log = self.worker_log if is_logged else None
        asked_before = self.texts_held
        self.texts_held = built.texts_held = asked_before or TextsHeld()
        if self.source_counts is not None:
            self.source_counts.begin()
        try:
            with collector_off():  # of all that is made here nothing is let go yet
                yield built
        except BaseException:
            for handle in self.inputs[n_inputs:]:
                handle.abandon()
            del self.inputs[n_inputs:]
            self.closers.close()
            raise
        finally:
            self.backpressure = self.durable_state = self.log = None
            self.texts_held = asked_before
            built.texts_held.end_building()
        built.inputs = self.inputs[n_inputs:]
        built.channels = [c for c in self.arrivals if c not in known_channels]
        if self.source_counts is not None:
            self.closers.callback(self.source_counts.end_building(built.inputs))
        built.closers = self.closers.hand_over()

    def note(self, what: str, n: int) -> None:
        """Report that an operator has done `n` more of `what`, to all that observe."""
        for observe in self.observers:
            observe(what, n)

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
        if self.memory is not None:
            channel.hold_in(self.memory.arrivals())
        self.channels[channel.id] = channel
        self.arrivals[channel.id] = arrived
        return channel if self.log is None else self.log.channel(channel)

    def limit_memory(self, memory: WorkerMemory) -> None:
        """Have what waits, from here on, go to disk where `memory` has no room for it."""
        self.memory = memory
        self.communicator.hold_unsent_in(memory.unsent)

    def queue(
        self, wake: Callable[[], None], consumed: ChangeBatch, channel: Channel | None = None
    ) -> Queue:
        """Make the end of a stream; see `Queue`."""
        make = Queue if self.log is None else self.log.queue()
        queue = make(wake, consumed, channel)
        if self.memory is not None:
            queue.hold_in(self.memory.queue())
        return queue

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
        self.is_called = True
        self.defer(function)

    def defer(self, function: Callable[[], object]) -> None:
        """The same for what this worker itself leaves to its next step."""
        self.calls.append(function)
        self.communicator.unpark()

    def drop(self, operator: str, n_records: int) -> None:
        """Count records that `operator` failed on and drops, as it was asked to."""
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
        """End the event loop, if there is one; no operator holds anything any more."""
        self.texts.end()
        if self._event_loop is not None:
            self._event_loop.close()
            self._event_loop = None

    def _fail_outside(self, error: BaseException) -> None:
        """Fail, and wake the worker to see it; for any thread."""
        self.fail(error)
        self.communicator.unpark()

    def bound(self, pusher: Pusher, queue: Queue) -> None:
        """Have a channel's traffic counted, and its reader take turns with others."""
        in_flight = None
        if self.backpressure is not None and queue.channel is not None:
            number = queue.channel.id
            in_flight = InFlight(
                self.backpressure,
                self.in_flight_bytes,
                self.peers,
                partial(self.report_taken, number),
            )
            self.in_flight[number] = (in_flight, queue)
            pusher.measure(in_flight)
        queue.bound(self.budget, self.backpressure, in_flight)

    def next_scope(self) -> int:
        """The number of a new scope: the same on all workers."""
        self.n_scopes += 1
        return self.n_scopes - 1
