"""Collects the counts of all workers of a run, of this process and over control connections.

As `communication.explanations` does for what workers wait for: the process that started the
workers asks each over its control connection, whose thread answers while the worker goes on.
"""

from __future__ import annotations

import logging
import os
import time
from _socket import gethostname
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pointstamp.checkpoint import snapshot_counts
from pointstamp.communication import explanations, publishing
from pointstamp.errors import PointstampError
from pointstamp.metrics.resident_memory import resident_bytes
from pointstamp.metrics.samples import (
    CheckpointSample,
    DataflowSample,
    ProcessSample,
    SnapshotSample,
    WorkerSample,
    of_dataflow,
)

if TYPE_CHECKING:
    from pointstamp.metrics.worker_meter import WorkerMeter

LOGGER = logging.getLogger("pointstamp.metrics")

N_READINGS = 20
"""How often a worker that goes on meanwhile is read, before that is given up."""


@dataclass(frozen=True)
class CollectMetrics:
    """A request, to a process with workers of a run: the answer is a `ProcessSample`.

    Attributes
    ----------
    after : mapping, optional
        Have the epochs of each worker that have ended after a number, by its identity, and of
        others all; without it none.
    """

    run: str
    after: Mapping[str, int] | None = None


@dataclass(frozen=True)
class EndedWorker:
    """A message of a worker that ends: what it has counted, and the epochs not asked for yet."""

    run: str
    sample: ProcessSample


_meters: dict[int, WorkerMeter] = {}
"""By identity: those of the workers of this process."""


def add(meter: WorkerMeter) -> None:
    """From now on this process answers for this worker, too."""
    _meters[id(meter)] = meter


def remove(meter: WorkerMeter) -> None:
    """The worker has ended."""
    _meters.pop(id(meter), None)


def own_sample(run: str, after: Mapping[str, int] | None = None) -> ProcessSample | None:
    """The counts of the workers of a run in this process; None if there is none."""
    meters = [meter for meter in list(_meters.values()) if meter.run == run]
    return _of_process(meters, after) if meters else None


def _of_process(meters: list[WorkerMeter], after: Mapping[str, int] | None) -> ProcessSample:
    workers = []
    for meter in meters:
        sample = _steady(meter)
        recorder = meter.recorder
        if after is not None and recorder is not None:
            # Read after the frontiers, which are not ahead of them so.
            epochs = recorder.after(after.get(recorder.identity, 0))
            sample = replace(sample, identity=recorder.identity, epochs=tuple(epochs))
        workers.append(sample)
    snapshots = () if after is None else _snapshots()
    of_process = os.getpid(), gethostname(), resident_bytes()
    return ProcessSample(*of_process, tuple(workers), _checkpoints(), snapshots)


def _snapshots() -> tuple[SnapshotSample, ...]:
    """The last that this process has committed, with moments that other machines know."""
    since_1970_ns = time.time_ns() - time.monotonic_ns()
    found = []
    for place, each in snapshot_counts.recent():
        ended_ns = since_1970_ns + int(each.at_s * 1e9)
        began_ns = ended_ns - int(each.seconds * 1e9)
        found.append(
            SnapshotSample(place, each.epoch, each.number, began_ns, ended_ns, each.n_bytes)
        )
    return tuple(found)


def _checkpoints() -> tuple[CheckpointSample, ...]:
    """The snapshots that this process has committed."""
    now = time.monotonic()
    return tuple(
        CheckpointSample(
            *(place, each.epoch, each.number, now - each.at_s, each.n_bytes, each.seconds)
        )
        for place, each in snapshot_counts.committed().items()
    )


def collect(
    run: str, timeout_s: float, after: Mapping[str, int] | None = None
) -> list[ProcessSample]:
    """The counts of all workers of a run that answer in time; one for each process."""
    until = time.monotonic() + timeout_s
    asked: list[Future[Any]] = [
        connection.request(CollectMetrics(run, after))
        for server in explanations.servers()
        for connection in server.workers()
    ]
    found: dict[tuple[str, int], ProcessSample] = {}
    own = own_sample(run, after)
    samples = [own, *(_answer(future, until) for future in asked)]
    for sample in samples:
        if sample is not None:
            found[sample.machine, sample.process] = sample
    return list(found.values())


_takers: dict[str, Callable[[ProcessSample], object]] = {}
"""By run: what takes the last counts of its workers, in the process that started them."""


def take_last(run: str, taker: Callable[[ProcessSample], object]) -> None:
    """Have `taker` called, by any thread, with the last counts of each worker of a run."""
    _takers[run] = taker


def forget_last(run: str) -> None:
    """Take them no more."""
    _takers.pop(run, None)


def publish_last(meter: WorkerMeter) -> None:
    """A worker ends: send what it has counted to the process that started it."""
    assert meter.recorder is not None
    sample = _of_process([meter], {meter.recorder.identity: meter.recorder.known})
    if meter.run in _takers:
        _takers[meter.run](sample)  # which is this process
    else:
        publishing.publish(EndedWorker(meter.run, sample))


def _answer(future: Future[Any], until: float) -> ProcessSample | None:
    try:
        sample: ProcessSample | None = future.result(max(0.0, until - time.monotonic()))
    except (TimeoutError, PointstampError):
        return None  # it has just begun, is of another program, is busy, or has ended
    except Exception:
        LOGGER.exception("the counts of a process with workers cannot be read")
        return None
    return sample


def _steady(meter: WorkerMeter) -> WorkerSample:
    """The counts of a worker, if need be after some attempts: it goes on meanwhile."""
    for _ in range(N_READINGS - 1):
        try:
            return _sample(meter)
        except RuntimeError:
            continue  # a dictionary changed its size while it was read
    return _sample(meter)


def _sample(meter: WorkerMeter) -> WorkerSample:
    worker, now = meter.worker(), perf_counter_ns()
    memory = None if worker is None else worker.environment.memory
    return WorkerSample(
        meter.index,
        meter.peers,
        _is_ready(worker, bool(meter.dataflows)),
        0 if worker is None else worker.n_steps,
        meter.parks,
        meter.parked_ns,
        now - meter.began_ns,
        None if memory is None else memory.held_bytes,
        None if memory is None else memory.spilled_bytes,
        {} if worker is None else worker.dropped,
        tuple(_dataflows(meter, worker, now)),
    )


def _dataflows(meter: WorkerMeter, worker: Any, now_ns: int) -> list[DataflowSample]:
    alive: dict[int, Any] = {}
    built = None
    if worker is not None:
        alive = {each.scopes[0]: each for each in list(worker._dataflows.values()) if each.scopes}
        built = max(meter.dataflows, default=None) if worker._is_building else None
    found = []
    for number, dataflow in list(meter.dataflows.items()):
        is_complete = number not in alive and number != built
        found.append(of_dataflow(dataflow, now_ns, is_complete=is_complete))
    return found


def _is_ready(worker: Any, has_built: bool) -> bool:
    if worker is None or not has_built or worker._is_building:
        return False
    return all(len(each.agreed) >= worker.peers - 1 for each in list(worker._dataflows.values()))


def _answer_for_workers(connection: object, message: CollectMetrics) -> ProcessSample | None:
    return own_sample(message.run, message.after)


def _take_ended(connection: object, message: EndedWorker) -> None:
    taker = _takers.get(message.run)
    if taker is not None:
        taker(message.sample)


publishing.handlers[CollectMetrics] = _answer_for_workers
publishing.handlers[EndedWorker] = _take_ended
