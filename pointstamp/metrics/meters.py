"""Counts of one worker, by operator, stream, input and probe: plain numbers, written by the worker.

Another thread reads them while the worker goes on: each is a number of its own, and nothing needs
two of them to fit together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

LATENCY_BUCKETS_S = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper ends of the buckets of epochs' latencies."""

MOST_PENDING = 65_536
"""So many epochs that are not complete are timed at a probe; of more, the eldest are not."""

_BUCKETS_NS = tuple(int(bound * 1e9) for bound in LATENCY_BUCKETS_S)


class OperatorMeter:
    """How often an operator was active, and for how long."""

    __slots__ = ("activations", "address", "busy_ns", "name", "probe")

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.activations = 0
        self.busy_ns = 0
        self.probe: ProbeMeter | None = None
        """If the operator is one."""


class StreamMeter:
    """What went through a stream between two operators: sent by this worker, taken by it.

    >>> meter = StreamMeter("Map", "Probe", "0/3", "pipeline", lambda batch, n: 8 * n)
    >>> meter.sent([1, 2, 3])
    >>> meter.records, meter.batches, meter.n_bytes
    (3, 1, 24)
    """

    __slots__ = (
        "batches",
        "n_bytes",
        "pact",
        "place",
        "records",
        "size",
        "source",
        "taken_batches",
        "taken_records",
        "target",
    )

    def __init__(self, source: str, target: str, place: str, pact: str, size: Any) -> None:
        self.source = source
        self.target = target
        self.place = place
        """The address of the target, and which of its inputs."""
        self.pact = pact
        self.size = size
        """`size(batch, n_records)`: how many bytes."""
        self.records = 0
        self.batches = 0
        self.n_bytes = 0
        self.taken_records = 0
        self.taken_batches = 0

    def sent(self, batch: Any, n_records: int | None = None) -> None:
        """This worker has sent a batch, to any worker."""
        n = len(batch) if n_records is None else n_records
        self.records += n
        self.batches += 1
        self.n_bytes += self.size(batch, n)

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


class ProbeMeter:
    """The frontier at a probe, and how long epochs took from the inputs of this worker to it."""

    __slots__ = ("address", "buckets", "count", "frontier", "name", "on_epoch", "pending", "sum_ns")

    def __init__(
        self,
        name: str,
        address: str,
        frontier: list[Any],
        on_epoch: Callable[[LeftEpoch, int], object] | None = None,
    ) -> None:
        self.on_epoch = on_epoch
        """Called with an epoch that is complete, and the moment."""
        self.name = name
        self.address = address
        self.frontier = frontier
        """The least times that may still come; none when it is done."""
        self.pending: deque[LeftEpoch] = deque(maxlen=MOST_PENDING)
        """Those that are not complete here."""
        self.buckets = [0] * (len(_BUCKETS_NS) + 1)
        """Latencies by bucket; the last is of those that are longer than all."""
        self.sum_ns = 0
        self.count = 0

    def moved(self, frontier: list[Any], now: int) -> None:
        """The frontier is another one, at this moment: time the epochs that are complete by it."""
        self.frontier = frontier
        pending = self.pending
        if not pending:
            return
        least = min(frontier) if frontier and type(frontier[0]) is int else None
        if frontier and least is None:
            return  # its times are no epochs
        while pending:
            left = pending[0]
            if least is not None and left.until > least:
                break
            pending.popleft()
            latency_ns = now - left.left_ns
            self.buckets[bisect_left(_BUCKETS_NS, latency_ns)] += 1
            self.sum_ns += latency_ns
            self.count += 1
            if self.on_epoch is not None:
                self.on_epoch(left, now)


class EpochMeter:
    """The epochs of one dataflow on one worker: from when its inputs leave them to its probes.

    An epoch begins to be late when the last input of this worker has left it. What is counted is
    each move of the least of them, which in most programs is one epoch.

    >>> epochs = EpochMeter()
    >>> input, probe = InputMeter("in", "0/1", epochs), ProbeMeter("probe", "0/2", [0])
    >>> epochs.inputs.append(input); epochs.probes.append(probe)
    >>> input.move(0); input.move(1); input.move(2)
    >>> probe.moved([1], perf_counter_ns()); probe.count
    1
    >>> input.close(); probe.moved([], perf_counter_ns()); probe.count
    3
    """

    __slots__ = ("inputs", "is_closed", "least", "probes", "sent", "until")

    def __init__(self) -> None:
        self.inputs: list[InputMeter] = []
        self.probes: list[ProbeMeter] = []
        self.least: int | None = None
        """The least epoch at which an input of this worker is."""
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
            self.sent[epoch] = [perf_counter_ns(), n_records]
        else:
            found[1] += n_records

    def input_moved(self) -> None:
        """An input has gone on, or is closed."""
        least: int | None = None
        for each in self.inputs:
            if not each.is_closed:
                if type(each.time) is not int:
                    return  # its times are no epochs
                if least is None or each.time < least:
                    least = each.time
        if least == self.least or self.is_closed:
            return
        if self.least is not None:
            if least is None:  # the last that they leave is the one in which they were closed
                times = [each.time for each in self.inputs if type(each.time) is int]
                self._left(self.least, 1 + max(times), is_end=True)
            else:
                self._left(self.least, least, is_end=False)
        self.least, self.is_closed = least, least is None

    def _left(self, epoch: int, until: int, *, is_end: bool) -> None:
        """The inputs have left the epochs before `until`; the least of them was at `epoch`."""
        if until <= self.until:
            return  # another input was made, which has caught up
        now = perf_counter_ns()
        began, n_records = now, 0
        if self.sent:
            # Mostly it is the one.
            passed = [epoch] if until == epoch + 1 else [e for e in self.sent if e < until]
            for each in passed:
                first, n = self.sent.pop(each, (now, 0))
                began, n_records = min(began, first), n_records + n
        left = LeftEpoch(until, now, max(epoch, self.until), began, n_records, is_end)
        self.until = until
        for probe in self.probes:
            probe.pending.append(left)


class DataflowMeter:
    """What is counted of one dataflow of a worker."""

    __slots__ = ("busy_ns", "epochs", "name", "number", "operators", "streams", "throttled_ns")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        """That of its outermost scope."""
        self.name = name
        self.busy_ns = 0
        """For how long it was visited, its operators and the tracking of progress together."""
        self.throttled_ns = 0
        """For how long its sources were held back, when that was last read."""
        self.operators: list[OperatorMeter] = []
        self.streams: list[StreamMeter] = []
        self.epochs = EpochMeter()
