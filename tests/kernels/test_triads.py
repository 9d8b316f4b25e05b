"""Triangles with marked edges, compiled and plain, against all triples of vertices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.lists import group
from pointstamp.kernels.triads import count_triads

N = 7

edges = st.dictionaries(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda e: e[0] < e[1]),
    st.integers(1, 2),
)


def lists_of(marked):
    table = np.array(list(marked), np.int32).reshape(-1, 2)
    tails = table[:, 0].copy()
    starts, heads = group(tails, N, table[:, 1].copy())
    _, marks = group(tails, N, np.array(list(marked.values()), np.int8))
    return starts[:-1].copy(), starts[1:].copy(), heads, marks


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(lists=edges, own=edges, n_own=st.integers(0, N))
def test_each_vertex_counts_the_marks_of_opposite_edges(form, lists, own, n_own):
    expected = [0] * N
    for a, b, c in itertools.combinations(range(N), 3):
        if (a, b) in lists and (a, c) in lists and b < n_own and (b, c) in own:
            expected[a] += own[b, c]
            expected[b] += lists[a, c]
            expected[c] += lists[a, b]
    begins, ends, heads, marks = lists_of(own)
    counts = np.zeros(N, np.int64)
    run = count_triads if form == "compiled" else count_triads.plain
    tails = np.arange(N, dtype=np.int32)
    run(tails, *lists_of(lists), begins[:n_own].copy(), ends[:n_own].copy(), heads, marks, counts)
    assert counts.tolist() == expected
