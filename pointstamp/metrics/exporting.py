"""Telemetry of one program: its spans and its metrics, from readings of its workers.

A thread of the process that started the workers asks them every now and then, as a scrape does, and
gives what they answer to the API of OpenTelemetry. What a worker has not been asked for when it
ends, it sends. So an epoch is seen a reading or two after its end, and all are when the program is
over.

A trace is one epoch: a span from its first record, on whichever worker, until all workers have seen
that it is complete, and in it one for each worker. Workers on several machines have clocks of their
own, and so have their spans. A snapshot is a span, and a trace, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context

from pointstamp import __version__
from pointstamp.metrics import sample_requests
from pointstamp.metrics.epoch_assembly import EpochAssembly, WholeEpoch
from pointstamp.metrics.instruments import instruments_of
from pointstamp.metrics.program import MeteredProgram, ProgramSample, ProgramState

if TYPE_CHECKING:
    from pointstamp.metrics.samples import ProcessSample
    from pointstamp.metrics.telemetry import Telemetry

LOGGER = logging.getLogger("pointstamp.metrics")

ANSWER_S = 2.0
"""How long workers may take to answer."""

CLOSE_S = 60.0
"""How long providers may take the rest, at the end of a program."""

EPOCH, PART, SNAPSHOT = "pointstamp.epoch", "pointstamp.epoch.worker", "pointstamp.snapshot"


class TelemetryExport:
    """Gives what a program does to OpenTelemetry, until it is closed.

    Parameters
    ----------
    telemetry : Telemetry
        To which providers, and how often.
    program : MeteredProgram
        Of what.
    name : str
        What it is called, if `telemetry` does not say.
    """

    def __init__(self, telemetry: Telemetry, program: MeteredProgram, name: str) -> None:
        self._telemetry = telemetry
        self._program = program
        self._instruments = instruments_of(telemetry.meter_provider)
        self._name = self._instruments.begin(telemetry.name or name)
        self._spans = ProgramSpans(telemetry, self._name)
        self._assembly = EpochAssembly(program.n_workers)
        self._known: dict[str, int] = {}
        """By the identity of a worker: the last epoch of it that is known here."""
        self._last = ProgramSample(program.n_workers, ProgramState(), ())
        """The last reading."""
        self._gone: list[ProcessSample] = []
        """Of workers that have ended since, or are not in it."""
        self._ended: deque[ProcessSample] = deque()
        """What workers have sent at their ends, and was not taken yet."""
        self._is_over = threading.Event()
        self._is_abandoned = False
        sample_requests.take_last(program.run, self._ended.append)
        self._thread = threading.Thread(target=self._run, name="pointstamp-telemetry", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give what there is, and end.

        No thread is left when it returns, unless it was abandoned, or an exporter hangs.
        """
        if self._is_abandoned:
            return
        self._is_over.set()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            LOGGER.warning(
                "telemetry of %r was not taken by its providers within %g s, and is not waited for",
                *(self._name, CLOSE_S),
            )

    def abandon(self) -> None:
        """The same, an interval after it returns; takes no lock, so the collector may call it."""
        self._is_abandoned = True

    def _run(self) -> None:
        try:
            while not (self._is_over.wait(self._telemetry.interval_s) or self._is_abandoned):
                self._attempt(self._read)
        finally:
            sample_requests.forget_last(self._program.run)
            self._attempt(self._end)
            self._instruments.end(self._name)

    def _attempt(self, work: Any) -> None:
        try:
            work()
        except Exception:  # an exporter of the user's may raise what it likes
            LOGGER.exception("telemetry of %r could not be given to its providers", self._name)

    def _read(self) -> None:
        """Ask the workers, and give what they answer."""
        sample = self._program.sample(ANSWER_S, dict(self._known))
        self._take_ended()
        self._last = self._with_new_epochs(sample)
        self._give(self._last, self._assembly.take(self._last.workers))

    def _end(self) -> None:
        """Give what the workers have sent at their ends."""
        self._take_ended()
        self._last = replace(self._last, state=self._program.state())
        self._give(self._last, self._assembly.rest())

    def _take_ended(self) -> None:
        while self._ended:
            process = self._ended.popleft()
            sample = self._with_new_epochs(replace(self._last, processes=(process,)))
            for worker in sample.workers:
                self._assembly.add(worker)
            self._gone.append(process)

    def _give(self, sample: ProgramSample, epochs: Sequence[WholeEpoch]) -> None:
        # A worker that has ended has its last numbers, unless another one is there in its place.
        indices = {worker.index for worker in sample.workers}
        there = {worker.identity for worker in sample.workers}
        self._gone = [
            process
            for process in self._gone
            if all(each.identity in there or each.index not in indices for each in process.workers)
        ]
        sample = replace(sample, processes=(*sample.processes, *self._gone))
        self._instruments.show(self._name, sample)
        self._spans.give_epochs(epochs)
        for process in sample.processes:
            self._spans.give_snapshots(process)

    def _with_new_epochs(self, sample: ProgramSample) -> ProgramSample:
        """The same, without the epochs that are known already; these are recorded now."""
        processes = []
        for process in sample.processes:
            workers = []
            for worker in process.workers:
                known = self._known.get(worker.identity, 0)
                epochs = tuple(each for each in worker.epochs if each.number > known)
                for each in epochs:
                    self._instruments.record(self._name, worker.index, each)
                if epochs:
                    self._known[worker.identity] = epochs[-1].number
                workers.append(replace(worker, epochs=epochs))
            processes.append(replace(process, workers=tuple(workers)))
        return replace(sample, processes=tuple(processes))


class ProgramSpans:
    """The spans of one program.

    Parameters
    ----------
    telemetry : Telemetry
    name : str
        What the program is called.
    """

    def __init__(self, telemetry: Telemetry, name: str) -> None:
        self._tracer = trace.get_tracer("pointstamp", __version__, telemetry.tracer_provider)
        self._most_epochs = telemetry.most_epochs
        self._name = name
        self._began_ns = time.time_ns()
        self._snapshots: dict[tuple[str, int, str], int] = {}
        """By machine, process and checkpoint: the last snapshot that is known here."""
        here = trace.get_current_span().get_span_context()
        self._links = [trace.Link(here)] if here.is_valid else []
        """To the span in which the program was started, if it was started in one."""

    def give_epochs(self, epochs: Iterable[WholeEpoch]) -> None:
        """Make spans of the slowest of these."""
        slowest = nlargest(self._most_epochs, epochs, lambda each: each.ended_ns - each.began_ns)
        for each in sorted(slowest, key=lambda each: each.ended_ns):
            self._give_epoch(each)

    def _give_epoch(self, epoch: WholeEpoch) -> None:
        where: dict[str, str | int] = {
            "pointstamp.program": self._name,
            "pointstamp.dataflow": epoch.any.dataflow,
            "pointstamp.probe": epoch.any.probe,
            "pointstamp.epoch": epoch.epoch,
        }
        whole = self._tracer.start_span(
            EPOCH,
            Context(),
            attributes={
                **where,
                "pointstamp.records": epoch.records,
                "pointstamp.workers": len(epoch.parts),
            },
            links=self._links,
            start_time=epoch.began_ns,
        )
        if whole.is_recording():  # else it is left out, and so are its parts
            within = trace.set_span_in_context(whole, Context())
            for worker, part in sorted(epoch.parts.items()):
                span = self._tracer.start_span(
                    PART,
                    within,
                    attributes={
                        **where,
                        "pointstamp.worker": worker,
                        "pointstamp.records": part.records,
                    },
                    start_time=part.began_ns,
                )
                span.add_event("inputs left the epoch", timestamp=part.left_ns)
                span.end(part.ended_ns)
        whole.end(epoch.ended_ns)

    def give_snapshots(self, process: ProcessSample) -> None:
        """Make spans of those of a process that are not known here."""
        for each in process.snapshots:
            key = process.machine, process.process, each.place
            # A process may have committed others before, of other programs.
            if each.number <= self._snapshots.get(key, 0) or each.ended_ns < self._began_ns:
                continue
            self._snapshots[key] = each.number
            span = self._tracer.start_span(
                SNAPSHOT,
                Context(),
                attributes={
                    "pointstamp.program": self._name,
                    "pointstamp.checkpoint": each.place,
                    "pointstamp.epoch": each.epoch,
                    "pointstamp.bytes": each.n_bytes,
                },
                links=self._links,
                start_time=each.began_ns,
            )
            span.end(each.ended_ns)
