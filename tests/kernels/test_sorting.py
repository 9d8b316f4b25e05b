"""Sorted runs against Python's own sets, sums and sorts, and against the twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import sorting

small_keys = st.lists(st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1))
updates = st.lists(st.tuples(st.integers(-4, 4), st.sampled_from([-2, -1, 0, 1, 2])))


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(small_keys)
def test_unique_sorted_is_a_sorted_set(keys):
    assert sorting.unique_sorted(ints(keys)).tolist() == sorted(set(keys))
    ordered = np.sort(ints(keys))
    assert sorting._distinct.plain(ordered).tolist() == sorting._distinct(ordered).tolist()


@given(updates)
def test_consolidate_sums_and_forgets_what_cancels(updates):
    expected: Counter[int] = Counter()
    for key, diff in updates:
        expected[key] += diff
    keys, diffs = sorting.consolidate(
        ints([key for key, _ in updates]), ints([diff for _, diff in updates])
    )
    assert list(zip(keys.tolist(), diffs.tolist(), strict=True)) == sorted(
        (key, total) for key, total in expected.items() if total
    )


@given(updates)
def test_sums_agree_with_the_twin(updates):
    ordered = sorted(updates)
    keys, diffs = ints([key for key, _ in ordered]), ints([diff for _, diff in ordered])
    compiled = [part.tolist() for part in sorting._sums(keys, diffs)]
    assert compiled == [part.tolist() for part in sorting._sums.plain(keys, diffs)]


@given(small_keys, small_keys)
def test_merging_sorted_runs_is_sorting_both(left, right):
    merged = sorting.merge_sorted(ints(sorted(left)), ints(sorted(right)))
    assert merged.tolist() == sorted(left + right)
    plain = sorting._merged.plain(ints(sorted(left)), ints(sorted(right)))
    assert plain.tolist() == merged.tolist()
