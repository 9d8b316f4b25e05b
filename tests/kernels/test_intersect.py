"""Intersections against sets, compiled and plain, cut off anywhere and resumed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.intersect import FIRST, are_members, extend

FORMS = ["compiled", "plain"]
MOST = 60

lists = st.lists(st.integers(0, 30), unique=True, max_size=25).map(sorted)


one_to_four = st.integers(1, 4)


@st.composite
def problems(draw, ks=one_to_four, n_bound=3):
    """Lists in three pools, and prefixes of which each names k of them, often the same."""
    pools, slices = [], []
    for _ in range(3):
        rows = draw(st.lists(lists, min_size=1, max_size=4))
        starts = np.cumsum([0, *map(len, rows)])
        pools.append(np.array([v for row in rows for v in row], np.int32))
        slices.append(list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)))
    k, n = draw(ks), draw(st.integers(0, 12))
    pool_of = [draw(st.integers(0, 2 if j == k - 1 else 1)) for j in range(k)]
    spans = [[draw(st.sampled_from(slices[pool_of[j]])) for _ in range(n)] for j in range(k)]
    away = [[draw(st.booleans()) and j > 0 for _ in range(n)] for j in range(k)]
    bound = draw(st.lists(st.integers(0, 30), unique=True, max_size=n_bound))
    return pools, pool_of, spans, away, bound, n


def arrays(problem):
    _, pool_of, spans, away, bound, n = problem
    k = len(spans)
    begins = np.array([[b for b, _ in row] for row in spans], np.int64).reshape(k, n)
    ends = np.array([[e for _, e in row] for row in spans], np.int64).reshape(k, n)
    ends[np.array(away, np.bool_).reshape(k, n)] = -1
    columns = np.repeat(np.array(bound, np.int32).reshape(-1, 1), n, axis=1)
    return np.array(pool_of, np.int8), begins, ends, columns


def expected(problem):
    pools, pool_of, spans, away, bound, n = problem
    found = []
    for i in range(n):
        here = [
            set(pools[pool_of[j]][spans[j][i][0] : spans[j][i][1]].tolist())
            for j in range(len(spans))
            if not away[j][i]
        ]
        found += [(i, v) for v in sorted(set.intersection(*here) - set(bound))]
    return found


def run(form, problem, room, budget, counting=False):
    """Call until it is done; everything found, and the sizes of the pieces."""
    call = extend if form == "compiled" else extend.plain
    pools = problem[0]
    pool_of, begins, ends, bound = arrays(problem)
    marks = np.zeros(MOST, np.uint8)
    at, resume, total, pieces = 0, FIRST, 0, []
    while at < problem[5]:
        parents, found = np.full(room, -7), np.full(room, -7, np.int32)
        before = at, resume
        n, at, resume = call(
            *pools, pool_of, begins, ends, bound, marks,
            at, resume, budget, counting, parents, found,
        )  # fmt: skip
        assert (at, resume) > before, "a call makes progress"
        assert not marks.any(), "marks are wiped"
        total += n
        if not counting:
            assert n <= room
            pieces.append(list(zip(parents[:n].tolist(), found[:n].tolist(), strict=True)))
    return total, pieces


@pytest.mark.parametrize("form", FORMS)
@given(problem=problems(), room=st.integers(1, 9), budget=st.integers(1, 40))
def test_whatever_the_cuts_everything_common_is_found_in_order(form, problem, room, budget):
    _, pieces = run(form, problem, room, budget)
    assert [pair for piece in pieces for pair in piece] == expected(problem)


@pytest.mark.parametrize("form", FORMS)
@given(problem=problems(), room=st.integers(1, 9), budget=st.integers(1, 40))
def test_counting_counts_what_would_be_found(form, problem, room, budget):
    total, _ = run(form, problem, room, budget, counting=True)
    assert total == len(expected(problem))


@pytest.mark.parametrize("form", FORMS)
@given(problem=problems(st.just(2), 0), budget=st.integers(1, 40))
def test_what_two_lists_have_in_common_is_counted(form, problem, budget):
    total, _ = run(form, problem, 1, budget, counting=True)
    assert total == len(expected(problem))


def one_list_problem(sizes):
    """A prefix for each size but the first; its lists are 0.. of the first size, and of its own."""
    long = np.arange(sizes[0], dtype=np.int32)
    short = np.concatenate([np.arange(0, 2 * s, 2, dtype=np.int32) for s in sizes[1:]])
    starts = np.cumsum([0, *sizes[1:]])
    begins = np.array([np.zeros(len(sizes) - 1), starts[:-1]], np.int64)
    ends = np.array([np.full(len(sizes) - 1, sizes[0]), starts[1:]], np.int64)
    return long, short, begins, ends


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([1000, 10], id="galloped"),
        pytest.param([40, 10, 10], id="merged"),
        pytest.param([50, *[30] * 10], id="marked"),
        pytest.param([10, 4000, 4000, 4000], id="marked but far shorter"),
    ],
)
def test_each_way_to_ask_a_list_gives_the_same(sizes):
    long, short, begins, ends = one_list_problem(sizes)
    want = [(i, v) for i, s in enumerate(sizes[1:]) for v in range(0, 2 * s, 2) if v < sizes[0]]
    parents, found = np.empty(10_000, np.int64), np.empty(10_000, np.int32)
    for call in (extend, extend.plain):
        n, at, _ = call(
            long, short, short, np.array([0, 1], np.int8), begins, ends,
            np.empty((0, len(sizes) - 1), np.int32), np.zeros(10_000, np.uint8),
            0, FIRST, 10**9, False, parents, found,
        )  # fmt: skip
        assert at == len(sizes) - 1
        assert list(zip(parents[:n].tolist(), found[:n].tolist(), strict=True)) == want
        for order in ([0, 1], [1, 0]):
            marks = np.zeros(10_000, np.uint8)
            n, at, _ = call(
                long, short, short, np.array(order, np.int8), begins[order], ends[order],
                np.empty((0, len(sizes) - 1), np.int32), marks,
                0, FIRST, 10**9, True, parents, found,
            )  # fmt: skip
            assert (n, at) == (len(want), len(sizes) - 1)
            assert not marks.any()


def test_the_room_is_never_exceeded_by_a_list_of_a_million():
    pool = np.arange(1_000_000, dtype=np.int32)
    begins, ends = np.array([[0]]), np.array([[1_000_000]])
    none = np.empty((0, 1), np.int32)
    parents, found = np.empty(1000, np.int64), np.empty(1000, np.int32)
    at, resume, seen = 0, FIRST, []
    while at < 1:
        n, at, resume = extend(
            pool, pool, pool, np.array([0], np.int8), begins, ends, none,
            np.zeros(1_000_000, np.uint8),
            at, resume, 10**9, False, parents, found,
        )  # fmt: skip
        seen.append(n)
    assert seen == [1000] * 1000


def test_counting_one_list_does_not_read_it():
    pool = np.arange(1_000_000, dtype=np.int32)
    begins, ends = np.zeros((1, 50_000), np.int64), np.full((1, 50_000), 1_000_000)
    parents, found = np.empty(1, np.int64), np.empty(1, np.int32)
    n, at, _ = extend(
        pool, pool, pool, np.array([0], np.int8), begins, ends, np.full((1, 50_000), 77, np.int32),
        np.zeros(1_000_000, np.uint8), 0, FIRST, 50_000, True, parents, found,
    )  # fmt: skip
    assert (n, at) == (50_000 * 999_999, 50_000)


@pytest.mark.parametrize("form", FORMS)
@given(rows=st.lists(st.tuples(lists, st.integers(0, 30)), max_size=20))
def test_members_are_told_from_others(form, rows):
    starts = np.cumsum([0, *(len(row) for row, _ in rows)])
    pool = np.array([v for row, _ in rows for v in row], np.int32)
    values = np.array([v for _, v in rows], np.int32)
    ask = are_members if form == "compiled" else are_members.plain
    assert ask(pool, starts[:-1], starts[1:], values).tolist() == [v in row for row, v in rows]
