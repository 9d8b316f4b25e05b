"""The operators that hold records back, under an oracle, in skewed schedules."""

from __future__ import annotations

import collections

import pytest

import pointstamp as ps
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle


def holding(worker):
    """Records that wait for later times, for each other and for a clock, and leave."""
    out = []

    def total(key, value, seen):
        return seen + value, [(key, seen + value)]

    with worker.dataflow() as scope:
        numbers, stream = scope.new_input("numbers")
        ticks, clock = scope.new_input("ticks")
        later = stream.delay(lambda x, time: time + x % 4)
        even, odd = later.partition(2, lambda x: x % 2)
        totals = even.map(lambda x: (x % 3, x)).state_machine(total, default=0)
        sums = odd.aggregate(lambda key, x, n: n + x, key=lambda x: x % 3, default=0)
        named = totals.map(lambda r: ("total", *r)), sums.map(lambda r: ("sum", *r))
        both = named[0].concat(named[1]).distribute(lambda time, batch: time % worker.peers)
        low, high = both.reclock(clock.broadcast()).branch_when(lambda time: time > 5)
        low.concat(high).delay_batch(lambda time: time + 1).inspect(out.append).probe()
        scope.empty().concat(both).accumulate(0, lambda n, batch: n + len(batch)).probe()
    for epoch in range(6):
        numbers.send_batch([worker.index + 7 * epoch + x for x in range(5)])
        numbers.advance_to(epoch + 1)
        ticks.advance_to(2 * epoch + 1)
        if worker.index == epoch % worker.peers:
            ticks.send("tick")
        worker.step()
    ticks.advance_to(40)
    if worker.index == 0:
        ticks.send("last")
    ticks.close()
    numbers.close()
    worker.run()
    return out


def check(out, workers):
    """Against a recount: how far each key's total came, and the sum of each key and time."""
    sent = [
        (epoch, worker + 7 * epoch + x)
        for worker in range(workers)
        for epoch in range(6)
        for x in range(5)
    ]
    evens = [x for _, x in sent if x % 2 == 0]
    totals = [(key, n) for what, key, n in out if what == "total"]
    assert len(totals) == len(evens)
    for key in range(3):
        assert max(n for k, n in totals if k == key) == sum(x for x in evens if x % 3 == key)
    sums = collections.Counter()
    for epoch, x in sent:
        if x % 2:
            sums[epoch + x % 4, x % 3] += x
    assert sorted((key, n) for what, key, n in out if what == "sum") == sorted(
        (key, n) for (_, key), n in sums.items()
    )


@pytest.mark.parametrize("seed", range(10))
def test_no_time_is_complete_too_early_and_all_are_at_the_end(seed):
    with Oracle() as oracle:
        simulation = Simulation(3, Schedule(seed), observe=oracle.observe)
        out = [record for part in simulation.run(holding) for record in part]
        oracle.check_end(simulation)
    assert oracle.n_checked > 10
    check(out, 3)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_answers_are_those_of_a_recount_on_threads(workers):
    parts = ps.execute(holding, workers=workers, threads=True)
    check([record for part in parts for record in part], workers)
