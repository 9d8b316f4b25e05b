"""The oracle knows the truth, and says so where it differs from what is told."""

from __future__ import annotations

from collections import deque

import pytest

import pointstamp as ps
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.operator import Operator
from pointstamp.progress.few_counts import FewCounts
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import LivenessError, Oracle, SafetyError


def watched(main, workers=2, seed=0, at_end=True):
    with Oracle() as oracle:
        simulation = Simulation(workers, Schedule(seed), observe=oracle.observe)
        simulation.run(main)
        if at_end:
            oracle.check_end(simulation)
    return oracle


def exchanging(worker):
    """A dataflow with something to say: an input, an exchange, a loop in a scope."""
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        with scope.iterative() as inner:
            loop, cycle = inner.feedback(1, limit=3)
            around = stream.enter(inner).concat(cycle).exchange()
            loop.connect(around)
            around.probe()
            left = around.leave()
        left.probe()
    for epoch in range(3):
        input.send(worker.index + 10 * epoch)
        input.advance_to(epoch + 1)
        worker.step()


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_where_nothing_is_wrong(seed):
    assert watched(exchanging, 3, seed).n_checked > 10


def test_the_truth_of_a_small_dataflow_is_as_worked_out_by_hand():
    """Sent at 4; through an operator that adds 2, and a scope where a loop adds rounds."""
    truth = {}
    oracle = Oracle()

    def look():
        (map_,) = oracle._maps.values()
        reached = map_.explore(oracle._pointstamps(0))
        for place, times in reached.items():
            name = map_.names[place.scope, place.node].split(" [")[0].strip("'")
            truth.setdefault((name, "in" if place.is_target else "out"), []).extend(times)

    def main(worker):
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            builder = scope.operator("Later")
            builder.new_input(stream, ps.Pipeline())
            later = builder.new_output(initial=False, summaries=[2])
            builder.build(lambda capabilities, info: lambda inputs, outputs: None)
            with scope.iterative() as inner:
                loop, cycle = inner.feedback(1)
                loop.connect(later.enter(inner).concat(cycle))
        input.advance_to(4)
        worker.step()
        look()
        input.close()

    with oracle:
        Simulation(1, Schedule(0), observe=oracle.observe).run(main)
    assert truth["Input", "out"] == [4]
    assert truth["Later", "in"] == [4]
    assert truth["Later", "out"] == [6]
    assert truth["Iterative", "in"] == [6]
    assert truth["Concatenate", "in"] == [(6, 0), (6, 1)]
    assert truth["Concatenate", "out"] == [(6, 0)]
    assert truth["Feedback", "out"] == [(6, 1)]


@pytest.mark.interpreted
def test_a_frontier_that_is_told_too_early_is_found(monkeypatch):
    push = Operator.push_external_progress

    def tell_too_much(self, changes):
        push(self, changes)
        for counts in self.frontiers if self.name == "Probe" else ():
            for time in list(counts.frontier):
                counts.change(time, -1)

    monkeypatch.setattr(Operator, "push_external_progress", tell_too_much)
    with pytest.raises(SafetyError) as raised:
        watched(exchanging)
    message = str(raised.value)
    assert "has delivered to 'Probe'" in message
    assert "only times from [] on may come" in message
    assert "time (0, 0) at input 0 of 'Concatenate' [2, 2]" in message
    assert "simulation seed 0, decision " in message


def test_a_batch_in_the_network_counts():
    """Everything else is done with time 0; the record under way is not."""
    oracle = Oracle()
    found = []

    def look(simulation):
        oracle.observe(simulation)
        links = [(s, r) for s, r, channel, _ in simulation.network.pending() if channel >= 2]
        if links and oracle._maps:
            places = {place for place, _ in oracle._pointstamps(0) if place.is_target}
            found.append({oracle._maps[0].describe(place) for place in places})

    def main(worker):
        with worker.dataflow() as scope:
            scope.to_stream([1, 2, 3] if worker.index == 0 else []).exchange()

    with oracle:
        Simulation(2, Schedule(2), observe=look).run(main)
    assert found
    assert all("input 0 of 'Exchange' [2]" in places for places in found)


def test_a_worker_that_has_not_built_its_part_counts(monkeypatch):
    """Its capabilities are still to come."""
    oracle = Oracle()
    seen = set()

    def look(simulation):
        oracle.observe(simulation)
        if oracle._maps and len(oracle._instances) < 3:
            seen.update(time for _, time in oracle._pointstamps(0))

    with oracle:
        Simulation(3, Schedule(1), observe=look).run(exchanging)
    assert 0 in seen


@pytest.mark.interpreted
def test_a_capability_counts_until_it_is_dropped():
    oracle = Oracle()
    times = []

    def look(simulation):
        oracle.observe(simulation)
        if oracle._maps:
            times.append({time for _, time in oracle._pointstamps(0)})

    def main(worker):
        with worker.dataflow() as scope:
            input, _ = scope.new_input()
        input.advance_to(3)
        worker.step()
        capability = input._capability.delayed(5)
        input.advance_to(7)
        worker.step()
        del capability
        worker.step()

    with oracle:
        Simulation(1, Schedule(0), observe=look).run(main)
    assert times[0] == {3}
    assert {5, 7} in times
    assert times[-1] == set()


def test_a_run_that_leaves_a_batch_behind_is_found():
    """Not by its result: the worker returned as if all was well."""
    oracle = Oracle()
    with oracle:
        simulation = Simulation(1, Schedule(0), observe=oracle.observe)
        simulation.run(exchanging)
        operator = next(
            operator for operator in oracle._operators() if operator.name == "Concatenate"
        )
        operator._inputs[0]._queue.hold_in(deque([((0, 0), ["forgotten"])]))
        with pytest.raises(LivenessError, match=r"input 0 of 'Concatenate' .* time \(0, 0\)"):
            oracle.check_end(simulation)


def test_a_run_that_leaves_an_expectation_is_found():
    oracle = Oracle()
    with oracle:
        simulation = Simulation(2, Schedule(0), observe=oracle.observe)
        simulation.run(exchanging)
        probe = next(operator for operator in oracle._operators() if operator.name == "Probe")
        probe.frontiers[0].change((9, 9), 1)
        with pytest.raises(LivenessError, match=r"'Probe' .* still expects \[\(9, 9\)\]"):
            oracle.check_end(simulation)


@pytest.mark.interpreted
def test_counts_that_break_their_rules_are_found(monkeypatch):
    """Though nothing else shows it: a time whose count is zero stays."""
    n_times = FewCounts.n_times

    def keeping(self, place):
        self._entries[3 * place + 2] = 0

    def not_kept(self):
        return n_times(self) if self.many is not None else sum(n != 0 for _, n in self)

    monkeypatch.setattr(FewCounts, "_remove", keeping)
    monkeypatch.setattr(FewCounts, "n_times", not_kept)
    with pytest.raises(AssertionError, match="a frontier differs from its counts"):
        watched(exchanging)


def test_after_the_oracle_everything_is_as_before():
    with Oracle() as oracle:
        assert Environment.watcher is oracle
    assert Environment.watcher is None
