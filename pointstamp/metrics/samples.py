"""What a scrape gets of each process with workers: numbers, which travel by pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pointstamp.metrics.meters import DataflowMeter, InputMeter, ProbeMeter


@dataclass(frozen=True)
class OperatorSample:
    """See `OperatorMeter`."""

    name: str
    address: str
    activations: int
    busy_ns: int


@dataclass(frozen=True)
class StreamSample:
    """See `StreamMeter`."""

    source: str
    target: str
    place: str
    records: int
    batches: int
    n_bytes: int
    taken_records: int
    taken_batches: int


@dataclass(frozen=True)
class InputSample:
    """See `InputMeter`; without a time, if times are no integers, or the input is closed."""

    name: str
    address: str
    time: int | None
    is_closed: bool


@dataclass(frozen=True)
class ProbeSample:
    """See `ProbeMeter`."""

    name: str
    address: str
    frontier: int | None
    """The least time that may still come; None if none may, or times are no integers."""
    is_done: bool
    lag_epochs: int | None
    """How many epochs the least of this worker's inputs is ahead of it."""
    lag_ns: int
    """Since when the eldest epoch is waited for that those inputs have left."""
    buckets: tuple[int, ...]
    sum_ns: int
    count: int


@dataclass(frozen=True)
class DataflowSample:
    """See `DataflowMeter`."""

    name: str
    number: int
    is_complete: bool
    busy_ns: int
    throttled_ns: int
    operators: tuple[OperatorSample, ...]
    streams: tuple[StreamSample, ...]
    inputs: tuple[InputSample, ...]
    probes: tuple[ProbeSample, ...]


class EndedEpoch(NamedTuple):
    """An epoch that is complete at a probe of one worker.

    Attributes
    ----------
    number : int
        Of those that this worker has recorded, from 1.
    dataflow, probe : str
    place : str
        The address of the probe.
    epoch : int
    began_ns, left_ns, ended_ns : int
        Nanoseconds since 1970: of the first record, of when the inputs left it, of its end.
    records : int
        How many the inputs of this worker have sent.
    """

    number: int
    dataflow: str
    probe: str
    place: str
    epoch: int
    began_ns: int
    left_ns: int
    ended_ns: int
    records: int


@dataclass(frozen=True)
class WorkerSample:
    """What one worker has counted.

    Attributes
    ----------
    is_ready : bool
        Whether it has built a dataflow, and all that it has built its peers have built, too.
    held_bytes, spilled_bytes : int
        Of its budget of memory; None without one.
    identity : str
        Of a worker that records its epochs; one that was started again has another.
    epochs : tuple of EndedEpoch
        Those that have ended since the last reading, if that was asked for.
    """

    index: int
    peers: int
    is_ready: bool
    steps: int
    parks: int
    parked_ns: int
    age_ns: int
    held_bytes: int | None
    spilled_bytes: int | None
    dropped: dict[str, int]
    dataflows: tuple[DataflowSample, ...]
    identity: str = ""
    epochs: tuple[EndedEpoch, ...] = ()


@dataclass(frozen=True)
class CheckpointSample:
    """The snapshots that a process has committed to one checkpoint.

    Attributes
    ----------
    age_s, n_bytes, seconds
        Of the last: since when it is there, how much was written for it, and how long it took.
    """

    place: str
    epoch: int
    snapshots: int
    age_s: float
    n_bytes: int
    seconds: float


@dataclass(frozen=True)
class SnapshotSample:
    """A snapshot that a process has committed.

    Attributes
    ----------
    place : str
        The checkpoint.
    epoch : int
    number : int
        Of those that this process has committed there, from 1.
    began_ns, ended_ns : int
        Nanoseconds since 1970.
    n_bytes : int
        What was written for it.
    """

    place: str
    epoch: int
    number: int
    began_ns: int
    ended_ns: int
    n_bytes: int


@dataclass(frozen=True)
class ProcessSample:
    """What one process with workers gives."""

    process: int
    machine: str
    resident_bytes: int | None
    workers: tuple[WorkerSample, ...]
    checkpoints: tuple[CheckpointSample, ...] = ()
    snapshots: tuple[SnapshotSample, ...] = ()
    """The last ones, where epochs were asked for, too."""


def of_dataflow(meter: DataflowMeter, now_ns: int, *, is_complete: bool) -> DataflowSample:
    """The counts of a dataflow as they are now."""
    inputs = tuple(_of_input(each) for each in list(meter.epochs.inputs))
    ahead = [each.time for each in inputs if each.time is not None]
    least = min(ahead) if ahead else None
    return DataflowSample(
        meter.name,
        meter.number,
        is_complete,
        meter.busy_ns,
        0 if meter.throttled is None else meter.throttled.until(now_ns),
        tuple(
            OperatorSample(each.name, each.address, each.activations, each.busy_ns)
            for each in list(meter.operators)
        ),
        tuple(
            StreamSample(
                each.source,
                each.target,
                each.place,
                each.records,
                each.batches,
                each.n_bytes,
                each.taken_records,
                each.taken_batches,
            )
            for each in list(meter.streams)
        ),
        inputs,
        tuple(_of_probe(each, least, now_ns) for each in list(meter.epochs.probes)),
    )


def _of_input(meter: InputMeter) -> InputSample:
    time = None if meter.is_closed else _epoch(meter.time)
    return InputSample(meter.name, meter.address, time, meter.is_closed)


def _of_probe(meter: ProbeMeter, least_input: int | None, now_ns: int) -> ProbeSample:
    frontier = meter.frontier
    times = [time for time in map(_epoch, frontier) if time is not None]
    least = min(times) if times else None
    since_ns = meter.waits_since_ns
    return ProbeSample(
        meter.name,
        meter.address,
        least,
        not frontier,
        None if least is None or least_input is None else max(0, least_input - least),
        0 if since_ns is None else max(0, now_ns - since_ns),
        tuple(meter.buckets),
        meter.sum_ns,
        meter.count,
    )


def _epoch(time: Any) -> int | None:
    return time if type(time) is int else None
