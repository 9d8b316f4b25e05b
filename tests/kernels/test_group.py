"""Keys and texts numbered and counted batch after batch, and values by key, against dicts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import group, hash_join, tables, texts
from pointstamp.kernels.group import count_keys, counted, group_ids, no_counts, no_groups
from pointstamp.kernels.hash_join import add_values, find_values, no_values
from pointstamp.kernels.texts import no_texts, text_ids, texts_of

keys = st.one_of(st.integers(-3, 8), st.sampled_from([0, -(2**63), 2**63 - 1, 2**40]))
key_batches = st.lists(st.lists(keys, max_size=30), max_size=5)
pair_batches = st.lists(st.lists(st.tuples(keys, st.integers()), max_size=30), max_size=5)
word_batches = st.lists(st.lists(st.binary(max_size=20), max_size=20), max_size=5)


@pytest.fixture(params=["compiled", "plain"])
def form(request, monkeypatch):
    """Both forms of each kernel behind the functions under test."""
    if request.param == "plain":
        for module, name in [
            (group, "_group_ids"),
            (group, "_count_keys"),
            (texts, "_text_ids"),
            (hash_join, "_add_values"),
            (hash_join, "_find_values"),
        ]:
            monkeypatch.setattr(module, name, getattr(module, name).plain)
    return request.param


def ints(values):
    return np.array(values, np.int64)


def test_keys_are_numbered_by_first_appearance(form):
    @given(key_batches)
    def check(batches):
        groups, number_of = no_groups(), {}
        for batch in batches:
            groups, numbers = group_ids(groups, ints(batch))
            assert numbers.tolist() == [number_of.setdefault(k, len(number_of)) for k in batch]
        assert groups.keys.tolist() == list(number_of)

    check()


def test_counts_are_those_of_a_counter(form):
    @given(key_batches)
    def check(batches):
        counts = no_counts()
        for batch in batches:
            counts = count_keys(counts, ints(batch))
        found = dict(zip(*(column.tolist() for column in counted(counts)), strict=True))
        assert found == Counter(key for batch in batches for key in batch)
        assert counts.n == len(found)

    check()


def test_texts_are_numbered_by_first_appearance(form):
    @given(word_batches)
    def check(batches):
        kept, number_of = no_texts(), {}
        for batch in batches:
            ends = np.cumsum([0, *map(len, batch)])
            data = np.frombuffer(b"".join(batch), np.uint8)
            kept, numbers = text_ids(kept, ends[:-1], ends[1:], data)
            assert numbers.tolist() == [number_of.setdefault(w, len(number_of)) for w in batch]
        assert texts_of(kept) == list(number_of)

    check()


def test_the_values_of_a_key_come_in_their_order(form):
    @given(pair_batches)
    def check(batches):
        kept, by_key = no_values(), {}
        for batch in batches:
            own = [key for key, _ in batch]
            records, found = find_values(kept, ints(own))
            expected = [(i, value) for i, key in enumerate(own) for value in by_key.get(key, [])]
            assert list(zip(records.tolist(), found.tolist(), strict=True)) == expected
            values = [value % 1000 for _, value in batch]
            kept = add_values(kept, ints(own), ints(values))
            for key, value in zip(own, values, strict=True):
                by_key.setdefault(key, []).append(value)

    check()


def test_tables_grow_past_many_keys_and_long_lists():
    rng = np.random.default_rng(3)
    many = rng.integers(-(2**62), 2**62, 200_000)
    groups, first = group_ids(no_groups(), many)
    groups, again = group_ids(groups, many)
    assert (first == again).all()
    assert (groups.keys[first] == many).all()
    counts = count_keys(count_keys(no_counts(), many), many)
    assert counts.n == groups.n
    assert counted(counts)[1].sum() == 400_000
    assert (16 * 2 * counts.n) < counts.slots.nbytes < 64 * counts.n
    kept = add_values(no_values(), np.zeros(150_000, np.int64), np.arange(150_000))
    records, values = find_values(kept, ints([1, 0]))
    assert (values == np.arange(150_000)).all()
    assert (records == 1).all()
    words = [str(n).encode() for n in range(100_000)]
    ends = np.cumsum([0, *map(len, words)])
    known, numbers = text_ids(
        no_texts(), ends[:-1], ends[1:], np.frombuffer(b"".join(words), np.uint8)
    )
    assert (numbers == np.arange(100_000)).all()
    assert texts_of(known) == words


def test_refilled_tables_hold_the_same_records():
    slots = tables.reserved(np.zeros((8, 2), np.int64), 0, 4)
    records = {(-5, 1), (0, 2), (2**40, 3), (7, 4)}
    for key, value in sorted(records):
        slots[tables.slot_of(slots, 3, key)] = key, value
    for refill in (tables.refill, tables.refill.plain):
        larger = np.zeros((64, 2), np.int64)
        refill(slots, larger)
        assert {tuple(record) for record in larger[larger[:, 1] != 0].tolist()} == records
        assert all(larger[tables.slot_of(larger, 6, key), 1] == value for key, value in records)
