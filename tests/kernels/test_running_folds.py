"""Totals so far: against loops over dicts, in both forms of each kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import running_folds

LEAST, GREATEST = -(2**63), 2**63 - 1

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=40)
floats = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.just(math.nan), st.integers(-9, 9).map(float))),
    max_size=40,
)


def both(name):
    function = getattr(running_folds, name)
    return [function, function.plain]


def columns(records, dtype):
    groups = np.array([group for group, _ in records], np.int32)
    return groups, np.array([value for _, value in records], dtype)


@pytest.mark.parametrize("function", both("count_so_far"))
@given(pairs)
def test_counts(function, records):
    groups, _ = columns(records, np.int64)
    totals, found = np.zeros(6, np.int64), np.empty(len(records), np.int64)
    function(groups, totals, found)
    seen = [list(groups[: i + 1]).count(group) for i, group in enumerate(groups)]
    assert found.tolist() == seen
    assert totals.tolist() == [list(groups).count(group) for group in range(6)]


@pytest.mark.parametrize(
    ("name", "before", "fold"),
    [
        ("add_ints_so_far", 0, lambda a, b: a + b),
        ("lower_ints_so_far", GREATEST, min),
        ("raise_ints_so_far", LEAST, max),
        ("add_floats_so_far", 0.0, lambda a, b: a + b),
        ("lower_floats_so_far", math.nan, np.fmin),
        ("raise_floats_so_far", math.nan, np.fmax),
    ],
)
@given(pairs, floats)
def test_folds(name, before, fold, of_ints, of_floats):
    dtype = np.float64 if isinstance(before, float) else np.int64
    records = of_floats if dtype is np.float64 else of_ints
    groups, values = columns(records, dtype)
    expected, known = [], dict.fromkeys(range(6), before)
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        known[group] = fold(known[group], value)
        expected.append(known[group])
    for function in both(name):
        totals, found = np.full(6, before, dtype), np.empty(len(records), dtype)
        assert function(groups, values, totals, found) in (None, -1)
        np.testing.assert_array_equal(found, np.array(expected, dtype))
        np.testing.assert_array_equal(totals, np.array(list(known.values()), dtype))


@pytest.mark.parametrize("function", both("add_ints_so_far"))
@pytest.mark.parametrize("edge", [LEAST, GREATEST])
def test_a_sum_beyond_64_bits_is_found(function, edge):
    groups, values = np.array([0, 1, 0, 0], np.int32), np.array([edge, 5, 0, np.sign(edge)])
    totals, found = np.zeros(2, np.int64), np.empty(4, np.int64)
    assert function(groups, values.astype(np.int64), totals, found) == 3
    assert totals.tolist() == [edge, 5]
