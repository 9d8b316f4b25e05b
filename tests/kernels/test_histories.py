"""Rows of updates with times against dictionaries, compiled and plain."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import histories
from pointstamp.kernels.consolidation import consolidate, is_consolidated
from tests.kernels.test_updates import FORMS, as_dict, form_of

small = st.integers(0, 3)
diffs = st.integers(-2, 2)


def rows_of(n_words, max_size=60):
    row = st.tuples(*[small] * n_words, diffs)
    return st.lists(row, max_size=max_size).map(
        lambda rows: consolidate(np.array(rows, np.int64).reshape(-1, n_words + 1))
    )


def times_of(depth, min_size=1):
    return st.lists(st.tuples(*[small] * depth), min_size=min_size, max_size=4)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_a_history_is_read_as_of_a_time(form, data):
    depth, n_words, n_key = data.draw(st.sampled_from([(1, 2, 1), (2, 2, 2), (3, 3, 1)]))
    n_batches = data.draw(st.integers(0, 5))
    times = data.draw(st.lists(st.tuples(*[small] * depth), min_size=n_batches, max_size=n_batches))
    is_mixed = [data.draw(st.booleans()) for _ in range(n_batches)]
    batches = [data.draw(rows_of(n_words + depth * mixed)) for mixed in is_mixed]
    keys = data.draw(rows_of(n_key))
    keys[:, -1] = 1
    now = data.draw(st.tuples(*[small] * depth))
    found, joins = form_of(histories.read_history, form)(batches, times, keys, now, n_words)
    wanted = {tuple(key[:-1]) for key in keys.tolist()}
    totals, others = Counter(), set()
    for batch, time, mixed in zip(batches, times, is_mixed, strict=True):
        for *words, diff in batch.tolist():
            record, own = words[:n_words], words[n_words:] if mixed else time
            if tuple(record[:n_key]) not in wanted:
                continue
            if all(a <= b for a, b in zip(own, now, strict=True)):
                totals[tuple(record)] += diff
            else:
                others.add((*map(max, own, now), *record[:n_key], 1))
    assert is_consolidated(found)
    assert as_dict(found) == {record: n for record, n in totals.items() if n}
    assert {tuple(join) for join in joins.tolist()} == others


def drawn_history(data, n_words, depth):
    """Batches, and the time of each."""
    times = data.draw(times_of(depth, min_size=0))
    batches = [data.draw(rows_of(n_words + depth * data.draw(st.booleans()))) for _ in times]
    return batches, times


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_first_records_are_revised(form, data):
    depth, n_words, n_key = data.draw(st.sampled_from([(1, 2, 1), (2, 2, 2), (2, 3, 1)]))
    batches, times = drawn_history(data, n_words, depth)
    kept, kept_times = drawn_history(data, n_words, depth)
    keys = data.draw(rows_of(n_key))
    keys[:, -1] = 1
    now = data.draw(st.tuples(*[small] * depth))
    greatest = data.draw(st.booleans())
    changes, joins = form_of(histories.revise_firsts, form)(
        batches, times, kept, kept_times, keys, now, n_words, greatest
    )
    records, some = histories.read_history.plain(batches, times, keys, now, n_words)
    left, others = histories.read_history.plain(kept, kept_times, keys, now, n_words)
    expected = Counter({words: -n for words, n in as_dict(left).items()})
    for key in keys[:, :-1].tolist():
        group = [row for row in records.tolist() if row[:n_key] == key]
        there = [row[:-1] for row in group if row[-1] > 0]
        if sum(row[-1] for row in group) > 0:
            expected[tuple(max(there) if greatest else min(there))] += 1
    assert is_consolidated(changes)
    assert as_dict(changes) == {words: n for words, n in expected.items() if n}
    assert set(map(tuple, joins.tolist())) == set(map(tuple, [*some.tolist(), *others.tolist()]))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_advanced_times_change_no_accumulation(form, data):
    depth, n_words = data.draw(st.sampled_from([(1, 1), (2, 1), (3, 2)]))
    rows = data.draw(rows_of(n_words + depth))
    frontier = data.draw(times_of(depth))
    advanced = form_of(histories.advance_times, form)(rows, frontier)
    assert is_consolidated(advanced)
    for now in data.draw(times_of(depth)):
        for element in frontier:
            time = list(map(max, now, element))
            assert accumulated(advanced, depth, time) == accumulated(rows, depth, time)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_batches_of_several_times_become_one(form, data):
    depth, n_words = data.draw(st.sampled_from([(1, 1), (2, 1), (3, 2)]))
    batches, times = drawn_batches(data, n_words, depth)
    frontier = data.draw(times_of(depth))
    rows, time = form_of(histories.advance_together, form)(batches, times, frontier)
    assert is_consolidated(rows)
    timed = with_times(rows, time)
    assert time is None or timed.shape[1] == n_words + depth + 1
    for now in data.draw(times_of(depth)):
        for element in frontier:
            asked = list(map(max, now, element))
            found = Counter()
            for batch, its_time in zip(batches, times, strict=True):
                for record, n in accumulated(with_times(batch, its_time), depth, asked).items():
                    found[record] += n
            assert accumulated(timed, depth, asked) == {r: n for r, n in found.items() if n}


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_pairs_are_there_from_the_join_of_their_times_on(form, data):
    depth, n_key = data.draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
    batches, times = drawn_batches(data, 2, depth)
    changes, now = data.draw(rows_of(2)), data.draw(st.tuples(*[small] * depth))
    recipe = np.array(data.draw(st.lists(st.sampled_from([0, 1, ~0, ~1]))), np.int32)
    expected, n_expected = {}, 0
    for batch, its_time in zip(batches, times, strict=True):
        for *other, n in with_times(batch, its_time).tolist():
            for *change, m in changes.tolist():
                if change[:n_key] == other[:n_key]:
                    words = tuple(change[k] if k >= 0 else other[~k] for k in recipe.tolist())
                    expected.setdefault(tuple(map(max, now, other[2:])), Counter())[words] += n * m
                    n_expected += 1
    there = {
        time: {words: n for words, n in pairs.items() if n} for time, pairs in expected.items()
    }
    given_ = changes, now, batches, times, n_key, recipe
    found, n_pairs = form_of(histories.match_times, form)(*given_, n_expected)
    assert n_pairs == n_expected
    if n_expected:
        none, n_pairs = form_of(histories.match_times, form)(*given_, n_expected - 1)
        assert none is None
        assert n_pairs <= n_expected
    assert all(is_consolidated(rows) for _, rows in found)
    assert [time for time, _ in found] == sorted(time for time, pairs in there.items() if pairs)
    assert {time: as_dict(rows) for time, rows in found} == {t: p for t, p in there.items() if p}


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(st.sampled_from([2, 3]).flatmap(rows_of), min_size=1, max_size=4))
def test_rows_begin_with_so_many_distinct_words(form, parts):
    found = form_of(histories.distinct, form)(parts, 2)
    assert is_consolidated(found)
    assert as_dict(found) == {tuple(row[:2]): 1 for rows in parts for row in rows.tolist()}


@pytest.mark.parametrize("form", FORMS)
@given(st.sampled_from([1, 2, 3]), rows_of(3))
def test_rows_are_split_by_their_first_words(form, depth, rows):
    found = form_of(histories.split_by_first, form)(rows, depth)
    assert [words for words, _ in found] == sorted({tuple(row[:depth]) for row in rows.tolist()})
    assert [[*words, *row] for words, part in found for row in part.tolist()] == rows.tolist()


def drawn_batches(data, n_words, depth):
    """Some batches, and the time of each, or None where its rows have their own."""
    times = data.draw(st.lists(st.none() | st.tuples(*[small] * depth), min_size=1, max_size=4))
    return [data.draw(rows_of(n_words + depth * (time is None))) for time in times], times


def with_times(rows, time):
    if time is None:
        return rows
    timed = [[*row[:-1], *time, row[-1]] for row in rows.tolist()]
    return np.array(timed, np.int64).reshape(len(timed), rows.shape[1] + len(time))


def accumulated(rows, depth, time):
    found = Counter()
    for *words, diff in rows.tolist():
        if all(a <= b for a, b in zip(words[len(words) - depth :], time, strict=True)):
            found[tuple(words[: len(words) - depth])] += diff
    return {record: n for record, n in found.items() if n}


@pytest.mark.parametrize("form", FORMS)
def test_sums_beyond_64_bits_are_refused(form):
    rows = np.array([[1, 0, 2**62], [1, 1, 2**62]])
    with pytest.raises(OverflowError, match="64 bits"):
        form_of(histories.advance_times, form)(rows, [(1,)])


@pytest.mark.parametrize("form", FORMS)
def test_sums_and_products_of_pairs_beyond_64_bits_are_refused(form):
    match, recipe = form_of(histories.match_times, form), np.array([0], np.int32)
    large = np.array([[1, 2**62]])
    with pytest.raises(OverflowError, match="product"):
        match(large, (0,), [np.array([[1, 2]])], [(0,)], 1, recipe, 9)
    with pytest.raises(OverflowError, match="sum"):
        match(large, (0,), [np.array([[1, 1]])] * 2, [(0,)] * 2, 1, recipe, 9)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_table_of_words_is_refused(form):
    if form == "plain":
        pytest.skip("it takes what there is")
    for other in np.array([1, 2]), np.array([[1, 2]], np.int32):
        with pytest.raises(ValueError, match="64-bit words in two dimensions"):
            form_of(histories.distinct, form)([other], 1)


@pytest.mark.parametrize("form", FORMS)
def test_too_many_batches_are_refused(form):
    batches = [np.array([[1, 1]])] * 65
    with pytest.raises(ValueError, match="65 batches"):
        form_of(histories.read_history, form)(batches, [(0,)] * 65, np.array([[1, 1]]), (0,), 1)
