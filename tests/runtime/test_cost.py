"""Cost follows work (I8): the shape of it, by counting calls and not by the clock."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps

pytestmark = pytest.mark.interpreted


def n_calls(action: Callable[[], Any]) -> int:
    """How many Python and C functions `action` calls."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # what it calls is nobody's work here
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def cost_of_a_round(build: Callable[[Any, Any], None]) -> int:
    """Calls for one record through an exchange to a probe, beside what `build` adds."""

    def main(worker: Any) -> int:
        with worker.dataflow("moving") as scope:
            input, stream = scope.new_input()
            probe = stream.exchange().probe()
            build(worker, scope)
        others = list(worker.environment.inputs)

        def round_(epoch: int) -> None:
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(epoch + 1))

        for epoch in range(3):
            round_(epoch)
        cost = n_calls(lambda: round_(3))
        for handle in others:
            handle.close()
        return cost

    return ps.execute(main)[0]


def idle_operators(n: int) -> Callable[[Any, Any], None]:
    def build(worker: Any, scope: Any) -> None:
        _, stream = scope.new_input("idle")
        for _ in range(n):
            stream = stream.unary_frontier(
                ps.Pipeline(), "Idle", lambda cap, info: lambda input, output: None
            )

    return build


def idle_scopes(n: int) -> Callable[[Any, Any], None]:
    def build(worker: Any, scope: Any) -> None:
        _, stream = scope.new_input("idle")
        for _ in range(n):
            with scope.region() as region:
                stream = stream.enter(region).count().leave()

    return build


def idle_streams_of_the_same_input(n: int) -> Callable[[Any, Any], None]:
    """Scopes that see the time move, and hold nothing that could be freed by it."""

    def build(worker: Any, scope: Any) -> None:
        for _ in range(n):
            with scope.region() as region:
                region.to_stream([]).count()

    return build


@pytest.mark.parametrize("idle", [idle_operators, idle_scopes, idle_streams_of_the_same_input])
def test_a_round_costs_the_same_beside_many_idle_ones(idle: Any) -> None:
    few, many = cost_of_a_round(idle(1)), cost_of_a_round(idle(300))
    assert many == few


def test_a_round_costs_the_same_beside_many_idle_dataflows() -> None:
    def main(worker: Any, n: int) -> int:
        for number in range(n):
            with worker.dataflow(f"idle {number}") as scope:
                scope.new_input()[1].exchange().probe()
        with worker.dataflow("moving") as scope:
            input, stream = scope.new_input()
            probe = stream.exchange().probe()
        worker.step()

        def round_(epoch: int) -> None:
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(epoch + 1))

        for epoch in range(3):
            round_(epoch)
        return n_calls(lambda: round_(3))

    assert ps.execute(main, 200) == ps.execute(main, 1)


def test_a_record_costs_in_proportion_to_the_operators_that_it_passes() -> None:
    def main(worker: Any, n: int) -> int:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            for _ in range(n):
                stream = stream.map(lambda x: x)
            probe = stream.probe()

        def round_(epoch: int) -> None:
            input.send(epoch)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(epoch + 1))

        for epoch in range(3):
            round_(epoch)
        return n_calls(lambda: round_(3))

    hundred, two_hundred, four_hundred = (ps.execute(main, n)[0] for n in (100, 200, 400))
    assert four_hundred - two_hundred == pytest.approx(2 * (two_hundred - hundred), rel=0.01)


def test_a_step_does_not_depend_on_how_many_times_are_outstanding() -> None:
    """Of many capabilities for times to come, only the least matters."""

    def main(worker: Any, n: int) -> int:
        kept: list[Any] = []

        def build(capability: Any, info: Any) -> Any:
            kept.extend(capability.delayed(10 + time) for time in range(n))
            return lambda input, output: None

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.unary(ps.Pipeline(), "Keeper", build).probe()

        def round_(epoch: int) -> None:
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(epoch + 1))

        for epoch in range(3):
            round_(epoch)
        cost = n_calls(lambda: round_(3))
        kept.clear()
        return cost

    assert ps.execute(main, 5_000) == ps.execute(main, 5)


def test_what_a_worker_tells_in_a_round_does_not_grow_with_the_workers() -> None:
    """About two batches of changes a round, to each peer, however many there are."""
    rounds = 20

    def main(worker: Any) -> float:
        told: list[Any] = []
        share = worker.environment.share
        worker.environment.share = lambda *news: (told.append(news), share(*news))
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.exchange().probe()
        for epoch in range(rounds):
            input.send(worker.index)
            input.advance_to(epoch + 1)
            worker.step_while(lambda epoch=epoch: probe.less_than(epoch + 1))
        return len(told) / rounds

    for workers in (2, 4, 8, 16):
        for seed in range(3):
            assert max(ps.simulate(main, workers=workers, seed=seed)) <= 2.5
