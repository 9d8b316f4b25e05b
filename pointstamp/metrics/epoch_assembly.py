"""The parts of each epoch, one of each worker, put together.

Each worker reports the epochs that it has seen the end of, some earlier than others. An epoch is
whole when the probe of every worker has passed it: nothing of it is reported after that. As a
worker may be read between having passed an epoch and having noted it, it is given a reading later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pointstamp.metrics.samples import DataflowSample, EndedEpoch, WorkerSample

MOST_WAITING = 4096
"""So many epochs of a probe wait for the other workers at most."""

Place = tuple[str, str]
"""A dataflow, and the address of a probe in it."""


@dataclass(frozen=True)
class WholeEpoch:
    """An epoch on all workers.

    >>> parts = {0: EndedEpoch(1, "d", "p", "0/1", 7, 10, 20, 40, 5),
    ...          1: EndedEpoch(1, "d", "p", "0/1", 7, 12, 15, 41, 3)}
    >>> epoch = WholeEpoch(parts)
    >>> epoch.epoch, epoch.began_ns, epoch.ended_ns, epoch.records
    (7, 10, 41, 8)
    """

    parts: dict[int, EndedEpoch]
    """By worker."""

    @property
    def any(self) -> EndedEpoch:
        """One of its parts: where they were, and which epoch it is, all say alike."""
        return next(iter(self.parts.values()))

    @property
    def epoch(self) -> int:
        """Which it is."""
        return self.any.epoch

    @property
    def began_ns(self) -> int:
        """When the first record was sent, on any worker."""
        return min(each.began_ns for each in self.parts.values())

    @property
    def ended_ns(self) -> int:
        """When the last worker saw that it is complete."""
        return max(each.ended_ns for each in self.parts.values())

    @property
    def records(self) -> int:
        """How many were sent, by all workers."""
        return sum(each.records for each in self.parts.values())


@dataclass
class _WorkerReports:
    """How far the probes of a worker are."""

    identity: str
    passed: dict[Place, float] = field(default_factory=dict)
    """By probe, before which epoch all are complete, as of the reading before."""
    next: dict[Place, float] = field(default_factory=dict)
    """The same, as of the last one."""


class EpochAssembly:
    """Takes what workers report, and gives the epochs that are whole.

    Parameters
    ----------
    n_workers : int
        How many report.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._reports: dict[int, _WorkerReports] = {}
        self._parts: dict[Place, dict[int, dict[int, EndedEpoch]]] = {}
        """By place, epoch and worker."""

    def take(self, samples: Iterable[WorkerSample]) -> list[WholeEpoch]:
        """What workers have reported now; the epochs that are whole, as of the reading before."""
        for sample in samples:
            reports = self._reports.get(sample.index)
            if reports is None or reports.identity != sample.identity:
                reports = self._reports[sample.index] = _WorkerReports(sample.identity)
            reports.passed, reports.next = reports.next, _passed(sample.dataflows)
            self.add(sample)
        return list(self._whole())

    def add(self, sample: WorkerSample) -> None:
        """The epochs that a worker has reported."""
        for each in sample.epochs:
            of_place = self._parts.setdefault((each.dataflow, each.place), {})
            of_place.setdefault(each.epoch, {})[sample.index] = each

    def rest(self) -> list[WholeEpoch]:
        """Those that are left: the workers report nothing more."""
        found = [
            WholeEpoch(parts) for of_place in self._parts.values() for parts in of_place.values()
        ]
        self._parts.clear()
        return found

    def _whole(self) -> Iterator[WholeEpoch]:
        if len(self._reports) < self._n_workers:
            return
        for place, of_place in self._parts.items():
            passed = min(each.passed.get(place, -1) for each in self._reports.values())
            whole = [epoch for epoch in of_place if epoch < passed]
            excess = len(of_place) - len(whole) - MOST_WAITING
            if excess > 0:  # a worker never answers: as they are
                whole += sorted(of_place.keys() - whole)[:excess]
            for epoch in whole:
                yield WholeEpoch(of_place.pop(epoch))


def _passed(dataflows: Iterable[DataflowSample]) -> dict[Place, float]:
    """By probe: before which epoch all are complete there."""
    found: dict[Place, float] = {}
    for dataflow in dataflows:
        for probe in dataflow.probes:
            if probe.is_done:
                found[dataflow.name, probe.address] = math.inf
            elif probe.frontier is not None:
                found[dataflow.name, probe.address] = probe.frontier
    return found
