"""Dropping a dataflow: nothing of it runs or is held, and nobody is told that it is complete."""

from __future__ import annotations

import weakref
from itertools import chain
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.communication.shared_link import INLINE_BYTES
from pointstamp.containers import Arrays
from pointstamp.errors import (
    CapabilityError,
    DroppedError,
    StructureError,
    UsageError,
    WorkerError,
)
from tests.conftest import once_from, shared_out

CARRIERS = [
    pytest.param({"workers": 1}, id="one"),
    pytest.param({"workers": 2, "threads": True}, id="two threads"),
    pytest.param({"workers": 4, "threads": True}, id="four threads"),
    pytest.param({"workers": 2}, id="two processes", marks=pytest.mark.once),
    pytest.param({"workers": 4}, id="four processes", marks=pytest.mark.once),
]
SEEDS = shared_out(5, range(25))


def endless(worker: Any, scope: Any, notes: list[Any]) -> Any:
    """A loop through all workers that counts, and notifies of each round; its probe.

    `notes` gets ("records", round, n) as they pass, and ("complete", round).
    """

    def build(capability: Any, info: Any) -> Any:
        capability.drop()

        def logic(input: Any, output: Any, notificator: Any) -> None:
            for time, batch in input:
                notes.append(("records", time.time, len(batch)))
                with output.session(time) as session:
                    session.give_many(x + 1 for x in batch)
                notificator.notify_at(time.retain())
            for capability in notificator:
                notes.append(("complete", capability.time))
                capability.drop()

        return logic

    loop, again = scope.feedback(1)
    numbers = scope.to_stream(range(worker.index, 40, worker.peers)).concat(again)
    around = numbers.unary_notify(ps.Exchange(lambda x: x), "Around", build)
    loop.connect(around)
    return around.probe()


def drop_in_a_loop(worker: Any, rounds: int, later: int) -> tuple[list[Any], list[int]]:
    """Drop a loop when `rounds` are complete; then another dataflow runs to its end."""
    notes: list[Any] = []
    seen: list[int] = []
    with worker.dataflow("endless") as scope:
        probe = endless(worker, scope, notes)
    worker.step_while(lambda: probe.less_than(rounds))
    n_notes, answer = len(notes), (probe.elements, probe.done, probe.less_equal(10**9))
    worker.drop_dataflow(scope)
    for _ in range(later):
        worker.step()
    with worker.dataflow("after") as scope:
        scope.to_stream([worker.index]).broadcast().inspect(seen.append)
    worker.run()
    assert len(notes) == n_notes, "an operator ran after the drop"
    assert (probe.elements, probe.done, probe.less_equal(10**9)) == answer
    assert answer[1:] == (False, True)
    return notes, seen


def check_loop(results: list[tuple[list[Any], list[int]]], rounds: int) -> None:
    """What was said to be complete was: all 40 records of a round had passed."""
    workers = range(len(results))
    passed: dict[int, int] = {}
    for notes, seen in results:
        assert sorted(seen) == list(workers)
        for what, round, *n in notes:
            if what == "records":
                passed[round] = passed.get(round, 0) + n[0]
    for notes, _ in results:
        for what, round, *_n in notes:
            assert what == "records" or passed[round] == 40
    assert all(passed[round] == 40 for round in range(rounds))


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_dataflow_is_dropped_in_the_middle_of_a_loop(carrier: Any) -> None:
    check_loop(ps.execute(drop_in_a_loop, 30, 5, **carrier), 30)


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_dropped_loop_is_complete_for_nobody_whatever_the_order(workers: int, seed: int) -> None:
    rounds = seed % 5
    results = ps.simulate(drop_in_a_loop, rounds, seed % 3, workers=workers, seed=seed)
    check_loop(results, rounds)


def drop_behind_the_others(worker: Any, lag: int) -> list[int]:
    """Worker 0 drops at once, the others go on with the dataflow for a while."""
    times: list[int] = []
    with worker.dataflow("flow") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().count().inspect_batch(lambda t, _: times.append(t)).probe()
    with worker.dataflow("other") as scope:
        other, stream = scope.new_input()
        reached = stream.exchange().probe()
    for time in range(5):
        input.send(worker.index)
        input.advance_to(time + 1)
    worker.step_while(lambda: probe.less_than(5))
    if worker.index > 0:
        # As fast as they like: the time is held by the input of worker 0, which is gone.
        for time in range(5, 5 + lag):
            input.send_batch(list(range(100)))
            input.advance_to(time + 1)
            worker.step()
        assert not probe.done
        assert probe.less_equal(5)
    worker.drop_dataflow("flow")
    for time in range(5):
        other.send(time)
        other.advance_to(time + 1)
        worker.step_while(lambda: reached.less_than(other.time))
    return times


@pytest.mark.parametrize("carrier", CARRIERS)
def test_peers_that_drop_later_see_no_time_as_complete_that_is_not(carrier: Any) -> None:
    for times in ps.execute(drop_behind_the_others, 20, **carrier):
        assert set(times) <= set(range(5))


@pytest.mark.parametrize("seed", SEEDS)
def test_peers_that_drop_later_see_no_more_whatever_the_order(seed: int) -> None:
    for times in ps.simulate(drop_behind_the_others, seed, workers=2 + seed % 3, seed=seed):
        assert set(times) <= set(range(5))


def drop_with_an_inner_loop(worker: Any, epochs: int) -> list[tuple[int, int]]:
    """Each drops as soon as it sees `epochs` complete, which run through a loop in a scope."""
    found: list[tuple[int, int]] = []
    with worker.dataflow("nested") as scope:
        input, stream = scope.new_input()
        with scope.iterative() as inner:
            loop, again = inner.feedback(1, limit=6)
            around = stream.enter(inner).concat(again).exchange().map(lambda x: x + 1)
            loop.connect(around)
            last = around.filter(lambda x: x % 10 == 6).leave()
        probe = last.inspect_batch(lambda t, batch: found.extend((t, x) for x in batch)).probe()
    for epoch in range(epochs + 3):
        input.send(100 * worker.index + 10 * epoch)
        input.advance_to(epoch + 1)
    worker.step_while(lambda: probe.less_than(epochs))
    worker.drop_dataflow("nested")
    assert not probe.done
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_what_one_saw_complete_before_it_dropped_all_come_to_see(seed: int) -> None:
    """Else those that wait for it would wait for ever, and the simulation says so."""
    workers, epochs = 2 + seed % 3, 1 + seed % 4
    results = ps.simulate(drop_with_an_inner_loop, epochs, workers=workers, seed=seed)
    found = sorted(item for result in results for item in result if item[0] < epochs)
    assert found == [
        (epoch, 100 * index + 10 * epoch + 6) for epoch in range(epochs) for index in range(workers)
    ]


def drop_before_it_starts(worker: Any) -> int:
    """The peers may not even have built it when the first worker drops it."""
    seen: list[int] = []
    for number in range(6):
        with worker.dataflow(f"flow {number}") as scope:
            scope.to_stream(range(10)).exchange().inspect(seen.append).probe()
        if number % 2:
            worker.drop_dataflow(f"flow {number}")
    worker.run()
    return len(seen)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dataflow_may_be_dropped_before_it_has_started(seed: int) -> None:
    n_seen = sum(ps.simulate(drop_before_it_starts, workers=1 + seed % 4, seed=seed))
    n_each = 10 * (1 + seed % 4)
    assert n_seen >= 3 * n_each  # what was not dropped


# What is let go.


class Witness:
    """Something that an operator has; weak references tell when it is gone."""


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_the_operators_have_is_let_go_at_once(carrier: Any) -> None:
    def main(worker: Any) -> list[bool]:
        witnesses = []
        dropped: list[str] = []

        def build(capability: Any, info: Any) -> Any:
            witness = Witness()
            witnesses.append(weakref.ref(witness))
            info.environment.closers.callback(dropped.append, info.name)
            info.activate_after(3_600.0)

            def logic(input: Any, output: Any) -> Any:
                return len((witness, capability, info)) == 0

            return logic

        with worker.dataflow("flow") as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                stream.enter(inner).unary(ps.Exchange(lambda x: 0), "Inner", build).leave().probe()
            stream.unary_frontier(ps.Pipeline(), "Outer", build).probe()
        input.send(Witness())
        worker.step()
        worker.drop_dataflow("flow")
        environment = worker.environment
        assert dropped == ["Outer", "Inner"]
        assert worker.outstanding() == []
        assert list(environment.inputs) == []
        assert worker.timers.waiting == []
        assert len(environment.arrivals) == len(environment.channels) == 2  # the worker's own
        return [witness() is None for witness in witnesses]

    for gone in ps.execute(main, **carrier):
        assert gone == [True, True]


def test_capabilities_of_a_dropped_dataflow_allow_nothing_and_drop_quietly() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("flow") as scope:
            (input, capability), stream = scope.unordered_input()
            probe = stream.probe()
        worker.step()
        later = capability.delayed(3)
        session = input.session(later)
        worker.drop_dataflow("flow")
        for send in (session.give, lambda x: input.send(later, x)):
            with pytest.raises(DroppedError, match="cannot send at 3: its dataflow was dropped"):
                send(1)
        later.drop()
        del capability
        while worker.has_work:
            worker.step()
        assert probe.less_equal(0)
        with pytest.raises(CapabilityError, match="it was dropped"):
            later.check("send")

    ps.execute(main)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_inputs_of_a_dropped_dataflow_say_so_and_close_quietly(workers: int) -> None:
    def main(worker: Any) -> int:
        seen: list[int] = []
        shared = ps.SharedInput()
        with worker.dataflow("flow") as scope:
            input, stream = scope.new_input("mine")
            stream.concat(shared.to_stream(scope)).exchange().probe()
        with worker.dataflow("kept") as scope:
            shared.to_stream(scope).exchange().inspect(seen.append)
        worker.drop_dataflow("flow")
        for use in (
            lambda: input.send(1),
            lambda: input.send_batch([1]),
            lambda: input.advance_to(1),
        ):
            with pytest.raises(
                DroppedError, match=r"input 'mine' cannot .* its dataflow was dropped"
            ):
                use()
        input.close()
        assert input.time == 0
        shared.send(worker.index)
        shared.advance_to(1)
        shared.close()
        worker.run()
        return len(seen)

    assert sum(ps.execute(main, workers=workers, threads=True)) == workers


def test_activators_of_a_dropped_dataflow_do_nothing() -> None:
    def main(worker: Any) -> list[str]:
        rings: list[Any] = []
        runs: list[str] = []

        def build(capability: Any, info: Any) -> Any:
            rings.extend([info.activate, info.thread_activator(), lambda: info.activate_after(0)])

            def logic(output: Any) -> None:
                runs.append(repr(capability))

            return logic

        with worker.dataflow("flow") as scope, scope.region() as region:
            region.source(build)
        worker.step()
        rings[1]()  # before the drop, and heard after it
        worker.drop_dataflow("flow")
        for ring in rings:
            ring()
        while worker.has_work:
            worker.step()
        return runs

    assert [len(runs) for runs in ps.execute(main)] == [1]


def test_a_controlled_source_that_was_dropped_is_not_woken_any_more() -> None:
    def main(worker: Any) -> int:
        probe = ps.Probe()
        with worker.dataflow("probed") as scope:
            input, stream = scope.new_input()
            stream.probe_with(probe)
        with worker.dataflow("flow") as scope:
            scope.flow_controlled(((time, [time]) for time in range(9)), probe)
        worker.step()
        worker.drop_dataflow("flow")
        input.advance_to(5)
        worker.step_while(lambda: probe.less_than(5))
        return len(probe.listeners)

    assert ps.execute(main) == [0]


def test_whatever_an_operator_wants_called_raises_all_else_is_let_go() -> None:
    def main(worker: Any) -> list[Any]:
        called: list[str] = []

        def build(capability: Any, info: Any) -> Any:
            def fail() -> None:
                called.append(info.name)
                raise OSError(info.name)

            info.environment.closers.callback(fail)
            return lambda output: capability.time == 1

        with worker.dataflow("flow") as scope:
            scope.source(build, "one")
            scope.source(build, "two")
        worker.step()
        with pytest.raises(OSError):
            worker.drop_dataflow("flow")
        worker.run()
        return [*called, worker.outstanding()]

    assert ps.execute(main) == [["two", "one", []]]


# Batches on their way.


def large_batches_under_way(worker: Any, n: int) -> tuple[int, int]:
    """Bytes of a peer's shared memory that are lent here: while they wait, and after the drop."""
    with worker.dataflow("flow") as scope:
        input, stream = scope.new_input()
        stream.broadcast().unary_frontier(
            ps.Pipeline(), "Keeps", lambda capability, info: keeping(capability)
        )
    with worker.dataflow("other") as scope:
        other, stream = scope.new_input()
        probe = stream.broadcast().probe()

    def lent() -> int:
        links = worker.communicator._links.values()
        return sum(link._leases.n_leased_bytes for link in links if link._leases is not None)

    def meet() -> None:
        other.send(worker.index)
        other.advance_to(other.time + 1)
        worker.step_while(lambda: probe.less_than(other.time))

    for _ in range(n):
        input.send_batch(Arrays(v=np.arange(INLINE_BYTES)))
        worker.step()
    meet()
    waiting = lent()
    if worker.index == 0:
        worker.drop_dataflow("flow")
        meet()
        meet()
    else:
        # They go on sending to the worker that has dropped it.
        for _ in range(n):
            input.send_batch(Arrays(v=np.arange(INLINE_BYTES)))
            worker.step()
        meet()
        worker.drop_dataflow("flow")
        meet()
    meet()
    meet()
    return waiting, lent()


def keeping(capability: Any) -> Any:
    kept: list[Any] = []

    def logic(input: Any, output: Any) -> Any:
        kept.extend(batch for _, batch in input)
        return len((capability, kept)) == 0

    return logic


@pytest.mark.parametrize("workers", once_from(4, [2, 4]))
def test_shared_memory_of_batches_under_way_goes_back(workers: int) -> None:
    for waiting, after in ps.execute(large_batches_under_way, 3, workers=workers):
        assert waiting > 0
        assert after == 0


# All workers drop alike, or it is an error.


def test_a_dropped_name_may_be_built_again_and_means_the_last() -> None:
    def main(worker: Any) -> int:
        seen: list[int] = []
        for number in range(3):
            with worker.dataflow("again") as scope:
                _, stream = scope.new_input()
                scope.to_stream([number]).exchange().concat(stream).inspect(seen.append)
            if number < 2:
                worker.drop_dataflow("again")
        worker.close_inputs()
        worker.run()
        return seen.count(2)

    assert sum(ps.execute(main, workers=2, threads=True)) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_complete_dataflow_may_be_dropped(seed: int) -> None:
    """It may be complete on one worker and not yet on another."""

    def main(worker: Any) -> int:
        seen: list[int] = []
        with worker.dataflow("short") as scope:
            probe = scope.to_stream(range(10)).exchange().inspect(seen.append).probe()
        worker.step_while(lambda: not probe.done)
        worker.drop_dataflow("short")
        return len(seen)

    workers = 1 + seed % 4
    assert sum(ps.simulate(main, workers=workers, seed=seed)) == 10 * workers


def test_what_is_no_dataflow_cannot_be_dropped() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("flow") as scope:
            with scope.region() as region:
                pass
            with pytest.raises(UsageError, match="while one is built"):
                worker.drop_dataflow("flow")
        for wrong in ("folw", region, 7):
            with pytest.raises(UsageError, match=r"no dataflow of it; there are \['flow'\]"):
                worker.drop_dataflow(wrong)
        worker.drop_dataflow(scope)
        with pytest.raises(UsageError, match="it was dropped before"):
            worker.drop_dataflow(scope)

    ps.execute(main)


def test_an_operator_cannot_drop() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow("flow") as scope:
            scope.to_stream([1]).inspect(lambda x: worker.drop_dataflow("flow"))
        worker.run()

    with pytest.raises(WorkerError, match="inside of a step, by an operator"):
        ps.execute(main)


def drop_another(worker: Any) -> None:
    for name in ("even", "odd"):
        with worker.dataflow(name) as scope:
            scope.new_input()
    worker.drop_dataflow(("even", "odd")[worker.index % 2])
    worker.step_while(lambda: True)


def drop_at_another_point(worker: Any) -> None:
    for name in ("first", "second"):
        with worker.dataflow(name) as scope:
            scope.new_input()
        if worker.index == (name == "second"):
            worker.drop_dataflow("first")
    worker.step_while(lambda: True)


def drop_on_one(worker: Any) -> None:
    with worker.dataflow("flow") as scope:
        scope.new_input()[1].exchange().probe()
    if worker.index == 0:
        worker.drop_dataflow("flow")


def drop_while_the_others_run(worker: Any) -> None:
    with worker.dataflow("flow") as scope:
        input, stream = scope.new_input()
        stream.exchange().probe()
    if worker.index == 0:
        worker.drop_dataflow("flow")
    else:
        input.close()
        worker.run()


def drop_what_is_complete_on_one(worker: Any) -> None:
    with worker.dataflow("flow") as scope:
        scope.to_stream([1]).exchange().probe()
    worker.run()
    if worker.index == 1:
        worker.drop_dataflow("flow")


def build_another_and_drop_it(worker: Any) -> None:
    with worker.dataflow("flow") as scope:
        stream = scope.new_input()[1]
        if worker.index:
            stream.probe()
    worker.drop_dataflow("flow")


def run_and_drop(worker: Any) -> list[int]:
    found: list[int] = []
    for name in ("one", "another"):
        with worker.dataflow(name) as scope:
            scope.to_stream(range(10)).exchange().inspect(found.append)
    for name in ("one", "another"):
        worker.run(name)
        worker.drop_dataflow(name)
    return found


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_one_worker_has_completed_and_dropped_another_may_still_wait_for(carrier: Any) -> None:
    parts = ps.execute(run_and_drop, **carrier)
    assert sorted(chain.from_iterable(parts)) == sorted([*range(10)] * 2 * len(parts))


@pytest.mark.parametrize("seed", range(20))
def test_so_it_may_whatever_the_order(seed: int) -> None:
    parts = ps.simulate(run_and_drop, workers=3, seed=seed)
    assert sorted(chain.from_iterable(parts)) == sorted([*range(10)] * 2 * 3)


UNLIKE = [
    drop_another,
    drop_at_another_point,
    drop_on_one,
    drop_while_the_others_run,
    drop_what_is_complete_on_one,
    build_another_and_drop_it,
]


@pytest.mark.parametrize("main", UNLIKE, ids=[main.__name__ for main in UNLIKE])
@pytest.mark.parametrize("carrier", [c for c in CARRIERS if "two" in str(c.id)])
def test_workers_that_drop_differently_are_told_so(main: Any, carrier: Any) -> None:
    with pytest.raises(WorkerError, match="in the same order") as caught:
        ps.execute(main, **carrier)
    assert isinstance(caught.value.__cause__, StructureError)


@pytest.mark.parametrize("main", UNLIKE, ids=[main.__name__ for main in UNLIKE])
@pytest.mark.parametrize("seed", range(8))
def test_workers_that_drop_differently_are_told_so_whatever_the_order(main: Any, seed: int) -> None:
    with pytest.raises(WorkerError, match="in the same order"):
        ps.simulate(main, workers=3, seed=seed)


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_beside_a_drop_is_named(seed: int) -> None:
    try:
        check_loop(ps.simulate(drop_in_a_loop, 3, 2, workers=3, seed=seed, crash=True), 3)
    except WorkerError as error:
        assert "crashed" in str(error)  # noqa: PT017
