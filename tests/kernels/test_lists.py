"""Lists end to end, against lists of Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import lists
from pointstamp.kernels.hashing import settled
from pointstamp.kernels.lists import distinct, group, group_distinct, numbers_of, positions, tally

near = st.integers(-5, 30)
far = st.one_of(near, st.integers(-(2**63), 2**63 - 1))
pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=40)


def columns(pairs):
    table = np.array(pairs, np.int32).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def lists_of(starts, items):
    return [items[a:b].tolist() for a, b in itertools.pairwise(starts)]


@pytest.mark.parametrize("ids", [near, far])
def test_distinct_ids_are_a_sorted_set(ids):
    @given(st.lists(ids, max_size=60))
    def check(values):
        assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))

    check()


@given(st.lists(near, min_size=1))
def test_both_forms_of_flags_agree(values):
    ids = np.array(values, np.int64)
    low, span = int(ids.min()), int(ids.max() - ids.min()) + 1
    expected = sorted(set(values))
    assert lists._flagged(settled(ids), low, span).tolist() == expected
    assert lists._flagged.plain(ids, low, span).tolist() == expected


@given(st.sets(far, max_size=30), st.lists(far, max_size=30))
def test_numbers_are_positions_among_the_keys(keys, others):
    ordered = sorted(keys)
    ids = np.array(ordered + others, np.int64)
    found = numbers_of(np.array(ordered, np.int64), ids)
    expected = [ordered.index(v) if v in keys else -1 for v in ids.tolist()]
    assert found.tolist() == expected
    table, dense = lists.build_table(np.array(ordered, np.int64))
    plain = lists.find_numbers.plain(np.array(ordered, np.int64), table, dense, ids)
    assert plain.tolist() == expected


@given(pairs)
def test_grouping_keeps_the_order_of_each_list(pairs):
    numbers, items = columns(pairs)
    expected = [[item for number, item in pairs if number == i] for i in range(8)]
    assert lists_of(*group(numbers, 8, items)) == expected
    assert lists_of(*group(numbers, 8, items.astype(np.float64))) == expected
    assert lists_of(*lists._group.plain(numbers, 8, items)) == expected
    counts = [len(part) for part in expected]
    assert tally(numbers, 8).tolist() == lists._tally.plain(numbers, 8).tolist() == counts


@given(pairs)
def test_grouping_distinct_items_sorts_each_list(pairs):
    numbers, items = columns(pairs)
    expected = [sorted({item for number, item in pairs if number == i}) for i in range(8)]
    assert lists_of(*group_distinct(numbers, 8, items)) == expected
    packed = np.sort(numbers.astype(np.int64) << 32 | items)
    assert lists_of(*lists._unpack.plain(packed, 8)) == expected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_positions_are_those_of_the_spans_in_order(spans):
    begins = np.array([b for b, _ in spans], np.int64)
    ends = begins + np.array([n for _, n in spans], np.int64)
    assert positions(begins, ends).tolist() == [p for b, n in spans for p in range(b, b + n)]
