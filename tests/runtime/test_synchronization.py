"""The sequencer and the barrier, on every carrier and in any order of events."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import InputError

CARRIERS = [
    pytest.param({"workers": 1}, id="one"),
    pytest.param({"workers": 2, "threads": True}, id="two threads"),
    pytest.param({"workers": 4, "threads": True}, id="four threads"),
    pytest.param({"workers": 2}, id="two processes", marks=pytest.mark.once),
    pytest.param({"workers": 4}, id="four processes", marks=pytest.mark.once),
]


def push_all(worker: Any, n_each: int) -> list[tuple[int, int]]:
    """Every worker pushes, some while it takes; all that came, in order."""
    log: ps.Sequencer[tuple[int, int]] = ps.Sequencer(worker)
    found = []
    for number in range(n_each):
        log.push((worker.index, number))
        worker.step()
        found.extend(log)
    log.close()
    while not log.done:
        worker.step_or_park()
    while (element := log.pop()) is not None:
        found.append(element)
    assert len(log) == 0
    return found


def check_order(results: list[list[tuple[int, int]]], n_each: int) -> None:
    first, *others = results
    assert all(other == first for other in others)
    assert len(first) == n_each * len(results)
    for index in range(len(results)):
        assert [number for who, number in first if who == index] == list(range(n_each))


@pytest.mark.parametrize("carrier", CARRIERS)
def test_all_workers_see_one_order(carrier: Any) -> None:
    check_order(ps.execute(push_all, 50, **carrier), 50)


@pytest.mark.parametrize("seed", range(20))
def test_all_workers_see_one_order_whatever_happens_when(seed: int) -> None:
    check_order(ps.simulate(push_all, 8, workers=1 + seed % 4, seed=seed), 8)


def test_orders_differ_from_run_to_run_and_not_from_worker_to_worker() -> None:
    """So it is not, for one, an order of the workers."""
    orders = [ps.simulate(push_all, 4, workers=3, seed=seed)[0] for seed in range(10)]
    assert len({tuple(order) for order in orders}) > 1


def test_several_sequencers_are_independent() -> None:
    def main(worker: Any) -> list[list[str]]:
        logs: list[ps.Sequencer[str]] = [ps.Sequencer(worker, name) for name in ("a", "b")]
        for log, word in zip(logs, ("alpha", "beta"), strict=True):
            log.push(word)
            log.close()
        worker.run()
        return [list(log) for log in logs]

    n = 2
    assert ps.execute(main, workers=n, threads=True) == [[["alpha"] * n, ["beta"] * n]] * n


def test_a_closed_sequencer_takes_no_more() -> None:
    def main(worker: Any) -> None:
        log: ps.Sequencer[int] = ps.Sequencer(worker, "log")
        log.close()
        with pytest.raises(InputError, match="input 'log' is closed and cannot send"):
            log.push(1)
        assert log.pop() is None

    ps.execute(main)


def test_an_idle_sequencer_costs_nothing() -> None:
    """No worker tells the others anything while nobody pushes."""

    def main(worker: Any) -> int:
        log: ps.Sequencer[int] = ps.Sequencer(worker)
        for _ in range(3):
            log.push(1)
        told = []
        while len(log) < 3 * worker.peers:
            worker.step_or_park()
        share = worker.environment.share
        worker.environment.share = lambda *news: (told.append(news), share(*news))
        for _ in range(50):
            worker.step()
        return len(told)

    assert sum(ps.simulate(main, workers=3, seed=5)) <= 3  # what was under way


def by_command(worker: Any, commands: list[list[tuple[str, str]]]) -> dict[str, list[int]]:
    """Build and drop dataflows in the order in which all workers' commands come."""
    found: dict[str, list[int]] = {}
    inputs: dict[str, Any] = {}
    log: ps.Sequencer[tuple[str, str]] = ps.Sequencer(worker, "commands")
    for command in commands[worker.index]:
        log.push(command)
    log.close()
    while not log.done or len(log):
        for what, name in log:
            if what == "build":
                seen = found.setdefault(name, [])
                with worker.dataflow(name) as scope:
                    inputs[name], stream = scope.new_input(name)
                    stream.broadcast().inspect(seen.append).probe()
                inputs[name].send(worker.index)
            elif name in inputs:
                worker.drop_dataflow(name)
                del inputs[name]
        worker.step_or_park()
    worker.close_inputs()
    worker.run()
    return found


COMMANDS = [
    [("build", "a"), ("build", "b"), ("drop", "a")],
    [("build", "c"), ("drop", "b"), ("drop", "c"), ("build", "d")],
    [("build", "e"), ("drop", "e"), ("drop", "d")],
]


def check_commands(results: list[dict[str, list[int]]]) -> None:
    for found in results:
        assert found.keys() == {"a", "b", "c", "d", "e"}
        assert all(set(seen) <= set(range(len(results))) for seen in found.values())


@pytest.mark.parametrize("seed", range(15))
def test_commands_of_any_worker_build_and_drop_alike_on_all(seed: int) -> None:
    check_commands(ps.simulate(by_command, COMMANDS, workers=3, seed=seed))


@pytest.mark.once
def test_commands_of_any_worker_build_and_drop_alike_on_processes() -> None:
    check_commands(ps.execute(by_command, COMMANDS, workers=3))


# The barrier.


def meet(worker: Any, rounds: int, log: list[tuple[int, int]]) -> None:
    barrier = ps.Barrier(worker)
    assert barrier.reached()
    for round in range(rounds):
        log.append((round, worker.index))
        barrier.wait()
        assert len([entry for entry in log if entry[0] == round]) == worker.peers
    barrier.close()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_nobody_passes_a_barrier_before_all_have_come(workers: int) -> None:
    ps.execute(meet, 20, [], workers=workers, threads=True)


@pytest.mark.parametrize("seed", range(20))
def test_nobody_passes_a_barrier_before_all_have_come_whatever_the_order(seed: int) -> None:
    log: list[tuple[int, int]] = []
    ps.simulate(meet, 5, log, workers=1 + seed % 4, seed=seed)
    assert [round for round, _ in log] == sorted(round for round, _ in log)


def test_a_barrier_between_processes() -> None:
    def main(worker: Any) -> list[bool]:
        barrier = ps.Barrier(worker)
        barrier.wait()
        barrier.advance()
        early = barrier.reached()
        worker.step_while(lambda: not barrier.reached())
        return [early, barrier.reached()]

    assert ps.execute(main, workers=2) == [[False, True]] * 2


def test_dataflows_run_while_a_worker_waits_at_a_barrier() -> None:
    def main(worker: Any) -> int:
        seen: list[int] = []
        with worker.dataflow() as scope:
            scope.to_stream(range(100)).exchange().inspect(seen.append)
        barrier = ps.Barrier(worker)
        while worker.index == 0 and len(seen) < 70:
            worker.step_or_park()
        barrier.wait()
        return len(seen)

    # Half of what worker 0 waits for comes from worker 1, which waits for worker 0.
    assert ps.simulate(main, workers=2, seed=3)[0] >= 70


# Dataflows that come and go beside others.


def one_after_the_other(worker: Any, n: int) -> list[int]:
    """A long dataflow runs while others are built, run, and are complete."""
    sums: list[int] = []
    with worker.dataflow("long") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().probe()
    for number in range(n):
        with worker.dataflow(f"short {number}") as scope:
            counts = scope.to_stream([number] * (worker.index + 1)).broadcast().count()
            done = counts.inspect(sums.append).probe()
        input.send(number)
        input.advance_to(number + 1)
        if number % 2:
            worker.step_while(lambda: probe.less_than(input.time))
        else:
            worker.step_while(lambda done=done: not done.done)
    input.close()
    worker.run()
    return sums


@pytest.mark.parametrize("carrier", CARRIERS)
def test_dataflows_are_added_while_another_runs(carrier: Any) -> None:
    n = carrier["workers"]
    assert ps.execute(one_after_the_other, 6, **carrier) == [[n * (n + 1) // 2] * 6] * n


@pytest.mark.parametrize("seed", range(15))
def test_dataflows_are_added_while_another_runs_whatever_the_order(seed: int) -> None:
    n = 1 + seed % 4
    results = ps.simulate(one_after_the_other, 4, workers=n, seed=seed)
    assert results == [[n * (n + 1) // 2] * 4] * n
