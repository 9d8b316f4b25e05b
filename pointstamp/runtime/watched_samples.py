"""Samples of what a worker does, taken from outside by a thread while something watches.

The engine keeps no clock of its operators, so that running them costs no look at one. What each
takes is estimated: every `EVERY_S` a thread looks which operator the worker is in, at which line
of the program, or that it is parked. A worker that is at work in Python lets another thread look
within 5 ms (`sys.getswitchinterval`); in a long call of compiled code it is seen at its end.

Epochs are sampled, too. An input's times and those of the probes are read in the worker's own
steps, for `BURST_S` in each second at most and until `BURST_EPOCHS` have ended; and by the thread
all the time, which is enough for those that last longer than `EVERY_S`.

The thread ends when nothing has asked for a while, and with the last worker. Nothing here changes
what a worker does, but that it does not park during a burst.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.operator import Operator
from pointstamp.dataflow.program_lines import is_own
from pointstamp.runtime.watched_structure import WatchedScope, watched_scopes

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker

EVERY_S = 0.01
IDLE_S = 10.0
"""Without a question for so long, the thread ends."""
BURST_S = 0.01
BURST_EVERY_S = 1.0
BURST_EPOCHS = 200
N_SEGMENTS = 4096
N_LATENCIES = 4096

PARKED, PROGRAM, PROGRESS = "parked", "program", "progress"
"""What a worker does where it is in no operator; else that has the address of one."""

Segment = tuple[float, float, str]
"""From, to, in seconds since 1970, and what."""

_READING = (RuntimeError, ValueError, KeyError, AttributeError, IndexError, TypeError)
"""What reading a worker may raise that goes on meanwhile."""


class WorkerSamples:
    """What was seen of one worker.

    Attributes
    ----------
    n_samples : Counter
        How often it was seen at what; addresses of operators among that.
    lines : Counter
        By (address of an operator, "file:line"), how often it was seen there.
    n_ended : int
        How many epochs were seen to end. Those between two looks count, too.
    """

    def __init__(self, worker: Worker, thread: int) -> None:
        self.worker = weakref.ref(worker)
        self.n_samples: Counter[str] = Counter()
        self.lines: Counter[tuple[str, str]] = Counter()
        self.segments: deque[Segment] = deque(maxlen=N_SEGMENTS)
        self.latencies: deque[tuple[float, float]] = deque(maxlen=N_LATENCIES)
        """(when it ended, seconds), of epochs that were seen to begin and to end."""
        self.n_ended = 0
        self._thread = thread
        self._known: dict[int, tuple[list[WatchedScope], list[tuple[str, Operator]]]] = {}
        self._epochs: dict[int, _EpochSamples] = {}
        self._burst_ends_s = 0.0
        self._next_burst_s = 0.0

    def look(self, now: float) -> None:
        """Take a sample."""
        worker = self.worker()
        if worker is None:
            return
        what = self._doing(worker)
        self.n_samples[what] += 1
        if self.segments and self.segments[-1][2] == what and now - self.segments[-1][1] < 0.5:
            self.segments[-1] = (self.segments[-1][0], now, what)
        else:
            began = self.segments[-1][1] if self.segments else now - EVERY_S
            self.segments.append((max(began, now - 0.5), now, what))
        if now >= self._next_burst_s:
            self._next_burst_s = now + BURST_EVERY_S
            self._burst_ends_s = time.time() + BURST_S
            reference = weakref.ref(self)
            worker.environment.defer(lambda: _burst(reference))
        else:
            self.look_at_epochs(worker)

    def look_at_epochs(self, worker: Worker) -> int:
        """Note which epochs have begun and ended; how many were seen to end."""
        now, n = time.time(), 0
        for dataflow in list(worker._dataflows.values()):
            samples = self._epochs.get(dataflow.number)
            if samples is None:
                probes = [o for _, o in self.operators(worker, dataflow) if o.role == "probe"]
                samples = self._epochs[dataflow.number] = _EpochSamples(dataflow, probes)
            n += samples.look(now, self.latencies)
        self.n_ended = sum(each.n_ended for each in self._epochs.values())
        return n

    def burst(self) -> None:
        """In a step of the worker: look at its epochs, and in the next step again."""
        worker = self.worker()
        if worker is None:
            return
        with suppress(*_READING):
            self.look_at_epochs(worker)
        if time.time() < self._burst_ends_s:
            reference = weakref.ref(self)
            worker.environment.defer(lambda: _burst(reference))

    def operators(self, worker: Worker, dataflow: Any) -> list[tuple[str, Operator]]:
        """The operators of a dataflow, by their addresses."""
        return self._laid_out(worker, dataflow)[1]

    def scopes(self, worker: Worker, dataflow: Any) -> list[WatchedScope]:
        """Its scopes."""
        return self._laid_out(worker, dataflow)[0]

    def _laid_out(
        self, worker: Worker, dataflow: Any
    ) -> tuple[list[WatchedScope], list[tuple[str, Operator]]]:
        found = self._known.get(dataflow.number)
        if found is None:
            scopes = watched_scopes(worker, dataflow)
            operators = [
                (address, child)
                for scope in scopes
                for address, _, child in scope.operators()
                if isinstance(child, Operator)
            ]
            found = self._known[dataflow.number] = scopes, operators
        return found

    def forget(self, worker: Worker) -> None:
        """Let go of dataflows that are complete."""
        for number in self._known.keys() - worker._dataflows.keys():
            del self._known[number]
            self._epochs.pop(number, None)

    def _doing(self, worker: Worker) -> str:
        if worker.is_parked:
            return PARKED
        if not worker._is_stepping:
            return PROGRAM
        for dataflow in list(worker._dataflows.values()):
            for address, operator in self.operators(worker, dataflow):
                if operator._running:
                    line = _line(sys._current_frames().get(self._thread))
                    if line:
                        self.lines[address, line] += 1
                    return address
        return PROGRESS


class _EpochSamples:
    """The epochs of one dataflow on one worker, as far as its inputs and probes were looked at.

    An epoch that is an integer begins when the last input here has left it, and ends when the
    last probe here sees that it cannot come any more.
    """

    def __init__(self, dataflow: Any, probes: list[Operator]) -> None:
        self._inputs = list(dataflow.inputs)
        self._probes = probes
        self._begun: deque[tuple[int, float]] = deque(maxlen=N_LATENCIES)
        self._time: int | None = None
        self._frontier: int | None = None
        self.n_ended = 0

    def look(self, now: float, latencies: deque[tuple[float, float]]) -> int:
        times = [each.time for each in self._inputs if not each.is_closed]
        frontier = _least(self._probes)
        if not times or frontier is None or not all(type(time) is int for time in times):
            return 0
        time_, n = min(times), 0
        if self._time is not None and time_ > self._time:
            self._begun.append((time_ - 1, now))
        self._time = time_
        if self._frontier is not None and frontier > self._frontier:
            self.n_ended += frontier - self._frontier
            n = frontier - self._frontier
        self._frontier = frontier
        while self._begun and self._begun[0][0] < frontier:
            _, began = self._begun.popleft()
            latencies.append((now, now - began))
        return n


def _least(probes: list[Operator]) -> int | None:
    """The earliest time that may still come at a probe; None where there is none, or no integer."""
    frontiers: list[Any] = [time for probe in probes for time in probe.frontiers[0].frontier]
    if not frontiers or not all(type(time) is int for time in frontiers):
        return None
    return int(min(frontiers))


def _burst(reference: weakref.ref[WorkerSamples]) -> None:
    samples = reference()
    if samples is not None:
        samples.burst()


def _line(frame: FrameType | None) -> str:
    """The line of the program that a thread is at; empty if it is in none."""
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Sampler:
    """The thread that looks at all workers of this process.

    Parameters
    ----------
    workers : callable
        Gives (worker, its thread) of each that lives.
    """

    def __init__(self, workers: Callable[[], Iterator[tuple[Worker, int]]]) -> None:
        self._workers = workers
        self._samples: dict[int, WorkerSamples] = {}
        self._asked_s = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self) -> list[tuple[Worker, WorkerSamples]]:
        """The workers with what was seen of them; the thread goes on for a while."""
        with self._lock:
            self._asked_s = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="pointstamp-sampler", daemon=True
                )
                self._thread.start()
            return [(worker, self._of(worker, thread)) for worker, thread in self._workers()]

    def _of(self, worker: Worker, thread: int) -> WorkerSamples:
        found = self._samples.get(id(worker))
        if found is None or found.worker() is not worker:
            found = self._samples[id(worker)] = WorkerSamples(worker, thread)
        return found

    def _run(self) -> None:
        while True:
            time.sleep(EVERY_S)
            with self._lock:
                n_workers, now = 0, time.time()
                for worker, thread in self._workers():
                    n_workers += 1
                    samples = self._of(worker, thread)
                    with suppress(*_READING):
                        samples.look(now)
                    del worker, samples  # or they would live until the next look
                if not n_workers or time.monotonic() > self._asked_s + IDLE_S:
                    self._thread = None
                    self._samples.clear()
                    return
