# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Counts of one worker, by operator, stream, input and probe: plain numbers, written by the worker.

Another thread reads them while the worker goes on: each is a number of its own, and nothing needs
two of them to fit together. Counting makes no objects: an epoch that the inputs have left is six
numbers, kept once for all probes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from pointstamp.containers.registry import batch_bytes, kind_of, n_records
from pointstamp.dataflow.backpressure import ThrottledTime
from pointstamp.metrics.tick_clock import TICK, now_ns
from pointstamp.progress.input_frontier import InputFrontier
from pointstamp.progress.timestamp import Int, Timestamp

LATENCY_BUCKETS_S = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper ends of the buckets of epochs' latencies."""

MOST_PENDING = 65_536
"""So many epochs that are not complete are timed at a probe; of more, the eldest are not."""

_BUCKETS_NS: Any = array("q", [int(bound * 1e9) for bound in LATENCY_BUCKETS_S])

_N_BUCKETS = len(_BUCKETS_NS)

_WIDTH = 6
"""How many numbers an epoch is that was left."""

_FEW_LEFT = 64
"""For so many there is room at first."""

_FEW = 64
"""Lists of fewer records are not asked for their size each time."""

_N_ESTIMATES = 32


class OperatorMeter:
    """How often an operator was active, and for how long."""

    __slots__ = ("activations", "address", "busy_ticks", "name", "probe")

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.activations = 0
        self.busy_ticks = 0
        self.probe: ProbeMeter | None = None
        """If the operator is one."""

    @property
    def busy_ns(self) -> int:
        """For how long it was active."""
        return TICK.ns_of(self.busy_ticks)


class StreamMeter:
    """What went through a stream between two operators: sent by this worker, taken by it.

    >>> meter = StreamMeter("Map", "Probe", "0/3", "pipeline")
    >>> meter.sent([b"abc"] * 100)
    >>> meter.taken(60)
    >>> meter.records, meter.batches, meter.taken_records, meter.taken_batches
    (100, 1, 60, 1)
    """

    __slots__ = (
        "_long_bytes",
        "_n_unasked",
        "_record_bytes",
        "_short_bytes",
        "batches",
        "pact",
        "place",
        "records",
        "source",
        "taken_batches",
        "taken_records",
        "target",
    )

    def __init__(self, source: str, target: str, place: str, pact: str) -> None:
        self.source = source
        self.target = target
        self.place = place
        """The address of the target, and which of its inputs."""
        self.pact = pact
        self.records = 0
        self.batches = 0
        self.taken_records = 0
        self.taken_batches = 0
        self._long_bytes = 0
        self._short_bytes = 0.0
        """Of short lists."""
        self._record_bytes = 0.0
        self._n_unasked = 0
        """How many short lists there may still be until one is asked for its size."""

    @property
    def n_bytes(self) -> int:
        """Of what was sent."""
        return self._long_bytes + int(self._short_bytes)

    def sent(self, batch: Any) -> None:
        """This worker has sent a batch, to any worker."""
        is_rows = type(batch) is list
        n = len(batch) if is_rows else n_records(batch)
        self.records += n
        self.batches += 1
        if not is_rows or n >= _FEW:
            self._long_bytes += batch_bytes(kind_of(batch), batch)
        elif n:
            # As `backpressure.InFlight` does: rows have to be asked record by record, so that
            # short lists count as those before.
            if not self._n_unasked:
                self._record_bytes = batch_bytes(kind_of(batch), batch) / n
                self._n_unasked = _N_ESTIMATES
            self._n_unasked -= 1
            self._short_bytes += n * self._record_bytes

    def taken(self, n_records: int) -> None:
        """The operator of this worker has taken a batch."""
        self.taken_records += n_records
        self.taken_batches += 1


class InputMeter:
    """Where an input of the program is."""

    __slots__ = ("address", "epochs", "is_closed", "name", "time")

    def __init__(self, name: str, address: str, epochs: EpochMeter) -> None:
        self.name = name
        self.address = address
        self.epochs = epochs
        self.time: Any = None
        self.is_closed = False

    def move(self, time: Any) -> None:
        """It sends at `time` or later from now on."""
        self.time = time
        self.epochs.input_moved()

    def close(self) -> None:
        """It sends nothing more."""
        self.is_closed = True
        self.epochs.input_moved()


class LeftEpoch(NamedTuple):
    """An epoch that the inputs of a worker have left, and what they had sent until then.

    Attributes
    ----------
    until : int
        It is complete where no time before this one may come any more.
    left_ns : int
        When the last of them left it.
    epoch : int
        At which they were; those after it, before `until`, were passed over.
    began_ns : int
        When the first record was sent; as `left_ns` if none was, or if records are not noted.
    records : int
        How many, if they are noted.
    is_end : bool
        Whether they were closed in it.
    """

    until: int
    left_ns: int
    epoch: int
    began_ns: int
    records: int
    is_end: bool


class LeftEpochs:
    """The epochs that a dataflow's inputs have left, the last 65,536 of them, by their number.

    >>> left = LeftEpochs()
    >>> left.add(8, 20, 7, 10, 3, False)
    >>> left.epoch(0)
    LeftEpoch(until=8, left_ns=20, epoch=7, began_ns=10, records=3, is_end=False)
    """

    __slots__ = ("_n_places", "_numbers", "first", "n")

    def __init__(self) -> None:
        self.first = 0
        """The number of the eldest that is kept."""
        self.n = 0
        """How many there were: that of the next one."""
        self._n_places = _FEW_LEFT  # a power of two
        self._numbers: Any = array("q", bytes(8 * _WIDTH * _FEW_LEFT))

    def add(
        self, until: int, left_ns: int, epoch: int, began_ns: int, records: int, is_end: bool
    ) -> None:
        """One more; there must be room."""
        at = self._place(self.n)
        self._numbers[at] = until
        self._numbers[at + 1] = left_ns
        self._numbers[at + 2] = epoch
        self._numbers[at + 3] = began_ns
        self._numbers[at + 4] = records
        self._numbers[at + 5] = is_end
        self.n += 1

    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return self.n - self.first == self._n_places

    def make_room(self, wanted: int) -> None:
        """Forget those before the number `wanted`, and more if there are too many."""
        self.first = max(self.first, wanted)
        if not self.is_full():
            return
        if self._n_places == MOST_PENDING:
            self.first += 1
            return
        known = [self.epoch(number) for number in range(self.first, self.n)]
        self.n = self.first
        self._numbers = array("q", bytes(16 * _WIDTH * self._n_places))
        self._n_places *= 2
        for each in known:
            self.add(*each)

    def until(self, number: int) -> int:
        """Before which epoch all are complete, when this one is."""
        until: int = self._numbers[self._place(number)]
        return until

    def left_ns(self, number: int) -> int:
        """When it was left."""
        at: int = self._numbers[self._place(number) + 1]
        return at

    def epoch(self, number: int) -> LeftEpoch:
        """All that is known of it."""
        at = self._place(number)
        return LeftEpoch(
            self._numbers[at],
            self._numbers[at + 1],
            self._numbers[at + 2],
            self._numbers[at + 3],
            self._numbers[at + 4],
            bool(self._numbers[at + 5]),
        )

    def _place(self, number: int) -> int:
        return _WIDTH * (number & (self._n_places - 1))


class ProbeMeter:
    """The frontier at a probe, and how long epochs took from the inputs of this worker to it."""

    __slots__ = (
        "_bounds",
        "_counts",
        "_is_int",
        "_left",
        "address",
        "buckets",
        "count",
        "name",
        "next",
        "on_epoch",
        "sum_ns",
    )

    def __init__(
        self,
        name: str,
        address: str,
        counts: InputFrontier,
        timestamp: Timestamp,
        left: LeftEpochs,
        on_epoch: Callable[[LeftEpoch, int], object] | None = None,
    ) -> None:
        self.on_epoch = on_epoch
        """Called with an epoch that is complete, and the moment."""
        self.name = name
        self.address = address
        self._counts = counts
        self._is_int = timestamp is Int
        self._left = left
        self.next = left.n
        """The number of the eldest epoch that is not complete here."""
        self._bounds = _BUCKETS_NS
        self.buckets: Any = array("q", bytes(8 * (_N_BUCKETS + 1)))
        """Latencies by bucket; the last is of those that are longer than all."""
        self.sum_ns = 0
        self.count = 0

    @property
    def frontier(self) -> list[Any]:
        """The least times that may still come; none when it is done."""
        return self._counts.frontier

    @property
    def waits_since_ns(self) -> int | None:
        """When the eldest epoch was left that is not complete here; None if there is none."""
        return self._left.left_ns(self.next) if self.next < self._left.n else None

    def look(self, now: int = 0) -> None:
        """Time the epochs that are complete now (0: by the clock), when its operator runs.

        It runs whenever its frontier has moved.
        """
        left = self._left
        if self.next < left.first:
            self.next = left.first  # the eldest of too many
        while self.next < left.n and self._is_complete(left.until(self.next)):
            now = now or now_ns()
            latency_ns = now - left.left_ns(self.next)
            bucket = 0
            while bucket < _N_BUCKETS and self._bounds[bucket] < latency_ns:
                bucket += 1
            self.buckets[bucket] += 1
            self.sum_ns += latency_ns
            self.count += 1
            self.next += 1
            if self.on_epoch is not None:
                self.on_epoch(left.epoch(self.next - 1), now)

    def _is_complete(self, until: int) -> bool:
        """Whether no time before the epoch `until` may come any more."""
        if self._is_int:
            return not self._counts.less_than_number(until)
        frontier = self.frontier
        if frontier and type(frontier[0]) is not int:
            return False  # its times are no epochs
        return not frontier or until <= min(frontier)


class EpochMeter:
    """The epochs of one dataflow on one worker: from when its inputs leave them to its probes.

    An epoch begins to be late when the last input of this worker has left it. What is counted is
    each move of the least of them, which in most programs is one epoch.

    >>> from pointstamp.progress.input_frontier import InputFrontier
    >>> epochs, counts = EpochMeter(), InputFrontier(Int, [(0, 1)])
    >>> input = InputMeter("in", "0/1", epochs)
    >>> probe = ProbeMeter("probe", "0/2", counts, Int, epochs.left)
    >>> epochs.inputs.append(input); epochs.probes.append(probe)
    >>> input.move(0); input.move(1); input.move(2)
    >>> counts.change(1, 1); counts.change(0, -1)
    >>> probe.look(); probe.count
    1
    >>> input.close(); counts.change(1, -1)
    >>> probe.look(); probe.count
    3
    """

    __slots__ = ("_has_begun", "_least", "inputs", "is_closed", "left", "probes", "sent", "until")

    def __init__(self) -> None:
        self.inputs: list[InputMeter] = []
        self.probes: list[ProbeMeter] = []
        self.left = LeftEpochs()
        """Those that are complete at not all of the probes, and some that are."""
        self._has_begun = False
        self._least = 0
        """The least epoch at which an input of this worker is, if it has begun."""
        self.until = 0
        """They have left the epochs before this one."""
        self.is_closed = False
        self.sent: dict[int, list[int]] = {}
        """By epoch: when the first record was sent, and how many were; of what notes it."""

    def note_sent(self, epoch: int, n_records: int) -> None:
        """An input of this worker has sent records."""
        if epoch < self.until:
            return  # too late: what was sent at it is counted
        found = self.sent.get(epoch)
        if found is None:
            self.sent[epoch] = [now_ns(), n_records]
        else:
            found[1] += n_records

    def input_moved(self) -> None:
        """An input has gone on, or is closed."""
        try:
            self._take_move()
        except OverflowError:
            return  # epochs of more than 64 bits are not timed

    def _take_move(self) -> None:
        is_open = False
        least = last = 0
        for each in self.inputs:
            if type(each.time) is not int:
                if not each.is_closed:
                    return  # its times are no epochs
                continue
            time = each.time
            last = max(last, time)
            if not each.is_closed and (not is_open or time < least):
                least = time
                is_open = True
        if self.is_closed or (is_open and self._has_begun and least == self._least):
            return
        if is_open:
            if self._has_begun:
                self._leave(self._least, least, False)
            self._least = least
            self._has_begun = True
        elif self._has_begun:
            # The last that they leave is the one in which they were closed.
            self._leave(self._least, 1 + last, True)
            self.is_closed = True

    def _leave(self, epoch: int, until: int, is_end: bool) -> None:
        """The inputs have left the epochs before `until`; the least of them was at `epoch`."""
        if until <= self.until:
            return  # another input was made, which has caught up
        now = now_ns()
        began = now
        n_records = 0
        if self.sent:
            # Mostly it is the one.
            passed = [epoch] if until == epoch + 1 else [e for e in self.sent if e < until]
            for each in passed:
                first, n = self.sent.pop(each, (now, 0))
                began = min(began, first)
                n_records += n
        if self.probes:
            if self.left.is_full():
                self.left.make_room(min([probe.next for probe in self.probes]))
            self.left.add(until, now, max(epoch, self.until), began, n_records, is_end)
        self.until = until


class DataflowMeter:
    """What is counted of one dataflow of a worker."""

    __slots__ = ("busy_ticks", "epochs", "name", "number", "operators", "streams", "throttled")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        """That of its outermost scope."""
        self.name = name
        self.busy_ticks = 0
        self.throttled: ThrottledTime | None = None
        """For how long its sources were held back; None if nothing holds them back."""
        self.operators: list[OperatorMeter] = []
        self.streams: list[StreamMeter] = []
        self.epochs = EpochMeter()

    @property
    def busy_ns(self) -> int:
        """For how long it was visited, its operators and the tracking of progress together."""
        return TICK.ns_of(self.busy_ticks)
