"""Both sides of a join in one table, batch after batch, against dicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import paired_multimap
from pointstamp.kernels.key_tables import reserved
from pointstamp.kernels.paired_multimap import ask, meet, no_numbers, of_side

keys = st.one_of(st.integers(-3, 8), st.sampled_from([0, -(2**63), 2**63 - 1, 2**40]))
batches = st.lists(st.tuples(st.integers(0, 1), st.lists(keys, max_size=30)), max_size=8)


@pytest.fixture(params=["compiled", "plain"])
def form(request, monkeypatch):
    """Both forms of each kernel behind the functions under test."""
    if request.param == "plain":
        for name in ("meet_keys", "met_numbers"):
            monkeypatch.setattr(paired_multimap, name, getattr(paired_multimap, name).plain)
    return request.param


@pytest.fixture(params=[65_536, 7])
def piece(request, monkeypatch):
    """A batch in one piece, or in some, between which tables grow."""
    monkeypatch.setattr(paired_multimap, "_PIECE", request.param)


def ints(values):
    return np.array(values, np.int64)


def expected(of_side, asked):
    return [(i, number) for i, key in enumerate(asked) for number in of_side.get(key, [])]


def pairs(records, numbers):
    assert records.dtype == numbers.dtype == np.int32
    return list(zip(records.tolist(), numbers.tolist(), strict=True))


def test_each_batch_meets_all_that_came_on_the_other_side(form, piece):
    @given(batches, st.lists(keys, max_size=9))
    def check(batches, asked):
        kept, sides = no_numbers(), ({}, {})
        for first, (side, batch) in enumerate(batches):
            numbers = np.arange(100 * first, 100 * first + len(batch), dtype=np.int32)
            kept, records, found = meet(kept, side, ints(batch), numbers)
            assert pairs(records, found) == expected(sides[1 - side], batch)
            for key, number in zip(batch, numbers.tolist(), strict=True):
                sides[side].setdefault(key, []).append(number)
        for side in (0, 1):
            assert pairs(*ask(kept, side, ints(asked))) == expected(sides[1 - side], asked)
            by_key = {}
            for key, number in zip(*map(np.ndarray.tolist, of_side(kept, side)), strict=True):
                by_key.setdefault(key, []).append(number)
            assert by_key == sides[side]
        assert kept.n == len({*sides[0], *sides[1]})

    check()


def test_numbers_beside_their_key_and_in_lists_come_in_their_order(form, piece):
    sizes = [*range(40), 257]
    keys = np.concatenate([np.arange(size, len(sizes)) for size in range(40)])
    keys = np.concatenate([keys, np.full(217, len(sizes) - 1)])
    numbers = 2**31 - 1 - np.arange(len(keys), dtype=np.int32)
    kept = meet(no_numbers(), 1, keys, numbers, asks=False)[0]
    asked = np.arange(-1, len(sizes) + 1)
    kept, records, found = meet(kept, 0, asked, np.arange(len(asked), dtype=np.int32))
    order = np.argsort(keys, kind="stable")
    assert records.tolist() == (keys[order] + 1).tolist()
    assert found.tolist() == numbers[order].tolist()


def test_what_is_kept_only_finds_nothing(form):
    kept, *_ = meet(no_numbers(), 0, ints([7, 9]), np.array([0, 1], np.int32))
    kept, records, found = meet(kept, 1, ints([7, 8]), np.array([0, 1], np.int32), asks=False)
    assert len(records) == len(found) == 0
    assert pairs(*ask(kept, 0, ints([8, 7, 9]))) == [(0, 1), (1, 0)]


def test_what_asks_only_is_not_kept(form):
    kept, *_ = meet(no_numbers(), 0, ints([7]), np.array([3], np.int32))
    before = kept.slots.copy()
    assert pairs(*ask(kept, 1, ints([5, 7]))) == [(1, 3)]
    assert (kept.slots == before).all()


def test_long_lists_of_both_sides_grow_beside_each_other():
    n, kept = 150_000, no_numbers()
    numbers = np.arange(n, dtype=np.int32)
    for start in range(0, n, 50_000):
        for side in (0, 1):
            some = numbers[start : start + 50_000]
            kept, _, found = meet(kept, side, np.zeros(len(some), np.int64), some[::-1], asks=False)
    for side in (0, 1):
        records, found = ask(kept, side, ints([1, 0]))
        assert (records == 1).all()
        assert (np.sort(found) == numbers).all()
        assert found[:3].tolist() == [49_999, 49_998, 49_997]


@pytest.mark.parametrize("n", [3, 100, 5_000])
def test_each_slot_is_a_cache_line(n):
    assert reserved(np.zeros((2, 8), np.int64), 0, n).ctypes.data % 64 == 0
