"""Values by key, batch after batch, against dicts; and the tables that they are kept in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import hash_join, key_tables
from pointstamp.kernels.hash_join import add_values, find_values, no_values

keys = st.one_of(st.integers(-3, 8), st.sampled_from([0, -(2**63), 2**63 - 1, 2**40]))
pair_batches = st.lists(st.lists(st.tuples(keys, st.integers()), max_size=30), max_size=5)


@pytest.fixture(params=["compiled", "plain"])
def form(request, monkeypatch):
    """Both forms of each kernel behind the functions under test."""
    if request.param == "plain":
        for name in ("insert_values", "values_of"):
            monkeypatch.setattr(hash_join, name, getattr(hash_join, name).plain)
    return request.param


def ints(values):
    return np.array(values, np.int64)


def test_the_values_of_a_key_come_in_their_order(form):
    @given(pair_batches)
    def check(batches):
        kept, by_key = no_values(), {}
        for batch in batches:
            own = [key for key, _ in batch]
            records, found = find_values(kept, ints(own))
            expected = [(i, value) for i, key in enumerate(own) for value in by_key.get(key, [])]
            assert list(zip(records.tolist(), found.tolist(), strict=True)) == expected
            values = [value % 2**35 - 2**34 for _, value in batch]
            kept = add_values(kept, ints(own), ints(values))
            for key, value in zip(own, values, strict=True):
                by_key.setdefault(key, []).append(value)

    check()


@pytest.mark.parametrize("large", [2**31, -(2**31) - 1, 2**62])
def test_values_are_kept_in_half_the_room_until_one_is_too_large(form, large):
    kept = add_values(no_values(), ints([7, 9, 7]), ints([2**31 - 1, -(2**31), 0]))
    assert kept.lists.dtype == np.int32
    kept = add_values(kept, ints([9, 7, 7]), ints([1, large, 2]))
    assert kept.lists.dtype == np.int64
    records, values = find_values(kept, ints([9, 7]))
    assert records.tolist() == [0, 0, 1, 1, 1, 1]
    assert values.tolist() == [-(2**31), 1, 2**31 - 1, 0, large, 2]


@pytest.mark.parametrize("first", [0, 2**40])
def test_values_beside_their_key_and_in_lists_come_in_their_order(form, first):
    sizes = [*range(40), 257]
    keys = np.concatenate([np.arange(size, len(sizes)) for size in range(40)])
    keys = np.concatenate([keys, np.full(217, len(sizes) - 1)])
    values = first + np.arange(len(keys))
    kept = add_values(no_values(), keys, values)
    records, found = find_values(kept, np.arange(-1, len(sizes) + 1))
    order = np.argsort(keys, kind="stable")
    assert records.tolist() == (keys[order] + 1).tolist()
    assert found.tolist() == values[order].tolist()


@pytest.mark.parametrize("n", [3, 100, 5_000])
def test_slots_of_half_a_cache_line_lie_in_one(n):
    assert key_tables.reserved(np.zeros((2, 4), np.int64), 0, n).ctypes.data % 64 == 0


def test_long_lists_of_values_grow():
    kept = add_values(no_values(), np.zeros(150_000, np.int64), np.arange(150_000))
    records, values = find_values(kept, ints([1, 0]))
    assert (values == np.arange(150_000)).all()
    assert (records == 1).all()


def slot_of(slots, n_bits, key):
    """Where a search that begins at the key's first slot ends."""
    slot = key_tables.first_slot(key, n_bits)
    while slots[slot, 1] != 0 and slots[slot, 0] != key:
        slot = (slot + 1) % len(slots)
    return slot


def test_refilled_tables_hold_the_same_records():
    slots = key_tables.reserved(np.zeros((8, 2), np.int64), 0, 4)
    records = {(-5, 1), (0, 2), (2**40, 3), (7, 4)}
    for key, value in sorted(records):
        slots[slot_of(slots, 3, key)] = key, value
    for refill in (key_tables.refill, key_tables.refill.plain):
        larger = np.zeros((64, 2), np.int64)
        refill(slots, larger)
        assert {tuple(record) for record in larger[larger[:, 1] != 0].tolist()} == records
        assert all(larger[slot_of(larger, 6, key), 1] == value for key, value in records)
