"""Lists end to end, against lists of Python."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import lists
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import (
    counted,
    distinct,
    group,
    group_distinct,
    numbers_of,
    place_into,
    positions,
    starts_of,
    tally,
)

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
    @given(st.lists(st.lists(ids, max_size=60), max_size=4))
    def check(parts):
        expected = sorted({value for part in parts for value in part})
        assert distinct(*(np.array(part, np.int64) for part in parts)).tolist() == expected

    check()


@pytest.mark.parametrize("ids", [near, far])
def test_ids_are_counted(ids):
    @given(st.lists(st.lists(ids, max_size=60), max_size=4))
    def check(parts):
        found, counts = counted(*(np.array(part, np.int64) for part in parts))
        expected = Counter(itertools.chain.from_iterable(parts))
        assert list(zip(found.tolist(), counts.tolist(), strict=True)) == sorted(expected.items())

    check()


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(values=st.lists(near, min_size=1))
def test_flags_are_set_where_ids_are(form, values):
    ids = np.array(values, np.int64)
    present = np.zeros(40, np.bool_)
    (lists.flag if form == "compiled" else lists.flag.plain)(contiguous(ids), -5, present)
    assert (np.flatnonzero(present) - 5).tolist() == sorted(set(values))


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
    assert tally(numbers, 8).tolist() == [len(part) for part in expected]


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(pairs=pairs, cut=st.integers(0, 40))
def test_lists_that_are_filled_in_parts_are_as_if_in_one(form, pairs, cut):
    count = lists.tally_into if form == "compiled" else lists.tally_into.plain
    place = place_into if form == "compiled" else place_plain
    numbers, items = columns(pairs)
    counts = np.zeros(8, np.int64)
    for part in (numbers[:cut], numbers[cut:]):
        count(contiguous(part), counts)
    starts, grouped = starts_of(counts), np.full(len(items), -1, np.int32)
    places = starts[:-1].copy()
    for some in (slice(cut), slice(cut, None)):
        place(grouped, places, numbers[some], items[some])
    assert lists_of(starts, grouped) == [[i for n, i in pairs if n == k] for k in range(8)]
    assert places.tolist() == starts[1:].tolist()


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(parts=st.lists(st.lists(far, max_size=6), max_size=8), data=st.data())
def test_lists_are_copied_to_their_places(form, parts, data):
    copy = lists.copy_lists if form == "compiled" else lists.copy_lists.plain
    order = data.draw(st.permutations(range(len(parts))))
    starts = starts_of(np.array([len(part) for part in parts], np.int64))
    places, room = np.zeros(len(parts), np.int64), 1
    for i in order:
        places[i] = room
        room += len(parts[i]) + 1
    copied = np.full(room, -7)
    copy(np.array([item for part in parts for item in part], np.int64), starts, places, copied)
    expected = [-7]
    for i in order:
        expected += [*parts[i], -7]
    assert copied.tolist() == expected


def place_plain(grouped, places, numbers, items):
    lists.place_words.plain(numbers, items, places, grouped)


@given(pairs)
def test_grouping_distinct_items_sorts_each_list(pairs):
    numbers, items = columns(pairs)
    expected = [sorted({item for number, item in pairs if number == i}) for i in range(8)]
    packed = numbers.astype(np.int64) << 32 | items
    assert lists_of(*lists.unpack.plain(np.sort(packed), 8)) == expected
    assert lists_of(*group_distinct(packed, 8)) == expected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_positions_are_those_of_the_spans_in_order(spans):
    begins = np.array([b for b, _ in spans], np.int64)
    ends = begins + np.array([n for _, n in spans], np.int64)
    assert positions(begins, ends).tolist() == [p for b, n in spans for p in range(b, b + n)]


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(pairs=pairs, cut=st.integers(0, 40), few=st.sampled_from([0, 1 << 16]))
def test_pairs_are_sorted_by_buckets_and_at_once(form, pairs, cut, few):
    table = np.array(pairs, np.int64).reshape(-1, 2)
    parts = [(table[:cut, 0].copy(), table[:cut, 1].copy()), (table[cut:, 0], table[cut:, 1])]
    expected = sorted((first + 3) << 32 | second for first, second in pairs)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lists, "_FEW_PAIRS", few)
        patched.setattr(lists, "_BUCKET_BITS", 2)
        if form == "plain":
            for name in ("count_buckets", "pack_by_bucket"):
                patched.setattr(lists, name, getattr(lists, name).plain)
        assert lists.sorted_pairs(parts, -3, 10, 0).tolist() == expected
    assert parts == []
