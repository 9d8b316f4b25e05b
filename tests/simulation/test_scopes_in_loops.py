"""Scopes in loops, step by step: bugs that random dataflows have found, made small."""

from __future__ import annotations

import pytest

import pointstamp as ps
from pointstamp.progress.operate import Interest
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle


def check(main, workers, seed):
    """Run under the oracle; what each worker returned."""
    with Oracle() as oracle:
        simulation = Simulation(workers, Schedule(seed), observe=oracle.observe)
        results = simulation.run(main)
        oracle.check_end(simulation)
    return results


def holding(scope, stream, times, seen):
    """An operator that sends at each of `times`, in order, and notes its frontier."""
    builder = scope.operator("Holding")
    builder.new_input(stream, ps.Pipeline(), Interest.ALWAYS)
    result = builder.new_output()

    def build(capabilities, info):
        held = [capabilities.pop()]
        later = list(times)

        def logic(inputs, outputs):
            seen.append(inputs[0].frontier.elements)
            for _ in inputs[0]:
                pass
            if not held:
                return False
            if later:
                held[0].downgrade(later.pop(0))
                with outputs[0].session(held[0]) as session:
                    session.give(info.index)
            if later:
                held[0].downgrade(later[0])
                return True
            held.pop().drop()
            return False

        return logic

    builder.build(build)
    return result


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_scope_in_a_loop_hears_of_its_own_initial_capabilities(depth):
    """Held at 0 inside, they come back at 1: nothing before that may be excluded."""
    seen = []

    def main(worker):
        with worker.dataflow() as scope:
            loop, stream = scope.feedback(1)
            scopes = [scope]
            for _ in range(depth):
                scopes.append(scopes[-1].region())
                stream = stream.enter(scopes[-1])
            result = holding(scopes[-1], stream, [], seen)
            for inner in reversed(scopes[1:]):
                result = result.leave()
                inner.close()
            loop.connect(result)

    check(main, 1, 0)
    assert seen[0] == [1]
    assert seen[-1] == []


@pytest.mark.parametrize("seed", range(40))
def test_a_report_of_a_peer_is_not_received_before_it_is_passed_on(seed):
    """What left a scope on one worker may come back on all, the moment that they hear of it."""
    seen = []

    def main(worker):
        came = []
        with worker.dataflow() as scope:
            loop, stream = scope.feedback(2, limit=6)
            with scope.iterative() as inner:
                entered = stream.enter(inner)
                entered.inspect_batch(lambda time, batch: came.extend((time, x) for x in batch))
                times = [(0, 0), (1, 2), (2, 4)]
                leaving = holding(inner, entered.exchange(), times, seen).leave()
            loop.connect(leaving)
        return came

    results = check(main, 2, seed)
    # Sent at 0, 1 and 2 by each worker, each came in 2 later.
    times = sorted(time for came in results for time, _ in came)
    assert times == [(2, 0)] * 2 + [(3, 0)] * 2 + [(4, 0)] * 2


def test_an_operator_that_is_told_nothing_may_not_conclude_that_nothing_comes():
    looked = []

    def main(worker):
        def build(capability, info):
            capability.drop()

            def logic(input, output):
                looked.extend(input.frontier.less_equal(0) for _ in input)

            return logic

        with worker.dataflow() as scope:
            scope.to_stream([1]).unary(ps.Exchange(), "Looking", build)

    check(main, 2, 1)
    assert looked == [True, True]
