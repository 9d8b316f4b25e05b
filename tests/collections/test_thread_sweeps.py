"""Workers that are threads, or take turns in one, sweep texts, and none waits long for that."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers.dictionary import TEXTS
from pointstamp.errors import WorkerError
from tests.collections import thread_sweeping as checks
from tests.collections.loops import loop_programs
from tests.collections.programs import Program, programs
from tests.collections.sweeping import PIECES, sweeping
from tests.collections.worker_sweeping import drive_service, rows_of
from tests.conftest import examples

STEPS = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@settings(max_examples=examples(25), deadline=None)
@given(
    programs() | loop_programs(), STEPS, st.sampled_from(PIECES), st.booleans(), st.integers(2, 3)
)
def test_swept_threads_are_what_recomputing_gives(
    program: Program, steps: list[int], piece: int, reuses: bool, workers: int
) -> None:
    checks.check_swept_threads(program, steps, piece, reuses, workers)


@settings(max_examples=examples(20), deadline=None)
@given(
    programs() | loop_programs(),
    STEPS,
    st.sampled_from(PIECES),
    st.booleans(),
    st.integers(2, 3),
    st.integers(0, 1 << 20),
)
def test_so_are_swept_simulations(
    program: Program, steps: list[int], piece: int, reuses: bool, workers: int, seed: int
) -> None:
    checks.check_swept_simulation(program, steps, piece, reuses, workers, seed)


@settings(max_examples=examples(5), deadline=None)
@given(programs() | loop_programs(), st.booleans())
def test_so_are_services_of_threads(program: Program, reuses: bool) -> None:
    with sweeping(reuses=reuses) as sweeps:
        n_before = sweeps.stats().sweeps
        drive_service(program, 2, threads=True)
        assert sweeps.stats().sweeps > n_before, sweeps.stats().refused


@pytest.mark.parametrize(
    "check",
    [
        checks.check_simulations_are_swept,
        checks.check_threads_are_swept,
        checks.check_threads_that_end_early,
        checks.check_between_threads,
        checks.check_between_turns,
        checks.check_early_messages,
        checks.check_worker_that_begins_meanwhile,
        checks.check_step_on_another_thread,
        checks.check_building_on_another_thread,
        checks.check_parked_on_another_thread,
        checks.check_held_worker_waits,
        checks.check_waits_in_vain_are_few,
        checks.check_joins_what_has_begun,
    ],
)
def test_threads_hold_still_where_they_may(check: Any) -> None:
    check()


@pytest.mark.parametrize("workers", [2, 3])
def test_entries_are_at_most_twice_those_in_use(workers: int) -> None:
    n_rows = 20
    with sweeping() as sweeps:
        sweeps.spare, n_before = 64, sweeps.stats().sweeps
        found = ps.execute(checks.run_flat, 120, n_rows, workers=workers, threads=True)
        n_sweeps = sweeps.stats().sweeps - n_before
        refused = sweeps.stats().refused
    # Of 2,400 for each worker: those of two epochs are in use, of which there may be twice as
    # many, and those that came until all workers had looked.
    assert max(found) < 144 + 4 * n_rows * workers * 2, refused
    assert n_sweeps > 5


def test_the_same_schedule_is_drawn_whether_texts_are_swept_or_not() -> None:
    def main(worker: ps.Worker) -> tuple[int, list[Any]]:
        rows = checks.churned(worker, 6)
        return worker.n_steps, rows

    expected = ps.simulate(main, workers=3, seed=11)
    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        assert ps.simulate(main, workers=3, seed=11) == expected
        assert sweeps.stats().sweeps > n_before


def test_a_thread_in_the_code_of_its_program_delays_sweeps_and_no_worker() -> None:
    """The other one goes on stepping, and sweeps begin when both step again."""
    n_steps, has_built, has_stepped = 2_000, threading.Event(), threading.Event()

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            given.distinct()
        if worker.index:
            has_built.set()
            assert has_stepped.wait(checks.PATIENCE_S)
            return None
        try:
            # Before that there is nothing of it that a sweep would have to wait for.
            assert has_built.wait(checks.PATIENCE_S)
            n_before = sweeps.stats().sweeps
            for turn in range(n_steps):
                if turn % 20 == 0:
                    input_.insert(rows_of(turn))
                worker.step()
            return sweeps.stats().sweeps - n_before
        finally:
            has_stepped.set()

    with sweeping() as sweeps:
        n_before = sweeps.stats().sweeps
        n_meanwhile, _ = ps.execute(main, workers=2, threads=True)
        assert n_meanwhile == 0
        assert sweeps.stats().sweeps > n_before


def test_a_thread_that_fails_ends_the_others_and_holds_back_no_later_sweep() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            input_, given = scope.new_collection("k long, t string")
            given.distinct()
        for turn in range(1_000_000):
            input_.insert(rows_of(turn))
            input_.advance_to(turn + 1)
            for _ in range(5):
                worker.step()
            if worker.index and turn == 20:
                raise ZeroDivisionError("planted")

    with sweeping() as sweeps:
        with pytest.raises(WorkerError, match="planted"):
            ps.execute(main, workers=2, threads=True)
        n_before = sweeps.stats().sweeps
        assert sum(map(len, ps.execute(checks.churned, 12, workers=2, threads=True))) == 96
        assert sweeps.stats().sweeps > n_before, sweeps.stats().refused
        assert len(TEXTS) < 12 * 4 * 2


def test_a_sweep_on_another_thread_may_be_due_when_a_program_ends() -> None:
    """Programs one after the other: whatever the last one left waiting is over."""
    with sweeping() as sweeps:
        for _ in range(5):
            n_before = sweeps.stats().sweeps
            ps.execute(checks.churned, 8, workers=3, threads=True)
            assert sweeps.stats().sweeps > n_before, sweeps.stats().refused
