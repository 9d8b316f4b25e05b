"""The watchdog: it barks when nothing advances, says why, and is silent otherwise."""

from __future__ import annotations

import logging
import re
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import UsageError
from pointstamp.runtime import watchdog
from pointstamp.runtime.watchdog import LOGGER


class Heard(logging.Handler):
    """Keeps what was logged, and lets one wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.set()

    def forget(self) -> None:
        """As if nothing had come."""
        self.texts.clear()
        self.came.clear()


@pytest.fixture
def heard() -> Any:
    handler = Heard()
    LOGGER.addHandler(handler)
    LOGGER.propagate = False
    yield handler
    LOGGER.propagate = True
    LOGGER.removeHandler(handler)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_operator_that_keeps_a_capability_is_named(heard: Heard, workers: int) -> None:
    def main(worker: Any) -> None:
        kept: list[Any] = []

        def build(capability: Any, info: Any) -> Any:
            kept.append(capability.delayed(2))
            return lambda input, output: None

        with worker.dataflow("stuck") as scope:
            input, stream = scope.new_input()
            probe = stream.unary(ps.Pipeline(), "Keeper", build).probe()
        input.close()

        def is_waiting() -> bool:
            if heard.came.is_set():
                kept.clear()
            return not probe.done

        while is_waiting():
            worker.step_or_park(0.01)

    ps.execute(main, workers=workers, threads=True, watchdog_s=0.1)
    text = heard.texts[0]
    assert re.match(r"nothing has advanced for \d+\.\d s: ", text)
    assert "holds a capability at 2 for output 0 of 'Keeper' [2]" in text
    assert "in main" in text  # the stack of the thread that runs the worker
    assert len(heard.texts) <= workers  # once for each pause


def test_code_that_is_stuck_is_shown_with_its_operator(heard: Heard) -> None:
    def wait_for_long(x: Any) -> Any:
        assert heard.came.wait(60)
        return x

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).map(wait_for_long)

    ps.execute(main, watchdog_s=0.1)
    assert "is in operator 'Map', at time 0" in heard.texts[0]
    assert "in wait_for_long" in heard.texts[0]


def test_it_is_silent_when_all_is_complete(heard: Heard) -> None:
    are_through = threading.Barrier(2)

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.to_stream(range(10)).exchange().probe()
        worker.run()
        if are_through.wait(60) == 0:
            heard.forget()  # what was said where the machine stood still meanwhile
        are_through.wait(60)
        assert not heard.came.wait(0.3)

    ps.execute(main, workers=2, threads=True, watchdog_s=0.05)
    assert heard.texts == []


def test_it_is_silent_as_long_as_records_move(heard: Heard) -> None:
    """One time for all of it, so that no frontier moves: but records do."""
    moments = [time.monotonic()]

    def main(worker: Any) -> None:
        until = time.monotonic() + 0.5

        def records() -> Any:
            while moments[-1] < until:
                moments.append(time.monotonic())
                yield [1]

        with worker.dataflow() as scope:
            probe = scope.batches_to_stream(records()).map(lambda x: x).probe()
        worker.step_while(lambda: not probe.done)

    ps.execute(main, watchdog_s=0.2)
    moments.append(time.monotonic())
    # Where the machine stood still for so long, nothing has moved.
    assert heard.texts == [] or max(b - a for a, b in pairwise(moments)) > 0.15


def test_without_configuration_it_goes_to_standard_error(capfd: Any) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            _input, _ = scope.new_input("edges")
        until = time.monotonic() + 120
        while "edges" not in capfd.readouterr().err and time.monotonic() < until:
            worker.step_or_park(0.02)

    handlers = logging.getLogger().handlers[:]
    logging.getLogger().handlers.clear()
    try:
        began = time.monotonic()
        ps.execute(main, watchdog_s=0.1)
        assert time.monotonic() - began < 60
    finally:
        logging.getLogger().handlers[:] = handlers


def test_a_worker_of_its_own_has_one_too(heard: Heard) -> None:
    from pointstamp.communication.single import SingleCommunicator

    worker = ps.Worker(SingleCommunicator(), watchdog_s=0.05)
    with worker.dataflow() as scope:
        input, _ = scope.new_input("edges")
    assert heard.came.wait(60)
    assert "has not advanced input 'edges' [1] beyond 0" in heard.texts[0]
    input.close()
    worker.finish()


@pytest.mark.parametrize("after_s", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(after_s: float) -> None:
    with pytest.raises(UsageError, match="barks after some seconds"):
        ps.execute(lambda worker: None, watchdog_s=after_s)


# Without being asked for: only of what the worker itself holds back.


@pytest.fixture
def stalls(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> Heard:
    """As `heard`, where a worker counts as stalled after half a second."""
    monkeypatch.setattr(watchdog, "STALL_S", 0.5)
    return heard


def keeping(scope: Any, kept: list[Any]) -> ps.Probe:
    """An operator that keeps a capability at 2, though its input is at its end."""

    def build(capability: Any, info: Any) -> Any:
        kept.append(capability.delayed(2))
        capability.drop()
        return lambda input, output: list(input) and None

    probe: ps.Probe = scope.to_stream([1]).unary(ps.Pipeline(), "Keeper", build).probe()
    return probe


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("spins", [False, True])
def test_a_program_that_waits_for_ever_is_reported_unasked(
    stalls: Heard, workers: int, spins: bool
) -> None:
    def main(worker: Any) -> None:
        kept: list[Any] = []
        with worker.dataflow("stuck") as scope:
            probe = keeping(scope, kept)

        def is_waiting() -> bool:
            if stalls.came.is_set():
                kept.clear()
            return not probe.done

        while is_waiting():
            if spins:
                worker.step()
                time.sleep(0.001)
            else:
                worker.step_or_park(0.01)

    ps.execute(main, workers=workers, threads=True)
    assert stalls.texts[0].startswith("nothing has advanced for ")
    assert "holds a capability at 2 for output 0 of 'Keeper' [2]" in stalls.texts[0]
    assert len(stalls.texts) <= workers


def test_an_input_that_is_not_advanced_while_the_program_waits_is_reported(stalls: Heard) -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input("edges")
            probe = stream.probe()
        input.send(1)  # and no advance_to
        rescue = threading.Thread(
            target=lambda: (stalls.came.wait(60), worker.environment.defer(input.close))
        )
        rescue.start()
        worker.step_while(lambda: probe.less_than(1))
        rescue.join()

    ps.execute(main)
    (text,) = stalls.texts
    assert "this worker (0) has not advanced input 'edges' [1] beyond 0" in text


@pytest.mark.parametrize("drops", [False, True])
def test_a_condition_that_outlives_all_dataflows_is_reported(stalls: Heard, drops: bool) -> None:
    """The program waits for more records than there are, or for a probe of a dropped dataflow."""

    def main(worker: Any) -> None:
        found: list[int] = []
        with worker.dataflow("flow") as scope:
            input, stream = scope.new_input()
            probe = stream.inspect(found.append).probe()
        input.send(1)
        if drops:
            worker.drop_dataflow("flow")
        else:
            input.close()

        def give_up() -> None:
            stalls.came.wait(20)
            over.set()
            worker.environment.defer(lambda: None)

        over = threading.Event()
        rescue = threading.Thread(target=give_up)
        rescue.start()
        worker.step_while(lambda: not over.is_set() and (not probe.done or len(found) < 2))
        rescue.join()

    ps.execute(main)
    (text,) = stalls.texts
    assert "step_while waits for what no dataflow can bring any more: worker 0 of 1" in text
    assert "all dataflows that it has built are complete, or were dropped" in text
    assert "worker.step_while(lambda: not over.is_set()" in text  # the line that waits


@pytest.mark.xdist_group("waiting")
def test_a_worker_that_is_idle_is_not_stalled(stalls: Heard) -> None:
    """It waits for input, or its peer is at work, or a thread or a timer has yet to come."""

    def service(worker: Any) -> None:
        with worker.dataflow() as scope:
            _input, stream = scope.new_input()
            stream.exchange().probe()
            keeping(scope, kept := [])
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            worker.step_or_park(0.05)
        kept.clear()

    def beside_a_busy_peer(worker: Any) -> None:
        with worker.dataflow() as scope:
            mine = scope.to_stream([1] if worker.index == 0 else [])
            mine.exchange(lambda x: x).map(lambda x: time.sleep(1.5)).probe()

    def with_a_thread(worker: Any) -> None:
        rings: list[Any] = []

        def build(capability: Any, info: Any) -> Any:
            rings.append(info.thread_activator())
            return lambda output: capability.drop() if len(rings) > 1 else None

        with worker.dataflow() as scope:
            scope.source(build).probe()
        thread = threading.Timer(1.5, lambda: (rings.append(0), rings[0]()))
        thread.start()
        worker.run()
        thread.join()

    def with_a_timer(worker: Any) -> None:
        def build(capability: Any, info: Any) -> Any:
            began = time.monotonic()
            info.activate_after(1.5)
            return lambda output: capability.drop() if time.monotonic() > began + 1.4 else None

        with worker.dataflow() as scope:
            scope.source(build).probe()

    def after_its_end(worker: Any) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).probe()
        worker.run()
        time.sleep(1.5)

    for main, workers in (
        (service, 2),
        (after_its_end, 1),
        (beside_a_busy_peer, 2),
        (with_a_thread, 1),
        (with_a_timer, 1),
    ):
        ps.execute(main, workers=workers, threads=True)
    assert stalls.texts == []
