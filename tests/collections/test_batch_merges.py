"""Merges by pieces: readers see the batches until they are one, at a bound cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections import batch_merges
from pointstamp.collections.spine import Spine
from pointstamp.collections.trace import Trace
from pointstamp.kernels.consolidation import merge_some, piece_of_two
from tests.collections.merges import (
    check_pieces,
    check_series,
    check_spine,
    fuels,
    lumps,
    pairs,
    rows_of,
    steps,
    thresholds,
)
from tests.conftest import examples

rows = pairs.map(rows_of)


@settings(max_examples=examples(300))
@given(steps, fuels, thresholds, lumps)
def test_readers_of_a_spine_see_what_was_inserted_while_it_merges(
    steps: list[Any], fuel: int, at_once: int, lump: int
) -> None:
    check_spine(steps, fuel, at_once, lump)


@settings(max_examples=examples(200))
@given(st.lists(pairs, max_size=90), fuels, thresholds, lumps)
def test_a_series_is_what_was_inserted_while_it_merges(
    epochs: list[Any], fuel: int, at_once: int, lump: int
) -> None:
    check_series(epochs, fuel, at_once, lump)


@given(rows, rows, st.lists(st.integers(0, 4), max_size=8))
def test_a_merge_by_pieces_is_a_merge_at_once(left: Any, right: Any, fuels: list[int]) -> None:
    check_pieces(left, right, fuels)


@given(rows, rows, st.lists(st.integers(0, 5), max_size=6))
def test_pieces_of_merges_are_those_of_the_twin(left: Any, right: Any, sizes: list[int]) -> None:
    n = len(left) + len(right)
    found, expected = np.zeros((2, n, 2), np.int64), np.zeros((2, 3), np.int64)
    for size in sizes:
        merge_some(left, right, found[0], expected[0], size)
        merge_some.plain(left, right, found[1], expected[1], size)
        assert expected[0].tolist() == expected[1].tolist()
    assert found[0].tolist() == found[1].tolist()


@given(rows, rows, st.integers(0, 12), st.integers(0, 12), st.integers(1, 9))
def test_pieces_end_where_those_of_the_twin_end(
    left: Any, right: Any, i: int, j: int, most: int
) -> None:
    i, j = min(i, len(left)), min(j, len(right))
    found = piece_of_two(left, i, right, j, most, 1)
    assert found == piece_of_two.plain(left, i, right, j, most, 1)
    assert found[0] > i or found[1] > j or (i, j) == (len(left), len(right))


def test_a_sum_beyond_64_bits_is_an_error_of_the_piece_that_it_is_in() -> None:
    most = (1 << 63) - 1
    one = batch_merges.BatchMerge(rows_of([(1, 1), (2, most)]), rows_of([(1, 1), (2, most)]))
    one.advance(2)
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        one.advance(2)


def ripe(n_levels: int) -> list[int]:
    """Sizes of batches of which the next update sets off a merge of all, one after the other."""
    return [(1 << level) + 1 for level in reversed(range(7, n_levels))]


@pytest.mark.parametrize("n_levels", [12, 18])
def test_a_single_change_merges_no_more_of_a_large_spine_than_of_a_small_one(
    n_levels: int,
) -> None:
    spine = Spine(ps.Int, 4, 256, 1)
    reader = spine.reader()
    at, first = 0, 0
    for time, size in enumerate(ripe(n_levels)):
        spine.insert(
            np.column_stack([np.arange(first, first + size), np.ones(size, np.int64)]), time
        )
        reader.acknowledge(time + 1)
        first, at = first + size, time + 1
    most = 0
    for _ in range(200):
        before = {id(one): one.n_read for one in spine.merges}
        spine.insert(rows_of([(-at, 1)]), at)
        at += 1
        reader.acknowledge(at)
        most = max(most, sum(one.n_read - before.get(id(one), 0) for one in spine.merges))
    assert most <= 4 * n_levels


def test_idle_work_merges_and_then_there_is_none() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            input_, t = scope.new_collection("k long")
            kept = t.arrange("k")
            probe = kept.join(kept).probe()
        seen = []
        for epoch in range(3):
            input_.insert([(key,) for key in range(epoch, 90_000, 3)])
            input_.advance_to(epoch + 1)
            while probe.less_than(epoch + 1):
                worker.step()
        spine = kept._arrangement.spine
        seen.append(spine.n_batches)
        n_steps = 0
        while worker.environment.idle.run():
            n_steps += 1
        seen += [spine.n_batches, n_steps < 100]
        # And a worker that waits does so, too.
        input_.insert([(-1,)])
        input_.advance_to(4)
        worker.step_while(lambda: probe.less_than(4))
        input_.close()
        return seen

    fuel = batch_merges.FUEL
    batch_merges.FUEL = 0
    try:
        ((before, *after),) = ps.execute(main)
    finally:
        batch_merges.FUEL = fuel
    assert before > 1
    assert after == [1, True]


def test_what_cancels_takes_no_batch_with_it_that_a_reader_does_not_know() -> None:
    trace = Trace(1, 1, 4, 0, 1)
    one, other = trace.reader(), trace.reader()
    for epoch, (first, n, diff) in enumerate([(0, 10, 1), (50, 5, 1), (50, 5, -1), (80, 8, 1)]):
        trace.insert(np.array([[word, diff] for word in range(first, first + n)]), (epoch,))
    one.advance(4, [(4,)])
    other.advance(3, [(4,)])
    assert [batch.rows[:, 0].tolist() for batch in other.batches()] == [list(range(10))]
    assert trace.n_updates == 18


@pytest.mark.parametrize("depth", [1, 2])
def test_a_trace_is_merged_when_idle_and_loses_what_has_cancelled(depth: int) -> None:
    trace = Trace(depth, 1, 0, 0, 1)
    reader = trace.reader()
    zeros = (0,) * (depth - 1)
    for epoch in range(8):
        rows = np.array([[word, -1 if epoch % 2 else 1] for word in range(20)])
        trace.insert(rows, (epoch, *zeros))
        reader.advance(epoch + 1, [(epoch + 1, *zeros)])
    assert trace.n_updates == 160
    for _ in range(500):
        if not trace.work(3):
            break
    assert (trace.n_updates, trace.work(3)) == (0, False)
