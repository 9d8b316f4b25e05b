"""What repeats in sorted runs against Python's own sets, and against the twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import sorting

small_keys = st.lists(st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1))


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(small_keys)
def test_unique_sorted_is_a_sorted_set(keys):
    assert sorting.unique_sorted(ints(keys)).tolist() == sorted(set(keys))
    ordered = np.sort(ints(keys))
    assert sorting.distinct_sorted.plain(ordered).tolist() == sorted(set(keys))


SORTS = [sorting.sort_numbers, sorting.sort_by_digits, sorting.sort_by_digits.plain]


@given(small_keys, st.sampled_from(SORTS))
def test_numbers_are_put_in_order(keys, sort):
    values = ints(keys)
    sort(values)
    assert values.tolist() == sorted(keys)


def test_the_sort_that_takes_less_is_chosen_once(monkeypatch):
    sorting._quickest.cache_clear()
    timed = []

    def takes(sort, numbers):
        timed.append(sort)
        assert len(set(numbers.tolist())) == len(numbers)
        return 1.0 if sort is sorting.sort_by_digits else 2.0

    try:
        monkeypatch.setattr(sorting, "_least_time", takes)
        assert sorting._quickest() is sorting.sort_by_digits
        sorting.sort_numbers(ints([2, 1]))
        assert len(timed) == 2
    finally:
        sorting._quickest.cache_clear()


ALL = 2**63 - 1


@pytest.mark.parametrize(
    ("least", "most", "n"),
    [
        pytest.param(0, 2**26, 65, id="a few digits"),
        pytest.param(-(2**63), ALL, 3_000, id="all that there are"),
        pytest.param(0, 2, 3_000, id="one digit"),
        pytest.param(ALL - 2**40, ALL, 3_000, id="great ones"),
        pytest.param(0, 2**40, 1_200_000, id="more than have room at once"),
        pytest.param(-(2**63), ALL, 1_200_000, id="of both, with parts of all sizes"),
    ],
)
def test_many_numbers_are_put_in_order(least, most, n):
    random = np.random.default_rng(n)
    values = random.integers(least, most, n, endpoint=True)
    # Half in a few places, so that some parts are large and others have one number.
    values[: n // 2] = values[0] - values[0] % 2**20 + random.integers(0, 2**10, n // 2)
    wanted = np.sort(values)
    sorting.sort_by_digits(values)
    assert np.array_equal(values, wanted)
    sorting.sort_by_digits(values)
    assert np.array_equal(values, wanted)
    values = wanted[::-1].copy()
    sorting.sort_by_digits(values)
    assert np.array_equal(values, wanted)
