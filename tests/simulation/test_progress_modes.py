"""Progress on demand and eager: how to ask for it, and what each sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.errors import UsageError
from pointstamp.progress.subgraph import Subgraph
from tests.conftest import examples, shared_out
from tests.simulation.outside import told_of_all
from tests.simulation.plans import random_plan
from tests.simulation.random_dataflows import (
    check_case,
    expected_outputs,
    plan_main,
    random_case,
)
from tests.simulation.traffic import count_traffic

MODES = ["demand", "eager"]
PEERS = [1, 2, 4, 8, 16]


def is_eager(worker: ps.Worker) -> bool:
    return worker.environment.eager


@pytest.mark.parametrize(
    "how",
    [{}, {"workers": 2, "threads": True}, pytest.param({"workers": 2}, marks=pytest.mark.once)],
)
@pytest.mark.parametrize("progress", MODES)
def test_a_mode_can_be_asked_for(progress: str, how: Any) -> None:
    expected = [progress == "eager"] * how.get("workers", 1)
    assert ps.execute(is_eager, progress=progress, **how) == expected


@pytest.mark.parametrize("progress", MODES)
def test_a_simulation_has_both_modes(progress: str) -> None:
    assert ps.simulate(is_eager, workers=2, progress=progress) == [progress == "eager"] * 2


def test_on_demand_is_the_default() -> None:
    assert ps.execute(is_eager) == [False]
    assert ps.simulate(is_eager, workers=1) == [False]


@pytest.mark.parametrize("run", [ps.execute, ps.simulate])
def test_another_mode_is_refused(run: Any) -> None:
    with pytest.raises(UsageError, match="'demand' or 'eager', and not 'lazy'"):
        run(is_eager, workers=2, progress="lazy")


def in_both_modes(plan: Any, workers: int) -> list[int]:
    """How many messages of progress a plan's workers send in each mode, taking turns."""
    return [
        count_traffic(plan_main, replace(plan, eager=eager), workers=workers).n_progress
        for eager in (False, True)
    ]


@pytest.mark.parametrize("first", shared_out(20, range(0, 60, 20)))
def test_on_demand_random_dataflows_send_no_more(first: int) -> None:
    saved = 0
    for seed in range(first, first + 20):
        case = random_case(seed)
        demand, eager = in_both_modes(case.plan, case.workers)
        assert demand <= eager, f"case {seed} sends {demand} on demand and {eager} eagerly"
        saved += eager - demand
    assert saved > 0


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(), st.integers(2, 4))
def test_on_demand_no_dataflow_sends_much_more(rng: Any, workers: int) -> None:
    """What is held back changes when workers act, and so now and then what they have to say."""
    demand, eager = in_both_modes(random_plan(rng, size=3, depth=2), workers)
    assert demand <= eager + eager // 10


def epochs(worker: ps.Worker, rounds: int) -> None:
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        probe = stream.exchange().count().probe()
    for epoch in range(rounds):
        for x in range(worker.index, 16, worker.peers):
            input.send(x)
        input.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(input.time))


@pytest.mark.parametrize("workers", PEERS)
def test_what_is_sent_is_the_same_each_time(workers: int) -> None:
    """And grows with the rounds, and the pairs of workers, and not faster."""
    few, many, again = (count_traffic(epochs, n, workers=workers) for n in (4, 8, 8))
    assert many == again
    n_links = workers * (workers - 1)
    per_round = (many.n_progress - few.n_progress) / 4
    assert per_round <= 3 * n_links
    assert (per_round > 0) == (workers > 1)
    assert (many.n_data - few.n_data) / 4 <= n_links


def test_one_worker_sends_nothing() -> None:
    traffic = count_traffic(epochs, 5, workers=1, progress="eager")
    assert (traffic.n_progress, traffic.progress_bytes, traffic.n_data) == (0, 0, 0)


# In one and the same run.


@contextmanager
def shares_counted() -> Iterator[list[int]]:
    """How often scopes shared changes, and how often they had some that were new."""
    share, report = Subgraph._share, Subgraph._report
    n = [0, 0]
    news: set[int] = set()

    def note(self: Any, location: int, time: Any, change: int, shared: bool, own: int) -> None:
        if shared and self.peers > 1:
            news.add(id(self))
        report(self, location, time, change, shared, own)

    def count(self: Any) -> None:
        n[1] += id(self) in news
        news.discard(id(self))
        had = bool(self._held_back)
        share(self)
        n[0] += had and not self._held_back

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Subgraph, "_share", count)
        patch.setattr(Subgraph, "_report", note)
        patch.setattr(Subgraph, "_has_numbers", lambda self, batch: False)  # all of it passes there
        yield n


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(20))
def test_on_demand_is_told_at_no_more_moments_than_there_was_news(seed: int) -> None:
    """Each time that something is told, there was news that an eager scope had told at once."""
    case = random_case(seed)
    with shares_counted() as n:
        ps.simulate(plan_main, replace(case.plan, eager=False), workers=3, seed=seed)
    assert n[0] <= n[1]


# What scopes are told.


def barrier_in_a_scope(worker: ps.Worker, rounds: int) -> None:
    """A loop that carries only time, around an operator in a scope."""

    def build(capability: Any, info: Any) -> Any:
        def logic(input: Any, output: Any, notificator: Any) -> None:
            for cap in notificator:
                if cap.time < rounds:
                    notificator.notify_at(cap.delayed(cap.time + 1))

        return logic

    with worker.dataflow() as scope:
        loop, stream = scope.feedback(1)
        with scope.region() as inner:
            entered = stream.enter(inner)
            result = entered.unary_notify(ps.Pipeline(), "Barrier", build, initial=[0]).leave()
        loop.connect(result)


@pytest.mark.interpreted
@pytest.mark.parametrize("workers", [2, 4])
def test_a_scope_that_is_told_what_is_outside_needs_half_the_steps(workers: int) -> None:
    def steps() -> int:
        few, many = (count_traffic(barrier_in_a_scope, n, workers=workers) for n in (10, 20))
        assert many.n_progress - few.n_progress == 10 * workers * (workers - 1)
        return many.n_steps - few.n_steps

    assert steps() == 10 * workers
    with told_of_all():
        assert steps() == 20 * workers


@pytest.mark.interpreted
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_scopes_that_are_told_of_all_are_right_too(first: int) -> None:
    """Or it would be no fair comparison."""
    with told_of_all():
        for seed in range(first, first + 20):
            case = random_case(seed)
            check_case(case, expected_outputs(case.plan))
