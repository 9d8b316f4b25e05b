"""Several workers in one thread: the programs of the design, seeds, records, crashes."""

from __future__ import annotations

import collections
import gc
import os
import subprocess
import sys
import weakref
from contextlib import nullcontext
from pathlib import Path

import greenlet
import pytest

import pointstamp as ps
from pointstamp.communication.simulated import SLOWNESS
from pointstamp.errors import (
    PeerFailedError,
    PeerLostError,
    StalledError,
    StructureError,
    UsageError,
    WorkerError,
)
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation

SEEDS = range(6)


def hello(worker):
    seen = []
    with worker.dataflow("hello") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).inspect(seen.append).probe()
    for round in range(10):
        if worker.index == 0:
            input.send(round)
        input.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(input.time))
    return seen


def barrier(worker, rounds):
    noted = []

    def build(capability, info):
        def logic(input, output, notificator):
            for cap in notificator:
                noted.append(cap.time)
                if cap.time + 1 < rounds:
                    notificator.notify_at(cap.delayed(cap.time + 1))

        return logic

    with worker.dataflow() as scope:
        loop, stream = scope.feedback(1)
        loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]))
    worker.run()
    return noted


def collatz(worker, upto):
    out = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream([(n, n, 0) for n in range(1, upto)] if worker.index == 0 else [])
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1)
            done, rest = (
                numbers.enter(inner)
                .concat(cycle)
                .exchange(lambda x: x[0])
                .branch(lambda x: x[1] != 1)
            )
            loop.connect(
                rest.map(lambda x: (x[0], x[1] // 2 if x[1] % 2 == 0 else 3 * x[1] + 1, x[2] + 1))
            )
            done.leave().inspect_batch(
                lambda time, batch: out.extend((n, steps) for n, _, steps in batch)
            )
    worker.run()
    return out


def word_count(worker, lines):
    found = []

    def build(capability, info):
        capability.drop()
        held = {}

        def logic(input, output):
            for time, batch in input:
                held.setdefault(time.retain(), []).extend(batch)
            for cap in [c for c in held if not input.frontier.less_equal(c.time)]:
                with output.session(cap) as session:
                    for word, n in collections.Counter(held.pop(cap)).items():
                        session.give((word, n))
                cap.drop()

        return logic

    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        words = stream.flat_map(str.split)
        counts = words.unary_frontier(ps.Exchange(lambda w: w), "WordCount", build)
        counts.inspect_batch(lambda time, batch: found.extend((time, *pair) for pair in batch))
    for epoch, line in enumerate(lines):
        input.advance_to(epoch)
        input.send(line)
        worker.step()
    return found


def length_of_collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def simulation(seed, workers=3, **options):
    return Simulation(workers, Schedule(seed, crash=options.pop("crash", False)), **options)


# The programs.


@pytest.mark.parametrize("seed", SEEDS)
def test_hello_sees_every_record_once(seed):
    results = ps.simulate(hello, workers=3, seed=seed)
    assert sorted(x for seen in results for x in seen) == list(range(10))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_barrier_notifies_every_worker_of_every_round_in_order(seed):
    assert ps.simulate(barrier, 30, workers=3, seed=seed) == [list(range(30))] * 3


@pytest.mark.parametrize("seed", SEEDS)
def test_collatz_lengths_are_right(seed):
    results = ps.simulate(collatz, 30, workers=3, seed=seed)
    assert sorted(x for out in results for x in out) == [
        (n, length_of_collatz(n)) for n in range(1, 30)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_words_are_counted_once_per_epoch_over_all_workers(seed):
    results = ps.simulate(word_count, ["a b a", "b"], workers=3, seed=seed)
    assert sorted(x for found in results for x in found) == [(0, "a", 6), (0, "b", 3), (1, "b", 3)]


def test_one_worker_is_enough():
    assert ps.simulate(barrier, 5, workers=1) == [[0, 1, 2, 3, 4]]


def test_a_simulation_may_run_inside_a_worker_of_another():
    def main(worker):
        return ps.simulate(lambda inner: (worker.index, inner.index), workers=2, seed=1)

    assert ps.simulate(main, workers=2) == [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]


def test_there_is_at_least_one_worker():
    with pytest.raises(UsageError, match="at least one worker"):
        ps.simulate(hello, workers=0)


# Seeds and records.


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_run(seed):
    first, second = simulation(seed), simulation(seed)
    assert first.run(collatz, 20) == second.run(collatz, 20)
    assert first.schedule.decisions == second.schedule.decisions


def test_different_seeds_give_different_runs():
    runs = []
    for seed in SEEDS:
        run = simulation(seed)
        run.run(hello)
        runs.append(tuple(run.schedule.decisions))
    assert len(set(runs)) == len(SEEDS)


def test_a_seed_means_the_same_in_every_process():
    """Python hashes strings differently in each; the order of nothing may depend on it."""
    program = (
        "from tests.runtime.test_simulate import simulation, word_count\n"
        "run = simulation(3)\n"
        "print(run.run(word_count, ['a b', 'c d e']), run.schedule.decisions)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "('run', 0)" in outputs.pop()


def test_a_record_is_played_again_whatever_the_seed():
    recorded = simulation(3)
    results = recorded.run(collatz, 20)
    again = Simulation(3, Schedule(99, replay=recorded.schedule.decisions))
    assert again.run(collatz, 20) == results
    assert again.schedule.decisions == recorded.schedule.decisions


def test_the_beginning_of_a_record_may_be_played():
    recorded = simulation(3)
    recorded.run(hello)
    half = recorded.schedule.decisions[:50]
    results = ps.simulate(hello, workers=3, seed=8, replay=half)
    assert sorted(x for seen in results for x in seen) == list(range(10))


def test_a_record_of_another_program_is_refused():
    with pytest.raises(UsageError, match=r"number 0 is \('deliver', 0, 1, 0, 1\).*play a record"):
        ps.simulate(hello, workers=3, replay=[("deliver", 0, 1, 0, 1)])


def test_a_seed_or_a_record_that_is_none_is_refused():
    for seed in ("x", None, 1.5, []):
        with pytest.raises(UsageError, match="seed that is an integer, and not"):
            ps.simulate(hello, workers=2, seed=seed)
    for replay in (5, "abc", [5], [[]], [("hop", 0)], [("run",)], [([], 0)]):
        with pytest.raises(UsageError, match="is played again from a list of decisions"):
            ps.simulate(hello, workers=2, replay=replay)


@pytest.mark.parametrize("seed", SEEDS)
def test_encoding_messages_changes_nothing(seed):
    plain, encoded = simulation(seed), simulation(seed, serialize=True)
    assert plain.run(collatz, 20) == encoded.run(collatz, 20)
    assert plain.schedule.decisions == encoded.schedule.decisions


def test_some_links_and_workers_are_far_slower_than_others():
    """Of two links that always have messages, one may get almost all deliveries."""
    ratios = []
    for seed in range(40):
        schedule = Schedule(seed)
        for _ in range(300):
            schedule.choose([], [(0, 1, 5, 1), (1, 0, 5, 1)])
        n_first = sum(decision[1] == 0 for decision in schedule.decisions)
        ratios.append(n_first / 300)
    assert min(ratios) < 0.02
    assert max(ratios) > 0.98
    assert any(0.4 < ratio < 0.6 for ratio in ratios)
    assert max(SLOWNESS) == 500


def test_messages_overtake_each_other_but_not_on_one_link():
    def main(worker):
        channels = [worker.communicator.channel() for _ in range(2)]
        for number in range(10):
            for channel in channels:
                channel.send(1 - worker.index, number, ["x"])
        taken = []
        while len(taken) < 20:
            worker.step_or_park()
            for channel in channels:
                while (message := channel.pull()) is not None:
                    taken.append((channel.id, message.tag))
        return taken

    orders = [taken for seed in range(10) for taken in ps.simulate(main, workers=2, seed=seed)]
    for taken in orders:
        first, second = sorted({channel for channel, _ in taken})
        for channel in (first, second):
            assert [tag for c, tag in taken if c == channel] == list(range(10))
    assert {taken[-1][0] for taken in orders} == {first, second}
    assert any(len({channel for channel, _ in taken[:10]}) == 1 for taken in orders)


def test_who_waits_with_a_timeout_goes_on_without_news():
    def main(worker):
        for _ in range(3):
            worker.communicator.park(10.0)
        return worker.index

    assert ps.simulate(main, workers=2) == [0, 1]


def test_an_unpark_is_news():
    def main(worker):
        worker.communicator.unpark()
        worker.communicator.park()
        return worker.index

    assert ps.simulate(main, workers=2) == [0, 1]


# What cannot go on.


def wait_for_ever(worker):
    with worker.dataflow("waiting") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().probe()
    if worker.index:
        input.advance_to(3)
    worker.step_while(lambda: probe.less_than(2))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deadlock_is_an_error_that_says_what_is_outstanding(seed):
    with pytest.raises(StalledError) as raised:
        ps.simulate(wait_for_ever, workers=2, seed=seed)
    message = str(raised.value)
    assert f"simulation seed {seed}, decision " in message
    assert "waiting: output 0 of 'Input' [1], time 0, count 1" in message
    assert "worker 0 waits in wait_for_ever, test_simulate.py:" in message


def test_a_run_that_never_ends_is_an_error():
    def spin(worker):
        while True:
            worker.step()

    with pytest.raises(StalledError, match=r"go on and on.*seed 4, decision 1001"):
        simulation(4, max_decisions=1000).run(spin)


# Failures.


def test_the_first_cause_is_raised_with_the_seed():
    def main(worker):
        with worker.dataflow() as scope:
            numbers = scope.to_stream([1, 0, 2] if worker.index == 0 else [])
            numbers.exchange(lambda x: 1).map(lambda x: 1 // x)

    for seed in SEEDS:
        with pytest.raises(WorkerError, match=f"'Map' failed.*simulation seed {seed}") as raised:
            ps.simulate(main, workers=3, seed=seed)
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        assert raised.value.operator == "Map"
        assert "OperatorError: operator 'Map' failed" in raised.value.original


def test_peers_of_a_failed_worker_are_told_at_their_next_call():
    told = []

    def main(worker):
        if worker.index == 1:
            raise ValueError("seven")
        try:
            worker.communicator.park()
        except PeerFailedError as error:
            told.append((worker.index, error.peer))
            raise

    with pytest.raises(WorkerError, match="worker 1 failed: ValueError: seven"):
        ps.simulate(main, workers=3)
    assert sorted(told) == [(0, 1), (2, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_stops_everybody_and_is_the_first_cause(seed):
    ends = {}

    def main(worker):
        try:
            return barrier(worker, 1_000)
        except BaseException as cause:
            ends[worker.index] = cause
            raise

    run = simulation(seed, crash=True)
    with pytest.raises(
        WorkerError, match=rf"crashed \(simulation seed {seed}, decision "
    ) as raised:
        run.run(main)
    crashed = raised.value.worker
    assert [d for d in run.schedule.decisions if d[0] == "crash"] == [("crash", crashed)]
    lost = {index: cause for index, cause in ends.items() if index != crashed}
    assert all(isinstance(cause, PeerLostError) for cause in lost.values())
    assert all(cause.peer == crashed for cause in lost.values())


def test_a_crash_can_be_replayed():
    recorded = simulation(5, crash=True)
    with pytest.raises(WorkerError) as first:
        recorded.run(barrier, 1_000)
    again = Simulation(3, Schedule(1, replay=recorded.schedule.decisions))
    with pytest.raises(WorkerError) as second:
        again.run(barrier, 1_000)
    assert second.value.worker == first.value.worker
    assert again.schedule.decisions == recorded.schedule.decisions


def test_crashes_hit_early_and_late():
    moments = [
        next(n for n, d in enumerate(run.schedule.decisions) if d[0] == "crash")
        for run in (_crashed(seed) for seed in range(30))
    ]
    assert min(moments) < 10
    assert max(moments) > 100


def _crashed(seed):
    run = simulation(seed, crash=True)
    with pytest.raises(WorkerError):
        run.run(barrier, 1_000)
    return run


@pytest.mark.parametrize("seed", SEEDS)
def test_workers_that_build_different_dataflows_find_out(seed):
    def main(worker):
        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
            stream = stream.exchange() if worker.index == 2 else stream.broadcast()

    with pytest.raises(WorkerError, match="built different dataflows") as raised:
        ps.simulate(main, workers=3, seed=seed)
    assert isinstance(raised.value.__cause__, StructureError)


def test_an_interrupt_is_not_a_failure_of_a_worker():
    def main(worker):
        if worker.index == 1:
            raise KeyboardInterrupt
        worker.communicator.park()

    with pytest.raises(KeyboardInterrupt):
        ps.simulate(main, workers=3)


# Nothing is left.


class _Local:
    """Something a worker holds in a local variable."""


def _greenlets():
    # By type: `isinstance` would ask weak proxies of dead objects what they stand for.
    found = [o for o in gc.get_objects() if issubclass(type(o), greenlet.greenlet)]
    return [o for o in found if not o.dead and o]


@pytest.mark.parametrize("how", ["well", "stalled", "failed", "crashed", "interrupted"])
def test_no_greenlet_outlives_a_simulation(how):
    alive = weakref.WeakSet()

    def main(worker):
        local = _Local()
        alive.add(local)
        worker.communicator.park(1.0)
        if worker.index == 0 and how == "failed":
            raise ValueError
        if worker.index == 0 and how == "interrupted":
            raise KeyboardInterrupt
        while how == "crashed":
            worker.communicator.park(1.0)
        if how != "well":
            worker.communicator.park()

    n_before = len(_greenlets())
    expected = {"well": nullcontext(), "stalled": pytest.raises(StalledError)}
    expected["interrupted"] = pytest.raises(KeyboardInterrupt)
    with expected.get(how) or pytest.raises(WorkerError):
        Simulation(3, Schedule(0, crash=how == "crashed")).run(main)
    del expected
    gc.collect()
    assert len(_greenlets()) == n_before
    assert not list(alive)


def test_the_collector_is_on_again_after_a_simulation():
    def look(worker):
        return gc.isenabled()

    assert gc.isenabled()
    assert ps.simulate(look, workers=2) == [False, False]
    assert gc.isenabled()
