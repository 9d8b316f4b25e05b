"""Workers of one machine add up their progress: as safe, live and right as without."""

from __future__ import annotations

import os
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import UsageError, WorkerError
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle
from tests.conftest import shared_out
from tests.simulation.accumulated_mutants import ACCUMULATED_MUTANTS
from tests.simulation.mutants import hunt
from tests.simulation.random_dataflows import (
    check_case,
    expected_outputs,
    plan_main,
    random_accumulated_case,
    run_plan,
)
from tests.simulation.traffic import count_traffic

N_CASES = 200
N_OF_SOURCES = 50
AT_A_TIME = 25
N_RUNS = N_CASES
"""How many cases a mutant may survive at most: those that pass without one."""

BEGIN = {"batches of a worker reordered": 95}
"""The case that the hunt begins with, for one that most cases do not notice."""

N_SOAK = int(os.environ.get("POINTSTAMP_SOAK", "10000"))

HEAVY = {53, 124, 134}
"""Three of 200 cases that take half of the time of all: the soak has them."""


def check(seed: int) -> Any:
    case = random_accumulated_case(seed)
    return check_case(case, expected_outputs(case.plan))


@pytest.mark.parametrize("first", shared_out(N_OF_SOURCES, range(0, N_CASES, AT_A_TIME)))
def test_random_dataflows_are_safe_live_and_right(first: int) -> None:
    seeds = [seed for seed in range(first, first + AT_A_TIME) if seed not in HEAVY]
    n_records = sum(sum(check(seed).values()) for seed in seeds)
    assert n_records > 100  # else these dataflows do nothing


@pytest.mark.soak
@pytest.mark.parametrize("first", range(N_CASES, N_CASES + N_SOAK, 100))
def test_many_random_dataflows(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", sorted(HEAVY))
def test_heavy_random_dataflows(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", shared_out(6, range(0, 30, 3)))
def test_answers_do_not_depend_on_machines(seed: int) -> None:
    plan = random_accumulated_case(seed).plan
    expected = run_plan(plan, 1, 0, oracle=False)
    for machines in ([0, 0, 0], [0, 0, 1], [1, 0, 1, 0], [0, 1, 2, 2, 2]):
        workers = len(machines)
        serialize = workers == 4
        assert run_plan(plan, workers, seed, serialize=serialize, machines=machines) == expected


# Planted bugs.


def cases(name: str) -> Any:
    first = BEGIN.get(name, 0)
    return map(random_accumulated_case, [*range(first, N_RUNS), *range(first)])


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ACCUMULATED_MUTANTS)
def test_a_planted_bug_is_caught(name: str, record_property: Any) -> None:
    mutant = ACCUMULATED_MUTANTS[name]
    found = hunt(mutant, cases(name))
    record_property("mutant", (name, found))
    must, *may = mutant.caught_by
    assert must in found, f"{mutant.what} -- in {N_RUNS} runs, only {found} noticed"
    assert set(found) <= {must, *may}


# What is sent.


def barrier(worker: ps.Worker, rounds: int) -> None:
    def build(capability: Any, info: Any) -> Any:
        def logic(input: Any, output: Any, notificator: Any) -> None:
            for cap in notificator:
                if cap.time < rounds:
                    notificator.notify_at(cap.delayed(cap.time + 1))

        return logic

    with worker.dataflow() as scope:
        loop, stream = scope.feedback(1)
        loop.connect(stream.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]))


@pytest.mark.parametrize(("workers", "machines"), [(4, 1), (8, 2), (12, 3), (16, 4)])
@pytest.mark.parametrize("progress", ["demand", "eager"])
def test_a_round_takes_a_message_up_and_down_and_one_for_each_pair_of_machines(
    workers: int, machines: int, progress: str
) -> None:
    def n_messages(machines: int | None) -> float:
        few, many = (
            count_traffic(barrier, n, workers=workers, machines=machines, progress=progress)
            for n in (5, 15)
        )
        return (many.n_progress - few.n_progress) / 10

    assert n_messages(None) == workers * (workers - 1)
    here, between = 2 * (workers - machines), machines * (machines - 1)
    if progress == "demand":
        assert n_messages(machines) == here + between
    else:
        assert here + between <= n_messages(machines) < workers * (workers - 1)


def test_workers_that_are_alone_send_each_other_what_they_did() -> None:
    apart = count_traffic(barrier, 10, workers=4, machines=4)
    assert apart == count_traffic(barrier, 10, workers=4)


# A dataflow that is dropped.


def drops_early(worker: ps.Worker, waits: int) -> int:
    """Worker 0 drops once its own input is closed; the others wait for each other first."""
    with worker.dataflow("dropped") as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().probe()
        _, endless = scope.new_input()
        endless.probe()
    input.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))
    if worker.index == 0:
        input.close()
        for _ in range(waits):
            worker.step()
    else:
        input.advance_to(7)
        worker.step_while(lambda: probe.less_than(7))
    worker.drop_dataflow("dropped")
    worker.step()
    return worker.index


@pytest.mark.parametrize("machines", [None, 1, 2])
@pytest.mark.parametrize("waits", [1, 5, 30])
def test_an_accumulator_that_drops_a_dataflow_goes_on_for_the_others(
    machines: int | None, waits: int
) -> None:
    for seed in range(20):
        run = ps.simulate(drops_early, waits, workers=4, seed=seed, machines=machines)
        assert run == [0, 1, 2, 3]


def test_no_peer_is_shown_too_much_while_a_worker_crashes() -> None:
    errors = [_crash(seed) for seed in range(20)]
    assert sum(error is not None for error in errors) > 5  # the others ended too soon
    assert all("crashed" in str(error) for error in errors if error is not None)


def _crash(seed: int) -> WorkerError | None:
    with Oracle() as oracle:
        schedule = Schedule(seed, crash=True)
        simulation = Simulation(4, schedule, observe=oracle.observe, machines=2)
        try:
            simulation.run(plan_main, random_accumulated_case(seed).plan)
        except WorkerError as error:
            return error
    return None


# Asking for it.


@pytest.mark.parametrize("machines", [0, 5, -1, True, "ab", 2.0, [0, 1], [0, 1, 2, "x"], []])
def test_machines_that_cannot_be_are_refused(machines: Any) -> None:
    with pytest.raises(UsageError, match="4 workers are on 1 to 4 machines"):
        ps.simulate(barrier, 3, workers=4, machines=machines)


def exchange_of(worker: ps.Worker) -> str:
    return type(worker._progress).__name__


@pytest.mark.parametrize(
    ("machines", "expected"),
    [(None, "ProgressExchange"), (4, "ProgressExchange"), (2, "AccumulatedExchange")],
)
def test_sums_are_made_where_they_are_asked_for(machines: Any, expected: str) -> None:
    assert ps.simulate(exchange_of, workers=4, machines=machines) == [expected] * 4
