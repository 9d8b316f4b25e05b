"""What a scrape gets of each process with workers: numbers, which travel by pickle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True)
class WorkerSample:
    """What one worker has counted.

    Attributes
    ----------
    is_ready : bool
        Whether it has built a dataflow, and all that it has built its peers have built, too.
    held_bytes, spilled_bytes : int
        Of its budget of memory; None without one.
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
class ProcessSample:
    """What one process with workers gives."""

    process: int
    machine: str
    resident_bytes: int | None
    workers: tuple[WorkerSample, ...]
    checkpoints: tuple[CheckpointSample, ...] = field(default=())


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
        meter.throttled_ns,
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
    eldest = next(_first(meter), None)
    return ProbeSample(
        meter.name,
        meter.address,
        least,
        not frontier,
        None if least is None or least_input is None else max(0, least_input - least),
        0 if eldest is None else max(0, now_ns - eldest[1]),
        tuple(meter.buckets),
        meter.sum_ns,
        meter.count,
    )


def _first(meter: ProbeMeter) -> Iterator[Any]:
    try:
        yield meter.pending[0]
    except IndexError:
        return  # none, or the worker has just taken it


def _epoch(time: Any) -> int | None:
    return time if type(time) is int else None
