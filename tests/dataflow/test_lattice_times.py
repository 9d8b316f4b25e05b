"""Dataflows whose times are a user's finite lattice, on paths that some times never pass.

The times are those of `tests.simulation.subsets`. A loop that adds a member to those
that lack it may go without a limit, and what the frontiers say is a matter of what never
arrives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from math import factorial
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import CycleError, WorkerError
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle
from tests.simulation.subsets import MEMBERS, Join, Subsets, once

SEEDS = range(5)

Run = Callable[[Any], list[Any]]


def simulated(workers: int) -> Run:
    """Under the oracle, on several schedules that all have to give the same."""

    def run(main: Any) -> list[Any]:
        found = []
        for seed in SEEDS:
            with Oracle() as oracle:
                simulation = Simulation(workers, Schedule(seed), observe=oracle.observe)
                found.append(simulation.run(main))
                oracle.check_end(simulation)
            assert oracle.n_checked > 0
        return found[-1]

    return run


def executed(**how: Any) -> Run:
    return lambda main: ps.execute(main, **how)


@pytest.fixture(
    params=[
        pytest.param((1, executed()), id="one"),
        pytest.param((2, executed(workers=2, threads=True)), id="threads"),
        pytest.param((2, executed(workers=2)), id="processes", marks=pytest.mark.once),
        pytest.param((4, executed(workers=4, threads=True)), id="four threads"),
        pytest.param((1, simulated(1)), id="one under the oracle"),
        pytest.param((2, simulated(2)), id="two under the oracle"),
        pytest.param((4, simulated(4)), id="four under the oracle"),
    ]
)
def workers_and_run(request: pytest.FixtureRequest) -> tuple[int, Run]:
    return request.param  # type: ignore[no-any-return]


# Loops in a scope with these times.


def walks(scope: Any, stream: Any) -> tuple[Any, Any]:
    """All orders in which members can come to the sequences of `stream`, and their numbers.

    Nothing but the times ends it: each loop takes what comes, and adds its member.
    """
    handles, streams = zip(
        *(scope.feedback(once(m), name=f"Add {m}") for m in MEMBERS), strict=True
    )
    everything = stream.concat(*streams).exchange(len)
    for member, handle in zip(MEMBERS, handles, strict=True):
        handle.connect(everything.map(lambda walk, member=member: (*walk, member)))
    return everything, everything.exchange(lambda walk: 0).count()


def members(walk: tuple[int, ...]) -> int:
    """The time at which a walk is: all its members."""
    return sum(1 << member for member in walk)


# Each sequence of different members: 1 + 3 + 6 + 6.
WALKS = [walk for n in range(4) for walk in permutations(MEMBERS, n)]


def test_in_a_scope_of_a_lattice_loops_end_where_no_time_passes(
    workers_and_run: tuple[int, Run],
) -> None:
    """At each epoch each subset has all the walks to it, and not before they are all there."""
    workers, run = workers_and_run

    def main(worker: Any) -> Any:
        inside: list[Any] = []
        counts: list[Any] = []
        left: list[Any] = []
        n_by_then: list[int] = []

        def n_left(epoch: int) -> int:
            return sum(time == epoch for time, _ in left)

        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.scoped(ps.Product(ps.Int, Subsets())) as inner:
                everything, numbers = walks(inner, stream.enter(inner))
                everything.inspect_batch(
                    lambda time, batch: inside.extend((time, w) for w in batch)
                )
                numbers.inspect_batch(lambda time, batch: counts.extend((time, n) for n in batch))
                leaving = everything.leave()
            leaving.inspect_batch(lambda time, batch: left.extend((time, w) for w in batch))
            probe = leaving.probe()
        for epoch in range(2):
            input.send(())
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
            n_by_then.append(n_left(epoch))
        worker.close_inputs()
        worker.run()
        # The scope was done with an epoch when all its subsets were.
        assert n_by_then == [n_left(epoch) for epoch in range(2)]
        return inside, counts, left

    found = run(main)
    inside, counts, left = ([x for part in found for x in part[i]] for i in range(3))
    assert Counter(inside) == {
        ((epoch, members(walk)), walk): workers for epoch in range(2) for walk in WALKS
    }
    assert Counter(left) == {(epoch, walk): workers for epoch in range(2) for walk in WALKS}
    assert Counter(counts) == {
        ((epoch, mask), workers * factorial(mask.bit_count())): 1
        for epoch in range(2)
        for mask in range(8)
    }


def test_a_lattice_refines_a_scope_without_times_by_the_users_own_rule(
    workers_and_run: tuple[int, Run],
) -> None:
    _, run = workers_and_run

    def main(worker: Any) -> Any:
        left: list[Any] = []
        with worker.dataflow(timestamp=ps.Unit) as scope:
            start = scope.to_stream([()] if worker.index == 0 else [])
            with scope.scoped(Subsets()) as inner:
                _, numbers = walks(inner, start.enter(inner))
                leaving = numbers.leave()
            leaving.inspect_batch(lambda time, batch: left.extend((time, n) for n in batch))
        worker.run()
        return left

    left = [x for part in run(main) for x in part]
    # By the size of the subset: one of none, three of one, three of two, one of three.
    assert Counter(left) == {((), 1): 1 + 3, ((), 2): 3, ((), 6): 1}


def test_a_loop_that_the_full_set_could_go_around_for_ever_is_refused() -> None:
    def main(worker: Any) -> None:
        with worker.dataflow(timestamp=ps.Unit) as scope, scope.scoped(Subsets()) as inner:
            loop, again = inner.feedback(Join(1), name="Add 0")
            loop.connect(again.map(lambda walk: walk))

    with pytest.raises(WorkerError) as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, CycleError)
    assert "'Add 0'" in str(caught.value)


# Paths without loops: a fork, and a gate.


def passing(stream: Any, summary: Join, name: str) -> Any:
    """An operator that sends what it receives at the time that `summary` says, if any."""
    builder = stream.scope.operator(name)
    builder.new_input(stream, ps.Exchange())
    result = builder.new_output(initial=False, summaries=[summary])

    def build(capabilities: Any, info: Any) -> Any:
        def logic(inputs: Any, outputs: Any) -> None:
            for time, batch in inputs[0]:
                if summary.results_in(time.time) is not None:
                    with outputs[0].session(time.retain()) as session:
                        session.give_many(batch)

        return logic

    builder.build(build)
    return result


def test_a_frontier_in_a_lattice_has_times_that_cannot_be_compared(
    workers_and_run: tuple[int, Run],
) -> None:
    """One way adds the member 0, the other 1; both lead through a scope of the same times."""
    workers, run = workers_and_run

    def main(worker: Any) -> Any:
        seen: list[Any] = []
        with worker.dataflow(timestamp=Subsets()) as scope:
            input, stream = scope.new_input()
            with scope.scoped(Subsets()) as inner:
                entered = stream.enter(inner)
                left, right = (passing(entered, Join(1 << m), f"Add {m}") for m in (0, 1))
                leaving = left.concat(right).leave()
            leaving.inspect_batch(lambda time, batch: seen.extend((time, x) for x in batch))
            probe = leaving.probe()
        input.send("a")
        worker.step_while(lambda: sorted(probe.elements) != [0b001, 0b010])
        input.advance_to(0b100)
        input.send("b")
        worker.step_while(lambda: sorted(probe.elements) != [0b101, 0b110])
        input.advance_to(0b101)
        # Now what comes by the left has nothing new, and is before all that comes right.
        worker.step_while(lambda: probe.elements != [0b101])
        return seen

    seen = Counter(x for part in run(main) for x in part)
    times = {"a": (0b001, 0b010), "b": (0b101, 0b110)}
    assert seen == {(time, x): workers for x in times for time in times[x]}


def test_behind_a_path_that_a_time_never_passes_it_is_not_waited_for(
    workers_and_run: tuple[int, Run],
) -> None:
    """The gate is closed to times with member 0: at those the input holds nobody up behind it."""
    workers, run = workers_and_run

    def main(worker: Any) -> Any:
        seen: list[Any] = []
        with worker.dataflow(timestamp=Subsets()) as scope:
            input, stream = scope.new_input()
            with scope.scoped(Subsets()) as inner:
                gated = passing(stream.enter(inner), Join(0b010, barred=0b001), "Gate").leave()
            gated.inspect_batch(lambda time, batch: seen.extend((time, x) for x in batch))
            before, behind = stream.probe(), gated.probe()
        input.send("passes")
        worker.step_while(lambda: behind.elements != [0b010])
        input.advance_to(0b100)
        input.send("passes, too")
        worker.step_while(lambda: behind.elements != [0b110])
        input.advance_to(0b101)
        input.send("stays")
        worker.step_while(lambda: not behind.done)
        worker.step_while(lambda: before.less_than(0b101))
        assert before.elements == [0b101]  # while the input is open
        return seen

    seen = Counter(x for part in run(main) for x in part)
    assert seen == {(0b010, "passes"): workers, (0b110, "passes, too"): workers}
