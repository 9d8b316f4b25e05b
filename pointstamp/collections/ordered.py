"""Ordered aggregates: what is kept of each group where its values are needed in order.

The values are in batches like those of a spine, by group. An answer is looked for from the
answer before on: of the least value nothing before that is there, unless it is new. Of a
quantile it is known how many values are before it, and what changes there is added up.
So an answer costs a search in a few batches, and what was deleted between two answers.

Source: the kinds of reductions are Materialize's; where to begin to search is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

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
from pointstamp.collections.counted import RecordCounts
from pointstamp.collections.group_answers import first_of_each
from pointstamp.collections.groups import Numbers, grown
from pointstamp.collections.order import ALL, WordOrder, from_first
from pointstamp.collections.schema import Column
from pointstamp.containers.text_order import N_WORDS
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import LONG
from pointstamp.kernels.consolidation import consolidate
from pointstamp.kernels.matches import read_groups

NumberGroups = Callable[[Rows], Numbers]
"""Gives the number of the group of each of some rows, which all have one."""


class FirstValue(Accumulator):
    """The last value of the first record in an order; null of none, or where it is null.

    Parameters
    ----------
    columns : sequence of (Column, bool)
        What the words of values are, and whether the greatest comes first.
    """

    def __init__(
        self, n_key: int, number: NumberGroups, columns: Sequence[tuple[Column, bool]]
    ) -> None:
        self._n_key = n_key
        self._number = number
        self._order = WordOrder(n_key, columns)
        self._may_be_null = columns[-1][0].nullable
        self._kept = BatchSeries()
        self._starts = np.zeros((0, self._order.n_words - n_key), np.int64)
        """By group: the words behind the key from which on something is there."""
        self._known = np.zeros(0, np.bool_)
        """By group: whether something is."""
        self._answers = np.zeros(0, np.int64)
        self._there = np.zeros(0, np.bool_)

    def contents(self, keys: Rows) -> Parts:
        """The values."""
        for rows in self._kept.rows:
            yield VALUES, self._order.decode(rows)

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Take the values in."""
        self.add(numbers, keys, words, diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """The values, with their words in order."""
        key_texts = [place for place in texts if place < self._n_key]
        return self._order.held_texts(self._kept.rows, key_texts)

    def grow(self, n: int) -> None:
        """Of no values."""
        self._starts, self._answers = grown(self._starts, n), grown(self._answers, n)
        self._known, self._there = grown(self._known, n), grown(self._there, n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Keep the values in order, and look for the answers of the groups that were touched."""
        columns = np.ascontiguousarray(np.column_stack([keys, words, diffs]))
        new = consolidate(np.ascontiguousarray(self._order.encode(columns)))
        if not len(new):
            return
        n_key, order = self._n_key, self._order
        heads = first_of_each(new, n_key)
        groups = self._number(heads)
        starts = order.first_alike(heads)[:, n_key:]
        before = self._known[groups] & _is_less(self._starts[groups], starts)
        starts[before] = self._starts[groups][before]
        self._kept.insert(new)
        group_keys = np.ascontiguousarray(heads[:, :n_key])
        rows = order.read(self._kept.rows, group_keys, np.ascontiguousarray(starts), 1)
        self._known[groups] = self._there[groups] = False
        self._answers[groups] = 0
        if len(rows):
            self._note(first_of_each(rows, n_key))

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """Those that were found."""
        return self._answers[numbers], self._there[numbers]

    def is_empty(self, numbers: Ints) -> Flags:
        """Where nothing is there; the values are kept by key."""
        empty: Flags = ~self._known[numbers]
        return empty

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._starts, self._answers = self._starts[numbers], self._answers[numbers]
        self._known, self._there = self._known[numbers], self._there[numbers]

    def _note(self, firsts: Rows) -> None:
        groups = self._number(np.ascontiguousarray(firsts))
        self._known[groups] = True
        self._starts[groups] = self._order.first_alike(firsts)[:, self._n_key :]
        values = self._order.decode(firsts)
        self._answers[groups] = values[:, -2]
        self._there[groups] = values[:, -3] != 0 if self._may_be_null else True


class Mode(Accumulator):
    """The most frequent value, of several the least; null of none."""

    def __init__(self, n_key: int, number: NumberGroups, column: Column) -> None:
        self._n_key = n_key
        self._counts = RecordCounts(n_key + 1, 1)
        self._first = FirstValue(n_key, number, [(Column("count", LONG), True), (column, False)])

    def contents(self, keys: Rows) -> Parts:
        """How often each value is there, as its diff."""
        yield VALUES, self._counts.contents(0)

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Take the values in."""
        self.add(numbers, keys, words[:, 0], diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """The values, and those in order."""
        return [(self._counts.records(), texts), *self._first.held_texts(texts)]

    def grow(self, n: int) -> None:
        """As the first of those by count."""
        self._first.grow(n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Count each value, and put those whose count changed in order by it."""
        rows = np.ascontiguousarray(np.column_stack([keys, words, diffs]))
        values, before, after = self._counts.count([rows])
        parts = []
        for counts, diff in ((before, -1), (after, 1)):
            there = (counts > 0)[:, 0]
            diffs = np.full(int(there.sum()), diff)
            parts.append(np.column_stack([values[there], counts[there], diffs]))
        changes = np.concatenate(parts)
        n_key = self._n_key
        by_count = changes[:, [n_key + 1, n_key]]
        self._first.add(numbers, changes[:, :n_key], by_count, changes[:, -1])

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """The first of those by count."""
        return self._first.answers(numbers, keys)

    def is_empty(self, numbers: Ints) -> Flags:
        """Where nothing is there; the values are kept by key."""
        return self._first.is_empty(numbers)

    def keep(self, numbers: Ints) -> None:
        """By index; the values are kept by key."""
        self._first.keep(numbers)


@dataclass(frozen=True)
class Share:
    """Which value of a group in order a quantile is.

    >>> Share(Fraction(1, 2), True).place(4), Share(Fraction(1, 2), False).place(4)
    ((1, Fraction(0, 1)), (1, Fraction(1, 2)))
    """

    of: Fraction
    """From 0, the least value, to 1, the greatest."""
    discrete: bool
    """Whether it is one of the values; else it may be between two."""

    def place(self, n: int) -> tuple[int, Fraction]:
        """Of `n` values that of the answer, counted from 0, and how far it is to the next one.

        Source: PERCENTILE_DISC and PERCENTILE_CONT of SQL.
        """
        if self.discrete:
            return max(-(-self.of.numerator * n // self.of.denominator) - 1, 0), Fraction(0)
        exact = self.of * (n - 1)
        return int(exact), exact - int(exact)


Between = Callable[[int, int, Fraction], int]
"""Of the words of two values the word of what is so far from the one to the other."""


class Quantile(Accumulator):
    """The value at a share of the values in order; null of none.

    The values are kept in both directions, as the answer may move to either side. A *place* is
    what a value is in order by, which seldom is of several texts. Those are put in order by their
    bytes where the answer is among them.

    Parameters
    ----------
    column : Column
        What values are.
    """

    def __init__(
        self, n_key: int, number: NumberGroups, column: Column, share: Share, between: Between
    ) -> None:
        self._n_key = n_key
        self._number = number
        self._share = share
        self._between = between
        self._order = WordOrder(n_key, [(column, False)])
        self._turned = WordOrder(n_key, [(column, True)])
        n_place = N_WORDS if column.type.is_text else 1
        self._place = slice(n_key, n_key + n_place)
        """Which words of a row are its place."""
        self._upward = BatchSeries()
        self._downward = BatchSeries()
        """The same with all words of values turned round."""
        self._n = np.zeros(0, np.int64)
        """By group: how many values there are."""
        self._at = np.zeros((0, n_place), np.int64)
        """By group that has some: the place of one of them, or of one that was there."""
        self._n_below = np.zeros(0, np.int64)
        """By group that has some: how many are at a lesser place."""
        self._answers = np.zeros(0, np.int64)

    def contents(self, keys: Rows) -> Parts:
        """The values."""
        for rows in self._upward.rows:
            yield VALUES, self._order.decode(rows)

    def restore(self, part: str, numbers: Numbers, keys: Rows, words: Rows, diffs: Ints) -> None:
        """Take the values in."""
        self.add(numbers, keys, words[:, 0], diffs)

    def held_texts(self, texts: tuple[int, ...]) -> HeldTexts:
        """The values upward, with their words in order; those downward are the same."""
        key_texts = [place for place in texts if place < self._n_key]
        return self._order.held_texts(self._upward.rows, key_texts)

    def grow(self, n: int) -> None:
        """Of no values."""
        self._n, self._at = grown(self._n, n), grown(self._at, n)
        self._n_below, self._answers = grown(self._n_below, n), grown(self._answers, n)

    def add(self, numbers: Numbers, keys: Rows, words: Ints, diffs: Ints) -> None:
        """Keep the values in order, and look for the answers of the groups that were touched."""
        rows = np.ascontiguousarray(np.column_stack([keys, words, diffs]))
        new = consolidate(np.ascontiguousarray(self._order.encode(rows)))
        if not len(new):
            return
        heads = first_of_each(new, self._n_key)
        touched = self._number(heads)
        # Of a group that had no values all that are there are new.
        empty = self._n[touched] == 0
        self._at[touched[empty]] = heads[empty, self._place]
        self._n_below[touched[empty]] = 0
        self._count(new)
        keys = np.ascontiguousarray(heads[:, : self._n_key])
        self._answers[touched] = 0
        there = self._n[touched] > 0
        self._find(touched[there], np.ascontiguousarray(keys[there]))

    def answers(self, numbers: Ints, keys: Rows) -> Answer:
        """Those that were found."""
        return self._answers[numbers], self._n[numbers] > 0

    def is_empty(self, numbers: Ints) -> Flags:
        """Where nothing is there; the values are kept by key."""
        empty: Flags = self._n[numbers] == 0
        return empty

    def keep(self, numbers: Ints) -> None:
        """By index."""
        self._n, self._at = self._n[numbers], self._at[numbers]
        self._n_below, self._answers = self._n_below[numbers], self._answers[numbers]

    def _count(self, new: Rows) -> None:
        """Keep values, and count those that came and went; of fewer than none there is none."""
        values = np.ascontiguousarray(new[:, :-1])
        before = self._totals(values)
        self._upward.insert(new)
        turned = self._turned.encode(self._order.decode(new))
        self._downward.insert(consolidate(np.ascontiguousarray(turned)))
        came = self._totals(values) - before
        groups = self._number(new)
        np.add.at(self._n, groups, came)
        is_below = _is_less(new[:, self._place], self._at[groups])
        np.add.at(self._n_below, groups[is_below], came[is_below])

    def _totals(self, values: Rows) -> Ints:
        """How often each value of a group is there."""
        totals = np.zeros(len(values), np.int64)
        if self._upward.rows:
            rows, ends = read_groups(self._upward.rows, values, from_first(values), ALL)
            totals[np.diff(ends, prepend=0) > 0] = rows[:, -1]
        return totals

    def _find(self, groups: Numbers, keys: Rows) -> None:
        """Go to the values at the share, and note the answers."""
        places = [self._share.place(n) for n in self._n[groups].tolist()]
        goals = np.array([place for place, _ in places], np.int64)
        back = np.flatnonzero(goals < self._n_below[groups])
        n_back = (self._n_below[groups] - goals)[back]
        # Those less than x are, turned round, from ~x + 1 on.
        for which, rows in self._walk(self._downward.rows, groups, keys, back, n_back, down=True):
            group = groups[which]
            passed = np.cumsum(rows[:, -1])
            last = int(np.searchsorted(passed, self._n_below[group] - goals[which]))
            alike = self._alike(self._downward.rows, rows, last, self._turned)
            first = _first_at(rows, last, self._place)
            n_before = passed[first] - rows[first, -1]
            self._at[group] = ~rows[last, self._place]
            self._n_below[group] -= n_before + alike[:, -1].sum()
        every = np.arange(len(groups))
        # And one more, which may be the next value.
        n_forth = goals - self._n_below[groups] + 2
        for which, rows in self._walk(self._upward.rows, groups, keys, every, n_forth, down=False):
            group, goal = groups[which], goals[which]
            passed = np.cumsum(rows[:, -1]) + self._n_below[group]
            at = int(np.searchsorted(passed, goal, "right"))
            following = rows[min(at + (goal + 1 >= passed[at]), len(rows) - 1), -2]
            alike = self._alike(self._upward.rows, rows, at, self._order)
            first = _first_at(rows, at, self._place)
            self._at[group] = rows[at, self._place]
            self._n_below[group] = passed[first] - rows[first, -1]
            up_to = np.cumsum(alike[:, -1]) + self._n_below[group]
            value = alike[int(np.searchsorted(up_to, goal, "right")), -2]
            self._answers[group] = self._between(int(value), int(following), places[which][1])

    def _alike(self, batches: list[Rows], rows: Rows, which: int, order: WordOrder) -> Rows:
        """All values at the place of one row, in order, of which only some may have been read."""
        row = rows[which : which + 1]
        if (order.n_certain(row) == order.n_words).all():
            return row
        heads = np.ascontiguousarray(row[:, : self._place.stop])
        found, _ = read_groups(batches, heads, from_first(heads), ALL)
        return order.sorted(found)

    def _walk(
        self,
        batches: list[Rows],
        groups: Numbers,
        keys: Rows,
        chosen: npt.NDArray[np.intp],
        counts: Ints,
        *,
        down: bool,
    ) -> Iterator[tuple[int, Rows]]:
        """So many values of each chosen group, from where it is; those of like counts at once."""
        sizes = np.array([count.bit_length() for count in counts.tolist()], np.int64)
        for size in np.unique(sizes).tolist():
            some = chosen[sizes == size]
            starts = self._at[groups[some]]
            if down:
                starts = ~starts
                starts[:, -1] += 1
            most = int(counts[sizes == size].max())
            rows, ends = read_groups(batches, np.ascontiguousarray(keys[some]), starts, most)
            yield from zip(some.tolist(), np.split(rows, ends[:-1]), strict=True)


def _first_at(rows: Rows, which: int, place: slice) -> int:
    """The first row that is at the place of one, of rows in order."""
    first = which
    while first and (rows[first - 1, place] == rows[which, place]).all():
        first -= 1
    return first


def _is_less(one: Rows, other: Rows) -> Flags:
    """Whether each row of words is before the other one."""
    places = np.arange(len(one)), (one != other).argmax(axis=1)
    less: Flags = one[places] < other[places]
    return less
