"""Traces beside lists of all that was inserted: what readers see is the same, and bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointstamp.collections.lattice import TimeEncoding, join_of, less_equal
from pointstamp.collections.trace import Trace
from pointstamp.errors import BuildError
from pointstamp.kernels.histories import representative
from pointstamp.progress.timestamp import Int, Product, Unit
from tests.collections.merges import fuels, thresholds
from tests.collections.traces import (
    DEPTH,
    catching_up,
    check_trace,
    insertions,
    moves,
    pauses,
    trace_times,
)
from tests.conftest import examples


@settings(max_examples=examples(300))
@given(
    st.lists(st.one_of(insertions, moves, catching_up, pauses), max_size=30),
    trace_times,
    st.integers(1, 4),
    fuels,
    thresholds,
)
def test_readers_see_what_was_inserted(
    steps: list[Any], asked: Any, let_be: int, fuel: int, at_once: int
) -> None:
    check_trace(steps, asked, let_be, fuel, at_once)


@pytest.mark.parametrize("let_be", [1, 8])
def test_what_comes_and_goes_leaves_nothing_but_a_few_small_batches(let_be: int) -> None:
    trace = Trace(DEPTH, let_be)
    reader = trace.reader()
    n_most = 0
    for epoch in range(1_000):
        # Inserted in an even epoch, deleted in the next, in the same round.
        rows = np.array([[epoch // 2, -1 if epoch % 2 else 1]])
        time = (epoch, epoch // 2 % 3)
        reader.advance(trace.insert(rows, time), [(epoch + 1, 0)])
        n_most = max(n_most, trace.n_updates)
    assert n_most <= let_be
    assert trace.n_updates < let_be


def test_without_readers_nothing_is_kept() -> None:
    trace = Trace(DEPTH)
    reader = trace.reader()
    trace.insert(np.array([[1, 1]]), (0, 0))
    reader.advance(1, [])
    trace.insert(np.array([[2, 1]]), (0, 0))
    assert (trace.batches, trace.n_updates) == ([], 0)


@given(
    st.lists(trace_times, min_size=1), st.lists(trace_times, min_size=1, max_size=3), trace_times
)
def test_representatives_are_not_told_apart(old: Any, frontier: Any, asked: Any) -> None:
    for time in old:
        new = representative(time, frontier)
        for element in frontier:
            later = join_of(asked, element)
            assert less_equal(time, later) == less_equal(new, later)


def test_other_types_of_times_are_refused() -> None:
    with pytest.raises(BuildError, match=r"Product\(Unit, Int\)"):
        TimeEncoding(Product(Unit, Int), "a test")
