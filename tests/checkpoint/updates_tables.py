"""Random changes of a table of updates, and what a folder would have of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from pointstamp.checkpoint import keyed_updates
from pointstamp.checkpoint.bins import bins_for
from pointstamp.checkpoint.keyed_state import by_key
from pointstamp.checkpoint.keyed_updates import KeyedUpdates
from pointstamp.containers import decode
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.kernels.consolidation import consolidate_all

BY_KEY = by_key(FirstWords(1))


class Disk:
    """What a folder would have of a table: the batches of each bin."""

    def __init__(self) -> None:
        self.bins: dict[int, list[Any]] = {}

    def take(self, table: KeyedUpdates) -> int:
        """What came; how many rows were written."""
        n = 0
        for bin, change in table.take_delta().changes.items():
            before = [] if change.is_whole else self.bins.get(bin, [])
            assert change.n_replaced <= len(before)
            before = before[: len(before) - change.n_replaced]
            self.bins[bin] = [*before, *([change.batch] if change.batch.num_rows else [])]
            n += n_rows(change.batch)
        return n

    def read(self, index: int, peers: int) -> list[Any]:
        return [batch for bin in bins_for(index, peers) for batch in self.bins.get(bin, [])]

    def most_batches(self) -> int:
        return max(map(len, self.bins.values()), default=0)

    def n_rows(self) -> int:
        return sum(n_rows(batch) for batches in self.bins.values() for batch in batches)


def n_rows(batch: Any) -> int:
    return sum(len(decode([message.as_buffer()])[1]) for message in batch.column(0))


class Kept:
    """Rows of two names, consolidated, and their table."""

    def __init__(self) -> None:
        self.rows = {name: np.empty((0, 3), np.int64) for name in "ab"}
        self.table = KeyedUpdates(
            lambda: self._everything(),
            self._take_in,
            BY_KEY,
            lambda _, rows: Updates(rows),
            lambda: sum(map(len, self.rows.values())),
        )

    def _everything(self) -> Iterator[tuple[str, Updates]]:
        for name, rows in self.rows.items():
            yield name, Updates(rows)

    def _take_in(self, name: str, updates: Updates) -> None:
        self.rows[name] = consolidate_all([self.rows[name], updates.rows])

    def change(self, name: str, rows: Rows) -> None:
        self.rows[name] = consolidate_all([self.rows[name], rows])
        self.table.add(name, rows)

    def contents(self) -> Counter[tuple[Any, ...]]:
        return Counter(
            {(k, *row[:-1]): row[-1] for k, v in self.rows.items() for row in v.tolist()}
        )


CHANGES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 3), st.sampled_from([-1, 1, 1, 2])), max_size=9
)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), CHANGES),
        st.tuples(st.sampled_from(["cut", "cut", "cut", "undo", "again", "anew"]), st.none()),
    ),
    min_size=8,
    max_size=40,
)


def check_table(actions: list[Any], dead_part: int, few: int, peers: int) -> None:
    """What was handed out has the sum of what came.

    dead_part, few : see `keyed_updates`
    peers : how many workers it is read on
    """
    kept, disk = Kept(), Disk()
    name, rows = "a", np.empty((0, 3), np.int64)
    with patch.multiple(keyed_updates, DEAD_PART=dead_part, FEW=few):
        for what, changes in actions:
            if changes is not None:
                name, rows = what, np.array(changes, np.int64).reshape(-1, 3)
                kept.change(name, rows)
            elif what == "undo":
                rows = rows * [1, 1, -1]
                kept.change(name, rows)
            elif what == "anew":
                kept.table.begin_anew()
            else:
                disk.take(kept.table)
                if what == "again":
                    kept = loaded(disk, 0, 1)
        disk.take(kept.table)
        if dead_part == 5:
            assert disk.n_rows() <= 1.25 * len(kept.contents())
    copies = [loaded(disk, index, peers).contents() for index in range(peers)]
    assert sum(map(len, copies)) == len(kept.contents())
    assert sum(copies, Counter[Any]()) + Counter() == +kept.contents()
    assert {row: n for copy in copies for row, n in copy.items()} == kept.contents()


def loaded(disk: Disk, index: int, peers: int) -> Kept:
    kept = Kept()
    kept.table.load(disk.read(index, peers), index, peers)
    return kept
