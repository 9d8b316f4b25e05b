"""Groups with sums, compiled and plain, against a recount of all updates."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.containers.words import float_word
from pointstamp.kernels.consolidation import consolidate_all, values_by_key
from pointstamp.kernels.group_sums import GroupSums, PlainGroupSums, SumForm, SumOverflow

CLASSES = [GroupSums, PlainGroupSums]
PLAN = np.array(
    [
        [SumForm.RECORDS, 0, -1, 0, 0],
        [SumForm.VALUES, 2, 1, 0, 0],
        [SumForm.SUM, 2, 1, 1, 0],
        [SumForm.SUM, 3, -1, 0, 10**18],
        [SumForm.AVERAGE, 2, 1, 1, 100],
        [SumForm.FIRST, 2, 1, 1, 0],
        [SumForm.FIRST, 3, -1, 1, -1],
    ],
    np.int64,
)
"""Of updates of a key, a value that may be null, and one that may not."""

small = st.integers(-3, 3)
large = st.integers(-(2**62), 2**62)


def updates():
    word = st.one_of(small, large)
    row = st.tuples(small, st.integers(0, 1), word, small, st.integers(-2, 3))
    part = st.lists(row, max_size=30)
    return st.lists(st.lists(part, min_size=1, max_size=3), max_size=6)


def recounted(rows):
    """The rows of the groups that are there."""
    groups = defaultdict(list)
    for key, *rest in rows:
        groups[key].append(rest)
    found = {}
    for key, members in groups.items():
        n = sum(diff for *_, diff in members)
        values = sum(diff for flag, _, _, diff in members if flag)
        total = sum(value * diff for flag, value, _, diff in members if flag)
        other = sum(value * diff for _, _, value, diff in members)
        if n > 0:
            there = int(values != 0)
            average = float_word(total / (100 * values)) if there else 0
            sums = (n, values, there, total if there else 0, other, there, average)
            least = first_of([(value, diff) for flag, value, _, diff in members if flag], min)
            greatest = first_of([(value, diff) for _, _, value, diff in members], max)
            found[key] = (*sums, *least, *greatest)
    return found


def first_of(pairs, choose):
    """Whether there is a value, and the least or the greatest."""
    counts = Counter()
    for value, diff in pairs:
        counts[value] += diff
    there = [value for value, n in counts.items() if n > 0]
    return (1, choose(there)) if there else (0, 0)


class Values:
    """The batches that a caller keeps for the two first values of `PLAN`."""

    def __init__(self):
        self.batches = [BatchSeries(), BatchSeries()]

    def insert(self, parts):
        for batches, (_, value, flag, _, mask) in zip(
            self.batches, PLAN[-2:].tolist(), strict=True
        ):
            new = consolidate_all([values_by_key(rows, 1, value, flag, mask) for rows in parts])
            batches.insert(new)
        return [batches.rows for batches in self.batches]


@pytest.mark.parametrize("of", CLASSES)
@given(epochs=updates())
def test_changes_add_up_to_the_groups_that_are_there(of, epochs):
    groups, seen, rows, values = of(1, 4, PLAN), defaultdict(int), [], Values()
    for parts in epochs:
        rows += [row for part in parts for row in part]
        expected = recounted(rows)
        beyond = any(not -(2**63) <= row[3] < 2**63 for row in expected.values())
        arrays = [np.array(part, np.int64).reshape(-1, 5) for part in parts]
        if beyond:
            with pytest.raises(SumOverflow):
                groups.update(arrays, values.insert(arrays))
            return
        changes = groups.update(arrays, values.insert(arrays)).tolist()
        assert len({tuple(row) for row in changes}) == len({tuple(row[:-1]) for row in changes})
        for *row, diff in changes:
            seen[tuple(row)] += diff
        assert {row for row, n in seen.items() if n} == {(k, *v) for k, v in expected.items()}
        assert set(seen.values()) <= {0, 1}


@pytest.mark.parametrize(("of", "n"), [(GroupSums, 20_000), (PlainGroupSums, 2_000)])
def test_many_groups_come_and_go(of, n):
    plan = np.array([[SumForm.RECORDS, 0, -1, 0, 0]], np.int64)
    groups = of(2, 2, plan)
    keys = np.column_stack([np.arange(n) // 7, np.arange(n), np.ones(n, np.int64)])
    assert len(groups.update([keys, keys])) == len(groups) == n
    gone = keys * np.array([1, 1, -2])
    changes = groups.update([gone])
    assert sorted(changes.tolist()) == sorted([*row[:2], 2, -1] for row in keys.tolist())
    for shift in range(1, 6):
        more = keys + np.array([0, n * shift, 0])
        assert len(groups.update([more])) == n
        groups.update([more * np.array([1, 1, -1])])
    assert len(groups) <= 2 * n


@pytest.mark.parametrize("of", CLASSES)
def test_what_is_beyond_is_refused_with_its_sum_and_its_group(of):
    plan = np.array([[SumForm.SUM, 1, -1, 0, 0]], np.int64)
    with pytest.raises(SumOverflow) as caught:
        of(1, 2, plan).update([np.array([[7, 2**62, 1]] * 2)])
    assert (caught.value.place, caught.value.total, caught.value.key) == (0, 2**63, [7])
    with pytest.raises(SumOverflow) as caught:
        of(1, 2, plan).update([np.array([[7, -(2**62), 3]])])
    assert (caught.value.place, caught.value.total) == (0, -3 * 2**62)
    with pytest.raises(SumOverflow) as caught:
        of(1, 2, plan).update([np.array([[7, 1, 2**62]] * 2)])
    assert caught.value.place == -1
    with pytest.raises(SumOverflow) as caught:
        of(1, 2, plan).update([np.array([[7, 2**62, 2**61]] * 20)])
    assert caught.value.place in (-1, 0)


@pytest.mark.parametrize("of", CLASSES)
@given(value=large, n=st.integers(1, 2**40), unit=st.sampled_from([1, 100, 10**18]))
def test_averages_are_rounded_once(of, value, n, unit):
    plan = np.array([[SumForm.AVERAGE, 1, -1, 0, unit]], np.int64)
    ((_, word, diff),) = of(1, 2, plan).update([np.array([[0, value, n], [0, 1, 1]])]).tolist()
    mean = (value * n + 1) / ((n + 1) * unit)
    assert (word, diff) == (float_word(mean), 1)
    assert math.isfinite(mean)


@pytest.mark.parametrize("of", CLASSES)
def test_updates_of_another_width_are_refused(of):
    with pytest.raises(ValueError, match="have 4 words, and not 1"):
        of(1, 4, PLAN).update([np.array([[1, 1]])])


@pytest.mark.parametrize(
    ("of", "n"), [(GroupSums, 610), (GroupSums, 60_000), (PlainGroupSums, 610)]
)
@pytest.mark.parametrize("mask", [0, -1])
def test_deleting_the_first_value_reads_some_tens_of_entries_whatever_the_group(of, n, mask):
    plan = np.array([[SumForm.FIRST, 1, -1, 0, mask]], np.int64)
    groups, batches, most = of(1, 2, plan), BatchSeries(), 0

    def update(rows):
        batches.insert(consolidate_all([values_by_key(rows, 1, 1, -1, mask)]))
        return groups.update([rows], [batches.rows]).tolist()

    every = np.column_stack([np.ones(n, np.int64), np.arange(n) ^ mask, np.ones(n, np.int64)])
    assert update(every) == [[1, 0 ^ mask, 1]]
    update(every[:10] + np.array([1, 0, 0]))
    for value in range(600):
        passed = groups.n_passed
        changes = update(np.array([[1, value ^ mask, -1]]))
        assert changes == [[1, value ^ mask, -1], [1, (value + 1) ^ mask, 1]]
        most = max(most, groups.n_passed - passed)
    assert 0 < most <= 20
    passed = groups.n_passed
    assert update(np.array([[1, (n - 2) ^ mask, 1]])) == []
    assert groups.n_passed == passed
