"""Edges turned by degrees, against Python's tuples; compiled and plain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import turn
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.lists import DenseIds

near = st.integers(-4, 12)
far = st.one_of(near, st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize("form", ["compiled", "plain"])
@pytest.mark.parametrize("ids", [near, far])
def test_the_lower_degree_comes_first_and_then_the_lower_id(form, ids):
    @given(st.dictionaries(ids, st.integers(0, 3), max_size=12), st.lists(st.tuples(ids, ids)))
    def check(degrees, edges):
        numbering = DenseIds.of(np.array(sorted(degrees), np.int64))
        values = np.array([0, *(degrees[v] for v in sorted(degrees))], np.int64)
        table = np.array(edges, np.int64).reshape(-1, 2)
        call = turn.turn_edges if form == "compiled" else turn.turn_edges.plain
        lower, higher = call(
            numbering.ids,
            numbering.table,
            numbering.dense,
            values,
            contiguous(table[:, 0]),
            contiguous(table[:, 1]),
        )
        want = [tuple(sorted(edge, key=lambda v: (degrees.get(v, 0), v))) for edge in edges]
        assert list(zip(lower.tolist(), higher.tolist(), strict=True)) == want

    check()


def test_without_degrees_the_lower_id_comes_first():
    none = DenseIds.of(np.empty(0, np.int64)), np.empty(0, np.int64)
    lower, higher = turn.turn(*none, np.array([3, 1]), np.array([2, 4]))
    assert (lower.tolist(), higher.tolist()) == ([2, 1], [3, 4])
