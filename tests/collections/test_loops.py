"""Loops of collections give at each epoch what applying their bodies gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collections.checks import check_view, check_workers
from tests.collections.loops import LoopProgram, loop_programs
from tests.conftest import examples


@settings(max_examples=examples(300))
@given(loop_programs())
def test_a_view_of_a_loop_is_what_recomputing_gives(program: LoopProgram) -> None:
    check_view(program)


@settings(max_examples=examples(200))
@given(
    loop_programs(),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 7]),
    st.integers(0, 1 << 20),
)
def test_workers_of_a_loop_give_what_recomputing_gives(
    program: LoopProgram, workers: int, at_a_time: int, seed: int
) -> None:
    check_workers(program, workers, at_a_time, seed)
