"""Programs on workers that are threads of one process, or take turns in one, with texts swept.

See `sweeping`: what is freed and still read is an error, or another text.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import pointstamp as ps
from pointstamp import col
from pointstamp.communication.communicator import Communicator
from pointstamp.communication.simulated import SimulatedNetwork
from pointstamp.communication.threads import communicators
from pointstamp.containers.dictionary import TEXTS
from pointstamp.containers.updates import Updates
from pointstamp.errors import WorkerError
from pointstamp.runtime import safepoints
from pointstamp.runtime.safepoints import Rendezvous, Safepoint
from pointstamp.runtime.worker import Worker
from tests.collections.checks import limits_of
from tests.collections.programs import Program
from tests.collections.sweeping import sweeping
from tests.collections.worker_sweeping import check_updates, rows_of, run_swept, texts_held

PATIENCE_S = 60.0
"""After so long what a test waits for does not come."""

N_AT_ONCE = 50_000
"""So many rows leave an input, and are exchanged, before they are all given."""


def check_swept_threads(
    program: Program, steps: Sequence[int], piece: int, reuses: bool, workers: int = 2
) -> None:
    """The updates of all threads add up to what recomputing gives."""
    with limits_of(program), sweeping(piece, reuses):
        parts = ps.execute(run_swept, program, steps, workers=workers, threads=True)
    check_updates([update for part in parts for update in part], program)


def check_swept_simulation(
    program: Program, steps: Sequence[int], piece: int, reuses: bool, workers: int, seed: int
) -> int:
    """So do those of workers that take turns; how many sweeps there were."""
    with limits_of(program), sweeping(piece, reuses) as sweeps:
        n_before = sweeps.stats().sweeps
        parts = ps.simulate(run_swept, program, steps, workers=workers, seed=seed)
        n_sweeps = sweeps.stats().sweeps - n_before
    check_updates([update for part in parts for update in part], program)
    return n_sweeps


def check_simulations_are_swept() -> None:
    """Sweeps begin while all workers but one wait for their turn, at the beginnings of steps."""
    _check_steppers(16, 3, partial(ps.simulate, seed=5))


def check_threads_are_swept() -> None:
    """Sweeps begin while threads step, and none parks."""
    _check_steppers(60, 2, partial(ps.execute, threads=True))


def _check_steppers(n_turns: int, workers: int, run: Callable[..., list[Any]]) -> None:
    n_sweeps: list[int] = []
    with sweeping() as sweeps:
        sweeps.spare = 0  # there are very many steps

        def main(worker: ps.Worker) -> list[Any]:
            return churned(
                worker,
                n_turns,
                parks=False,
                meanwhile=lambda: n_sweeps.append(sweeps.stats().sweeps),
            )

        found = run(main, workers=workers)
        # From when all are there until the first has no more to give.
        assert sorted(n_sweeps)[workers] - sorted(n_sweeps)[workers - 1] > 2, sweeps.stats().refused
    assert sorted(row for part in found for row in part) == _rows_that_came(n_turns, workers)


def check_threads_that_end_early() -> None:
    """Sweeps begin while a thread has nothing to do any more, and waits for the end."""

    def main(worker: ps.Worker) -> list[Any]:
        return churned(worker, 4 if worker.index else 40)

    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        found = ps.execute(main, workers=2, threads=True)
        assert sweeps.stats().sweeps > n_before + 10, sweeps.stats().refused
    came = sorted([*_rows_that_came(40, 1), *_rows_that_came(4, 1, first=1)])
    assert sorted(row for part in found for row in part) == came


def churned(
    worker: ps.Worker,
    n_turns: int,
    *,
    parks: bool = True,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Any]:
    """The rows that came, of which each is deleted in the next epoch.

    `meanwhile` is called when all workers are there, and when there is no more to be given.
    """
    found: list[Any] = []
    with worker.dataflow() as scope:
        input_, given = scope.new_collection("k long, t string")
        result = given.distinct().inspect(lambda row, _, diff: found.extend([row] * (diff > 0)))
        probe = result.probe()
    for turn in range(n_turns):
        input_.insert(rows_of(10 * turn + worker.index))
        if turn:
            input_.delete(rows_of(10 * (turn - 1) + worker.index))
        input_.advance_to(turn + 1)
        while probe.less_than(turn):
            if parks:
                worker.step_or_park()
            else:
                worker.step()
        if turn in (1, n_turns - 1):
            meanwhile()
    input_.close()
    worker.run()
    return found


def _rows_that_came(n_turns: int, workers: int, first: int = 0) -> list[Any]:
    indices = range(first, first + workers)
    return sorted(
        row for turn in range(n_turns) for index in indices for row in rows_of(10 * turn + index)
    )


# What is on its way.


def check_between_threads() -> None:
    """What was sent to a thread and not taken in is found on its way."""
    zero, one = communicators(2)
    _check_between(zero, one)


def check_between_turns() -> None:
    """So is what waits on the links of a simulation."""
    network = SimulatedNetwork(2, random.Random(1), on_park=lambda index, timeout_s: None)

    def deliver(is_first: bool) -> None:
        # Of the first epoch's rows nothing arrives.
        while not is_first and network.deliver_any():
            pass

    _check_between(network.communicator(0), network.communicator(1), deliver)


def _check_between(
    zero: Communicator, one: Communicator, deliver: Callable[[bool], None] = lambda is_first: None
) -> None:
    workers = [Worker(zero), Worker(one)]
    inputs = [_built(worker) for worker in workers]
    for _ in range(6):
        deliver(False)
        for worker in workers:
            worker.step()
    given = rows_of(1, 40)
    inputs[0].insert(given)
    inputs[0].advance_to(1)
    workers[0].step()
    deliver(True)
    sent = {row[1].encode() for row in given}
    assert zero.objects_under_way()
    assert set().union(*map(texts_held, workers)) >= sent
    for worker in workers:
        worker.close()


def _built(worker: Worker) -> Any:
    with worker.dataflow() as scope:
        input_, given = scope.new_collection("k long, t string")
        given.distinct()
    return input_


def check_early_messages() -> None:
    """What came for a dataflow that a worker has not built is found, before and after it looks."""
    zero, one = communicators(2)
    worker = Worker(zero)
    first = _built(worker)
    first.insert(rows_of(1, N_AT_ONCE))
    # The other one has not begun, and is not asked.
    assert not len(_on_their_way(zero) - texts_held(worker))
    other = Worker(one)
    _built(other)
    _built(worker).insert(rows_of(2, N_AT_ONCE))
    early = _on_their_way(zero)
    assert not len(early - texts_held(other))
    other.step()
    # They are with it now, and no more on their way.
    assert not len(_sent_rows(zero))
    assert not len(early - texts_held(other))
    for each in (worker, other):
        each.close()


def _on_their_way(communicator: Communicator) -> set[bytes]:
    """The texts of the rows that were sent; there are some."""
    batches = _sent_rows(communicator)
    numbers = {number for batch in batches for number in batch.rows[:, batch.texts[0]].tolist()}
    assert len(numbers)
    return set(TEXTS.values(numbers))


def _sent_rows(communicator: Communicator) -> list[Updates]:
    return [batch for _, batch in communicator.objects_under_way() if type(batch) is Updates]


def check_worker_that_begins_meanwhile() -> None:
    """A thread that begins while a sweep does, and takes in what was sent to it, has it wait."""
    zero, one = communicators(2)
    worker, others = Worker(zero), list[Any]()
    with sweeping() as sweeps:
        _built(worker).insert(rows_of(1, N_AT_ONCE))
        assert worker.texts is not None
        early, real = _on_their_way(zero), worker.texts.held_texts

        def held_texts() -> Any:
            # As a thread would that has its turn here.
            if not others:
                others.append(Worker(one))
                _built(others[0])
                others[0].step()
            return real()

        worker.texts.held_texts = held_texts  # type: ignore[method-assign]  # for this worker
        n_before = sweeps.stats().sweeps
        sweeps.advance()
        sweeps.finish()
        assert sweeps.stats().sweeps == n_before
        sweeps.advance()
        sweeps.finish()
        assert sweeps.stats().sweeps == n_before + 1
        assert not len(early - texts_held(others[0]))
        for each in (worker, *others):
            each.close()


# What holds still, and when.


def check_step_on_another_thread() -> None:
    """A sweep does not begin while a thread is in a step, whatever another one does."""
    inside, go_on = threading.Event(), threading.Event()

    def look(row: Any, time: Any, diff: int) -> None:
        inside.set()
        assert go_on.wait(PATIENCE_S)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            given.inspect(look)
        input_.insert(rows_of(1))
        worker.step_while(lambda: not inside.is_set())

    _check_refused_meanwhile(main, inside, go_on)


def check_building_on_another_thread() -> None:
    """Nor while it builds a dataflow, be it that it waits for something meanwhile."""
    inside, go_on = threading.Event(), threading.Event()

    def main(worker: ps.Worker) -> list[Any]:
        found: list[Any] = []
        _built(worker).close()
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            named = given.with_columns(u=ps.lit("a constant of the program"))
            named.inspect(lambda row, time, diff: found.append(row[-1]))
            inside.set()
            while not go_on.is_set():
                worker.step_or_park(0.01)
        input_.insert(rows_of(1, 1))
        input_.close()
        worker.run()
        return found

    assert _check_refused_meanwhile(main, inside, go_on) == [["a constant of the program"]]


def _check_refused_meanwhile(
    main: Callable[[ps.Worker], Any], inside: threading.Event, go_on: threading.Event
) -> Any:
    """A view on this thread has nothing swept while a worker on another one is inside."""
    results: list[Any] = []
    with sweeping() as sweeps, ps.View(lambda scope, t: t, t="t string") as view:
        thread = threading.Thread(target=_collect, args=(results, main))
        thread.start()
        try:
            assert inside.wait(PATIENCE_S)
            n_before = sweeps.stats().sweeps
            for turn in range(20):
                view.insert("t", [(f"beside it {turn}",)])
                view.advance()
            n_meanwhile = sweeps.stats().sweeps - n_before
        finally:
            go_on.set()
            thread.join(PATIENCE_S)
        assert not n_meanwhile
    (result,) = results
    if isinstance(result, WorkerError):
        raise result
    return result


def _collect(results: list[Any], main: Callable[[ps.Worker], Any]) -> None:
    try:
        results += [ps.execute(main)]
    except WorkerError as error:
        results.append(error)


def check_parked_on_another_thread() -> None:
    """While a thread is parked another one has texts swept, and what the first keeps stays."""
    is_parked, go_on = threading.Event(), threading.Event()
    found: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            first = given.group_by("k").top_k(1, by="t")
            first.inspect(lambda row, time, diff: found.append((row, time, diff)))
            probe = first.probe()
        input_.insert(rows_of(1))
        input_.advance_to(1)
        worker.step_while(partial(probe.less_than, 1))
        is_parked.set()
        while not go_on.is_set():
            worker.step_or_park(0.01)
        input_.delete(rows_of(1))
        input_.close()
        worker.run()

    with sweeping() as sweeps, ps.View(lambda scope, t: t, t="t string") as view:
        thread = threading.Thread(target=_collect, args=([], main))
        thread.start()
        try:
            assert is_parked.wait(PATIENCE_S)
            n_before, n_turns = sweeps.stats().sweeps, 0
            while sweeps.stats().sweeps < n_before + 3:
                view.insert("t", [(f"beside it {n_turns}",)])
                view.advance()
                n_turns += 1
                assert n_turns < 100_000, sweeps.stats().refused
        finally:
            go_on.set()
            thread.join(PATIENCE_S)
    came = [(row, time, diff) for time, diff in ((0, 1), (1, -1)) for row in rows_of(1)]
    assert sorted(found) == sorted(came)


def check_held_worker_waits() -> None:
    """What is held at a safepoint leaves it when it is released, and not before."""
    safepoint, order = Safepoint(Rendezvous()), []
    is_there = threading.Event()

    def work() -> None:
        safepoint.enter()
        is_there.set()
        assert may_leave.wait(PATIENCE_S)
        safepoint.leave()
        order.append("it has left")

    may_leave = threading.Event()
    assert not safepoint.hold()
    thread = threading.Thread(target=work)
    thread.start()
    assert is_there.wait(PATIENCE_S)
    assert safepoint.hold()
    may_leave.set()
    thread.join(0.05)
    order.append("it is released")
    safepoint.release()
    thread.join(PATIENCE_S)
    assert order == ["it is released", "it has left"]
    assert not safepoint.hold()


class _FakeClock:
    """Has waits take no time, and says how long they would have been."""

    def __init__(self) -> None:
        self.now_s = 0.0
        clock = self

        class Place(Rendezvous):
            def wait(self, seen: int, seconds: float) -> int:
                clock.now_s += seconds
                return seen

        self.place = Place()

    def meet(self, safepoint: Safepoint, after_s: float = 0.0) -> float:
        """Have a worker look after a while, in vain; how long it waits."""
        self.now_s += after_s
        began_s = self.now_s
        assert not safepoint.meet(lambda: False)
        return self.now_s - began_s

    def __enter__(self) -> _FakeClock:
        self._real, safepoints.monotonic = safepoints.monotonic, lambda: self.now_s
        return self

    def __exit__(self, *exception: object) -> None:
        safepoints.monotonic = self._real


def check_waits_in_vain_are_few() -> None:
    """A worker that meets no other waits a sixteenth of its time: 2 ms at first, 0.1 s at most."""
    with _FakeClock() as clock:
        safepoint = Safepoint(clock.place)
        waits = [clock.meet(safepoint, 0.0001) for _ in range(10_000)]
        assert waits[0] == pytest.approx(0.002)
        assert max(waits) < 0.0026
        assert clock.now_s / 20 < sum(waits) < clock.now_s / 15
        for step_s in (0.8, 100.0):
            waits = [clock.meet(safepoint, step_s) for _ in range(100)]
            longest = min(0.1, step_s / 16)
            assert max(waits) < longest * 1.3  # as it may look once more at the end
            assert sum(waits) > longest * 50


def check_joins_what_has_begun() -> None:
    """A worker that has just waited in vain does not wait, but joins another one that begins to."""
    with _FakeClock() as clock:
        one, other = Safepoint(clock.place), Safepoint(clock.place)
        assert clock.meet(one)
        assert not clock.meet(one, 0.003)
        began_s = clock.now_s
        assert clock.meet(other)
        clock.now_s = began_s + 0.001
        assert clock.meet(one)
        assert not clock.meet(one)
        assert one.meet(lambda: True) is False
        clock.now_s += 1.0
        assert one.meet(lambda: True) is True
        assert not one.hold()


def run_flat(worker: ps.Worker, n_epochs: int, n_rows: int) -> int:
    """The most entries that there are after a while, where all rows of each epoch are new."""
    with worker.dataflow() as scope:
        made = [scope.new_collection(f"k long, {name} string") for name in "tu"]
        joined = made[0][1].join(made[1][1], on="k")
        capped = ps.when(col("k") < 3).then(col("k") + 1).otherwise(3)
        results = [
            joined.group_by("t").agg(n=ps.count(), last=ps.max("u")),
            made[0][1].iterate(lambda found: found.select(k=capped, t="t").distinct()),
        ]
        probe = ps.Probe()
        for result in results:
            result.probe_with(probe)
    most = 0
    for turn in range(n_epochs):
        for input_, _ in made:
            input_.insert(rows_of(worker.peers * turn + worker.index, n_rows))
            if turn:
                input_.delete(rows_of(worker.peers * (turn - 1) + worker.index, n_rows))
            input_.advance_to(turn + 1)
        worker.step_while(partial(probe.less_than, turn + 1))
        if turn > n_epochs // 3:
            most = max(most, len(TEXTS))
    return most
