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


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([-1, 0, 1, 2])), max_size=120))
def test_many_items_are_counted_as_few_are(updates: list[tuple[int, int]]) -> None:
    batch: ChangeBatch = ChangeBatch()
    expected: Counter[int] = Counter()
    for item, change in updates:
        batch.update(item, change)
        expected[item] += change
        assert len(batch) == sum(count != 0 for count in expected.values())
        assert bool(batch) is not batch.is_empty()
    wanted = {item: count for item, count in expected.items() if count}
    assert dict(batch) == wanted
    n = batch.gather()
    assert n == len(wanted)
    assert dict(zip(batch.items[:n], batch.changes[:n], strict=True)) == wanted
    assert dict(batch) == wanted
    batch.clear()
    assert batch.is_empty()
    assert list(batch) == []


def test_what_is_gathered_is_in_the_order_of_its_first_mention() -> None:
    for n in (3, 100):
        batch = ChangeBatch([(item, 1) for item in range(n, 0, -1)])
        for _ in range(2):  # gathering forgets nothing
            assert batch.gather() == n
            assert batch.items[:n] == list(range(n, 0, -1))
        batch.update(n, -1)
        assert batch.drain() == [(item, 1) for item in range(n - 1, 0, -1)]
        batch.update("another", 2)
        assert batch.gather() == 1
        assert (batch.items[0], batch.changes[0]) == ("another", 2)
