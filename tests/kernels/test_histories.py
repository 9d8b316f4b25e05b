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
    return st.lists(st.tuples(*[small] * depth), min_size=min_size, max_size=4).map(
        lambda times: np.array(times, np.int64).reshape(-1, depth)
    )


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_a_history_is_read_as_of_a_time(form, data):
    depth, n_words, n_key = data.draw(st.sampled_from([(1, 2, 1), (2, 2, 2), (3, 3, 1)]))
    n_batches = data.draw(st.integers(0, 5))
    times = np.array(
        data.draw(st.lists(st.tuples(*[small] * depth), min_size=n_batches, max_size=n_batches)),
        np.int64,
    ).reshape(n_batches, depth)
    is_mixed = [data.draw(st.booleans()) for _ in range(n_batches)]
    batches = [data.draw(rows_of(n_words + depth * mixed)) for mixed in is_mixed]
    keys = data.draw(rows_of(n_key))
    keys[:, -1] = 1
    now = data.draw(st.tuples(*[small] * depth))
    found, joins = form_of(histories.read_history, form)(
        batches, times, keys, np.array(now, np.int64), n_words
    )
    wanted = {tuple(key[:-1]) for key in keys.tolist()}
    totals, others = Counter(), set()
    for batch, time, mixed in zip(batches, times.tolist(), is_mixed, strict=True):
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
    now = np.array(data.draw(st.tuples(*[small] * depth)), np.int64)
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
    for now in data.draw(times_of(depth)).tolist():
        for element in frontier.tolist():
            time = list(map(max, now, element))
            assert accumulated(advanced, depth, time) == accumulated(rows, depth, time)


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
        form_of(histories.advance_times, form)(rows, np.array([[1]]))


@pytest.mark.parametrize("form", FORMS)
def test_too_many_batches_are_refused(form):
    batches = [np.array([[1, 1]])] * 65
    with pytest.raises(ValueError, match="65 batches"):
        form_of(histories.read_history, form)(
            batches, np.zeros((65, 1), np.int64), np.array([[1, 1]]), np.zeros(1, np.int64), 1
        )
