"""Measuring: a function again and again, in this process or on workers.

Each sample is set up anew, outside of what is timed; then workers meet, and step meanwhile.
So a program whose dataflow begins by itself, as one with a source does, builds it when it is
run. The first sample is thrown away, unless it took so long that it is the only one: it
imports, compiles kernels and warms caches, which is no part of any claim here.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pointstamp as ps
from benchmarks.harness.case import PART, Effort, Measure, Reading
from benchmarks.harness.memory import peaks
from pointstamp.metrics.peak_memory import peak_bytes

Run = Callable[[], Any]


def alone(setup: Callable[..., Run], *args: Any) -> Measure:
    """Measure `setup(*args)()` in this process; only the second call is timed."""

    def measure(effort: Effort) -> Reading:
        seconds, answer = _samples(
            effort, lambda: setup(*args), lambda: None, lambda: None, lambda s: s
        )
        return Reading(seconds, peaks(), answer)

    return measure


def on_workers(
    setup: Callable[..., Run],
    *args: Any,
    workers: int,
    total: Callable[[list[Any]], Any] | None = None,
    once: bool = False,
    **options: Any,
) -> Measure:
    """Measure `setup(worker, *args)()` on workers that begin together.

    A sample takes as long as its slowest worker. `total` makes one answer of the workers'.
    What takes long to set up is set up `once`, and can be run again and again. `options` are those
    of `pointstamp.execute`.
    """

    def measure(effort: Effort) -> Reading:
        parts = ps.execute(_attend, setup, args, effort, once, workers=workers, **options)
        seconds = [max(sample) for sample in zip(*(part[0] for part in parts), strict=True)]
        answers = [part[1] for part in parts]
        peaks_ = [part[2] for part in parts]
        if total is None:
            return Reading(seconds, peaks_)
        details = {PART: answers[0]} if workers > 1 else {}
        return Reading(seconds, peaks_, total(answers), details)

    return measure


def _attend(
    worker: ps.Worker, setup: Callable[..., Run], args: Any, effort: Effort, once: bool
) -> tuple[list[float], Any, int]:
    built = setup(worker, *args) if once else None
    seconds, answer = _samples(
        effort,
        lambda: built or setup(worker, *args),
        lambda: meet(worker),
        lambda: None if once else end_sample(worker),
        lambda s: agree(worker, s),
    )
    return seconds, answer, peak_bytes()


def end_sample(worker: ps.Worker) -> None:
    """Complete what a sample has left open, so that the next does not carry it along."""
    worker.close_inputs()
    worker.run()


def _samples(
    effort: Effort,
    setup: Callable[[], Run],
    start: Run,
    end: Run,
    slowest: Callable[[float], float],
) -> tuple[list[float], Any]:
    return repeated(effort, lambda: timed_between(setup(), start, end), slowest)


def repeated(
    effort: Effort,
    sample: Callable[[], tuple[float, Any]],
    slowest: Callable[[float], float] = lambda seconds: seconds,
) -> tuple[list[float], Any]:
    """The seconds of as many samples as `effort` wants, without the first; the last answer."""
    first, answer = sample()
    # All workers decide alike, by the slowest, or some would wait for others' samples.
    wanted = effort.wanted(slowest(first))
    seconds = [first] if wanted == 1 < effort.samples else []
    while len(seconds) < wanted:
        elapsed, answer = sample()
        seconds.append(elapsed)
    return seconds, answer


def timed(run: Run) -> tuple[float, Any]:
    """Seconds, and what it gave."""
    began = perf_counter()
    answer = run()
    return perf_counter() - began, answer


def timed_between(run: Run, start: Run, end: Run) -> tuple[float, Any]:
    """As `timed`, without garbage of before; `start` and `end` are done outside of the clock."""
    gc.collect()
    start()
    found = timed(run)
    end()
    return found


def meet(worker: Any) -> None:
    """Wait until all workers are here."""
    with worker.dataflow("meet") as scope:
        input, stream = scope.new_input()
        probe = stream.probe()
    input.close()
    worker.step_while(lambda: not probe.done)


def agree(worker: Any, value: float) -> float:
    """The largest of all workers' values."""
    values: list[float] = []
    with worker.dataflow("agree") as scope:
        stream = scope.to_stream([value]).broadcast()
        probe = stream.inspect(values.append).probe()
    worker.step_while(lambda: not probe.done)
    return max(values)
