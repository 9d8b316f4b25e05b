# cython: boundscheck=False, wraparound=False
"""Antichains: sets of pairwise incomparable elements, plain and counted.

A frontier is an antichain of times: what may still come is whatever is at or
after one of its elements. `MutableAntichain` keeps counts of times, and the
least of those with a positive count as its frontier; it says how the frontier
changed on each update, which is all that anybody downstream needs to hear.

Rules:
1. Counts may be negative for a while (a receipt can overtake the report of its
   send). A negative count is kept, never forgotten, and never in the frontier.
2. `update` returns the exact change of the frontier: the old one plus the
   changes is the new one.

Source: timely-dataflow `progress/frontier.rs`. Where Python's own `<` is a total
order that extends that of times, the counts are kept sorted by it: new times come
nearly always at the end and old ones go at the beginning. If times are totally
ordered the frontier is the first that is present, so that 10,000 outstanding times
cost what one costs. Pairs of integers, as the rounds of epochs are, have a structure of
their own, `Staircase`, for the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pointstamp.progress.staircase import Staircase
from pointstamp.progress.timestamp import Timestamp

FrontierChanges = list[tuple[Any, int]]

_SLACK = 32
"""How many places at the beginning of the sorted counts may be free before the times move there.

A free place keeps the time that was there until another one takes it.
"""


class Antichain:
    """Pairwise incomparable elements under a given `less_equal`.

    >>> from pointstamp.progress.timestamp import Int, Product
    >>> frontier = Antichain(Product(Int, Int).less_equal, [(1, 0), (0, 1), (1, 1)])
    >>> sorted(frontier)
    [(0, 1), (1, 0)]
    """

    __slots__ = ("_elements", "_less_equal")

    def __init__(self, less_equal: Callable[[Any, Any], bool], elements: Iterable[Any] = ()):
        self._less_equal = less_equal
        self._elements: list[Any] = []
        for element in elements:
            self.insert(element)

    def insert(self, element: Any) -> bool:
        """Add `element` unless one at or before it is there; whether it was added."""
        less_equal = self._less_equal
        if any(less_equal(known, element) for known in self._elements):
            return False
        self._elements = [known for known in self._elements if not less_equal(element, known)]
        self._elements.append(element)
        return True

    def less_equal(self, element: Any) -> bool:
        """Whether some element is at or before `element`."""
        return any(self._less_equal(known, element) for known in self._elements)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"Antichain({self._elements})"


class MutableAntichain:
    """Counts of times, of which the positive minimal ones are the frontier.

    >>> from pointstamp.progress.timestamp import Int
    >>> counts = MutableAntichain(Int)
    >>> counts.update(3, +1), counts.update(5, +2)
    ([(3, 1)], [])
    >>> counts.update(3, -1)
    [(3, -1), (5, 1)]
    >>> counts.frontier
    [5]
    """

    __slots__ = (
        "_counts",
        "_end",
        "_first",
        "_found",
        "_key",
        "_less_equal",
        "_natural",
        "_none",
        "_numbers",
        "_one_came",
        "_one_gone",
        "_only",
        "_pairs",
        "_staircase",
        "_times",
        "_total",
        "came",
        "frontier",
        "gone",
    )

    def __init__(self, timestamp: Timestamp, changes: Iterable[tuple[Any, int]] = ()) -> None:
        self._less_equal = timestamp.less_equal
        self._key = timestamp.key
        self._natural = bool(timestamp.natural)
        self._total = bool(timestamp.total and timestamp.natural)
        self._pairs = bool(timestamp.pairs)
        # Times that Python can sort: in order from `_first` to `_end`, each with its number.
        self._times: list[Any] = []
        self._numbers: list[int] = []
        self._first = 0
        self._end = 0
        self._found = False
        # A frontier of one time or none is one of these lists, and so is what went and what
        # came, if that is one time: making one costs too much.
        self._only: list[Any] = [None]
        self._none: list[Any] = []
        self._one_gone: list[Any] = [None]
        self._one_came: list[Any] = [None]
        # Other times.
        self._counts: dict[Any, int] = {}
        self._staircase: Staircase | None = None
        """Of pairs, unless one came that is too large for it."""
        self.frontier: list[Any] = self._none
        self.gone: list[Any] = self._none
        """What the last change took from the frontier, until the next change."""
        self.came: list[Any] = self._none
        """What the last change brought to it, until the next."""
        if self._pairs:
            self._staircase = Staircase()
            self.frontier = self._staircase.frontier
        for time, change in changes:
            self.change(time, change)

    def update(self, time: Any, change: int) -> FrontierChanges:
        """Add `change` to the count of `time`; how the frontier changed by it.

        Cost: logarithmic in the number of times if they are totally ordered or pairs,
        else linear in it when a time of the frontier goes, constant otherwise.
        """
        if not self.change(time, change):
            return []
        return [*((lost, -1) for lost in self.gone), *((new, 1) for new in self.came)]

    def change(self, time: Any, change: int) -> bool:
        """Do the same; whether the frontier changed, and `gone` and `came` say how."""
        if self._staircase is not None:
            return self._change_pair(time, change)
        if not self._natural:
            before = self._add(time, change)
            is_first = False
        else:
            place = self._find(time)
            is_first = place == self._first
            if self._found:
                before = self._numbers[place]
                if before + change:
                    self._numbers[place] = before + change
                else:
                    self._remove(place)
            else:
                before = 0
                if change:
                    self._insert(place, time, change)
        after = before + change
        if before <= 0 < after:
            return self._enter_total(time, is_first) if self._total else self._enter(time)
        if after <= 0 < before:
            return self._exit_total(time, is_first) if self._total else self._exit(time)
        return False

    def count(self, time: Any) -> int:
        """The count of `time`."""
        if not self._natural:
            return self._counts.get(time, 0)
        if self._staircase is not None:
            try:
                return self._staircase.count(time)
            except OverflowError:
                return 0
        place = self._find(time)
        return self._numbers[place] if self._found else 0

    def is_empty(self) -> bool:
        """Whether the frontier is empty (there may be negative counts)."""
        return not self.frontier

    def less_equal(self, time: Any) -> bool:
        """Whether some time of the frontier is at or before `time`."""
        if self._total:
            return self.frontier is not self._none and bool(self._only[0] <= time)
        if self._staircase is not None:
            try:
                return self._staircase.less_equal(time)
            except (OverflowError, TypeError):
                pass  # compare as Python does: it may be later than all that is counted
        for element in self.frontier:
            if self._is_before(element, time):
                return True
        return False

    def less_than(self, time: Any) -> bool:
        """Whether some time of the frontier is strictly before `time`."""
        if self._staircase is not None:
            try:
                return self._staircase.less_than(time)
            except (OverflowError, TypeError):
                pass
        for element in self.frontier:
            if element != time and self._is_before(element, time):
                return True
        return False

    def is_minimal(self, time: Any) -> bool:
        """Whether `time` is one of the frontier."""
        if self._staircase is not None:
            try:
                return self._staircase.is_minimal(time)
            except OverflowError:
                return False
        return time in self.frontier

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        if self._staircase is not None:
            return iter(self._staircase)
        if self._natural:
            places = slice(self._first, self._end)
            return iter(list(zip(self._times[places], self._numbers[places], strict=True)))
        return iter(self._counts.items())

    def __len__(self) -> int:
        return self.n_times()

    def n_times(self) -> int:
        """How many times have a count that is not zero."""
        if self._staircase is not None:
            return self._staircase.n_times
        return self._end - self._first if self._natural else len(self._counts)

    def __repr__(self) -> str:
        return f"MutableAntichain(frontier={self.frontier}, counts={dict(self)})"

    def check(self) -> None:
        """Recompute the frontier from the counts and compare; for tests."""
        counts = dict(self)
        assert len(counts) == len(self), self
        assert 0 not in counts.values(), self
        times = self._times[self._first : self._end]
        assert times == sorted(times), self
        present = [time for time, count in counts.items() if count > 0]
        wanted = Antichain(self._less_equal, sorted(present, key=self._key))
        assert sorted(wanted, key=self._key) == sorted(self.frontier, key=self._key), self
        if self._staircase is not None:
            self._staircase.check()

    def _is_before(self, a: Any, b: Any) -> bool:
        """`less_equal` of two times, without a call where we know what it does."""
        if self._total:
            return bool(a <= b)
        if self._pairs:
            # Not by index: compiled, that is not checked, and users ask with any time they like.
            a_outer, a_inner = a
            b_outer, b_inner = b
            return bool(a_outer <= b_outer and a_inner <= b_inner)
        return self._less_equal(a, b)

    # Pairs.

    def _change_pair(self, time: Any, change: int) -> bool:
        staircase = self._staircase
        assert staircase is not None
        try:
            has_changed = staircase.change(time, change)
        except OverflowError:
            self._count_as_others()
            return self.change(time, change)
        self.gone = staircase.gone
        self.came = staircase.came
        return has_changed

    def _count_as_others(self) -> None:
        """Go on without a staircase, which has no place for a time that came."""
        assert self._staircase is not None
        counts = list(self._staircase)
        self.frontier = list(self.frontier)
        self._staircase = None
        self._times = [time for time, _ in counts]
        self._numbers = [number for _, number in counts]
        self._end = len(counts)

    # Counting.

    def _add(self, time: Any, change: int) -> int:
        """Count a time that cannot be sorted; the count before."""
        counts = self._counts
        before = counts.get(time, 0)
        if before + change:
            counts[time] = before + change
        elif before:
            del counts[time]
        return before

    def _find(self, time: Any) -> int:
        """The place of `time` among the sorted ones (`_found`), or where it would be."""
        times = self._times
        low, high = self._first, self._end
        self._found = False
        middle = high - 1  # the last one first: most times are new, or the only one
        while low < high:
            other = times[middle]
            if other is time or other == time:
                self._found = True
                return middle
            if other < time:
                low = middle + 1
            else:
                high = middle
            middle = (low + high) // 2
        return low

    def _insert(self, place: int, time: Any, number: int) -> None:
        if place == self._first and place > 0:
            self._first = place = place - 1
        else:
            end = self._end
            self._end = end + 1
            if place < end or end == len(self._times):
                self._times.insert(place, time)
                self._numbers.insert(place, number)
                return
        self._times[place] = time
        self._numbers[place] = number

    def _remove(self, place: int) -> None:
        last = self._end - 1
        if place != self._first:
            del self._times[place]
            del self._numbers[place]
            self._end = last
        elif place == last:
            self._first = self._end = 0
        else:
            self._first = place + 1
            if place > _SLACK and 2 * place > last:
                self._move_down()

    def _move_down(self) -> None:
        """Give the places at the beginning, which are free, to the times after them.

        At each removal it would cost their number. Some free places stay, at the end.
        """
        times, numbers = self._times, self._numbers
        n = self._end - self._first
        times[:n] = times[self._first : self._end]
        numbers[:n] = numbers[self._first : self._end]
        del times[n + _SLACK :]
        del numbers[n + _SLACK :]
        self._first = 0
        self._end = n

    # The frontier, when a time becomes present or stops being so.

    def _enter(self, time: Any) -> bool:
        frontier = self.frontier
        if not frontier:
            self._show_only(time)
            return True
        if self.less_equal(time):
            return False
        self._note_came(time)
        self.gone = [other for other in frontier if self._is_before(time, other)]
        self.frontier = [other for other in frontier if other not in self.gone]
        self.frontier.append(time)
        return True

    def _exit(self, time: Any) -> bool:
        if time not in self.frontier:
            return False
        self._note_gone(time)
        self.came = self._none
        if len(self.frontier) == 1 and not len(self):
            self.frontier = self._none
            return True
        self.frontier = [element for element in self.frontier if element != time]
        self.came = self._uncovered(time)
        self.frontier.extend(self.came)
        return True

    def _uncovered(self, time: Any) -> list[Any]:
        """The least of the times that `time` alone kept out of the frontier."""
        freed = [
            other
            for other, count in self
            if count > 0 and self._is_before(time, other) and not self.less_equal(other)
        ]
        if len(freed) < 2:
            return freed
        return list(Antichain(self._less_equal, sorted(freed, key=self._key)))

    # The same where it has one time at most. Times are compared as seldom as can be: that
    # is what costs here.

    def _enter_total(self, time: Any, is_first: bool) -> bool:
        if not self.frontier:
            self._show_only(time)
            return True
        only = self._only
        if not is_first and not time < only[0]:
            return False
        self._note_gone(only[0])
        self._note_came(time)
        only[0] = time
        return True

    def _exit_total(self, time: Any, is_first: bool) -> bool:
        if not is_first and self._only[0] != time:
            return False
        self._note_gone(time)
        numbers = self._numbers
        place, end = self._first, self._end
        while place < end and numbers[place] <= 0:
            place += 1
        if place < end:
            self._only[0] = self._times[place]
            self._note_came(self._times[place])
        else:
            self.frontier = self._none
            self.came = self._none
        return True

    def _show_only(self, time: Any) -> None:
        """Make `time` the frontier, which was empty."""
        self._only[0] = time
        self.frontier = self._only
        self.gone = self._none
        self._note_came(time)

    def _note_gone(self, time: Any) -> None:
        self._one_gone[0] = time
        self.gone = self._one_gone

    def _note_came(self, time: Any) -> None:
        self._one_came[0] = time
        self.came = self._one_came
