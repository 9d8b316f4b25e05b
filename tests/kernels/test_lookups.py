"""Items of sorted lists with repetitions, compiled and plain, against lists of Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels.lookups import common_items, find_spans

FORMS = pytest.mark.parametrize("form", ["compiled", "plain"])
GREATEST, LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min

items = st.sampled_from([LEAST, -3, 0, 1, 2, 3, 4, 5, 9, GREATEST])
sorted_lists = st.lists(items, max_size=12).map(sorted)


def of_form(kernel, form):
    return kernel if form == "compiled" else kernel.plain


def pool_of(lists):
    ends = np.cumsum([0, *map(len, lists)])
    pool = np.array([item for each in lists for item in each], np.int64)
    return pool, ends[:-1].astype(np.int64), ends[1:].astype(np.int64)


@FORMS
@given(lists=st.lists(st.tuples(sorted_lists, items), max_size=6))
def test_spans_are_where_an_item_and_its_like_are(form, lists):
    pool, begins, ends = pool_of([each for each, _ in lists])
    wanted = np.array([item for _, item in lists], np.int64)
    firsts, lasts = of_form(find_spans, form)(pool, begins, ends, wanted)
    for (each, item), begin, first, last in zip(lists, begins, firsts, lasts, strict=True):
        assert last - first == each.count(item)
        assert first - begin == sum(other < item for other in each)


@FORMS
@given(
    pairs=st.lists(st.tuples(sorted_lists, sorted_lists), max_size=6),
    room=st.integers(1, 4),
    budget=st.integers(1, 9),
)
def test_all_that_is_in_both_lists_comes_once_in_calls_of_any_size(form, pairs, room, budget):
    mine, others = (pool_of([pair[i] for pair in pairs]) for i in (0, 1))
    filled = np.zeros((4, room), np.int64)
    found, at, resume = [], 0, -1
    while at < len(pairs):
        before = at, resume
        n, at, resume = of_form(common_items, form)(*mine, *others, at, resume, budget, *filled)
        assert n <= room
        assert (at, resume) != before or n
        found += filled[:, :n].T.tolist()
    expected = []
    for i, (one, other) in enumerate(pairs):
        for j, item in enumerate(one):
            if item in other:
                first = int(others[1][i]) + other.index(item)
                expected.append([i, int(mine[1][i]) + j, first, first + other.count(item)])
    assert found == expected


def test_lists_of_very_different_lengths():
    long, short = np.arange(0, 300_000, 3), np.array([-1, 0, 7, 150_000, 299_997, 400_000])
    filled = np.zeros((4, 10), np.int64)
    for one, other in [(short, long), (long, short)]:
        whole = (np.array([0]), np.array([len(one)])), (np.array([0]), np.array([len(other)]))
        called = common_items(one, *whole[0], other, *whole[1], 0, -1, 1, *filled)
        assert called == (3, 1, -1)
        assert one[filled[1, :3]].tolist() == [0, 150_000, 299_997]
        assert other[filled[2, :3]].tolist() == [0, 150_000, 299_997]
        assert (filled[3, :3] - filled[2, :3]).tolist() == [1, 1, 1]
