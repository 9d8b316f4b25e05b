"""`collect_list` and `collect_set`: the values of a group as one list, in order."""

from __future__ import annotations

import numpy as np

from pointstamp.collections.accumulators import (
    VALUES,
    Accumulator,
    Answer,
    Flags,
    HeldTexts,
    Ints,
    Parts,
)
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.copies import copied
from pointstamp.collections.groups import Numbers
from pointstamp.collections.order import ALL, from_first
from pointstamp.containers.nested import ListType
from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import consolidate
from pointstamp.kernels.matches import read_groups


class CollectedValues(Accumulator):
    """All values, each as often as it is there or once, from the least on; nulls apart.

    An answer is made anew of the whole group whenever that changes.
    """

    def __init__(self, kind: ListType, *, once: bool) -> None:
        self._kind = kind
        self._once = once
        self._kept = BatchSeries()
        """The words of a key, a value, and how often it is there."""

    def contents(self, keys: Rows) -> Parts:
        """The values."""
        for rows in self._kept.rows:
            yield VALUES, rows

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Take the values in."""
        self.add(numbers, keys, words[:, 0], diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """The values, behind their keys."""
        return [(rows, texts) for rows in self._kept.rows]

    def grow(self, n: int) -> None:
        """Nothing is kept by the numbers of groups."""

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Keep the values."""
        new = consolidate(np.ascontiguousarray(np.column_stack([keys, words, diffs])))
        if len(new):
            self._kept.insert(new)

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The lists, which are always there."""
        in_order = np.lexsort(keys.T[::-1])
        sorted_keys = np.ascontiguousarray(keys[in_order])
        rows, ends = read_groups(self._kept.rows, sorted_keys, from_first(sorted_keys), ALL)
        words = np.zeros(len(keys), np.int64)
        begin = 0
        for place, end in zip(in_order.tolist(), ends.tolist(), strict=True):
            group = rows[begin:end]
            counts = np.ones(len(group), np.int64) if self._once else group[:, -1]
            values = copied(group[:, -2], counts, "a list")
            words[place] = self._kind.word_of_words(values.tolist())
            begin = end
        return words, np.ones(len(keys), np.bool_)

    def is_empty(self, numbers: Ints) -> Flags:
        """Always, as values are kept by key."""
        return np.ones(len(numbers), np.bool_)

    def keep(self, numbers: Ints) -> None:
        """Nothing is kept by the numbers of groups."""
