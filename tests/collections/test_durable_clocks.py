"""Clocks, what goes by them, and upserts in snapshots; begun again on other numbers of workers."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from tests.collections.session_programs import in_sessions
from tests.collections.temporal_programs import ProgramRun, Stays, orders, stays
from tests.collections.test_durable import WORKERS, check_updates, renewed_texts
from tests.collections.window_programs import windowed
from tests.conftest import examples

AT_A_TIME = st.sampled_from([1, 7])


def check_restart(program: Any, before: int, after: int, cut: int, at_a_time: int) -> None:
    """A program that goes on from a snapshot gives what recomputing gives, of each result."""
    cut %= len(program.epochs)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        run = ProgramRun(program, at_a_time, Durable(checkpoint), cut)
        parts = [part for _, part in ps.simulate(run, workers=before, seed=cut)]
        manifest = checkpoint.commit_manifest(cut, parts, {})
        run = ProgramRun(program, at_a_time, Durable(checkpoint, manifest))
        with renewed_texts():
            again = ps.simulate(run, workers=after, seed=cut)
        for number, expected in enumerate(program.expected()):
            updates = [seen[number] for seen, _ in again]
            check_updates(updates, expected[cut], cut, expected)


@settings(max_examples=examples(50))
@given(stays(), WORKERS, WORKERS, st.integers(0, 9), AT_A_TIME)
def test_temporal_filters_that_are_begun_again_give_what_recomputing_gives(
    program: Any, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


@settings(max_examples=examples(60))
@given(windowed(), WORKERS, WORKERS, st.integers(0, 9), AT_A_TIME)
def test_windows_that_are_begun_again_give_what_recomputing_gives(
    program: Any, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


@settings(max_examples=examples(60))
@given(in_sessions(), WORKERS, WORKERS, st.integers(0, 9), AT_A_TIME)
def test_sessions_that_are_begun_again_give_what_recomputing_gives(
    program: Any, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


@settings(max_examples=examples(50))
@given(orders(), WORKERS, WORKERS, st.integers(0, 9), AT_A_TIME)
def test_upserts_that_are_begun_again_give_what_recomputing_gives(
    program: Any, before: int, after: int, cut: int, at_a_time: int
) -> None:
    check_restart(program, before, after, cut, at_a_time)


def test_a_clock_goes_on_from_where_it_was() -> None:
    """It is set twice before the snapshot, and what comes behind that is there at once."""
    epochs: Any = [
        ([((0, 1, 9), 1)], 2),
        ([], 3),
        ([((1, 5, 9), 1), ((2, 6, 9), 1)], 0),
        ([], 1),
        ([], 5),
    ]
    program = Stays(0, by_epoch=False, counts=False, epochs=epochs)
    assert [len(rows) for rows in program.expected()[0][:5]] == [1, 1, 2, 3, 0]
    for before, after in ((1, 2), (3, 1)):
        check_restart(program, before, after, 1, 1)
