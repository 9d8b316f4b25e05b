"""Operators that ask to be run: after a while, and from another thread."""

from __future__ import annotations

import collections
import math
import threading
import time
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import UsageError, WorkerError
from pointstamp.runtime.timers import MAX_WAIT_S, Timers

CARRIERS = [
    pytest.param({"workers": 1}, id="one"),
    pytest.param({"workers": 2, "threads": True}, id="threads"),
    pytest.param({"workers": 2}, id="processes", marks=pytest.mark.once),
]

PATIENCE_S = 30.0
"""Longer than any of this takes, however busy the machine."""


def ticks(worker: Any, n: int, seconds: float) -> tuple[list[int], int]:
    """A source that sends at 0, 1, ... with `seconds` between; and how often it was run."""
    found: list[int] = []
    n_runs = 0

    def build(capability: Any, info: Any) -> Any:
        def logic(output: Any) -> None:
            nonlocal n_runs
            n_runs += 1
            with output.session(capability) as session:
                session.give(capability.time)
            if capability.time + 1 == n:
                capability.drop()
            else:
                capability.downgrade(capability.time + 1)
                info.activate_after(seconds)

        return logic

    with worker.dataflow() as scope:
        scope.source(build).exchange().inspect(found.append).probe()
    worker.run()
    return found, n_runs


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_operator_runs_again_after_a_while_and_not_before(carrier: Any) -> None:
    began = time.monotonic()
    results = ps.execute(ticks, 4, 0.02, **carrier)
    took_s = time.monotonic() - began
    assert 3 * 0.02 <= took_s < PATIENCE_S
    assert sorted(x for found, _ in results for x in found) == sorted(
        list(range(4)) * carrier["workers"]
    )
    assert [n_runs for _, n_runs in results] == [4] * carrier["workers"]


def test_a_worker_that_waits_for_a_timer_is_parked() -> None:
    """It is not stepping meanwhile: a few steps for each time that it was woken."""

    def main(worker: Any) -> int:
        n_steps = 0

        def build(capability: Any, info: Any) -> Any:
            info.activate_after(0.05)
            return lambda output: capability.drop() if n_steps > 1 else None

        with worker.dataflow() as scope:
            probe = scope.source(build).probe()
        while not probe.done:
            n_steps += 1
            worker.step_or_park(PATIENCE_S)
        return n_steps

    assert ps.execute(main)[0] <= 4


def test_a_park_ends_for_whatever_is_first() -> None:
    now = 100.0
    timers = Timers(lambda: now)
    assert timers.wait_s(None) is None
    assert timers.wait_s(7.0) == 7.0
    timers.after(2.0, lambda: None)
    timers.after(5.0, lambda: None)
    assert timers.wait_s(None) == 2.0
    assert timers.wait_s(1.0) == 1.0
    now = 103.0
    assert timers.wait_s(1.0) == 0.0
    timers.ring()
    assert timers.wait_s(None) == 2.0
    timers.after(1e9, lambda: None)
    now = 200.0
    timers.ring()
    assert timers.wait_s(None) == MAX_WAIT_S


def test_timers_ring_in_order_and_each_once() -> None:
    now = 0.0
    rung: list[str] = []
    timers = Timers(lambda: now)
    for name, seconds in (("c", 2.0), ("a", 1.0), ("d", 2.0), ("b", 1.0), ("e", 9.0)):
        timers.after(seconds, lambda name=name: rung.append(name))  # type: ignore[misc]
    waiting = timers.waiting
    now = 2.0
    timers.ring()
    timers.ring()
    assert rung == ["a", "b", "c", "d"]
    assert timers.waiting is waiting


@pytest.mark.parametrize("seconds", [-1, math.inf, math.nan])
def test_a_time_to_wait_that_is_none_is_refused(seconds: float) -> None:
    def main(worker: Any) -> None:
        def build(capability: Any, info: Any) -> Any:
            return lambda output: info.activate_after(seconds)

        with worker.dataflow() as scope:
            scope.source(build, "Waiting")
        worker.run()

    with pytest.raises(WorkerError, match="'Waiting' failed: nothing can be done after") as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, UsageError)


@pytest.mark.parametrize("seed", range(8))
def test_in_a_simulation_hours_pass_at_once_and_the_same_each_time(seed: int) -> None:
    began = time.monotonic()
    workers = 1 + seed % 3
    results = ps.simulate(ticks, 5, 3_600.0, workers=workers, seed=seed)
    assert time.monotonic() - began < PATIENCE_S
    assert sorted(x for found, _ in results for x in found) == sorted(list(range(5)) * workers)
    assert results == ps.simulate(ticks, 5, 3_600.0, workers=workers, seed=seed)


def test_in_a_simulation_time_passes_for_who_only_steps() -> None:
    def main(worker: Any) -> int:
        def build(capability: Any, info: Any) -> Any:
            runs: list[int] = []

            def logic(output: Any) -> None:
                runs.append(1)
                if len(runs) == 1:
                    info.activate_after(0.5)
                else:
                    capability.drop()

            return logic

        with worker.dataflow() as scope:
            probe = scope.source(build).probe()
        n_steps = 0
        while not probe.done:
            worker.step()
            n_steps += 1
        return n_steps

    assert min(ps.simulate(main, workers=2, seed=1)) > 450  # a millisecond each


# From another thread.


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_thread_wakes_a_parked_worker(carrier: Any) -> None:
    """Without the wake-up the worker would sleep for longer than this may take."""
    began = time.monotonic()
    results = ps.execute(threaded, 50, **carrier)
    assert time.monotonic() - began < PATIENCE_S
    assert results == [list(range(50))] * carrier["workers"]


def threaded(worker: Any, n: int) -> list[int]:
    """A source whose records come from a thread, which waits until each has been sent."""
    found: list[int] = []
    answers: collections.deque[int] = collections.deque()
    wanted = threading.Semaphore(1)
    threads: list[threading.Thread] = []

    def build(capability: Any, info: Any) -> Any:
        ring = info.thread_activator()

        def compute() -> None:
            for number in range(n):
                if wanted.acquire(timeout=PATIENCE_S):
                    answers.append(number)
                    ring()
                    ring()  # twice is once

        threads.append(threading.Thread(target=compute))

        def logic(output: Any) -> None:
            while answers:
                with output.session(capability) as session:
                    session.give(answers.popleft())
                capability.downgrade(capability.time + 1)
                wanted.release()
            if capability.time == n:
                capability.drop()

        return logic

    with worker.dataflow() as scope:
        scope.source(build).inspect(found.append)
    threads[0].start()
    worker.run()
    threads[0].join()
    return found


def test_ringing_for_an_operator_that_is_complete_does_nothing() -> None:
    def main(worker: Any) -> bool:
        rings: list[Any] = []

        def build(capability: Any, info: Any) -> Any:
            rings.append(info.thread_activator())
            rings.append(info.activate)
            capability.drop()
            return lambda output: None

        with worker.dataflow() as scope:
            scope.source(build)
        worker.run()
        for ring in rings:
            ring()
        worker.step_or_park(PATIENCE_S)
        worker.step()
        return worker.has_work

    assert ps.execute(main) == [False]
