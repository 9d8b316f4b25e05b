"""What rows say of themselves."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import kind_of


@given(
    st.lists(
        st.tuples(st.integers(2**30, 2**60 - 1), st.floats(), st.text())
        | st.lists(st.integers(2**62))
        | st.dictionaries(st.text(), st.integers(2**30, 2**60 - 1))
        | st.text()
        | st.none()
        | st.booleans(),
        min_size=1,
        max_size=16,
    )
)
def test_the_size_of_rows_is_that_of_four_or_more_of_them_one_level_deep(rows):
    expected = 0
    sampled = rows[:: max(1, len(rows) // 4)]
    for row in sampled:
        expected += sys.getsizeof(row)
        if isinstance(row, tuple | list | dict):
            expected += sum(map(sys.getsizeof, row.values() if isinstance(row, dict) else row))
    assert len(sampled) >= min(4, len(rows))
    assert kind_of(rows).n_bytes(rows) == len(rows) * (8 + expected // len(sampled))


def test_a_huge_integer_is_counted_as_such():
    assert kind_of([]).n_bytes([(1, 2 ** (8 * 10_000))]) > 10_000
    assert kind_of([]).n_bytes([1, 2]) < 200
    assert kind_of([]).n_bytes([]) == 0
