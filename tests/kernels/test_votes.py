"""Votes of neighbours, compiled and plain, against counters and networkx."""

from __future__ import annotations

from collections import Counter

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.lists import group
from pointstamp.kernels.votes import common_labels, lower_cores

N = 8
FORMS = ["compiled", "plain"]

pairs = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), max_size=30)


def in_form(kernel, form):
    return kernel if form == "compiled" else kernel.plain


def lists_of(pairs):
    table = np.array(pairs, np.int32).reshape(-1, 2)
    starts, others = group(table[:, 0].copy(), N, table[:, 1].copy())
    return starts[:-1].copy(), starts[1:].copy(), others


@pytest.mark.parametrize("form", FORMS)
@given(pairs=pairs, back=pairs, labels=st.lists(st.integers(-2, 2), min_size=N, max_size=N))
def test_the_commonest_label_wins_and_of_equals_the_least(form, pairs, back, labels):
    expected = []
    for row in range(N):
        votes = Counter(labels[other] for r, other in [*pairs, *back] if r == row)
        most = max(votes.values(), default=0)
        expected.append(min((x for x in votes if votes[x] == most), default=labels[row]))
    found = in_form(common_labels, form)(
        *lists_of(pairs), *lists_of(back), np.array(labels, np.int64)
    )
    assert found.tolist() == expected


@pytest.mark.parametrize("form", FORMS)
@given(pairs=pairs.map(lambda pairs: [(a, b) for a, b in pairs if a != b]))
def test_numbers_are_lowered_to_core_numbers(form, pairs):
    graph = networkx.Graph(pairs)
    graph.add_nodes_from(range(N))
    links = lists_of(sorted(graph.to_directed().edges))
    cores = links[1] - links[0]
    before = cores.copy()
    queue, queued = np.empty(N + 1, np.int32), np.zeros(N, np.bool_)
    rows = np.arange(N, dtype=np.int32)
    changed = in_form(lower_cores, form)(*links, *links, cores, rows, queue, queued)
    expected = networkx.core_number(graph)
    assert cores.tolist() == [expected[v] for v in range(N)]
    assert changed.tolist() == np.flatnonzero(cores < before).tolist()
    assert not queued.any()
