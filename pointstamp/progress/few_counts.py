# cython: boundscheck=False, wraparound=False
"""Counts of a few times that are numbers, of which the positive minimal ones are the frontier.

What `MutableAntichain` is for any times, for those that nearly all are: an integer, or a pair of
them (a round in an epoch). A place of a dataflow seldom has counts of more than two at once. So
they are kept as numbers, in order, inside of the object: no list, no comparison of objects. An
integer is a pair whose first number is 0, which orders it as it is.

Rules
-----
1. Both numbers are between `-BEYOND` and `BEYOND`: the caller sees to it.
2. More than a few times are left to a `MutableAntichain`, `many`, until few are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.timestamp import Timestamp

BEYOND = 2**61
"""More than any number may be: the sum of two of them is of 64 bits, too."""

_BEYOND = BEYOND  # compiled, a number of C

_FEW = 6
_FEWER = 3
"""When so many are left of many, they are few again: not at once, or it would be to and fro."""


class Others:
    """The other times that left a frontier, or joined it, by one change.

    One for all counts of a tracker, which reads them after each change: to keep room for them
    at each place would be a third of its memory.
    """

    __slots__ = ("inners", "n", "outers")

    def __init__(self) -> None:
        self.n = 0
        """How many they are."""
        self.outers = [0, 0, 0, 0, 0, 0]
        self.inners = [0, 0, 0, 0, 0, 0]


class FewCounts:
    """Counts of times, and their frontier.

    >>> from pointstamp.progress.timestamp import Int, Product
    >>> counts = FewCounts(Product(Int, Int))
    >>> counts.change(0, 4, 1), counts.change(2, 1, 1), counts.change(2, 5, 1)
    (1, 1, 0)
    >>> counts.frontier
    [(0, 4), (2, 1)]
    >>> counts.change(0, 4, -1), counts.frontier, counts.others.n
    (-1, [(2, 1)], 0)
    >>> counts.change(2, 1, -1), counts.frontier, counts.others.n
    (-1, [(2, 5)], 1)
    """

    __slots__ = (
        "_entries",
        "_n",
        "_pairs",
        "_timestamp",
        "many",
        "others",
    )

    def __init__(self, timestamp: Timestamp, others: Others | None = None) -> None:
        self._timestamp = timestamp
        self._pairs = bool(timestamp.pairs)
        self._n = 0
        """How many times there are; less than 0 if `many` counts them."""
        self._entries = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        """Of each time three numbers that follow each other: the time, and its count."""
        self.others: Others = Others() if others is None else others
        """What other times left the frontier, or joined it, by the last change that moved it: until
        the next change of any counts that have the same."""
        self.many: MutableAntichain | None = None
        """What counts all of them, if there are many."""

    def change(self, outer: int, inner: int, change: int) -> int:
        """Add `change` to the count of a time; how the frontier moved by it.

        Returns 1 if the time came into the frontier, from which `others.n` others went; -1 if it
        went, and others came; else 0. Which, is in `others`, or where there are many in `gone`
        and `came` of `many`, until the next change.
        """
        # Mostly there is no time at a place, or this one alone: then nothing else moves by it.
        before = 0
        if self._n == 1:
            if self._entries[0] != outer or self._entries[1] != inner:
                return self._change_among(outer, inner, change)
            before = self._entries[2]
        elif self._n:
            return self._change_among(outer, inner, change)
        after = before + change
        self._entries[0] = outer
        self._entries[1] = inner
        self._entries[2] = after
        self._n = 1 if after else 0
        self.others.n = 0
        return (1 if after > 0 else 0) - (1 if before > 0 else 0)

    def _change_among(self, outer: int, inner: int, change: int) -> int:
        """The same, where there are others."""
        if self._n < 0:
            if self._counted().n_times() > _FEWER:
                return self._change_many(outer, inner, change)
            self._make_few()
        n = self._n
        place = n
        while place > 0 and (
            self._entries[3 * place - 3] > outer
            or (self._entries[3 * place - 3] == outer and self._entries[3 * place - 2] >= inner)
        ):
            place -= 1
        before = 0
        end = place
        if (
            place < n
            and self._entries[3 * place] == outer
            and self._entries[3 * place + 1] == inner
        ):
            before = self._entries[3 * place + 2]
            if before + change:
                self._entries[3 * place + 2] = before + change
                end = place + 1
            else:
                self._remove(place)
        elif change:
            if n == _FEW:
                self._make_many()
                return self._change_many(outer, inner, change)
            self._insert(place, outer, inner, change)
            end = place + 1
        after = before + change
        if (before > 0) == (after > 0):
            return 0
        below = _BEYOND
        for other in range(place):
            if self._entries[3 * other + 2] > 0 and self._entries[3 * other + 1] < below:
                below = self._entries[3 * other + 1]
        if below <= inner:
            return 0
        # What comes after it, is not below it, and nothing else is before: it was in the
        # frontier, or is from now on.
        n_others = 0
        for other in range(end, self._n):
            if self._entries[3 * other + 2] > 0 and self._entries[3 * other + 1] < below:
                below = self._entries[3 * other + 1]
                if below < inner:
                    break
                self.others.outers[n_others] = self._entries[3 * other]
                self.others.inners[n_others] = below
                n_others += 1
        self.others.n = n_others
        return 1 if after > 0 else -1

    def count(self, outer: int, inner: int) -> int:
        """The count of a time."""
        if self._n < 0:
            return self._counted().count(self._time(outer, inner))
        for place in range(self._n):
            if self._entries[3 * place] == outer and self._entries[3 * place + 1] == inner:
                return self._entries[3 * place + 2]
        return 0

    def less_equal(self, outer: int, inner: int) -> bool:
        """Whether some time of the frontier is at or before this one."""
        if self._n < 0:
            return self._counted().less_equal(self._time(outer, inner))
        for place in range(self._n):
            if (
                self._entries[3 * place + 2] > 0
                and self._entries[3 * place] <= outer
                and self._entries[3 * place + 1] <= inner
            ):
                return True
        return False

    def less_than(self, outer: int, inner: int) -> bool:
        """Whether some time of the frontier is strictly before this one."""
        if self._n < 0:
            return self._counted().less_than(self._time(outer, inner))
        for place in range(self._n):
            if (
                self._entries[3 * place + 2] > 0
                and self._entries[3 * place] <= outer
                and self._entries[3 * place + 1] <= inner
                and (self._entries[3 * place] != outer or self._entries[3 * place + 1] != inner)
            ):
                return True
        return False

    @property
    def frontier(self) -> list[Any]:
        """The minimal times with a positive count, in order."""
        return self.elements()

    def elements(self) -> list[Any]:
        """The same; compiled, what is known to be of this class gives it without a look-up."""
        if self.many is not None:
            return list(self.many.frontier)
        found = []
        below = _BEYOND
        for place in range(self._n):
            if self._entries[3 * place + 2] > 0 and self._entries[3 * place + 1] < below:
                below = self._entries[3 * place + 1]
                found.append(self._time(self._entries[3 * place], below))
        return found

    def n_times(self) -> int:
        """How many times have a count that is not zero."""
        return self._counted().n_times() if self._n < 0 else self._n

    def __len__(self) -> int:
        return self.n_times()

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        if self.many is not None:
            return iter(self.many)
        found = []
        for place in range(self._n):
            time = self._time(self._entries[3 * place], self._entries[3 * place + 1])
            found.append((time, self._entries[3 * place + 2]))
        return iter(found)

    def check(self) -> None:
        """Verify what each method relies on; for tests."""
        counts = list(self)
        times = [time for time, _ in counts]
        assert times == sorted(set(times)), counts
        assert all(number for _, number in counts), counts
        expected = MutableAntichain(self._timestamp, counts)
        assert sorted(expected.frontier) == sorted(self.frontier), counts
        if self.many is not None:
            self.many.check()

    def _counted(self) -> MutableAntichain:
        """What counts the times, where there are many."""
        assert self.many is not None
        return self.many

    def _time(self, outer: int, inner: int) -> Any:
        if self._pairs:
            return (outer, inner)
        return inner

    def _insert(self, place: int, outer: int, inner: int, number: int) -> None:
        at = 3 * place
        for to in range(3 * self._n - 1, at - 1, -1):
            self._entries[to + 3] = self._entries[to]
        self._n += 1
        self._entries[at] = outer
        self._entries[at + 1] = inner
        self._entries[at + 2] = number

    def _remove(self, place: int) -> None:
        self._n -= 1
        for to in range(3 * place, 3 * self._n):
            self._entries[to] = self._entries[to + 3]

    # Many times.

    def _change_many(self, outer: int, inner: int, change: int) -> int:
        many = self._counted()
        time = self._time(outer, inner)
        if not many.change(time, change):
            return 0
        self.others.n = len(many.gone) + len(many.came) - 1
        return 1 if time in many.came else -1

    def _make_many(self) -> None:
        many = MutableAntichain(self._timestamp)
        for time, number in self:
            many.change(time, number)
        self._n = -1
        self.many = many

    def _make_few(self) -> None:
        counts = list(self._counted())
        self.many = None
        self._n = 0
        for time, number in counts:
            outer = 0
            inner = 0
            if self._pairs:
                outer, inner = time
            else:
                inner = time
            self._insert(self._n, outer, inner, number)
