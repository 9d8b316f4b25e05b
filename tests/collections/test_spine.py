"""A spine: few batches, of which each reader gets what it has not put behind it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.collections.spine import MOST_READ, Spine
from pointstamp.kernels.consolidation import consolidate


def rows_of(pairs: list[tuple[int, int]]) -> Any:
    return consolidate(np.array(pairs, np.int64).reshape(-1, 2))


def totals(batches: Any) -> Counter[int]:
    found: Counter[int] = Counter()
    for rows in batches:
        for word, diff in rows.tolist():
            found[word] += diff
    return Counter({word: n for word, n in found.items() if n})


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 9), st.sampled_from([-1, 1, 2])), max_size=8),
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        max_size=30,
    )
)
def test_readers_read_what_they_ask_for(epochs: Any) -> None:
    spine = Spine(ps.Int)
    readers = [spine.reader(), spine.reader()]
    history: list[Counter[int]] = []
    for time, (pairs, *lags) in enumerate(epochs):
        rows = rows_of(pairs)
        if len(rows):
            spine.insert(rows, time)
        history.append(totals([rows]))
        for reader, lag in zip(readers, lags, strict=True):
            reader.acknowledge(max(reader.bound, time + 1 - lag))
            for at in range(reader.bound, time + 1):
                upto: Counter[int] = Counter()
                for earlier in history[:at]:
                    upto.update(earlier)
                upto = Counter({word: n for word, n in upto.items() if n})
                assert totals(reader.before(at)) == upto
                upto.update(history[at])
                assert totals(reader.through(at)) == Counter({w: n for w, n in upto.items() if n})


@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from([-1, 1, 1])), max_size=300),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.booleans()), max_size=30),
)
def test_many_batches_are_read_as_few(pairs: Any, steps: Any) -> None:
    """A handle keeps them apart, of which readers may ask for any from where it is."""
    spine = Spine(ps.Int)
    handle = spine.reader()
    n_inserted = 0
    for n_more, at, has_moved in steps:
        for pair in pairs[n_inserted : n_inserted + n_more]:
            spine.insert(rows_of([pair]), n_inserted)
            n_inserted += 1
        at = max(handle.bound, min(at, n_inserted))
        if has_moved:
            handle.acknowledge(at)
        for through in (False, True):
            found = spine.read(at, through)
            assert len(found) <= MOST_READ
            expected: Counter[int] = Counter()
            for word, diff in pairs[: min(at + through, n_inserted)]:
                expected[word] += diff
            assert totals(found) == Counter({word: n for word, n in expected.items() if n})


def test_to_read_many_batches_does_not_cost_more_each_time() -> None:
    spine = Spine(ps.Int)
    handle, reader = spine.reader(), spine.reader()
    n_runs = []
    for time in range(1_000):
        spine.insert(rows_of([(time, 1)]), time)
        before, through = reader.before(time), reader.through(time)
        # All but the newest are the very same arrays as the last time, up to a merge.
        n_runs.append(max(len(before), len(through)))
        reader.acknowledge(time + 1)
    assert spine.n_batches == 1_000
    assert max(n_runs[100:]) <= 32 + 12
    handle.acknowledge(1_000)
    assert spine.n_batches <= 9


def test_what_is_acknowledged_is_few_batches() -> None:
    spine = Spine(ps.Int)
    reader = spine.reader()
    for time in range(1_000):
        spine.insert(rows_of([(time, 1)]), time)
        reader.acknowledge(time + 1)
        assert spine.n_batches <= 6
    assert spine.n_updates == 1_000


def test_what_a_slow_reader_needs_is_kept_apart_and_read_as_few() -> None:
    spine = Spine(ps.Int)
    slow = spine.reader()
    for time in range(3 * MOST_READ):
        spine.insert(rows_of([(time, 1)]), time)
    assert spine.n_batches == 3 * MOST_READ
    assert len(slow.before(2 * MOST_READ)) <= MOST_READ
    assert totals(slow.before(2 * MOST_READ)) == Counter(range(2 * MOST_READ))
    slow.acknowledge(3 * MOST_READ)
    assert spine.n_batches <= 9


def test_what_cancels_is_not_kept() -> None:
    spine = Spine(ps.Int)
    reader = spine.reader()
    spine.insert(rows_of([(word, 1) for word in range(100)]), 0)
    spine.insert(rows_of([(word, -1) for word in range(100)]), 1)
    reader.acknowledge(2)
    assert (spine.n_batches, spine.n_updates) == (0, 0)


def test_without_readers_nothing_is_kept() -> None:
    spine = Spine(ps.Int)
    one, other = spine.reader(), spine.reader()
    spine.insert(rows_of([(1, 1)]), 0)
    one.close()
    one.close()
    assert spine.n_updates == 1
    other.close()
    spine.insert(rows_of([(2, 1)]), 1)
    assert spine.n_updates == 0
