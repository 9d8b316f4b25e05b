"""Antichains: sets of pairwise incomparable elements, plain and counted.

A frontier is an antichain of times: what may still come is whatever is at or
after one of its elements. `MutableAntichain` keeps counts of times, and the
least of those with a positive count as its frontier; it says how the frontier
changed on each update, which is all that anybody downstream needs to hear.

Rules:
1. Counts may be negative for a while (a receipt can overtake the news of its
   send). A negative count is kept, never forgotten, and never in the frontier.
2. `update` returns the exact change of the frontier: the old one plus the
   changes is the new one.

Source: timely-dataflow `progress/frontier.rs`. Where times are totally ordered
the frontier is one time, found by a heap with lazy deletion, so that 10,000
outstanding times cost a logarithm and not a scan.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pointstamp.progress.timestamp import Timestamp

FrontierChanges = list[tuple[Any, int]]
_NOTHING: FrontierChanges = []


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

    __slots__ = ("_counts", "_heap", "_in_heap", "_key", "_less_equal", "_total", "frontier")

    def __init__(self, timestamp: Timestamp, changes: Iterable[tuple[Any, int]] = ()) -> None:
        self._less_equal = timestamp.less_equal
        self._key = timestamp.key
        # The heap compares times themselves, so it needs a total order by Python's `<`.
        self._total = bool(timestamp.total and timestamp.natural)
        self._counts: dict[Any, int] = {}
        self._heap: list[Any] = []
        self._in_heap: set[Any] = set()
        self.frontier: list[Any] = []
        for time, change in changes:
            self.update(time, change)

    def update(self, time: Any, change: int) -> FrontierChanges:
        """Add `change` to the count of `time`; how the frontier changed by it.

        Cost: logarithmic in the number of times if they are totally ordered,
        else linear in it when a time of the frontier goes, constant otherwise.
        """
        counts = self._counts
        before = counts.get(time, 0)
        after = before + change
        if after:
            counts[time] = after
        else:
            counts.pop(time, None)
        if before <= 0 < after:
            return self._enter_total(time) if self._total else self._enter(time)
        if after <= 0 < before:
            return self._exit_total(time) if self._total else self._exit(time)
        return _NOTHING

    def count(self, time: Any) -> int:
        """The count of `time`."""
        return self._counts.get(time, 0)

    def is_empty(self) -> bool:
        """Whether the frontier is empty (there may be negative counts)."""
        return not self.frontier

    def less_equal(self, time: Any) -> bool:
        """Whether some time of the frontier is at or before `time`."""
        if self._total:
            return bool(self.frontier) and bool(self.frontier[0] <= time)
        return any(self._less_equal(element, time) for element in self.frontier)

    def less_than(self, time: Any) -> bool:
        """Whether some time of the frontier is strictly before `time`."""
        return any(element != time and self._less_equal(element, time) for element in self.frontier)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self._counts.items())

    def __len__(self) -> int:
        """How many times have a count that is not zero."""
        return len(self._counts)

    def __repr__(self) -> str:
        return f"MutableAntichain(frontier={self.frontier}, counts={self._counts})"

    def check(self) -> None:
        """Recompute the frontier from the counts and compare; for tests."""
        present = [time for time, count in self._counts.items() if count > 0]
        wanted = Antichain(self._less_equal, sorted(present, key=self._key))
        assert 0 not in self._counts.values(), self
        assert sorted(wanted, key=self._key) == sorted(self.frontier, key=self._key), self

    def _enter_total(self, time: Any) -> FrontierChanges:
        if time not in self._in_heap:
            self._in_heap.add(time)
            heapq.heappush(self._heap, time)
            if len(self._heap) > 2 * len(self._counts) + 64:
                # Times that came and went behind the frontier; amortized constant.
                self._heap = [kept for kept, count in self._counts.items() if count > 0]
                heapq.heapify(self._heap)
                self._in_heap = set(self._heap)
        if not self.frontier:
            self.frontier = [time]
            return [(time, 1)]
        least = self.frontier[0]
        if least < time:
            return _NOTHING
        self.frontier = [time]
        return [(least, -1), (time, 1)]

    def _exit_total(self, time: Any) -> FrontierChanges:
        if time != self.frontier[0]:
            return _NOTHING
        heap, counts = self._heap, self._counts
        while heap and counts.get(heap[0], 0) <= 0:
            self._in_heap.discard(heapq.heappop(heap))
        if not heap:
            self.frontier = []
            return [(time, -1)]
        self.frontier = [heap[0]]
        return [(time, -1), (heap[0], 1)]

    def _enter(self, time: Any) -> FrontierChanges:
        less_equal = self._less_equal
        if any(less_equal(element, time) for element in self.frontier):
            return _NOTHING
        covered = [element for element in self.frontier if less_equal(time, element)]
        self.frontier = [element for element in self.frontier if element not in covered]
        self.frontier.append(time)
        return [*((element, -1) for element in covered), (time, 1)]

    def _exit(self, time: Any) -> FrontierChanges:
        if time not in self.frontier:
            return _NOTHING
        less_equal = self._less_equal
        self.frontier = [element for element in self.frontier if element != time]
        # Only times after `time` were covered by it alone.
        freed = [
            other
            for other, count in self._counts.items()
            if count > 0 and less_equal(time, other) and not self.less_equal(other)
        ]
        uncovered = Antichain(less_equal, sorted(freed, key=self._key))
        self.frontier.extend(uncovered)
        return [(time, -1), *((element, 1) for element in uncovered)]
