"""`execute` on every carrier, and what happens when something goes wrong (I6, I7)."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.communication.single import SingleCommunicator
from pointstamp.compiled import MODULES
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.errors import (
    OperatorError,
    SerializationError,
    StructureError,
    UsageError,
    WorkerError,
)
from tests.slowness import slowdown

CARRIERS = [
    pytest.param({"workers": 1}, id="one"),
    pytest.param({"workers": 2, "threads": True}, id="threads"),
    pytest.param({"workers": 2}, id="processes", marks=pytest.mark.once),
    pytest.param({"workers": 3}, id="three processes", marks=pytest.mark.once),
]
SEVERAL = CARRIERS[1:]


def hello(worker: Any) -> tuple[int, list[int]]:
    seen: list[int] = []
    with worker.dataflow("hello") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).inspect(seen.append).probe()
    for round in range(10):
        if worker.index == 0:
            input.send(round)
        input.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return worker.index, seen


@pytest.mark.parametrize("carrier", CARRIERS)
def test_hello(carrier: Any) -> None:
    results = ps.execute(hello, **carrier)
    assert [index for index, _ in results] == list(range(carrier["workers"]))
    assert sorted(x for _, seen in results for x in seen) == list(range(10))
    assert all(seen == sorted(seen) for _, seen in results)  # each round waited for the last


@pytest.mark.parametrize("carrier", CARRIERS)
def test_barrier(carrier: Any) -> None:
    def barrier(worker: Any, rounds: int) -> int:
        notified = []

        def build(capability: Any, info: Any) -> Any:
            def logic(input: Any, output: Any, notificator: Any) -> None:
                for cap in notificator:
                    notified.append(cap.time)
                    if cap.time + 1 < rounds:
                        notificator.notify_at(cap.delayed(cap.time + 1))

            return logic

        with worker.dataflow() as scope:
            loop, stream = scope.feedback(1)
            loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]))
        worker.run()
        assert notified == list(range(rounds))
        return len(notified)

    assert ps.execute(barrier, 300, **carrier) == [300] * carrier["workers"]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_several_dataflows_at_once(carrier: Any) -> None:
    def main(worker: Any) -> list[int]:
        out: list[int] = []
        inputs = []
        for number in range(5):
            with worker.dataflow(f"flow {number}") as scope:
                input, stream = scope.new_input()
                stream.exchange().inspect(lambda x, n=number: out.append(100 * n + x))
                inputs.append(input)
        for number in (3, 0, 4):
            inputs[number].send(worker.index)
        worker.step()
        return out

    found = sorted(x for out in ps.execute(main, **carrier) for x in out)
    n = carrier["workers"]
    assert found == [100 * number + i for number in (0, 3, 4) for i in range(n)]


@pytest.mark.parametrize("carrier", SEVERAL)
def test_a_dataflow_may_be_added_while_another_runs(carrier: Any) -> None:
    def main(worker: Any) -> int:
        with worker.dataflow("first") as scope:
            first, stream = scope.new_input()
            probe = stream.exchange().probe()
        first.send(1)
        first.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        seen: list[int] = []
        with worker.dataflow("second") as scope:
            scope.to_stream(range(10) if worker.index == 0 else []).exchange().inspect(seen.append)
        first.send(2)
        first.close()
        worker.run()
        return len(seen)

    assert sum(ps.execute(main, **carrier)) == 10


@pytest.mark.parametrize("carrier", CARRIERS)
def test_dataflows_that_are_complete_leave_nothing_with_the_worker(carrier: Any) -> None:
    def main(worker: Any) -> list[int]:
        def held() -> int:
            environment = worker.environment
            return len(environment.arrivals) + len(environment.inputs) + len(worker.outstanding())

        sizes = []
        for _ in range(3):
            with worker.dataflow() as scope:
                input, stream = scope.new_input()
                with scope.iterative() as inner:
                    loop, again = inner.feedback(1, limit=2)
                    loop.connect(stream.enter(inner).concat(again).exchange())
            input.send(worker.index)
            input.close()
            worker.run()
            sizes.append(held())
        return sizes

    for sizes in ps.execute(main, **carrier):
        assert len(set(sizes)) == 1


# I7: the first cause, and everybody stops.


def broken_operator(worker: Any) -> None:
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        shared = stream.exchange(lambda x: x)
        shared.map(lambda x: 1 // (x - 7)).probe()
    for epoch in range(100_000):
        input.send(epoch)
        input.advance_to(epoch + 1)
        worker.step()


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_exception_in_an_operator_stops_everybody(carrier: Any) -> None:
    with pytest.raises(WorkerError) as caught:
        ps.execute(broken_operator, **carrier)
    error = caught.value
    assert error.operator == "Map"
    assert error.time == 7
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "ZeroDivisionError" in error.original
    assert "x - 7" in error.original
    assert f"worker {error.worker}" in str(error)


def test_exceptions_of_operators_keep_their_cause() -> None:
    with pytest.raises(WorkerError) as caught:
        ps.execute(broken_operator)
    chain = caught.value.original
    assert OperatorError.__name__ in chain


def wait_for_each_other(worker: Any, act: Any, stamp: str) -> None:
    """Steps for ever together; worker 1 acts when it has seen epoch 3, and stamps the moment."""
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()
    epoch = 0
    while True:
        input.send(epoch)
        epoch += 1
        input.advance_to(epoch)
        worker.step_while(lambda: probe.less_than(input.time))
        if epoch == 3 and worker.index == 1:
            Path(stamp).write_text(repr(time.monotonic()))
            act()


@pytest.mark.once
@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: os._exit(3), "3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: (_ for _ in ()).throw(ValueError("my own")), "my own"),
    ],
    ids=["exit", "kill", "raise"],
)
def test_the_end_of_a_worker_is_the_end_of_all_within_a_second(
    act: Any, words: str, tmp_path: Path
) -> None:
    stamp = tmp_path / "stamp"
    with pytest.raises(WorkerError, match=words) as caught:
        ps.execute(wait_for_each_other, act, str(stamp), workers=3)
    ended = time.monotonic()
    assert caught.value.worker == 1
    # The clock is the machine's, so it is the same in all processes.
    assert ended - float(stamp.read_text()) < 5 * slowdown()


# I6: workers that build different dataflows.


def another_operator(worker: Any) -> None:
    with worker.dataflow("flow") as scope:
        stream = scope.to_stream([worker.index])
        if worker.index == 1:
            stream = stream.map(lambda x: x)
        stream.exchange().probe()


def another_pact(worker: Any) -> None:
    with worker.dataflow("flow") as scope:
        stream = scope.to_stream([1])
        (stream.exchange() if worker.index == 0 else stream.broadcast()).probe()


def one_more(worker: Any) -> None:
    for number in range(2 if worker.index == 0 else 1):
        with worker.dataflow(f"flow {number}") as scope:
            scope.to_stream([1]).exchange().probe()


def another_order(worker: Any) -> None:
    for name in ("a", "b") if worker.index == 0 else ("b", "a"):
        with worker.dataflow(name) as scope:
            scope.to_stream([1]).exchange().probe()


@pytest.mark.parametrize("carrier", SEVERAL)
@pytest.mark.parametrize(
    ("main", "words"),
    [
        (another_operator, "first difference"),
        (another_pact, "first difference"),
        (one_more, "dataflows built"),
        (another_order, "first difference"),
    ],
)
def test_workers_that_build_different_dataflows_are_told(
    main: Any, words: str, carrier: Any
) -> None:
    with pytest.raises(WorkerError, match=words) as caught:
        ps.execute(main, **carrier)
    assert isinstance(caught.value.__cause__, StructureError)


def test_an_idle_worker_uses_no_processor() -> None:
    def main(worker: Any) -> float:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.exchange().probe()
        if worker.index == 0:
            deadline = time.monotonic() + 0.6
            while time.monotonic() < deadline:
                worker.step()  # busy; its peer has nothing to do meanwhile
            input.close()
        else:
            input.close()
            used = time.process_time()
            worker.step_while(lambda: not probe.done)
            return time.process_time() - used
        return 0.0

    assert ps.execute(main, workers=2)[1] < 0.2


def test_a_number_of_workers_that_cannot_be() -> None:
    for workers in (0, "2", 1.5):
        with pytest.raises(ps.errors.UsageError, match=f"at least one worker; {workers!r} were"):
            ps.execute(hello, workers=workers)  # type: ignore[arg-type]


def test_arguments_that_cannot_be() -> None:
    run_worker = functools.partial(ps.run_worker, SingleCommunicator())
    for run in (ps.execute, run_worker):
        for n_bytes in (-1, "1", None, 1.5):
            with pytest.raises(UsageError, match=f"{n_bytes!r} bytes cannot be in flight"):
                run(hello, in_flight_bytes=n_bytes)  # type: ignore[arg-type]
        for seconds in (0, "1", True):
            with pytest.raises(UsageError, match=f"some seconds, not after {seconds!r}"):
                run(hello, watchdog_s=seconds)  # type: ignore[arg-type]
    for run in (ps.execute, run_worker, functools.partial(ps.simulate, workers=2)):
        with pytest.raises(UsageError, match=r"needs a function to call, .* and not 5"):
            run(5)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"and not 'run\.log'"):
            run(hello, log="run.log")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs a communicator, and was given None"):
        ps.run_worker(None, hello)  # type: ignore[arg-type]


# Nothing in it is Python that is interpreted, and it goes on for ever.
ROUND_AND_ROUND = """
import os, signal, sys, threading, time
import pointstamp as ps

def main(worker):
    with worker.dataflow() as scope:
        loop, stream = scope.feedback(1)
        loop.connect(scope.to_stream([1]).concat(stream))
    running.set()
    worker.run()

def interrupt():
    running.wait()
    time.sleep(0.2)  # this thread has to get its turn, too
    os.kill(os.getpid(), signal.SIGINT)

running = threading.Event()
threading.Thread(target=interrupt, daemon=True).start()
try:
    ps.execute(main)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_loop_of_operators_alone_can_be_interrupted() -> None:
    assert "pointstamp.runtime.signal_poll" not in MODULES
    ran = subprocess.run(
        [sys.executable, "-c", ROUND_AND_ROUND],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout == "interrupted\n"


def test_an_operator_that_steps_its_own_worker_is_told_not_to() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1]).inspect(lambda _: worker.run())
            stream.probe()
        worker.run()

    with pytest.raises(WorkerError, match="called inside of a step") as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, UsageError)


@pytest.mark.parametrize("threads", [True, False])
def test_an_error_that_was_caught_after_a_batch_was_counted_is_raised_again(threads):
    """Nobody gets that batch, so who goes on as if nothing had been would wait for ever."""

    def main(worker):
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.exchange(lambda x: x[0]).probe()
        if worker.index == 0:
            input.send(5)
            with contextlib.suppress(TypeError):
                input.advance_to(1)
        input.close()

    with pytest.raises(WorkerError, match=r"worker 0 failed: .*not subscriptable"):
        ps.execute(main, workers=2, threads=threads)


def test_an_operator_that_catches_an_error_of_its_own_sending_does_not_go_on():
    def build(capability, info):
        def logic(input, output):
            for cap, batch in input:
                with contextlib.suppress(TypeError), output.session(cap) as session:
                    session.give_batch(batch)

        return logic

    def main(worker):
        with worker.dataflow() as scope:
            # So many that they are sent at once, and not collected until the operator returns.
            numbers = scope.to_stream(range(PREFERRED_RECORDS))
            stream = numbers.unary(ps.Pipeline(), "Careless", build)
            stream.exchange(lambda x: x[0]).probe()

    with pytest.raises(WorkerError, match="not subscriptable"):
        ps.execute(main, workers=2, threads=True)


def test_an_error_before_anything_was_counted_may_be_caught():
    def main(worker):
        out = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.inspect(out.append)
        with pytest.raises(ps.errors.ContainerError):
            input.send_batch(5)
        input.send(6)
        input.close()
        worker.run()
        return out

    assert ps.execute(main) == [[6]]


async def coroutine_main(worker: Any) -> Any:
    return worker.index


def generator_main(worker: Any) -> Any:
    yield worker.index


async def async_generator_main(worker: Any) -> Any:
    yield worker.index


class CoroutineObject:
    """Whose call is a coroutine."""

    async def __call__(self, worker: Any) -> Any:
        return worker.index


MAINS_THAT_RUN_NOTHING = [
    (coroutine_main, "coroutine_main is an async function"),
    (functools.partial(coroutine_main), "is an async function"),
    (CoroutineObject(), "is an async function"),
    (generator_main, "generator_main is a generator"),
    (async_generator_main, "async_generator_main is an asynchronous generator"),
]


@pytest.mark.parametrize(("main", "said"), MAINS_THAT_RUN_NOTHING)
def test_a_main_of_which_a_call_runs_nothing_is_refused(main: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ps.execute(main, workers=2, threads=True)
    with pytest.raises(UsageError, match=said):
        ps.simulate(main, workers=2)
    with pytest.raises(UsageError, match=said):
        ps.run_worker(SingleCommunicator(), main)


@pytest.mark.parametrize(
    ("main", "said"),
    [
        (lambda worker: coroutine_main(worker), "<lambda> returned a coroutine"),
        (lambda worker: generator_main(worker), "<lambda> returned a generator"),
    ],
)
def test_a_main_that_returns_what_was_not_run_is_refused(main: Any, said: str) -> None:
    with pytest.raises(WorkerError, match=said):
        ps.execute(main)
    with pytest.raises(WorkerError, match=said):
        ps.simulate(main, workers=2)
    with pytest.raises(UsageError, match=said):
        ps.run_worker(SingleCommunicator(), main)


def test_a_forked_process_does_not_go_on_as_a_second_worker() -> None:
    """It has the sockets and the memory of the worker, and would step the same dataflows."""

    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            records, stream = scope.new_input()
            found: list[int] = []
            stream.exchange(lambda n: n).inspect(found.append)
        child = os.fork()
        if child == 0:
            return "of a child"
        os.waitpid(child, 0)
        for n in range(1000):
            records.send(n)
        records.close()
        worker.run()
        return len(found)

    assert sum(ps.execute(main, workers=2)) == 2000
    assert ps.execute(main, workers=1) == [1000]


def test_an_argument_that_cannot_be_pickled_is_named() -> None:
    def main(worker: Any, *args: Any) -> None:
        pass

    with pytest.raises(SerializationError, match=r"argument 1 of .*main, of type lock, cannot be"):
        ps.execute(main, [1], threading.Lock(), workers=2)
    lock = threading.Lock()
    with pytest.raises(SerializationError, match=r"<lambda> cannot be pickled"):
        ps.execute(lambda worker, n: lock, 1, workers=2)
