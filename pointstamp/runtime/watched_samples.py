"""Samples of what a worker does, taken from outside by a thread while something watches.

The engine keeps no clock of its operators, so that running them costs no look at one. What each
takes is estimated: every `EVERY_S` a thread looks which operator the worker is in, at which line
of the program, or that it is parked. A worker that is at work in Python lets another thread look
within 5 ms (`sys.getswitchinterval`); in a long call of compiled code it is seen at its end.

Epochs are sampled, too. An input's times and those of the probes are read in the worker's own
steps, for `BURST_S` in each second at most and until `BURST_EPOCHS` have ended: short epochs are
measured there, and each stands for as many as there are in the rest of that second. The thread's
looks measure those that last longer than two of them.

The thread ends when nothing has asked for a while, and with the last worker. Nothing here changes
what a worker does.
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

EVERY_S = 0.04
"""Looks cost a worker that is busy in Python more than they take: it hands Python's lock over, and
waits to have it back."""
IDLE_S = 10.0
"""Without a question for so long, the thread ends."""
BURST_S = 1.5 * EVERY_S
BURST_EVERY_S = 1.0
BURST_EPOCHS = 200
N_SEGMENTS = 4096
N_LATENCIES = 4096

PARKED, PROGRAM, PROGRESS = "parked", "program", "progress"
"""What a worker does where it is in no operator; else that has the address of one."""

Segment = tuple[float, float, str]
"""From, to, in seconds since 1970, and what."""

Latency = tuple[float, float, float, str, int]
"""When an epoch ended, seconds that it took, for how many it stands, its dataflow, and which."""

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
        self.latencies: deque[Latency] = deque(maxlen=N_LATENCIES)
        """Of those seen to begin and to end."""
        self._thread = thread
        self._known: dict[int, tuple[list[WatchedScope], list[tuple[str, Operator]]]] = {}
        self._epochs: dict[int, _EpochTracker] = {}
        self._in_bursts: list[_EpochTracker] = []
        self._burst_ends_s = 0.0
        self._next_burst_s = 0.0

    @property
    def n_ended(self) -> int:
        """How many epochs were seen to end, of the dataflows that there are."""
        return sum(each.n_ended for each in list(self._epochs.values()))

    def look(self, now: float) -> None:
        """Take a sample.

        A thread that wakes 25 times a second finds the processor's caches cold, so that each line
        of this takes ten times what it would in a loop: it does without what it can.
        """
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
        if self._burst_ends_s and now >= self._burst_ends_s:
            self.end_burst(worker)
            self._take_bursts()
            self._burst_ends_s = 0.0
        if now >= self._next_burst_s:
            self._next_burst_s = now + BURST_EVERY_S
            self._begin_burst(worker)
        self._look_at_epochs(worker, now)

    def _look_at_epochs(self, worker: Worker, now: float) -> None:
        """Note which epochs have begun and ended since the last look of the thread."""
        for dataflow in list(worker._dataflows.values()):
            tracker = self._epochs.get(dataflow.number)
            if tracker is None:
                tracker = self._epochs[dataflow.number] = self._tracker(worker, dataflow)
            tracker.look(now)
            if tracker.has_ended:
                # One that is over before the second look may have been as short as one likes.
                self.latencies += [
                    (ended, took, 1.0, dataflow.name, epoch)
                    for ended, took, epoch in tracker.take()
                    if took > BURST_S
                ]

    def _tracker(self, worker: Worker, dataflow: Any) -> _EpochTracker:
        probes = [each for _, each in self.operators(worker, dataflow) if each.role == "probe"]
        return _EpochTracker(dataflow, probes)

    def _begin_burst(self, worker: Worker) -> None:
        """Have the worker look at its epochs at the beginning and the end of each step."""
        self._burst_ends_s = time.time() + BURST_S
        self._in_bursts = [self._tracker(worker, each) for each in worker._dataflows.values()]
        receive, flush = worker.communicator.receive, worker.communicator.flush

        def look_and_receive() -> Any:
            self._look_in_burst(worker)
            return receive()

        def flush_and_look() -> None:
            flush()
            self._look_in_burst(worker)

        worker._receive, worker._flush = look_and_receive, flush_and_look

    def _look_in_burst(self, worker: Worker) -> None:
        # Twice in each step: as short as it can be where nothing has changed.
        try:
            for tracker in self._in_bursts:
                if tracker.has_changed():
                    tracker.look(time.time())
                    if tracker.n_ended >= BURST_EPOCHS or time.time() >= self._burst_ends_s:
                        self.end_burst(worker)
        except _READING:
            self.end_burst(worker)

    def end_burst(self, worker: Worker) -> None:
        """Look no more in steps; may be called by any thread, and twice."""
        worker.call_communicator()

    def _take_bursts(self) -> None:
        """Note what was measured in a burst that is over."""
        for tracker in self._in_bursts:
            for ended, took, epoch in tracker.take():
                # An epoch that is longer fits into fewer bursts.
                weight = BURST_EVERY_S / max(BURST_S - took, BURST_S / 10)
                self.latencies.append((ended, took, weight, tracker.name, epoch))
        self._in_bursts = []

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
                if operator.activation.is_at_work:
                    line = _line(sys._current_frames().get(self._thread))
                    if line:
                        self.lines[address, line] += 1
                    return address
        return PROGRESS


class _EpochTracker:
    """The epochs of one dataflow on one worker, as far as its inputs and probes were looked at.

    An epoch that is an integer begins when the last input here has left it, and ends when the
    last probe here sees that it cannot come any more.
    """

    def __init__(self, dataflow: Any, probes: list[Operator]) -> None:
        self.name: str = dataflow.name
        self._inputs = list(dataflow.inputs)
        self._probes = probes
        self._begun: deque[tuple[int, float]] = deque(maxlen=N_LATENCIES)
        self._ended: list[tuple[float, float, int]] = []
        self._time: int | None = None
        self._frontier: int | None = None
        self.n_ended = 0

    def has_changed(self) -> bool:
        """Whether the next look will find something; of several inputs or probes it may be."""
        if len(self._inputs) != 1 or len(self._probes) != 1:
            return True
        handle, found = self._inputs[0], self._probes[0].frontiers[0].frontier
        return bool(found) and (found[0] != self._frontier or handle.time != self._time)

    def look(self, now: float) -> None:
        """Note what has begun and ended since the last look."""
        least = _least([each.time for each in self._inputs if not each.is_closed])
        frontier = _least([time for each in self._probes for time in each.frontiers[0].frontier])
        if least is None or frontier is None:
            return
        # Of those that have begun between two looks, the last one.
        if self._time is not None and least > self._time:
            self._begun.append((least - 1, now))
        if self._frontier is not None:
            self.n_ended += max(0, frontier - self._frontier)
        self._time, self._frontier = least, frontier
        while self._begun and self._begun[0][0] < frontier:
            epoch, began = self._begun.popleft()
            if now > began:  # else it ended before it was seen
                self._ended.append((now, now - began, epoch))

    @property
    def has_ended(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._ended)

    def take(self) -> list[tuple[float, float, int]]:
        """(when it ended, seconds, which) of those that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended


def _least(times: list[Any]) -> int | None:
    """The earliest of them; None where there is none, or one that is no integer."""
    least: int | None = None
    for each in times:
        if type(each) is not int:
            return None
        if least is None or each < least:
            least = each
    return least


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
                    self._end()
                    return

    def _end(self) -> None:
        for samples in self._samples.values():
            worker = samples.worker()
            if worker is not None:
                samples.end_burst(worker)
        self._samples.clear()
        self._thread = None
