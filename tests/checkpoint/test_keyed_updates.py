"""Tables of updates: what they hand out has the same sum, whatever is written again when."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.checkpoint import keyed_updates
from pointstamp.checkpoint.deltas import AGAIN
from pointstamp.checkpoint.keyed_updates import KeyedUpdates
from pointstamp.containers.updates import Rows, Updates
from tests.checkpoint.updates_tables import ACTIONS, BY_KEY, Disk, Kept, check_table, loaded


@given(ACTIONS, st.sampled_from([1, 5]), st.sampled_from([0, 3, 4_096]), st.integers(1, 3))
def test_what_was_handed_out_has_the_sum_of_what_came(
    actions: list[Any], dead_part: int, few: int, peers: int
) -> None:
    check_table(actions, dead_part, few, peers)


def numbered(begin: int, end: int, diff: int = 1) -> Rows:
    numbers = np.arange(begin, end)
    return np.column_stack([numbers, numbers, np.full(len(numbers), diff)])


def test_a_delta_is_of_the_changes_until_a_fifth_of_what_is_named_is_dead() -> None:
    kept, disk = Kept(), Disk()
    kept.change("a", numbered(0, 10_000))
    assert disk.take(kept.table) == 10_000
    assert disk.take(kept.table) == 0
    written = []
    for first in range(0, 2_000, 100):
        kept.change("a", numbered(first, first + 100, -1))
        kept.change("a", numbered(20_000 + first, 20_100 + first))
        written.append(disk.take(kept.table))
        assert disk.n_rows() <= 12_500
    # 2,500 rows are dead after 12 times; the one after that writes all.
    assert [n for n in written if n >= 10_000] == [10_000]
    assert written.index(10_000) == 12
    assert loaded(disk, 0, 1).contents() == kept.contents()


def test_after_many_small_deltas_there_are_few_batches() -> None:
    kept, disk = Kept(), Disk()
    kept.change("a", numbered(0, 100_000))
    disk.take(kept.table)
    written = 0
    for number in range(300):
        kept.change("b", numbered(number, number + 1))
        written += disk.take(kept.table)
    # A base, and levels of which each is less than half of the one before: 2 ** 9 > 300.
    assert disk.most_batches() <= 10
    assert 300 <= written <= 300 * 9
    assert loaded(disk, 0, 1).contents() == kept.contents()


def test_a_large_level_is_not_written_again() -> None:
    with patch.object(keyed_updates, "FEW", 10):
        kept, disk = Kept(), Disk()
        kept.change("a", numbered(0, 10_000))
        disk.take(kept.table)
        written = []
        for first in range(0, 1_000, 200):
            kept.change("b", numbered(first, first + 200))
            written.append(disk.take(kept.table))
        assert written == [200] * 5
        assert disk.n_rows() == 11_000


def test_what_comes_between_two_snapshots_is_not_kept_beside_where_it_is_much() -> None:
    kept, disk = Kept(), Disk()
    kept.change("a", numbered(0, 10_000))
    disk.take(kept.table)
    kept.change("a", numbered(10_000, 12_000))
    assert kept.table._n_new == 2_000
    kept.change("a", numbered(12_000, 30_000))
    assert kept.table._n_new == 0
    assert disk.take(kept.table) == 30_000


def test_updates_that_are_taken_in_again_are_dead_from_the_beginning() -> None:
    disk, taken = Disk(), []

    def new() -> KeyedUpdates:
        return KeyedUpdates(
            lambda: [("sums", Updates(numbered(0, 1_000)))],
            lambda name, updates: taken.append((name, len(updates))),
            BY_KEY,
            lambda _, rows: Updates(rows),
        )

    table = new()
    assert disk.take(table) == 1_000
    written = []
    for _ in range(3):
        table.add(AGAIN, numbered(0, 80))
        written.append(disk.take(table))
        # In another process each time: what is dead is known there, too.
        taken.clear()
        table = new()
        table.load(disk.read(0, 1), 0, 1)
    assert written == [80, 80, 80]
    assert sum(n for name, n in taken if name == AGAIN) == 240
    table.add(AGAIN, numbered(0, 80))
    assert disk.take(table) == 1_000


def test_a_table_of_many_batches_is_written_anew_when_it_is_loaded() -> None:
    kept, disk = Kept(), Disk()
    kept.change("a", numbered(7, 8))
    kept.change("a", np.array([[7, n, 1] for n in range(100, 1_000)]))
    disk.take(kept.table)
    for number in range(keyed_updates.MOST_BATCHES + 1):
        kept = loaded(disk, 0, 1)
        kept.change("b", np.array([[7, number, 1]]))
        disk.take(kept.table)
    assert disk.most_batches() <= keyed_updates.MOST_BATCHES + 1
    kept = loaded(disk, 0, 1)
    disk.take(kept.table)
    disk.take(loaded(disk, 0, 1).table)
    assert disk.most_batches() <= 2
    assert loaded(disk, 0, 1).contents() == kept.contents()


@pytest.mark.parametrize("n", [0, 1])
def test_what_cancels_in_a_level_leaves_no_batch(n: int) -> None:
    kept, disk = Kept(), Disk()
    kept.change("a", numbered(0, 5_000))
    disk.take(kept.table)
    for diff in (1, -1):
        kept.change("b", numbered(0, 100, diff))
        disk.take(kept.table)
    kept.change("b", numbered(0, n))
    disk.take(kept.table)
    assert disk.n_rows() == 5_000 + n
    assert disk.most_batches() <= 1 + n
