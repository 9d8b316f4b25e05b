"""Random dataflows on random schedules: safe, live, and the same on any number of workers.

The number of a case is its seed: `check_case(random_case(1234))` is that run again.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointstamp.errors import WorkerError
from pointstamp.runtime import progress_exchange
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle
from tests.conftest import examples, shared_out
from tests.simulation.plans import (
    LIBRARY,
    IteratePlan,
    LibraryPlan,
    ProbePlan,
    ScopePlan,
    random_plan,
)
from tests.simulation.random_dataflows import (
    check_case,
    expected_outputs,
    plan_main,
    random_case,
    run_plan,
)

N_CASES = 300
N_OF_SOURCES = 50
AT_A_TIME = 25
N_PLANS = 500
N_SOAK = int(os.environ.get("POINTSTAMP_SOAK", "10000"))

HEAVY = {124, 134, 224, 248}
"""Four of 300 cases that take a third of the time of all: the soak has them."""


def check(seed):
    case = random_case(seed)
    return check_case(case, expected_outputs(case.plan))


@pytest.mark.parametrize("first", shared_out(N_OF_SOURCES, range(0, N_CASES, AT_A_TIME)))
def test_random_dataflows_are_safe_live_and_right(first):
    seeds = [seed for seed in range(first, first + AT_A_TIME) if seed not in HEAVY]
    n_records = sum(sum(check(seed).values()) for seed in seeds)
    assert n_records > 100  # else these dataflows do nothing


@pytest.mark.parametrize("first", shared_out(N_OF_SOURCES, range(0, 75, AT_A_TIME)))
def test_random_dataflows_are_safe_live_and_right_where_steps_are_short(first, monkeypatch):
    """Where the first do not count as long, what is held back goes at the end of a step alone."""
    monkeypatch.setattr(progress_exchange, "N_URGENT", 0)
    for seed in range(first, first + AT_A_TIME):
        if seed not in HEAVY:
            check(seed)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(), st.integers(1, 4), st.integers(0, 1000))
def test_random_dataflows_are_safe_and_live_and_shrink_where_not(rng, workers, seed):
    run_plan(random_plan(rng, size=3, depth=2), workers, seed)


@pytest.mark.parametrize("seed", shared_out(5, range(20)))
def test_answers_do_not_depend_on_workers_or_schedule(seed):
    plan = random_plan(Random(seed), steady=True)
    expected = run_plan(plan, 1, 0, oracle=False)
    for workers in (1, 2, 3, 5):
        assert run_plan(plan, workers, 1000 + seed, serialize=workers == 2) == expected


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_nobody_is_told_too_much_while_a_worker_crashes(first):
    errors = [_crash(seed) for seed in range(first, first + 20)]
    assert sum(error is not None for error in errors) > 5  # the others ended too soon
    for seed, error in zip(range(first, first + 20), errors, strict=True):
        if error is not None:
            assert f"worker {error.worker} crashed (simulation seed {seed}, " in str(error)


def _crash(seed):
    with Oracle() as oracle:
        simulation = Simulation(3, Schedule(seed, crash=True), observe=oracle.observe)
        try:
            simulation.run(plan_main, random_case(seed).plan)
        except WorkerError as error:
            return error
    return None


def test_the_plans_cover_what_they_are_for():
    """What was asked of the generator is there often, and not once by luck."""
    found = {}
    for seed in range(N_PLANS):
        plan = random_case(seed).plan
        kinds = {plan.timestamp, "eager" if plan.eager else "on demand"}
        kinds |= {"steady"} if plan.steady else set()
        kinds |= {"two dataflows"} if plan.n_dataflows == 2 else set()
        kinds |= {"many batches"} if plan.copies > 1 and plan.root.enters else set()
        kinds |= {"many times"} if len(plan.epochs) >= 30 and plan.root.enters else set()
        kinds |= {"repeated requests"} if plan.requests > 1 else set()
        kinds |= {"late requests"} if plan.again else set()
        kinds |= set(_kinds(plan.root, 1))
        for kind in kinds:
            found[kind] = found.get(kind, 0) + 1
    wanted = {"Int", "Product", "EventProcessing", "eager", "steady", "depth 2", "depth 3"}
    wanted |= {"loop", "limited loop", "loop through a scope", "probe", "several inputs"}
    wanted |= {"several outputs", "pipeline", "exchange", "broadcast", "notify", "concat", "free"}
    wanted |= {"two dataflows", "total", "grouped", "depth 4"}
    wanted |= {"region", "iterative", "iterative over moments", "advancing operator", "no way"}
    wanted |= {"Subsets", "iterative over subsets", "iterate", "library"}
    wanted |= {"many batches", "many times", "repeated requests", "late requests"}
    assert {kind for kind in wanted if found.get(kind, 0) < N_PLANS / 20} == set()
    parts = {f"library: {kind}" for kind in LIBRARY}
    assert {kind for kind in parts if found.get(kind, 0) < N_PLANS / 50} == set()


def _kinds(scope, depth):
    yield from (f"depth {depth}", scope.kind)
    n_streams = len(scope.enters) + len(scope.loops)
    from_scopes = set()
    for part in scope.parts:
        if isinstance(part, ProbePlan):
            yield "probe"
        elif isinstance(part, IteratePlan):
            yield "iterate"
            n_streams += 1
        elif isinstance(part, LibraryPlan):
            yield from ("library", f"library: {part.kind}")
            n_streams += LIBRARY[part.kind][1]
        elif isinstance(part, ScopePlan):
            yield from _kinds(part, depth + 1)
            from_scopes.update(range(n_streams, n_streams + len(part.leaves)))
            n_streams += len(part.leaves)
        else:
            yield from (part.style, *part.pacts)
            n_streams += len(part.initial)
            if len(part.inputs) > 1:
                yield "several inputs"
            if len(part.initial) > 1:
                yield "several outputs"
            for row in part.summaries:
                yield from ("advancing operator" if s else "no way" for s in row if s != 0)
    for _, limit, fed_back in scope.loops:
        yield "loop"
        if limit is not None:
            yield "limited loop"
        if fed_back in from_scopes:
            yield "loop through a scope"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(N_CASES, N_CASES + N_SOAK, 100))
def test_many_random_dataflows(first):
    for seed in range(first, first + 100):
        check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", sorted(HEAVY))
def test_heavy_random_dataflows(seed):
    check(seed)
