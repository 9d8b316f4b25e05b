"""Peeling a directed graph against peeling by the definition, compiled and plain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.lists import group
from pointstamp.kernels.peel import peel, peel_in_turn

N = 8

edge_lists = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda e: e[0] != e[1]),
    max_size=24,
)


def by_definition(edges, closed):
    """Close what has neighbours in the graph on one side, and none left on it; over and over."""
    closed = set(closed)
    had = [{t for _, t in edges}, {s for s, _ in edges}]
    while True:
        left = [(s, t) for s, t in edges if s not in closed and t not in closed]
        # Edges from what is open count for an open head, those to it for an open tail.
        fed, feeding = {t for _, t in left}, {s for s, _ in left}
        more = {
            v
            for v in set(range(N)) - closed
            if (v in had[0] and v not in fed) or (v in had[1] and v not in feeding)
        }
        if not more:
            return closed
        closed |= more


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(edges=edge_lists, closed=st.sets(st.integers(0, N - 1)).map(sorted))
def test_rows_without_edges_left_are_closed(form, edges, closed):
    table = np.array(edges, np.int32).reshape(-1, 2)
    sources, targets = table[:, 0].copy(), table[:, 1].copy()
    starts, heads = group(sources, N, targets)
    back_starts, tails = group(targets, N, sources)
    counts = np.bincount(targets, minlength=N).astype(np.int64)
    back_counts = np.bincount(sources, minlength=N).astype(np.int64)
    is_open = np.ones(N, np.bool_)
    is_open[closed] = False
    run = peel if form == "compiled" else peel.plain
    found = run(
        *(starts[:-1].copy(), starts[1:].copy(), heads),
        *(back_starts[:-1].copy(), back_starts[1:].copy(), tails),
        *(counts, back_counts, is_open, np.array(closed, np.int32)),
    )
    expected = by_definition(edges, closed)
    assert found.tolist() == sorted(expected - set(closed))
    assert np.flatnonzero(~is_open).tolist() == sorted(expected)


@pytest.mark.parametrize("form", ["compiled", "plain"])
@given(edges=edge_lists)
def test_each_row_goes_at_the_turn_without_which_nothing_leads_on(form, edges):
    table = np.array(edges, np.int32).reshape(-1, 2)
    sources, targets = table[:, 0].copy(), table[:, 1].copy()
    starts, heads = group(sources, N, targets)
    back_starts, tails = group(targets, N, sources)
    run = peel_in_turn if form == "compiled" else peel_in_turn.plain
    lasts = run(starts[:-1], starts[1:], heads, back_starts[:-1], back_starts[1:], tails)
    gone = dict.fromkeys(range(N), -1)
    for turn in range(N):
        left = {(s, t) for s, t in edges if min(s, t) >= turn}
        while True:  # what is left when nothing more can be taken away
            fed, feeding = {t for _, t in left}, {s for s, _ in left}
            kept = {(s, t) for s, t in left if s in fed and t in feeding}
            if kept == left:
                break
            left = kept
        gone.update(dict.fromkeys({v for edge in left for v in edge}, turn))
    assert lasts.tolist() == [gone[v] for v in range(N)]
