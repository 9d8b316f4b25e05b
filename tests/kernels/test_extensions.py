"""Prefixes extended and weighed: compiled and plain beside the definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import extensions
from pointstamp.kernels.consolidation import consolidate

FORMS = ["compiled", "plain"]
GREATEST = 2**63 - 1

words = st.one_of(st.integers(0, 3), st.sampled_from([-(2**63), GREATEST]))


def form_of(function, form):
    return function if form == "compiled" else function.plain


def rows_of(n_words, max_size, diffs):
    row = st.tuples(*[words] * n_words, diffs)
    return st.lists(row, max_size=max_size).map(
        lambda rows: np.array(rows, np.int64).reshape(-1, n_words + 1)
    )


def batches_of(n_words):
    few = rows_of(n_words, 30, st.sampled_from([-1, 1, 1, 2])).map(consolidate)
    return st.lists(few, max_size=4)


@st.composite
def calls(draw, n_values):
    prefixes = draw(rows_of(3, 12, st.sampled_from([-2, 1, 3])))
    if draw(st.booleans()):
        prefixes = consolidate(prefixes)
    places = draw(
        st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=2), min_size=1, max_size=3)
    )
    relations = [draw(batches_of(len(at) + n_values)) for at in places]
    return prefixes, relations, [np.array(at, np.int32) for at in places]


def totals(batches):
    found = Counter()
    for rows in batches:
        for *record, diff in rows.tolist():
            found[tuple(record)] += diff
    return found


@pytest.mark.parametrize("form", FORMS)
@given(calls(1))
def test_a_prefix_gets_the_values_that_all_relations_have(form, call):
    prefixes, relations, places = call
    found = form_of(extensions.extend, form)(prefixes, relations, places)[0].tolist()
    expected = []
    for *prefix, diff in prefixes.tolist():
        values = {record[-1] for batches in relations for record in totals(batches)}
        for value in sorted(values):
            product = diff
            for batches, at in zip(relations, places, strict=True):
                product *= totals(batches)[(*(prefix[k] for k in at), value)]
            if product:
                expected.append([*prefix, value, product])
    assert found == expected


@pytest.mark.parametrize("form", FORMS)
@given(calls(1), st.sampled_from([1, 2, 9]))
def test_some_prefixes_at_a_time_are_extended_as_all_together(form, call, most):
    prefixes, relations, places = call
    whole = extensions.extend(prefixes, relations, places)[0].tolist()
    found, begin = [], 0
    while begin < len(prefixes):
        made, end = form_of(extensions.extend, form)(prefixes, relations, places, begin, most)
        assert begin < end <= len(prefixes)
        last, _ = extensions.extend(prefixes[end - 1 : end], relations, places)
        assert len(made) < most + len(last)
        assert len(made) >= most or end == len(prefixes)
        found += made.tolist()
        begin = end
    assert found == whole


@pytest.mark.parametrize("form", FORMS)
@given(calls(1))
def test_the_size_is_that_of_the_shortest_list(form, call):
    prefixes, relations, places = call
    found = form_of(extensions.list_sizes, form)(prefixes, relations, places).tolist()
    assert found == [
        min(
            sum(
                record[:-2] == [prefix[k] for k in at]
                for rows in batches
                for record in rows.tolist()
            )
            for batches, at in zip(relations, places, strict=True)
        )
        for prefix in prefixes.tolist()
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("absent", [False, True])
@given(calls(0))
def test_a_prefix_weighs_what_its_record_does(form, absent, call):
    prefixes, (batches, *_), (places, *_) = call
    found = form_of(extensions.weigh, form)(prefixes, batches, places, absent).tolist()
    counted = totals(batches)
    weighed = [
        [*prefix, diff * (1 - n if absent else n)]
        for *prefix, diff in prefixes.tolist()
        for n in [counted[tuple(prefix[k] for k in places)]]
    ]
    assert found == [row for row in weighed if row[-1]]


@pytest.mark.parametrize("form", FORMS)
def test_a_list_of_many_is_searched_from_where_it_was_read(form):
    n = 5_000
    rng = np.random.default_rng(3)
    pairs = consolidate(np.column_stack([rng.integers(0, [50, n], (n, 2)), np.ones(n, np.int64)]))
    others = consolidate(np.column_stack([np.arange(0, n, 7), np.ones(n // 7 + 1, np.int64)]))
    ones = np.insert(others, 0, 9, axis=1)
    prefixes = np.array([[key, 9, 1] for key in (49, 0, 7, 7, 3)])
    places = [np.array([0], np.int32), np.array([1], np.int32)]
    found = form_of(extensions.extend, form)(prefixes, [[pairs], [ones]], places)[0].tolist()
    by_key = {(key, value): diff for key, value, diff in pairs.tolist()}
    assert found == [
        [key, 9, value, by_key[key, value]]
        for key in (49, 0, 7, 7, 3)
        for value in range(0, n, 7)
        if (key, value) in by_key
    ]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_beyond_64_bits_is_refused(form):
    at = [np.array([0], np.int32)]
    half, prefix = np.array([[1, 2, 1 << 62]]), np.array([[1, 4]])
    with pytest.raises(OverflowError, match="product"):
        form_of(extensions.extend, form)(prefix, [[half]], at)
    with pytest.raises(OverflowError, match="sum"):
        form_of(extensions.extend, form)(prefix, [[half, half]], at)
    with pytest.raises(OverflowError, match="product"):
        form_of(extensions.weigh, form)(prefix, [np.array([[1, 1 << 62]])], at[0], False)


@pytest.mark.parametrize("what", [([[]], []), ([[np.ones((1, 2), np.int64)]], [[0]])])
def test_relations_of_another_form_are_refused(what):
    relations, places = what
    if extensions.extend is extensions.extend.plain:
        pytest.skip("the loop's own checks")
    with pytest.raises(ValueError, match=r"words|places"):
        extensions.extend(np.array([[1, 1]]), relations, [np.array(at, np.int32) for at in places])
