"""Capabilities that end in odd ways, and times of odd kinds."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.dataflow.capability import CapabilityCounts
from pointstamp.errors import CapabilityError, StructureError, WorkerError
from pointstamp.progress.timestamp import Advance, Int, Timestamp


def capabilities() -> CapabilityCounts:
    return CapabilityCounts("op", 0, Int, lambda: None)


def test_a_collected_capability_is_counted_when_the_worker_looks() -> None:
    held = capabilities()
    cap: Any = held.add(3)
    held.changes.drain()
    del cap
    gc.collect()
    assert held.changes.is_empty()
    assert held.settle()
    assert held.changes.drain() == [(3, -1)]
    assert held.n_held == 0
    assert not held.settle()


def test_capabilities_collected_by_other_threads_do_not_disturb_the_counts() -> None:
    """The collector runs in whatever thread allocates; counting is the worker's alone."""
    n_threads, n_each = 4, 2_000
    held = capabilities()
    batches = [[held.add(time % 5) for time in range(n_each)] for _ in range(n_threads)]
    threads = [threading.Thread(target=batch.clear) for batch in batches]
    counted = sum(change for _, change in held.changes.drain())
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        held.settle()
        counted += sum(change for _, change in held.changes.drain())
    for thread in threads:
        thread.join()
    held.settle()
    counted += sum(change for _, change in held.changes.drain())
    assert counted == 0
    assert held.n_held == 0


def test_a_capability_in_a_circle_is_let_go_by_the_collector() -> None:
    def main(worker: Any) -> bool:
        kept: list[Any] = []

        def build(capability: Any, info: Any) -> Any:
            circle = [capability]
            circle.append(circle)
            kept.append(circle)
            return lambda input, output: None

        with worker.dataflow() as scope:
            probe = scope.to_stream([]).unary(ps.Pipeline(), "Keeper", build).probe()
        worker.step()
        kept.clear()
        gc.collect()
        worker.step_while(lambda: not probe.done)
        return bool(probe.done)

    assert ps.execute(main) == [True]


def test_a_copy_is_a_capability_of_its_own_and_none_travels() -> None:
    held = capabilities()
    cap = held.add(1)
    twins = [copy.copy(cap), copy.deepcopy(cap)]
    assert held.n_held == 3
    for twin in twins:
        twin.drop()
    assert cap.live
    assert held.n_held == 1
    with pytest.raises(CapabilityError, match="cannot be pickled"):
        pickle.dumps(cap)
    cap.drop()


def test_a_numpy_time_becomes_an_int_and_does_not_wrap_around() -> None:
    held = capabilities()
    cap = held.add(250)
    later = cap.delayed(np.uint8(255))
    assert type(later.time) is int
    cap.downgrade(np.uint8(255))
    assert type(cap.time) is int
    for one in (cap, later):
        one.drop()


class Plain(Timestamp):
    """As short as a user would write it: without a `repr` of its own."""

    name = "Plain"
    minimum = 0
    total = True
    natural = True

    @property
    def identity(self) -> Any:
        return Advance(0)

    def less_equal(self, a: Any, b: Any) -> bool:
        return bool(a <= b)

    def check(self, time: Any) -> Any:
        return time

    def summary(self, value: Any) -> Any:
        return value if isinstance(value, Advance) else Advance(value)


def test_a_timestamp_without_a_repr_is_the_same_type_on_all_processes() -> None:
    def main(worker: Any) -> int:
        seen: list[int] = []
        with worker.dataflow(timestamp=Plain()) as scope:
            scope.to_stream([worker.index]).exchange().inspect(seen.append)
        worker.run()
        return len(seen)

    assert sum(ps.execute(main, workers=2)) == 2


def another_summary(worker: Any) -> None:
    with worker.dataflow() as scope:
        loop, again = scope.feedback(1, limit=3 + worker.index)
        loop.connect(again)


def another_initial_capability(worker: Any) -> None:
    with worker.dataflow() as scope:
        builder = scope.operator("Odd")
        builder.new_output(initial=worker.index == 0).probe()
        builder.build(lambda capabilities, info: lambda inputs, outputs: capabilities.clear())


@pytest.mark.parametrize("main", [another_summary, another_initial_capability])
def test_what_operators_declare_must_be_the_same_on_all_workers(main: Any) -> None:
    with pytest.raises(WorkerError, match="first difference") as caught:
        ps.execute(main, workers=2, threads=True)
    assert isinstance(caught.value.__cause__, StructureError)


class Unspeakable(Exception):
    """An error whose text is an error."""

    def __str__(self) -> str:
        raise IndexError("no text")

    __repr__ = __str__


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.once)])
def test_an_error_that_cannot_be_shown_is_still_the_first_cause(threads: bool) -> None:
    def main(worker: Any) -> None:
        def fail(x: Any) -> None:
            raise Unspeakable

        with worker.dataflow() as scope:
            stream = scope.to_stream([1] if worker.index == 1 else [])
            stream.map(fail).exchange().probe()

    with pytest.raises(WorkerError) as caught:
        ps.execute(main, workers=2, threads=threads)
    assert caught.value.worker == 1
    assert caught.value.operator == "Map"
    assert "Unspeakable" in str(caught.value)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_whose_step_failed_does_not_go_on(workers: int) -> None:
    def main(worker: Any) -> str:
        with worker.dataflow() as scope:
            scope.to_stream([0]).map(lambda x: 1 // x).probe()
        try:
            while True:
                worker.step()
        except Exception:  # noqa: BLE001  (a user who swallows everything)
            return "all is well"

    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        ps.execute(main, workers=workers, threads=True)


def test_a_dataflow_whose_making_failed_leaves_no_inputs() -> None:
    def main(worker: Any) -> list[int]:
        seen: list[int] = []
        try:
            with worker.dataflow() as scope:
                scope.new_input("abandoned")
                raise KeyError
        except KeyError:
            pass
        with worker.dataflow() as scope:
            scope.to_stream([1]).inspect(seen.append)
        worker.run()
        return seen

    assert ps.execute(main) == [[1]]


@pytest.mark.parametrize("choose", [lambda time: time, lambda time: None, lambda time: 3])
def test_only_a_capability_asks_for_a_notification(choose: Any) -> None:
    def main(worker: Any) -> None:
        def build(capability: Any, info: Any) -> Any:
            capability.drop()

            def logic(input: Any, output: Any, notificator: Any) -> None:
                for time, _ in input:
                    notificator.notify_at(choose(time))

            return logic

        with worker.dataflow() as scope:
            scope.to_stream([1]).unary_notify(ps.Pipeline(), "Forgetful", build)
        worker.run()

    with pytest.raises(WorkerError, match=r"'Forgetful' failed.*needs a capability to keep"):
        ps.execute(main)


def test_a_capability_that_could_not_be_made_is_not_let_go() -> None:
    with pytest.raises(AttributeError):
        ps.Capability(0, None)  # type: ignore[arg-type]  # what nobody should
    gc.collect()
