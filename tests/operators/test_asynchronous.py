"""Operators and sources whose code is `async def`."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.errors import WorkerError
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle, collect

NUMBERS = list(range(20))

FOREVER_S = 60.0
"""Longer than any test may take: whoever still waits then has not been cancelled."""


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def rows(scope: Any) -> Any:
    """0 to 19 as rows, spread over the workers."""
    return scope.to_stream(NUMBERS[scope.index :: scope.peers])


def records(found: list[tuple[Any, Any]]) -> list[Any]:
    return [record for _, record in found]


async def square(x: int) -> int:
    await asyncio.sleep(0)
    return x * x


async def refuses(x: int) -> int:
    await asyncio.sleep(0)
    if x % 5 == 0:
        raise ValueError(f"{x} is refused")
    return x


async def twice(x: int) -> list[int]:
    await asyncio.sleep(0)
    return [x, x]


async def below(x: int) -> Any:
    for y in range(x):
        await asyncio.sleep(0)
        yield y


class Squares:
    async def __call__(self, x: int) -> int:
        return await square(x)


@pytest.mark.parametrize(
    "function",
    [square, functools.partial(square), Squares(), Squares().__call__],
    ids=["function", "partial", "object", "method"],
)
def test_map_awaits_whatever_is_async(function: Any, workers: int) -> None:
    assert records(collect(lambda s: rows(s).map(function), workers)) == [x * x for x in NUMBERS]


def test_with_concurrency_a_function_may_return_what_is_awaited(workers: int) -> None:
    def build(scope: Any) -> Any:
        return rows(scope).map(lambda x: square(x), concurrency=3)

    assert records(collect(build, workers)) == [x * x for x in NUMBERS]


def test_flat_map_takes_iterables_and_asynchronous_generators(workers: int) -> None:
    assert records(collect(lambda s: rows(s).flat_map(twice), workers)) == sorted(2 * NUMBERS)
    found = records(collect(lambda s: rows(s).flat_map(below, concurrency=2), workers))
    assert found == sorted(y for x in NUMBERS for y in range(x))


def test_map_batches_awaits_for_columns(workers: int) -> None:
    async def doubled(batch: Any) -> Any:
        await asyncio.sleep(0)
        return batch.set_column(0, "x", pa.array([2 * x for x in batch["x"].to_pylist()]))

    async def nothing(batch: Any) -> None:
        return None

    def columns(scope: Any) -> Any:
        batch = pa.RecordBatch.from_pydict({"x": NUMBERS[scope.index :: scope.peers]})
        return scope.batches_to_stream(batch.slice(i, 3) for i in range(0, len(batch), 3))

    found = records(collect(lambda s: columns(s).map_batches(doubled, concurrency=2), workers))
    assert found == [(2 * x,) for x in NUMBERS]
    assert collect(lambda s: columns(s).map_batches(nothing), workers) == []


@pytest.mark.parametrize("concurrency", [1, 3])
def test_so_many_are_under_way_and_no_more(concurrency: int) -> None:
    """Each waits until as many as may be have met; 18 records come in whole rounds."""
    n_under_way, most = 0, 0
    meeting = asyncio.Barrier(concurrency)

    async def meet(x: int) -> int:
        nonlocal n_under_way, most
        n_under_way += 1
        most = max(most, n_under_way)
        await meeting.wait()
        n_under_way -= 1
        return x

    def build(scope: Any) -> Any:
        return scope.to_stream(range(18)).map(meet, concurrency=concurrency)

    assert records(collect(build)) == list(range(18))
    assert most == concurrency


def test_a_time_is_complete_when_its_coroutines_are() -> None:
    """Epoch 0 waits for a gate that epoch 1 opens: results come as they come, at their time."""
    seen: list[Any] = []

    def main(worker: ps.Worker) -> None:
        gate = asyncio.Event()

        async def pass_gate(x: str) -> str:
            if x == "late":
                await gate.wait()
            else:
                gate.set()
            return x

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            mapped = stream.map(pass_gate)
            probe = mapped.inspect_batch(lambda t, batch: seen.append((t, batch))).probe()
        input.send("late")
        input.advance_to(1)
        for _ in range(100):
            worker.step()
        assert probe.less_equal(0)  # nothing is under way but the coroutine
        input.send("early")
        input.advance_to(2)
        worker.step_while(lambda: probe.less_than(2))

    ps.execute(main)
    assert sorted(seen) == [(0, ["late"]), (1, ["early"])]


def test_one_capability_is_held_per_time() -> None:
    def main(worker: ps.Worker) -> list[int]:
        opened = asyncio.Event()

        async def wait(x: int) -> int:
            await opened.wait()
            return x

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            mapped = stream.map(wait)
            probe = mapped.probe()
        operator: Any = scope._children[mapped.source[0]]
        for epoch in range(3):
            for x in range(10):
                input.send(x)
            input.advance_to(epoch + 1)
        input.close()
        n_held = []
        for _ in range(10):
            worker.step()
        n_held.append(operator.capabilities[0].n_held)
        worker.environment.event_loop().call(opened.set)
        worker.step_while(lambda: not probe.done)
        return [*n_held, operator.capabilities[0].n_held]

    assert ps.execute(main) == [[3, 0]]


def test_a_worker_with_only_coroutines_parks() -> None:
    """It takes some steps, and not as many as there is time for while a timer runs."""

    async def later(x: int) -> int:
        await asyncio.sleep(0.05)
        return x

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).map(later).probe()
        n_steps = 0
        while not probe.done:
            worker.step_or_park()
            n_steps += 1
        return n_steps

    for n_steps in ps.execute(main, workers=2, threads=True):
        assert n_steps < 60


def test_a_parked_worker_is_woken_by_what_resolves() -> None:
    """Nothing else wakes it, and it waits without a bound; over processes too."""

    def main(worker: ps.Worker) -> float:
        woken: list[float] = []

        async def now(x: int) -> float:
            await asyncio.sleep(0.02)
            return time.monotonic()

        with worker.dataflow() as scope:
            stream = scope.to_stream(range(8)).map(now, concurrency=1)
            stream.inspect(lambda resolved: woken.append(time.monotonic() - resolved))
        worker.run()
        return min(woken)

    # Generous, and the least of some: one that only looks now and then would need a multiple of it.
    assert max(ps.execute(main, workers=2)) < 0.1
    assert max(ps.execute(main)) < 0.1


def test_sockets_and_timers_work_in_coroutines(workers: int) -> None:
    async def answer(reader: Any, writer: Any) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def ask(text: str) -> str:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(f"{text}\n".encode())
            async with asyncio.timeout(FOREVER_S):
                answered = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return answered.decode().strip()

    def build(scope: Any) -> Any:
        return scope.to_stream(["a", "b", "c"] if scope.index == 0 else []).exchange().map(ask)

    assert records(collect(build, workers)) == ["A", "B", "C"]


def test_what_a_coroutine_raises_is_the_operators_error() -> None:
    with pytest.raises(WorkerError, match=r"'Map' failed at time 0: ValueError\('0 is") as caught:
        collect(lambda s: rows(s).map(refuses))
    assert (caught.value.operator, caught.value.time) == ("Map", 0)
    assert "in refuses" in caught.value.original


def test_the_error_has_the_time_of_its_record() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.map(refuses)
        input.send(1)
        input.advance_to(7)
        input.send(5)

    with pytest.raises(WorkerError) as caught:
        ps.execute(main)
    assert caught.value.time == 7


async def refuses_all(x: int) -> Any:
    for y in (x, x):
        yield await refuses(y)


@pytest.mark.parametrize("method", ["map", "flat_map"])
def test_coroutines_fail_as_data(method: str, workers: int) -> None:
    function: Any = refuses if method == "map" else refuses_all
    good = [x for x in NUMBERS if x % 5] * (1 if method == "map" else 2)

    def build(scope: Any) -> Any:
        kept, failed = getattr(rows(scope), method)(function, on_error="route", concurrency=2)
        said = failed.map(lambda f: (f.record, str(f.error)))
        return kept.map(lambda x: (x, "")).concat(said)

    found = records(collect(build, workers))
    assert sorted(x for x, error in found if not error) == sorted(good)
    assert [error for _, error in found if error] == [f"{x} is refused" for x in (0, 5, 10, 15)]

    def main(worker: ps.Worker) -> tuple[int, int]:
        kept: list[int] = []
        with worker.dataflow() as scope:
            getattr(rows(scope), method)(function, on_error="drop").inspect(kept.append)
        worker.run()
        return len(kept), sum(worker.dropped.values())

    parts = ps.execute(main, workers=workers, threads=True)
    assert [sum(part) for part in zip(*parts, strict=True)] == [len(good), 4]


def test_a_batch_that_is_dropped_counts_its_records() -> None:
    async def refuse(batch: Any) -> Any:
        raise ValueError("no")

    def main(worker: ps.Worker) -> dict[str, int]:
        with worker.dataflow() as scope:
            scope.batches_to_stream([[1, 2, 3]]).map_batches(refuse, on_error="drop")
        worker.run()
        return worker.dropped

    assert ps.execute(main) == [{"MapBatches": 3}]


def test_interruptions_of_a_coroutine_stop_the_worker() -> None:
    async def leave(x: int) -> int:
        raise SystemExit(3)

    with pytest.raises(WorkerError, match=r"sys\.exit"):
        collect(lambda s: rows(s).map(leave, on_error="drop"))


def test_an_interruption_elsewhere_in_the_loop_stops_the_worker_too() -> None:
    """A task of the user's own ends the loop; whoever waits for it must not wait for ever."""

    def leave() -> None:
        raise SystemExit(3)

    async def wait(x: int) -> int:
        asyncio.get_running_loop().call_soon(leave)
        await asyncio.sleep(FOREVER_S)
        return x

    with pytest.raises(WorkerError, match=r"sys\.exit"):
        collect(lambda s: rows(s).map(wait))


def test_a_coroutine_that_somebody_cancels_has_failed() -> None:
    async def cancelled(x: int) -> int:
        raise asyncio.CancelledError

    async def cancels_itself(x: int) -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(FOREVER_S)
        return x

    for function in (cancelled, cancels_itself):
        with pytest.raises(WorkerError, match="its coroutine was cancelled"):
            collect(lambda s, function=function: rows(s).map(function))

        def build(scope: Any, function: Any = function) -> Any:
            return rows(scope).map(function, on_error="route")[1].map(lambda f: f.record)

        assert records(collect(build)) == NUMBERS


def test_what_cannot_be_awaited_is_said() -> None:
    with pytest.raises(WorkerError, match="returned int"):
        collect(lambda s: rows(s).map(abs, concurrency=2))


@pytest.mark.parametrize("concurrency", [0, -1, 2.0, True, "many"])
def test_concurrency_is_checked_when_the_dataflow_is_built(concurrency: Any) -> None:
    with pytest.raises(WorkerError, match="1 or more"):
        collect(lambda s: rows(s).map(square, concurrency=concurrency))


def test_columns_are_refused_where_records_are_taken() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1]})
    with pytest.raises(WorkerError, match="use map_batches"):
        collect(lambda s: s.batches_to_stream([batch]).map(square))


class Cancelled:
    """Coroutines that wait for ever, and what became of them."""

    def __init__(self) -> None:
        self.n_begun = 0
        self.n_ended = 0

    async def wait(self, x: Any) -> Any:
        self.n_begun += 1
        try:
            await asyncio.sleep(FOREVER_S)
        finally:
            self.n_ended += 1

    async def source(self, input: ps.AsyncInput) -> Any:
        yield 1
        await self.wait(1)


def begun(worker: ps.Worker, waiting: Cancelled, n: int = 1) -> None:
    """Step until so many coroutines have begun."""
    until = time.monotonic() + FOREVER_S
    while waiting.n_begun < n:
        worker.step_or_park(0.001)
        assert time.monotonic() < until


@pytest.mark.parametrize("kind", ["map", "source"])
def test_coroutines_are_cancelled_when_the_worker_fails(kind: str) -> None:
    waiting = Cancelled()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            if kind == "map":
                scope.to_stream([1, 2]).map(waiting.wait)
            else:
                scope.async_source(waiting.source)
        begun(worker, waiting, 2 if kind == "map" else 1)
        raise ValueError("something else")

    began = time.monotonic()
    with pytest.raises(WorkerError, match="something else"):
        ps.execute(main)
    assert waiting.n_ended == (2 if kind == "map" else 1)
    assert time.monotonic() - began < FOREVER_S / 2


def test_coroutines_are_cancelled_when_a_peer_fails() -> None:
    waiting = Cancelled()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).map(waiting.wait)
        if worker.index == 1:
            begun(worker, waiting, 2)
            raise ValueError("something else")

    with pytest.raises(WorkerError, match="something else"):
        ps.execute(main, workers=2, threads=True)
    assert waiting.n_ended == 2


def test_coroutines_are_cancelled_when_their_dataflow_ends_before_them() -> None:
    """Whatever ends it calls its closers; the worker, and other dataflows, go on."""
    waiting = Cancelled()

    def main(worker: ps.Worker) -> list[int]:
        with worker.dataflow("given up") as scope:
            scope.to_stream([1, 2]).map(waiting.wait)
        given_up: Any = worker._dataflows[0]
        begun(worker, waiting, 2)
        assert worker.environment.n_outside == 2
        given_up.closers.close()
        assert worker.environment.n_outside == 0
        out: list[int] = []
        with worker.dataflow("another") as scope:
            probe = scope.to_stream([3]).map(square).inspect(out.append).probe()
        until = time.monotonic() + FOREVER_S
        while waiting.n_ended < 2 or not probe.done:
            worker.step_or_park(0.001)
            assert time.monotonic() < until
        raise ValueError(out)

    with pytest.raises(WorkerError, match=r"\[9\]"):
        ps.execute(main)


def test_a_loop_that_does_not_end_is_not_waited_for() -> None:
    """Code that blocks the loop's thread cannot be cancelled; the error comes all the same."""
    gate = threading.Event()
    is_blocked = threading.Event()

    async def block(x: int) -> None:
        is_blocked.set()
        gate.wait()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).map(block)
        until = time.monotonic() + FOREVER_S
        while not is_blocked.is_set():
            worker.step_or_park(0.001)
            assert time.monotonic() < until
        raise ValueError("something else")

    try:
        with pytest.raises(WorkerError, match="something else"):
            ps.execute(main)
    finally:
        gate.set()


def test_the_loop_is_of_the_worker_and_shared_by_its_operators() -> None:
    async def where(x: int) -> Any:
        return threading.current_thread().name, id(asyncio.get_running_loop())

    def build(scope: Any) -> Any:
        return rows(scope).map(where).concat(rows(scope).map(where))

    assert len({*records(collect(build))}) == 1


async def ticks(input: ps.AsyncInput) -> Any:
    """Three epochs of two records on each worker."""
    for epoch in range(3):
        for i in range(2):
            await asyncio.sleep(0)
            yield (epoch, input.index, i)
        input.advance_to(epoch + 1)


def test_source_runs_an_asynchronous_generator() -> None:
    async def ticks(input: ps.AsyncInput) -> Any:
        yield "tick"

    assert ps.testing.collect(lambda scope: scope.source(ticks)) == [(0, "tick")]


def test_a_source_gives_at_the_times_it_advances_to(workers: int) -> None:
    found = collect(lambda s: s.async_source(ticks), workers)
    assert found == sorted(
        (epoch, (epoch, index, i)) for epoch in range(3) for index in range(workers) for i in (0, 1)
    )


def test_a_source_holds_its_time_until_it_advances_or_ends() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        gate = asyncio.Event()

        async def source(input: ps.AsyncInput) -> Any:
            yield "first"
            await gate.wait()
            input.advance_to(5)
            await gate.wait()
            yield "second"

        seen: list[Any] = []
        with worker.dataflow() as scope:
            stream = scope.async_source(source)
            probe = stream.inspect_batch(lambda t, batch: seen.append((t, *batch))).probe()
        worker.step_while(lambda: not seen)
        assert probe.elements == [0]
        worker.environment.event_loop().call(gate.set)
        worker.step_while(lambda: not probe.done)
        return seen

    assert ps.execute(main) == [[(0, "first"), (5, "second")]]


def test_a_source_may_give_batches(workers: int) -> None:
    async def source(input: ps.AsyncInput) -> Any:
        for x in NUMBERS[input.index :: input.peers]:
            yield pa.RecordBatch.from_pydict({"x": [x]})

    found = collect(lambda s: s.async_source(source, batches=True), workers)
    assert records(found) == [(x,) for x in NUMBERS]


def test_a_source_does_not_run_ahead_of_its_worker() -> None:
    """The worker does not step until the source waits for it."""
    given: list[int] = []
    waits = threading.Event()

    async def source(input: ps.AsyncInput) -> Any:
        for x in range(100):
            given.append(x)
            if x == 9:
                asyncio.get_running_loop().call_soon(waits.set)
            yield x

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            probe = scope.async_source(source, buffer=10).probe()
        worker.step()
        assert waits.wait(FOREVER_S)
        n_given = len(given)
        worker.step_while(lambda: not probe.done)
        return n_given

    assert ps.execute(main) == [10]
    assert given == list(range(100))


def test_the_error_of_a_source_has_its_time() -> None:
    async def source(input: ps.AsyncInput) -> Any:
        yield 1
        input.advance_to(3)
        raise ValueError("dry")

    with pytest.raises(WorkerError, match=r"'AsyncSource' failed at time 3: ValueError") as caught:
        collect(lambda s: s.async_source(source))
    assert caught.value.time == 3


def test_a_source_cannot_go_back() -> None:
    async def source(input: ps.AsyncInput) -> Any:
        input.advance_to(3)
        yield 1
        input.advance_to(2)

    with pytest.raises(WorkerError, match="is at 3 and cannot go back to 2"):
        collect(lambda s: s.async_source(source))


def test_a_source_of_no_buffer_is_refused() -> None:
    with pytest.raises(WorkerError, match="1 or more, not 0"):
        collect(lambda s: s.async_source(ticks, buffer=0))


def test_the_end_of_a_source_runs_its_finally() -> None:
    ended = []

    async def source(input: ps.AsyncInput) -> Any:
        try:
            yield 1
        finally:
            ended.append(True)

    assert collect(lambda s: s.async_source(source)) == [(0, 1)]
    assert ended == [True]


def test_coroutines_in_a_loop_of_the_dataflow(workers: int) -> None:
    """Rounds of an iterative scope, each awaited: times are products."""

    async def halve(x: int) -> int:
        await asyncio.sleep(0)
        return x // 2

    def build(scope: Any) -> Any:
        with scope.iterative() as inner:
            loop, again = inner.feedback(1)
            halved = rows(scope).enter(inner).concat(again).map(halve, concurrency=4)
            done, rest = halved.branch(lambda x: x > 0)
            loop.connect(rest)
            return done.leave()

    assert records(collect(build, workers)) == [0] * 20


def test_a_simulation_waits_for_coroutines_when_nothing_else_is_left(workers: int) -> None:
    async def later(x: int) -> int:
        await asyncio.sleep(0.001)
        return x

    def main(worker: ps.Worker) -> int:
        out: list[int] = []
        with worker.dataflow() as scope:
            both = rows(scope).exchange().map(later).concat(scope.async_source(source))
            both.exchange().inspect(out.append)
        worker.run()
        return sum(out)

    async def source(input: ps.AsyncInput) -> Any:
        for _ in range(3):
            await asyncio.sleep(0.001)
            yield 1

    for seed in range(3):
        sums: Callable[..., Any] = ps.simulate
        assert sum(sums(main, workers=workers, seed=seed)) == sum(NUMBERS) + 3 * workers


def test_nobody_is_told_that_a_time_is_complete_before_its_coroutines_are(workers: int) -> None:
    """The oracle looks after every decision, and when anybody is told anything."""

    async def later(x: int) -> int:
        await asyncio.sleep(0.001 * (x % 3))
        if x % 5 == 0:
            raise ValueError(f"{x} is refused")
        return x

    def main(worker: ps.Worker) -> int:
        out: list[int] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            good, failed = stream.exchange().map(later, on_error="route", concurrency=2)
            both = good.concat(failed.map(lambda f: f.record)).exchange()
            both.count().inspect(out.append)
        for epoch in range(4):
            for x in range(worker.index, 8, worker.peers):
                input.send(x)
            input.advance_to(epoch + 1)
        input.close()
        worker.run()
        return sum(out)

    for seed in range(2):
        with Oracle() as oracle:
            schedule = Schedule(seed)
            simulation = Simulation(workers, schedule, observe=oracle.observe)
            assert sum(simulation.run(main)) == 4 * 8
            oracle.check_end(simulation)


def test_the_loop_ends_with_the_worker_over_processes() -> None:
    """A process with a thread that does not end would not end either."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            probe = rows(scope).map(square).probe()
        worker.step_while(lambda: not probe.done)
        names = [thread.name for thread in threading.enumerate()]
        return [name for name in names if name.startswith("pointstamp-coroutines")]

    assert ps.execute(main, workers=2) == [
        ["pointstamp-coroutines-0"],
        ["pointstamp-coroutines-1"],
    ]
