"""Sparse rows against sets of pairs, compiled and plain."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import csr
from pointstamp.kernels.csr import Pairs, build_csr, find_spans, split_packed
from pointstamp.kernels.key_tables import build_table, hash_rows

FORMS = ["compiled", "plain"]

near = st.integers(-5, 20)
far = st.integers(-(2**63), 2**63 - 1)
ids = st.one_of(near, st.integers(0, 2**40), far)
pairs = st.one_of(st.lists(st.tuples(near, near), max_size=60), st.lists(st.tuples(ids, ids)))


def columns(edges):
    table = np.array(edges, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def neighbours(edges):
    found = defaultdict(set)
    for source, target in edges:
        found[source].add(target)
    return {source: sorted(targets) for source, targets in found.items()}


def test_three_edges_by_hand():
    keys, starts, values = build_csr(np.array([2, 1, 2, 2]), np.array([5, 4, 3, 5]))
    assert keys.tolist() == [1, 2]
    assert starts.tolist() == [0, 1, 3]
    assert values.tolist() == [4, 3, 5]


def test_no_edges_have_no_keys_and_one_start():
    keys, starts, values = build_csr(*columns([]))
    assert (keys.tolist(), starts.tolist(), values.tolist()) == ([], [0], [])
    assert find_spans(keys, starts, *build_table(keys), np.array([3]))[1].tolist() == [0]


@given(pairs)
def test_rows_are_the_sorted_distinct_neighbours(edges):
    sources, targets = columns(edges)
    before = sources.copy(), targets.copy()
    keys, starts, values = build_csr(sources, targets)
    rows = {key: values[starts[i] : starts[i + 1]].tolist() for i, key in enumerate(keys.tolist())}
    assert rows == neighbours(edges)
    assert keys.tolist() == sorted(rows)
    assert (sources == before[0]).all()
    assert (targets == before[1]).all()


@given(st.lists(pairs, max_size=4))
def test_pairs_that_come_in_parts_are_built_as_if_in_one(parts):
    """Whether all parts have small ids, or some, or none."""
    collected = Pairs()
    for part in parts:
        collected.add(*columns(part))
    built = collected.build()
    whole = build_csr(*columns([pair for part in parts for pair in part]))
    for ours, theirs in zip(built, whole, strict=True):
        assert ours.tolist() == theirs.tolist()
    assert [part.tolist() for part in collected.build()] == [[], [0], []], "they are used up"


@pytest.mark.parametrize("most", [2**31 - 1, 2**31])
def test_pairs_of_the_largest_small_ids(most):
    pairs = Pairs()
    pairs.add(np.array([most, 0, most]), np.array([0, most, most]))
    keys, starts, values = pairs.build()
    assert (keys.tolist(), starts.tolist()) == ([0, most], [0, 1, 3])
    assert values.tolist() == [most, 0, most]


def test_ids_at_both_ends_of_int64_are_ranked_instead_of_packed():
    least, most = -(2**63), 2**63 - 1
    keys, starts, values = build_csr(*columns([(most, least), (least, most), (most, 0)]))
    assert keys.tolist() == [least, most]
    assert values[starts[1] :].tolist() == [least, 0]


@pytest.mark.parametrize("form", FORMS)
@given(edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_unpacking_drops_what_repeats(form, edges):
    packed = np.sort(np.array([(s << 4) | t for s, t in edges], np.int64))
    split = split_packed if form == "compiled" else split_packed.plain
    keys, starts, values = split(packed, 4, 100, 200)
    expected = neighbours([(s + 100, t + 200) for s, t in edges])
    assert keys.tolist() == sorted(expected)
    assert values.tolist() == [t for s in sorted(expected) for t in expected[s]]
    assert np.diff(starts).tolist() == [len(expected[s]) for s in sorted(expected)]


def test_what_repeats_leaves_no_room_behind():
    _, _, values = build_csr(np.zeros(1000, np.int64), np.zeros(1000, np.int64))
    assert values.base is None, "a view would keep the room of a thousand alive"
    assert values.tolist() == [0]


@pytest.mark.parametrize("form", FORMS)
@given(edges=pairs, others=st.lists(ids))
def test_spans_are_found_for_keys_and_empty_for_others(form, edges, others):
    keys, starts, values = build_csr(*columns(edges))
    wanted = np.array([s for s, _ in edges] + others, np.int64)
    find = find_spans if form == "compiled" else find_spans.plain
    begins, ends = find(keys, starts, *build_table(keys), wanted)
    expected = neighbours(edges)
    found = [values[b:e].tolist() for b, e in zip(begins, ends, strict=True)]
    assert found == [expected.get(v, []) for v in wanted.tolist()]


def test_tables_are_dense_where_keys_are_and_hashed_elsewhere():
    assert build_table(np.arange(1000, 2000))[1]
    table, dense = build_table(np.arange(0, 10**9, 10**6))
    assert not dense
    assert len(table) == 2048


@given(st.sets(far, max_size=50))
def test_both_forms_of_the_hash_table_are_equal(vertices):
    keys = np.array(sorted(vertices), np.int64)
    n_bits = max(1, (2 * len(keys)).bit_length())
    assert (hash_rows(keys, n_bits) == hash_rows.plain(keys, n_bits)).all()


def test_a_table_takes_at_most_twenty_bytes_per_key():
    for keys in (np.arange(0, 4000, 4), np.arange(0, 10**12, 10**9), np.arange(0, 7 * 513, 7)):
        assert build_table(keys)[0].nbytes <= 20 * len(keys) + 256


def test_ranking_and_packing_agree():
    rng = np.random.default_rng(5)
    sources, targets = rng.integers(0, 50, 400), rng.integers(0, 50, 400)
    for ours, theirs in zip(
        build_csr(sources, targets), csr._build_ranked([(sources, targets)]), strict=True
    ):
        assert (ours == theirs).all()
