"""Rows of updates against dictionaries of records, compiled and plain."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.kernels import consolidation, extensions, group_states, matches
from pointstamp.kernels.consolidation import is_consolidated
from pointstamp.kernels.hashing import combine, mix

FORMS = ["compiled", "plain"]
GREATEST = 2**63 - 1

words = st.one_of(st.integers(-2, 2), st.integers(-(2**63), GREATEST))
diffs = st.integers(-3, 3)


def form_of(function, form):
    return function if form == "compiled" else function.plain


def rows_of(n_words, max_size=40):
    row = st.tuples(*[words] * n_words, diffs)
    return st.lists(row, max_size=max_size).map(
        lambda rows: np.array(rows, np.int64).reshape(-1, n_words + 1)
    )


def totals(*parts):
    found = Counter()
    for rows in parts:
        for *record, diff in rows.tolist():
            found[tuple(record)] += diff
    return {record: n for record, n in found.items() if n}


def as_dict(rows):
    return {tuple(record): diff for *record, diff in rows.tolist()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_words", [1, 2, 5])
@given(data=st.data())
def test_consolidate_sums_what_is_equal(form, n_words, data):
    rows = data.draw(rows_of(n_words))
    before = rows.copy()
    found = form_of(consolidation.consolidate, form)(rows)
    assert is_consolidated(found)
    assert as_dict(found) == totals(rows)
    assert (rows == before).all()


@pytest.mark.parametrize("form", FORMS)
def test_words_become_rows_of_a_width(form):
    rows_of_words = form_of(consolidation.rows_of, form)
    words = [-(2**63), GREATEST, 0, 1, 2, 3]
    for width in (1, 2, 3, 6):
        found = rows_of_words(words, width)
        assert found.dtype == np.int64
        assert found.shape == (6 // width, width)
        assert found.ravel().tolist() == words
    assert rows_of_words([], 2).shape == (0, 2)


@pytest.mark.parametrize("form", FORMS)
def test_words_that_make_no_rows_are_refused(form):
    rows_of_words = form_of(consolidation.rows_of, form)
    with pytest.raises(ValueError, match=r"3 words|size 3"):
        rows_of_words([1, 2, 3], 2)
    for beyond in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError):
            rows_of_words([1, beyond], 2)


def spread(how, n, rng):
    """So many numbers that are spread in some way."""
    return {
        "evenly": lambda: rng.integers(0, n, n),
        "over_all_words": lambda: rng.integers(-(2**63), GREATEST, n, endpoint=True),
        "unevenly": lambda: np.concatenate([rng.integers(0, 30, n - n // 2),
                                            2 ** rng.integers(0, 62, n // 2)]),
        "in_clusters": lambda: rng.integers(-4, 4, n) * 2**60 + rng.integers(0, 100, n),
        "among_few": lambda: rng.choice([-(2**63), 0, GREATEST], n),
        "by_powers": lambda: 2 ** rng.integers(0, 63, n),
        "all_alike": lambda: np.full(n, -(2**63)),
    }[how]()  # fmt: skip


SPREADS = ["evenly", "over_all_words", "unevenly", "in_clusters", "among_few", "by_powers"]


@pytest.mark.parametrize("second", ["evenly", "by_powers"])
@pytest.mark.parametrize("first", [*SPREADS, "all_alike"])
@pytest.mark.parametrize("n", [10, 33, 1_000, 20_000])
def test_consolidate_many(n, first, second):
    """However their words are spread, by which they are sorted."""
    rng = np.random.default_rng(n)
    rows = np.column_stack([spread(first, n, rng), spread(second, n, rng), rng.integers(-1, 2, n)])
    found = consolidation.consolidate(np.ascontiguousarray(rows))
    assert is_consolidated(found)
    assert as_dict(found) == totals(rows)


@pytest.mark.parametrize("sizes", [(900, 900), (900, 20)])
@pytest.mark.parametrize("n_words", [0, 1, 2, 3, 4])
def test_merges_by_pieces_come_to_what_one_does(n_words, sizes):
    rng = np.random.default_rng(n_words)
    left, right = (
        consolidation.consolidate(
            np.column_stack([rng.integers(-9, 9, (n, n_words)), rng.integers(-1, 2, n)])
        )
        for n in sizes
    )
    into = np.empty((len(left) + len(right), n_words + 1), np.int64)
    at = np.zeros(3, np.int64)
    while at[0] + at[1] < len(into):
        before = at[:2].sum()
        consolidation.merge_some(left, right, into, at, 7)
        assert 0 < at[:2].sum() - before <= 7
    assert as_dict(into[: at[2]]) == totals(left, right)
    assert consolidation.merge(left, right).tolist() == into[: at[2]].tolist()


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_merge_sums_what_is_equal(form, data):
    n_words = data.draw(st.integers(1, 3))
    left, right = (
        consolidation.consolidate(data.draw(rows_of(n_words, max_size=size))) for size in (40, 5)
    )
    found = form_of(consolidation.merge, form)(left, right)
    assert is_consolidated(found)
    assert as_dict(found) == totals(left, right)


@pytest.mark.parametrize("form", FORMS)
def test_sums_beyond_64_bits_are_refused(form):
    rows = np.array([[1, GREATEST], [1, 1]])
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        form_of(consolidation.consolidate, form)(rows)
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        form_of(consolidation.merge, form)(rows[:1], rows[1:])
    other = np.array([[1, 2]])
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        form_of(matches.match_batches, form)(rows[:1], [other], 1, np.array([0], np.int32))
    both = [rows[:1], np.array([[1, 1]])]
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        form_of(matches.match_batches, form)(other, both, 1, np.array([0], np.int32))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_parts_are_consolidated_as_one(form, data):
    parts = data.draw(st.lists(rows_of(2, max_size=30), min_size=1, max_size=4))
    found = form_of(consolidation.consolidate_all, form)(parts)
    assert is_consolidated(found)
    assert as_dict(found) == totals(*parts)


@pytest.mark.parametrize("form", FORMS)
@given(rows=rows_of(3), places=st.lists(st.integers(0, 2), max_size=4))
def test_words_are_chosen_in_any_order(form, rows, places):
    found = form_of(consolidation.choose_words, form)(rows, np.array(places, np.int32))
    assert found.tolist() == [[*(row[k] for k in places), row[-1]] for row in rows.tolist()]
    assert found.flags.c_contiguous


@pytest.mark.parametrize("how", [*SPREADS, "all_alike"])
@pytest.mark.parametrize("n", [40, 300])
def test_keys_are_found_among_many_rows(how, n):
    """Enough of them for a key to be looked for where it would be if they were spread evenly."""
    rng = np.random.default_rng(5)
    keys = spread(how, 20_000, rng)
    values = rng.integers(0, 50, len(keys))
    batch = consolidation.consolidate(np.column_stack([keys, values, np.ones_like(keys)]))
    asked = np.unique(np.concatenate([rng.choice(keys, n), rng.integers(-(2**63), GREATEST, n // 2),
                                      [-(2**63), GREATEST, 0]]))  # fmt: skip
    changes = np.column_stack([asked, np.ones_like(asked)])
    recipe = np.array([0, ~1], np.int32)
    found = matches.match_batches(np.ascontiguousarray(changes), [batch], 1, recipe)
    assert found.tolist() == batch[np.isin(batch[:, 0], asked)].tolist()


@pytest.mark.parametrize("how", [*SPREADS, "all_alike"])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("n", [10, 40, 300])
def test_prefixes_are_extended_among_many_rows(how, n, in_order):
    """As many of them are looked for together as there are, in any order, by the same key also."""
    rng = np.random.default_rng(7)
    keys = spread(how, 20_000, rng)
    few = min(n, len(keys))
    batches = [
        consolidation.consolidate(
            np.column_stack([some, rng.integers(0, 9, len(some)), np.ones_like(some)])
        )
        for some in (keys, rng.choice(keys, few))
    ]
    asked = np.concatenate([rng.choice(keys, n), rng.integers(-(2**63), GREATEST, n // 4),
                            [-(2**63), GREATEST, 0, 0]])  # fmt: skip
    asked = np.sort(asked) if in_order else asked
    others = rng.choice(keys, len(asked))
    prefixes = np.ascontiguousarray(np.column_stack([asked, others, np.ones_like(asked)]))
    places = [np.array([0], np.int32), np.array([1], np.int32)]
    found, _ = extensions.extend(prefixes, [batches, batches[:1]], places)
    by_key = [Counter(), Counter()]
    for side, parts in enumerate([batches, batches[:1]]):
        for key, value, diff in np.concatenate(parts).tolist():
            by_key[side][key, value] += diff
    assert found.tolist() == [
        [a, b, value, by_key[0][a, value] * by_key[1][b, value]]
        for a, b, _ in prefixes.tolist()
        for value in range(9)
        if by_key[0][a, value] * by_key[1][b, value]
    ]
    weighed = extensions.weigh(
        np.ascontiguousarray(np.insert(prefixes, 1, 3, axis=1)),
        batches,
        np.array([0, 1], np.int32),
        False,
    )
    there = [a for a, _, _ in prefixes.tolist() if by_key[0][a, 3]]
    assert weighed[:, 0].tolist() == there


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_matches_are_of_records_that_are_there_in_all_batches_together(form, data):
    n_key = data.draw(st.integers(1, 2))
    left = consolidation.consolidate(data.draw(rows_of(n_key + 1)))
    batches = [
        consolidation.consolidate(rows)
        for rows in data.draw(st.lists(rows_of(n_key + 2, max_size=20), max_size=4))
    ]
    recipe = np.array([~(n_key + 1), 0, n_key, ~n_key], np.int32)
    found = form_of(matches.match_batches, form)(left, batches, n_key, recipe)
    expected = Counter()
    for one in left.tolist():
        for two, n in totals(*batches).items():
            if tuple(one[:n_key]) == two[:n_key]:
                expected[(two[n_key + 1], one[0], one[n_key], two[n_key]), one[-1] * n] += 1
    assert Counter((tuple(row[:-1]), row[-1]) for row in found.tolist()) == expected
    keys = [row[1] for row in found.tolist()]
    assert keys == sorted(keys)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data(), most=st.sampled_from([1, 2, 5, 40]))
def test_some_matches_at_a_time_are_all_together(form, data, most):
    n_key = data.draw(st.integers(1, 2))
    changes = consolidation.consolidate(data.draw(rows_of(n_key + 1)))
    batches = [
        consolidation.consolidate(rows)
        for rows in data.draw(st.lists(rows_of(n_key + 2, max_size=20), max_size=4))
    ]
    recipe = np.array([0, n_key, ~n_key], np.int32)
    whole = matches.match_batches(changes, batches, n_key, recipe).tolist()
    found, place = [], (0, None)
    while place[0] < len(changes):
        given_ = changes, batches, n_key, recipe, place[0], most, place[1]
        rows, *next_ = form_of(matches.match_some, form)(*given_)
        twin, *next_of_twin = matches.match_some.plain(*given_)
        assert (rows.tolist(), as_place(*next_)) == (twin.tolist(), as_place(*next_of_twin))
        assert as_place(*place) < as_place(*next_)
        assert next_[0] < len(changes) or next_[1] is None
        assert len(rows) < max(2 * most, len(batches) + 1)
        found += rows.tolist()
        place = next_
    assert sorted(found) == sorted(whole)


def as_place(begin, after):
    return begin, [] if after is None else after.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_one_change_meets_many_records_by_pieces(form):
    keys = np.array([[6, 1], [7, 1], [8, 1]])
    batches = [
        np.array([[7, value, 1] for value in range(start, 3_000, step)])
        for start, step in [(0, 1), (0, 2), (1, 3)]
    ]
    match, begin, after, found = form_of(matches.match_some, form), 0, None, []
    while begin < 3:
        rows, begin, after = match(keys, batches, 1, np.array([0, ~1], np.int32), begin, 100, after)
        assert len(rows) <= 100
        found += rows.tolist()
    assert found == [[7, v, 1 + (v % 2 == 0) + (v % 3 == 1)] for v in range(3_000)]


@pytest.mark.parametrize("form", FORMS)
def test_records_that_cancel_in_two_batches_make_no_pairs(form):
    change = np.array([[7, 1, 1]])
    batches = [np.array([[7, 5, 1], [7, 6, 2]]), np.array([[7, 5, -1], [7, 6, 1]])]
    recipe = np.array([0, 1, ~1], np.int32)
    found = form_of(matches.match_batches, form)(change, batches, 1, recipe)
    assert found.tolist() == [[7, 1, 6, 3]]


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_read_groups_reads_what_is_there_in_order(form, data):
    n_batches = data.draw(st.integers(0, 5))
    batches = [consolidation.consolidate(data.draw(rows_of(2, 12))) for _ in range(n_batches)]
    keys = np.array(data.draw(st.lists(st.integers(-2, 2), max_size=4)), np.int64).reshape(-1, 1)
    n_start = data.draw(st.integers(0, 1))
    starts = np.array(data.draw(st.lists(words, min_size=len(keys), max_size=len(keys))), np.int64)
    starts = starts.reshape(-1, 1)[:, :n_start].copy()
    most = data.draw(st.integers(1, 4))
    rows, ends = form_of(matches.read_groups, form)(batches, keys, starts, most)
    there = sorted((record, n) for record, n in totals(*batches).items() if n > 0)
    begin = 0
    for key, start, end in zip(keys[:, 0].tolist(), starts.tolist(), ends.tolist(), strict=True):
        expected, found = [], 0
        for record, n in there:
            if record[0] == key and [record[1]][:n_start] >= start and found < most:
                expected.append([*record, n])
                found += n
        assert rows[begin:end].tolist() == expected
        begin = end
    assert begin == len(rows)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_groups_are_numbered_as_they_come(form, data):
    n_key = data.draw(st.integers(1, 2))
    slots, kept = np.zeros(256, np.int64), np.empty((100, n_key), np.int64)
    n, known = 0, {}
    for _ in range(2):
        rows = data.draw(rows_of(n_key))
        numbers = np.empty(len(rows), np.int32)
        n = form_of(group_states.number_groups, form)(slots, n, kept, rows, numbers)
        keys = [tuple(row[:n_key]) for row in rows.tolist()]
        for key in keys:
            known.setdefault(key, len(known))
        assert numbers.tolist() == [known[key] for key in keys]
        assert n == len(known)
    assert list(map(tuple, kept[:n].tolist())) == list(known)


@pytest.mark.parametrize("form", FORMS)
@given(rows=rows_of(2))
def test_hashes_are_those_of_keys_of_words(form, rows):
    found = form_of(group_states.hash_words, form)(rows, 2)
    expected = [combine(mix(one), mix(two)) for one, two, _ in rows.tolist()]
    assert found.tolist() == expected


@pytest.mark.parametrize("form", FORMS)
@given(rows=rows_of(3), n_key=st.integers(1, 3), n_parts=st.integers(1, 5))
def test_parts_are_by_the_hash_of_keys_and_keep_the_order(form, rows, n_key, n_parts):
    parts = form_of(group_states.split_rows, form)(rows, n_key, n_parts)
    part_of = group_states.hash_words.plain(rows, n_key) % np.uint64(n_parts)
    expected = [rows[part_of == part].tolist() for part in range(n_parts)]
    assert [part.tolist() for part in parts] == expected
