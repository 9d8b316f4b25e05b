"""Change batches against a recount."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pointstamp.progress.change_batch import ChangeBatch

changes = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([-2, -1, 0, 1, 2])))


@given(changes)
def test_a_batch_holds_what_a_recount_holds(updates: list[tuple[int, int]]) -> None:
    batch: ChangeBatch = ChangeBatch(updates)
    expected: Counter[int] = Counter()
    for item, change in updates:
        expected[item] += change
    wanted = {item: count for item, count in expected.items() if count}
    assert dict(batch) == wanted
    assert len(batch) == len(wanted)
    assert batch.is_empty() == (not wanted)
    assert dict(batch.drain()) == wanted
    assert batch.is_empty()


def test_what_cancels_vanishes_and_may_come_again() -> None:
    batch = ChangeBatch([("a", 1)])
    batch.extend([("a", -1), ("b", -1), ("a", 3)])
    assert batch.drain() == [("b", -1), ("a", 3)]
