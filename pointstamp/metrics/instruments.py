"""The metrics of programs as instruments of OpenTelemetry.

Each name of `/metrics` is an instrument that is observed: when a provider collects, it is given the
numbers of the last reading. Latencies are a histogram, in which each epoch is recorded. A provider
has one set of instruments for all programs of this process, which the attribute "program" keeps
apart: a second instrument of the same name would be ignored.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from pointstamp import __version__
from pointstamp.metrics.families import (
    COUNTER,
    LATENCY,
    LATENCY_HELP,
    PROBE_LABELS,
    MetricFamily,
    ProgramFamilies,
    S,
)
from pointstamp.metrics.meters import LATENCY_BUCKETS_S
from pointstamp.metrics.program import ProgramSample, ProgramState
from pointstamp.metrics.samples import EndedEpoch

PREFIX = "pointstamp."

MOST_ENDED = 16
"""Of so many programs that have ended the last numbers stay, for a provider that collects later."""


class ProgramInstruments:
    """The instruments of one meter.

    Parameters
    ----------
    meter : Meter
        Of the API of OpenTelemetry.
    """

    def __init__(self, meter: Meter) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._shown: dict[str, dict[str, MetricFamily]] = {}
        """By program, and by the name of a metric."""
        for family in ProgramFamilies(ProgramSample(0, ProgramState(), ())).all():
            make = (
                meter.create_observable_counter
                if family.kind == COUNTER
                else meter.create_observable_gauge
            )
            observe: Callable[[CallbackOptions], Iterable[Observation]]
            observe = partial(self._observe, family.name)
            make(PREFIX + family.name, [observe], _unit(family.name), family.what)
        self._latency = meter.create_histogram(
            PREFIX + LATENCY,
            "s",
            LATENCY_HELP,
            explicit_bucket_boundaries_advisory=LATENCY_BUCKETS_S,
        )

    def begin(self, name: str) -> str:
        """A program begins; what it is called, which is another name if one of this name runs."""
        with self._lock:
            n, program = 1, name
            while program in self._running:
                n += 1
                program = f"{name}-{n}"
            self._running.add(program)
            return program

    def end(self, program: str) -> None:
        """It has ended; its last numbers stay, like those of a counter that nothing counts in."""
        with self._lock:
            self._running.discard(program)
            ended = [each for each in self._shown if each not in self._running]
            for each in ended[:-MOST_ENDED]:
                del self._shown[each]

    def show(self, program: str, sample: ProgramSample) -> None:
        """The numbers of a program, from now on."""
        families = {each.name: each for each in ProgramFamilies(sample).all()}
        with self._lock:
            self._shown.pop(program, None)
            self._shown[program] = families

    def record(self, program: str, worker: int, epoch: EndedEpoch) -> None:
        """The latency of an epoch on a worker."""
        where = str(worker), epoch.dataflow, epoch.probe, epoch.place
        attributes = {"program": program, **dict(zip(PROBE_LABELS, where, strict=True))}
        self._latency.record((epoch.ended_ns - epoch.left_ns) * S, attributes)

    def _observe(self, name: str, options: CallbackOptions) -> Iterator[Observation]:
        with self._lock:
            shown = [(program, families[name]) for program, families in self._shown.items()]
        for program, family in shown:
            for values, number in family.rows:
                attributes = dict(zip(family.labels, values, strict=True))
                yield Observation(number, {"program": program, **attributes})


_of_providers: weakref.WeakKeyDictionary[Any, ProgramInstruments] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def instruments_of(provider: MeterProvider | None) -> ProgramInstruments:
    """The instruments of a provider; of the global one, if none is given."""
    # Until a program has set the global provider there is one in its place, which all that was made
    # by it follows: so these are kept by this function, which stays the same.
    key = instruments_of if provider is None else provider
    with _making:
        found = _of_providers.get(key)
        if found is None:
            meter = metrics.get_meter("pointstamp", __version__, provider)
            found = _of_providers[key] = ProgramInstruments(meter)
        return found


def _unit(name: str) -> str:
    """By the names that metrics of Prometheus have.

    >>> _unit("operator_seconds"), _unit("worker_held_bytes"), _unit("workers")
    ('s', 'By', '1')
    """
    return {"seconds": "s", "bytes": "By"}.get(name.rpartition("_")[2], "1")
