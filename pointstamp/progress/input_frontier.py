# cython: boundscheck=False, wraparound=False
"""The frontier of an operator's input, as its scope delivers it and its code asks for it.

Times that are integers, or pairs of them, are counted as the numbers that a scope delivers
(`few_counts.py`), and become objects where the code wants to see them. When one comes that is too
large, all become objects, as other times are from the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.change_batch import INTEGERS, PAIRS, ChangeBatch, as_number
from pointstamp.progress.few_counts import BEYOND, FewCounts, Others
from pointstamp.progress.timestamp import Timestamp

# Compiled, numbers of C.
_INTEGERS, _PAIRS, _BEYOND = INTEGERS, PAIRS, BEYOND

_UNREAD = Others()
"""What else moves by a change of a frontier: nothing asks for that here."""


class InputFrontier:
    """Counts of times, of which the positive minimal ones are what may still come.

    >>> from pointstamp.progress.change_batch import ChangeBatch
    >>> from pointstamp.progress.timestamp import Int
    >>> frontier = InputFrontier(Int, [(3, 1)])
    >>> frontier.take(ChangeBatch([(3, -1), (5, 1)]))
    >>> frontier.frontier, frontier.less_equal(5), frontier.less_than(5)
    ([5], True, False)
    """

    __slots__ = ("_counts", "_few", "_inner", "_outer", "_pairs", "_timestamp")

    def __init__(self, timestamp: Timestamp, changes: Iterable[tuple[Any, int]] = ()) -> None:
        self._timestamp = timestamp
        self._pairs = bool(timestamp.pairs)
        self._outer = 0
        self._inner = 0
        """The time that was read last, as numbers."""
        self._few: FewCounts | None = None
        self._counts: MutableAntichain | None = None
        """One of the two is None."""
        if timestamp.natural and (timestamp.pairs or timestamp.integers):
            self._few = FewCounts(timestamp, _UNREAD)
        else:
            self._counts = MutableAntichain(timestamp)
        for time, change in changes:
            self.change(time, change)

    @property
    def frontier(self) -> list[Any]:
        """The minimal times that may still come."""
        return self.elements()

    def elements(self) -> list[Any]:
        """The same; see `FewCounts.elements`."""
        if self._few is not None:
            return self._few.elements()
        assert self._counts is not None
        return list(self._counts.frontier)

    def take(self, batch: ChangeBatch) -> None:
        """Add the changes of a batch, which is empty then."""
        few = self._few
        n = batch.n_numbers()
        if few is not None and n > 0 and batch.kind == (_PAIRS if self._pairs else _INTEGERS):
            for place in range(n):
                at = 3 * place
                few.change(batch.entries[at], batch.entries[at + 1], batch.entries[at + 2])
        else:
            for place in range(batch.gather()):
                self.change(batch.items[place], batch.changes[place])
        batch.clear()

    def change(self, time: Any, change: int) -> None:
        """Add `change` to the count of `time`."""
        if self._few is not None:
            if self._reads(time):
                self._few.change(self._outer, self._inner, change)
                return
            self._counts = MutableAntichain(self._timestamp, self._few)
            self._few = None
        assert self._counts is not None
        self._counts.change(time, change)

    def less_equal(self, time: Any) -> bool:
        """Whether `time`, or one before it, may still come."""
        if self._few is not None and self._reads(time):
            return self._few.less_equal(self._outer, self._inner)
        counts = self._as_objects()
        try:
            return counts.less_equal(time)
        except (TypeError, ValueError):
            self._timestamp.check(time)  # what it does not compare is most often no time
            raise

    def less_than(self, time: Any) -> bool:
        """Whether a time strictly before `time` may still come."""
        if self._few is not None and self._reads(time):
            return self._few.less_than(self._outer, self._inner)
        counts = self._as_objects()
        try:
            return counts.less_than(time)
        except (TypeError, ValueError):
            self._timestamp.check(time)  # what it does not compare is most often no time
            raise

    def less_than_number(self, number: int) -> bool:
        """`less_than` of an integer of 64 bits, where times are integers: without an object."""
        if self._few is not None and -_BEYOND < number < _BEYOND:
            return self._few.less_than(0, number)
        return self._as_objects().less_than(number)

    def is_empty(self) -> bool:
        """Whether nothing more comes."""
        return not self.frontier

    def check(self) -> None:
        """Verify what each method relies on; for tests."""
        assert (self._few is None) != (self._counts is None)
        counts: Any = self._few if self._counts is None else self._counts
        counts.check()

    def __repr__(self) -> str:
        return f"InputFrontier({self.frontier})"

    def _as_objects(self) -> MutableAntichain:
        """What compares times as Python does: users ask for any."""
        if self._counts is not None:
            return self._counts
        return MutableAntichain(self._timestamp, [(time, 1) for time in self.frontier])

    def _reads(self, time: Any) -> bool:
        """Whether `time` is of numbers that are not too large; it is in the two."""
        if not self._pairs:
            if type(time) is not int:
                return False
            self._inner = as_number(time)
        elif type(time) is tuple and len(time) == 2:
            first, second = time
            if type(first) is not int or type(second) is not int:
                return False
            self._outer = as_number(first)
            self._inner = as_number(second)
        else:
            return False
        return self._outer < _BEYOND and self._inner < _BEYOND
