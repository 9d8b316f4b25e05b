"""Records by group, batch after batch: against dicts, in both forms of each kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import group_tables
from pointstamp.kernels.group_tables import number_keys
from pointstamp.kernels.hashing import hash_bytes
from pointstamp.kernels.key_tables import FEW, reserved, with_room

LEAST, GREATEST = -(2**63), 2**63 - 1

keys = st.one_of(st.integers(-3, 8), st.sampled_from([0, LEAST, GREATEST, 2**40]))
batches = st.lists(st.lists(keys, max_size=700), max_size=5)


def both(name):
    function = getattr(group_tables, name)
    return [function, function.plain]


def ints(values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("number", both("number_keys"))
def test_a_key_has_the_number_of_its_first_record(number):
    @given(batches)
    def check(batches):
        slots, distinct, n = np.zeros((2, 2), np.int64), np.empty(1, np.int64), 0
        expected = {}
        for batch in batches:
            slots, distinct = reserved(slots, n, len(batch)), with_room(distinct, n, len(batch))
            groups = np.full(len(batch), -1, np.int32)
            n = number(slots, n, distinct, ints(batch), groups)
            for key in batch:
                expected.setdefault(key, len(expected))
            assert groups.tolist() == [expected[key] for key in batch]
            assert distinct[:n].tolist() == list(expected)

    check()


def test_many_keys_are_numbered_over_a_table_that_grows():
    rng = np.random.default_rng(5)
    slots, distinct, n = np.zeros((FEW, 2), np.int64), np.empty(FEW, np.int64), 0
    seen = rng.integers(LEAST, GREATEST, 50_000, endpoint=True)
    for _ in range(4):
        batch = rng.choice(seen, 30_000)
        slots, distinct = reserved(slots, n, len(batch)), with_room(distinct, n, len(batch))
        groups = np.empty(len(batch), np.int32)
        n = number_keys(slots, n, distinct, batch, groups)
        assert (distinct[groups] == batch).all()
    assert len(np.unique(distinct[:n])) == n


@pytest.mark.parametrize(
    ("name", "fold"),
    [
        ("add_ints", lambda total, value: (total + value + 2**63) % 2**64 - 2**63),
        ("lower_ints", min),
        ("raise_ints", max),
    ],
)
@pytest.mark.parametrize("form", [0, 1])
def test_totals_are_those_of_a_loop(name, fold, form):
    @given(st.lists(st.tuples(st.integers(0, 4), keys), max_size=600), st.lists(keys, min_size=5))
    def check(records, begun):
        totals = ints(begun)
        both(name)[form](
            np.array([group for group, _ in records], np.int32),
            ints([x for _, x in records]),
            totals,
        )
        for group, value in records:
            begun[group] = fold(begun[group], value)
        assert totals.tolist() == begun

    check()


@pytest.mark.parametrize("add", both("add_floats"))
def test_floats_are_added_in_the_order_of_the_records(add):
    rng = np.random.default_rng(6)
    groups, values = rng.integers(0, 3, 1_000).astype(np.int32), rng.random(1_000) * 1e9
    totals = np.zeros(3)
    add(groups, values, totals)
    for group in range(3):
        total = 0.0
        for value in values[groups == group].tolist():
            total += value
        assert totals[group] == total


@pytest.mark.parametrize("number", both("number_texts"))
def test_a_text_has_the_number_of_its_first_record(number):
    text = st.text("aä", max_size=20) | st.text("ab", min_size=250, max_size=260)

    @given(st.lists(st.lists(text, max_size=300), max_size=4), st.booleans())
    def check(batches, alike):
        slots, ends, kept, n = (
            np.zeros((2, 2), np.int64),
            np.zeros(1, np.int64),
            np.empty(0, "u1"),
            0,
        )
        expected = {}
        for batch in batches:
            texts = [text.encode() for text in batch]
            bounds = ints([0, *np.cumsum(list(map(len, texts)))])
            data = np.frombuffer(b"".join(texts), np.uint8)
            hashes = hash_bytes(bounds, data).view(np.int64)
            if alike:  # but for short texts, whose hashes are as many
                hashes[np.diff(bounds) > 8] &= 1
            slots, ends = reserved(slots, n, len(batch)), with_room(ends, n + 1, len(batch))
            kept = with_room(kept, int(ends[n]), len(data))
            groups = np.full(len(batch), -1, np.int32)
            n = number(slots, n, ends, kept, hashes, bounds, data, groups)
            for text in texts:
                expected.setdefault(text, len(expected))
            assert groups.tolist() == [expected[text] for text in texts]
            assert [bytes(kept[ends[i] : ends[i + 1]]) for i in range(n)] == list(expected)

    check()
