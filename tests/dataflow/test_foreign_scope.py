"""A scope whose coordination is not ours, inside dataflows whose coordination is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.errors import PointstampError
from pointstamp.runtime.schedule import Schedule
from pointstamp.runtime.simulate import Simulation
from pointstamp.testing import Oracle
from tests.conftest import shared_out
from tests.dataflow.foreign_scope import ForeignScope, foreign_scope

EPOCHS = [[6, 1], [7], [3, 3, 10]]
"""What is sent at epochs 0, 1, 2; of the last epochs the dataflow has no input."""

Answer = tuple[int, int, str, int, int]
"""Epoch, turn of the loop around the scope, what, and two numbers."""


def expected(epochs: list[list[int]]) -> Counter[Answer]:
    """What comes out, by plain loops: lengths of Collatz's sequences, lengths of those, ..."""
    found: Counter[Answer] = Counter()
    for epoch, numbers in enumerate(epochs):
        turn = 0
        while numbers:
            lengths = []
            for start in numbers:
                now, steps = start, 0
                found[epoch, turn, "round", 0, 0] += 1
                while now != 1:
                    now, steps = now * 3 + 1 if now % 2 else now // 2, steps + 1
                    found[epoch, turn, "round", steps, 0] += 1
                found[epoch, turn, "steps", start, steps] += 1
                lengths.append(steps)
            numbers = [steps for steps in lengths if steps > 1]
            turn += 1
    return found


def main(worker: Any, local: bool, in_scope: bool, kind: Any = None) -> Counter[Answer]:
    """The foreign scope in a loop that sends its answers through it again."""
    found: Counter[Answer] = Counter()

    def note(time: Any, batch: Any) -> None:
        epoch, turn = time if in_scope else (0, time)
        for what, first, second in batch:
            if what == "round":  # counts of several workers add up
                found[epoch, turn, what, first, 0] += second
            else:
                found[epoch, turn, what, first, second] += 1

    def around(scope: Any, numbers: Any) -> Any:
        loop, again = scope.feedback(1)
        answers = foreign_scope(numbers.concat(again), local=local, kind=kind)
        answers.inspect_batch(note)
        longer = answers.filter(lambda answer: answer[0] == "steps" and answer[2] > 1)
        loop.connect(longer.map(lambda answer: answer[2]))
        return answers

    with worker.dataflow() as scope:
        input, numbers = scope.new_input()
        if in_scope:
            with scope.iterative() as inner:
                probe = around(inner, numbers.enter(inner)).leave().probe()
        else:
            probe = around(scope, numbers).probe()
    for epoch, numbers_of_epoch in enumerate(EPOCHS):
        for number in numbers_of_epoch[worker.index :: worker.peers]:
            input.send(number)
        if in_scope:
            input.advance_to(epoch + 1)
        if epoch == 0:
            worker.step()
    input.close()
    worker.run()
    assert probe.done
    return found


def check(parts: list[Counter[Answer]], in_scope: bool) -> None:
    numbers = EPOCHS if in_scope else [[n for epoch in EPOCHS for n in epoch]]
    assert sum(parts, Counter()) == expected(numbers)


def simulated(workers: int, seed: int, *args: Any) -> list[Counter[Answer]]:
    """Under the oracle; what each worker saw."""
    with Oracle() as oracle:
        simulation = Simulation(workers, Schedule(seed), observe=oracle.observe)
        parts = simulation.run(main, *args)
        oracle.check_end(simulation)
    assert oracle.n_checked > 0
    return parts


KINDS = pytest.mark.parametrize("local", [False, True], ids=["together", "local"])
PLACES = pytest.mark.parametrize("in_scope", [True, False], ids=["in a scope", "at the top"])


def test_the_plain_loops_are_right() -> None:
    found = expected(
        [[6]]
    )  # 6 3 10 5 16 8 4 2 1: eight steps; 8 4 2 1: three; 3 10 5 16 ...: seven
    steps = [key for key in found if key[2] == "steps"]
    assert steps[:3] == [(0, 0, "steps", 6, 8), (0, 1, "steps", 8, 3), (0, 2, "steps", 3, 7)]
    assert found[0, 0, "round", 8, 0] == 1
    assert found[0, 0, "round", 9, 0] == 0


@KINDS
@PLACES
@pytest.mark.parametrize("first", shared_out(5, range(0, 15, 5)))
def test_it_is_safe_live_and_right_in_any_order_of_events(
    local: bool, in_scope: bool, first: int
) -> None:
    for seed in range(first, first + 5):
        check(simulated(2 + seed % 2, seed, local, in_scope), in_scope)


@KINDS
@PLACES
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_threads(local: bool, in_scope: bool, workers: int) -> None:
    parts = ps.execute(main, local, in_scope, workers=workers, threads=True)
    check(parts, in_scope)


@pytest.mark.once
@KINDS
@PLACES
def test_processes(local: bool, in_scope: bool) -> None:
    check(ps.execute(main, local, in_scope, workers=2), in_scope)


class Impatient(ForeignScope):
    """Judges rounds by what it has not reported yet, so before what it sent out is counted."""

    def pull_internal_progress(self) -> Any:
        progress = super().pull_internal_progress()
        self._answer_complete_rounds()
        self._tell_peers()
        self._report_held()
        return progress


class Forgetful(ForeignScope):
    """Consumes a batch without holding anything for what it makes of it."""

    def _report_held(self) -> None:
        """Nothing is held."""


class Deaf(ForeignScope):
    """Does not add its own capabilities to what is held outside."""

    def set_external_summary(self, summaries: Any, capabilities: Any) -> None:
        super().set_external_summary([{}], capabilities)


@pytest.mark.parametrize("kind", [Impatient, Forgetful, Deaf])
def test_breaking_a_law_is_noticed(kind: Any) -> None:
    """So what is tested above could fail: each law is needed, and somebody looks."""
    for seed in (*range(13, 20), *range(13)):  # 13 is the first that shows an `Impatient` one
        try:
            check(simulated(3, seed, False, True, kind), True)
        except (AssertionError, PointstampError):
            return
    pytest.fail(f"nobody noticed {kind.__doc__}")


@KINDS
def test_a_dataflow_with_it_can_be_dropped(local: bool) -> None:
    def main(worker: Any) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow("dropped") as scope:
            input, numbers = scope.new_input()
            foreign_scope(numbers, local=local).inspect(seen.append)
        for number in range(1, 50):
            input.send(number)
        worker.step()
        worker.drop_dataflow("dropped")
        with worker.dataflow("next") as scope:
            scope.to_stream([worker.index]).broadcast().inspect(seen.append)
        worker.run()
        return seen[-2:]

    assert [sorted(seen) for seen in ps.execute(main, workers=2, threads=True)] == [[0, 1]] * 2
