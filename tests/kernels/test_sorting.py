"""What repeats in sorted runs against Python's own sets, and against the twin."""

from __future__ import annotations

import numpy as np
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
