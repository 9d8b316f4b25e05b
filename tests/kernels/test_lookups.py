"""Items of sorted lists with repetitions, compiled and plain, against lists of Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import lookups
from pointstamp.kernels.lookups import common_items, equal_ranges

FORMS = pytest.mark.parametrize("form", ["compiled", "plain"])
N = 8

items = st.integers(0, N - 1)
sorted_lists = st.lists(st.lists(items, max_size=12).map(sorted), min_size=1, max_size=4)
which = st.integers(0, 3)


def of_form(kernel, form):
    return kernel if form == "compiled" else kernel.plain


def spans_of(lists, chosen):
    """A pool of the lists, and the spans of those that are chosen, in which some repeat."""
    bounds = np.cumsum([0, *map(len, lists)])
    pool = np.array([item for each in lists for item in each], np.int64)
    chosen = np.array(chosen, np.int64)
    return pool, bounds[:-1][chosen], bounds[1:][chosen]


@FORMS
@given(lists=sorted_lists, asked=st.lists(st.tuples(which, items), max_size=20))
def test_spans_are_where_an_item_and_its_like_are(form, lists, asked):
    asked = [(i % len(lists), item) for i, item in asked]
    pool, begins, ends = spans_of(lists, [i for i, _ in asked])
    wanted, marks = np.array([item for _, item in asked], np.int64), np.zeros(N, np.int32)
    firsts, lasts = of_form(equal_ranges, form)(pool, begins, ends, wanted, marks)
    assert not marks.any()
    for (i, item), begin, first, last in zip(asked, begins, firsts, lasts, strict=True):
        assert last - first == lists[i].count(item)
        if item in lists[i]:
            assert first - begin == lists[i].index(item)


def expected_of(lists, pairs):
    bounds = np.cumsum([0, *map(len, lists)]).tolist()
    return [
        [
            i,
            bounds[a] + j,
            bounds[b] + lists[b].index(item),
            bounds[b] + lists[b].index(item) + lists[b].count(item),
        ]
        for i, (a, b) in enumerate(pairs)
        for j, item in enumerate(lists[a])
        if item in lists[b]
    ]


@FORMS
@given(
    lists=sorted_lists,
    pairs=st.lists(st.tuples(which, which), max_size=8),
    by_other=st.booleans(),
    room=st.integers(1, 4),
    budget=st.integers(1, 9),
)
def test_all_that_is_in_both_lists_comes_once_in_calls_of_any_size(
    form, lists, pairs, by_other, room, budget
):
    pairs = [(a % len(lists), b % len(lists)) for a, b in pairs]
    if by_other:
        pairs.sort(key=lambda pair: pair[1])  # so that lists of others repeat
    mine, others = (spans_of(lists, [pair[i] for pair in pairs]) for i in (0, 1))
    run = of_form(common_items, form)
    marks = np.zeros(N, np.int32), np.zeros(2, np.int64)
    filled = np.zeros((4, room), np.int64)
    found, at, resume = [], 0, -1
    while at < len(pairs):
        before = at, resume
        n, at, resume = run(*mine, *others, *marks, at, resume, budget, False, *filled)
        assert n <= room
        assert (at, resume) != before or n
        found += filled[:, :n].T.tolist()
    assert not any(each.any() for each in marks)
    expected = expected_of(lists, pairs)
    assert found == expected
    counted, at = 0, 0
    while at < len(pairs):
        n, at, _ = run(*mine, *others, *marks, at, -1, budget, True, *filled[:, :0].copy())
        counted += n
    assert counted == sum(last - first for _, _, first, last in expected)
    assert not any(each.any() for each in marks)


@FORMS
def test_lists_of_very_different_lengths(form):
    long, short = np.arange(0, 300_000, 3), np.array([0, 7, 150_000, 299_997, 400_000])
    marks, marked = np.zeros(400_001, np.int32), np.zeros(2, np.int64)
    filled = np.zeros((4, 10), np.int64)
    for one, other in [(short, long), (long, short)]:
        whole = (np.array([0]), np.array([len(one)])), (np.array([0]), np.array([len(other)]))
        found = of_form(common_items, form)(
            one, *whole[0], other, *whole[1], marks, marked, 0, -1, 1, False, *filled
        )
        assert found == (3, 1, -1)
        assert one[filled[1, :3]].tolist() == [0, 150_000, 299_997]
        assert other[filled[2, :3]].tolist() == [0, 150_000, 299_997]
        assert (filled[3, :3] - filled[2, :3]).tolist() == [1, 1, 1]


def calls_of(run, pairs, others, n_items, budget, room, counting):
    """How many calls it takes to go through pairs, whose lists are of items up to `n_items`."""
    marks = np.zeros(n_items, np.int32), np.zeros(2, np.int64)
    filled = np.zeros((4, 0 if counting else room), np.int64)
    n_calls, found, at, resume = 0, 0, 0, -1
    while at < len(pairs[1]):
        n, at, resume = run(*pairs, *others, *marks, at, resume, budget, counting, *filled)
        n_calls, found = n_calls + 1, found + n
    return n_calls, found


@FORMS
@pytest.mark.parametrize("counting", [False, True])
def test_a_list_that_is_longer_than_the_budget_is_marked_once(form, counting):
    n_pairs, n_each, n_items = 500, 10, 1000
    pool = np.tile(np.arange(0, n_items, n_items // n_each), n_pairs)
    starts = np.arange(0, len(pool) + 1, n_each)
    hub = np.arange(n_items), np.zeros(n_pairs, np.int64), np.full(n_pairs, n_items)
    pairs = pool, starts[:-1], starts[1:]
    run = of_form(common_items, form)
    n_calls, found = calls_of(run, pairs, hub, n_items, n_items // 2, 8 * n_items, counting)
    assert found == len(pool)
    assert n_calls <= len(pool) // (n_items // 2) + 2


def test_pairs_are_looked_at_together_where_nothing_is_compiled(monkeypatch):
    rounds = []
    whole = lookups._bounds
    monkeypatch.setattr(lookups, "_bounds", lambda *args: rounds.append(1) or whole(*args))
    n_pairs = 10_000
    pool, starts = np.arange(n_pairs), np.arange(n_pairs + 1)
    pairs = pool, starts[:-1], starts[1:]
    found = calls_of(common_items.plain, pairs, pairs, n_pairs, n_pairs, n_pairs, False)
    assert found == (1, n_pairs)
    assert len(rounds) == 2
