# cython: boundscheck=False, wraparound=False
"""Counts of pairs of integers, of which the positive minimal ones are the frontier.

Of rounds in epochs there may be thousands that no other is before, and a loop moves one of
them on at a time. So what a change costs must not grow with how many there are, neither with
those of the frontier nor with those that it covers.

Theory of operation
-------------------
Sorted as Python sorts pairs, minimal ones have rising first coordinates and falling second
ones: they are the corners of a staircase. Whether a pair is covered is seen at one of them, the
last at or before it. A pair that comes takes the place of those that follow it and are not below
it; where one goes, those it covered alone lie between the one before and the one after it.

To find these, all counted pairs are kept in order, in blocks. Each block knows a bound below
the second coordinates of its pairs, so that most are passed over at a glance. The bound is not
raised when a pair goes, but when the block is looked through the next time: so a look that finds
nothing is paid for by what went.

Rules
-----
1. A pair has a count that is not zero, or is not there.
2. No coordinate is `BEYOND` or more: that is an `OverflowError`, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Pair = tuple[int, int]

_WIDTH = 32
"""How many pairs a block has after it was split."""

BEYOND = 2**62
"""More than any coordinate may be."""

_BEYOND = BEYOND  # compiled, a number of C


class _Block:
    """Some pairs that follow each other, each with its count."""

    __slots__ = ("least", "numbers", "times")

    def __init__(self, times: list[Pair], numbers: list[int], least: int) -> None:
        self.times = times
        self.numbers = numbers
        self.least = least
        """No pair with a positive count has a lesser second coordinate."""


class Staircase:
    """Counts of pairs of integers, and their frontier.

    >>> counts = Staircase()
    >>> counts.change((0, 4), 1), counts.change((2, 1), 1), counts.change((2, 5), 1)
    (True, True, False)
    >>> counts.frontier
    [(0, 4), (2, 1)]
    >>> counts.change((2, 1), -1), counts.gone, counts.came
    (True, [(2, 1)], [])
    >>> counts.change((0, 4), -1), counts.gone, counts.came
    (True, [(0, 4)], [(2, 5)])
    """

    __slots__ = (
        "_blocks",
        "_none",
        "_one_came",
        "_one_gone",
        "came",
        "frontier",
        "gone",
        "n_times",
    )

    def __init__(self) -> None:
        self._blocks = [_Block([], [], _BEYOND)]
        self.n_times = 0
        self.frontier: list[Pair] = []
        """In order; always the same list."""
        self._none: list[Pair] = []
        # Most changes are of one: making a list for it costs too much.
        self._one_gone: list[Any] = [None]
        self._one_came: list[Any] = [None]
        self.gone: list[Pair] = self._none
        """What the last change took from the frontier, until the next change."""
        self.came: list[Pair] = self._none
        """What the last change brought to it, until the next."""

    def change(self, time: Pair, change: int) -> bool:
        """Add `change` to the count of `time`; whether the frontier changed.

        Cost: logarithmic, but for a look at each block (of some dozens of pairs) that `time`
        covered when it goes.
        """
        outer, inner = time
        if outer >= _BEYOND or inner >= _BEYOND:
            raise OverflowError(f"{time} has a coordinate that is too large to be counted here")
        if type(time) is not tuple:
            time = (outer, inner)
        at = self._block_of(outer, inner)
        block = self._blocks[at]
        place = _places_before(block.times, outer, inner)
        before = 0
        is_there = place < len(block.times) and _is(block.times[place], outer, inner)
        if is_there:
            before = block.numbers[place]
        after = before + change
        if after > 0 and inner < block.least:
            block.least = inner
        if is_there:
            if after:
                block.numbers[place] = after
            else:
                self._remove(at, place)
        elif after:
            self._insert(at, place, time, after)
        if before <= 0 < after:
            return self._enter(time, outer, inner)
        if after <= 0 < before:
            return self._exit(time, outer, inner)
        return False

    def count(self, time: Pair) -> int:
        """The count of `time`."""
        outer, inner = time
        block = self._blocks[self._block_of(outer, inner)]
        place = _places_before(block.times, outer, inner)
        if place < len(block.times) and _is(block.times[place], outer, inner):
            return block.numbers[place]
        return 0

    def less_equal(self, time: Pair) -> bool:
        """Whether some time of the frontier is at or before `time`."""
        outer, inner = time
        return self._covers(_places_to(self.frontier, outer, inner), inner)

    def less_than(self, time: Pair) -> bool:
        """Whether some time of the frontier is strictly before `time`."""
        outer, inner = time
        places = _places_to(self.frontier, outer, inner)
        # No other is before one of the frontier.
        return self._covers(places, inner) and not _is(self.frontier[places - 1], outer, inner)

    def is_minimal(self, time: Pair) -> bool:
        """Whether `time` is one of the frontier."""
        outer, inner = time
        places = _places_to(self.frontier, outer, inner)
        return places > 0 and _is(self.frontier[places - 1], outer, inner)

    def __iter__(self) -> Iterator[tuple[Pair, int]]:
        pairs: list[tuple[Pair, int]] = []
        for block in self._blocks:
            pairs.extend(zip(block.times, block.numbers, strict=True))
        return iter(pairs)

    def check(self) -> None:
        """Verify what each method relies on; for tests."""
        times = [time for time, _ in self]
        assert times == sorted(set(times)), times
        assert len(times) == self.n_times, (self.n_times, times)
        for block in self._blocks:
            counted = list(zip(block.times, block.numbers, strict=True))
            assert all(block.least <= time[1] for time, n in counted if n > 0), counted
            assert len(self._blocks) == 1 or 0 < len(counted) <= 2 * _WIDTH, counted
        assert self.frontier == sorted(self.frontier), self.frontier

    # Counting.

    def _block_of(self, outer: int, inner: int) -> int:
        """The last block that does not begin after (outer, inner), or else the first."""
        blocks = self._blocks
        low, high = 0, len(blocks) - 1
        while low < high:
            middle = (low + high + 1) // 2
            block = blocks[middle]
            if _is_after(block.times[0], outer, inner):
                high = middle - 1
            else:
                low = middle
        return low

    def _insert(self, at: int, place: int, time: Pair, number: int) -> None:
        self.n_times += 1
        block = self._blocks[at]
        times, numbers = block.times, block.numbers
        times.insert(place, time)
        numbers.insert(place, number)
        if len(times) > 2 * _WIDTH:
            self._blocks.insert(at + 1, _Block(times[_WIDTH:], numbers[_WIDTH:], block.least))
            del times[_WIDTH:]
            del numbers[_WIDTH:]

    def _remove(self, at: int, place: int) -> None:
        self.n_times -= 1
        block = self._blocks[at]
        del block.times[place]
        del block.numbers[place]
        if not block.times:
            block.least = _BEYOND
            if len(self._blocks) > 1:
                del self._blocks[at]

    # The frontier, when a time becomes present or stops being so.

    def _covers(self, places: int, inner: int) -> bool:
        """Whether the last of so many places is not above `inner`."""
        return places > 0 and _inner(self.frontier[places - 1]) <= inner

    def _enter(self, time: Pair, outer: int, inner: int) -> bool:
        frontier = self.frontier
        place = _places_to(frontier, outer, inner)
        if self._covers(place, inner):
            return False
        end = place
        while end < len(frontier) and _inner(frontier[end]) >= inner:
            end += 1
        if end == place:
            self.gone = self._none
            frontier.insert(place, time)
        else:
            if end == place + 1:
                self._one_gone[0] = frontier[place]
                self.gone = self._one_gone
            else:
                self.gone = frontier[place:end]
                del frontier[place + 1 : end]
            frontier[place] = time
        self._one_came[0] = time
        self.came = self._one_came
        return True

    def _exit(self, time: Pair, outer: int, inner: int) -> bool:
        frontier = self.frontier
        place = _places_to(frontier, outer, inner) - 1
        if place < 0 or not _is(frontier[place], outer, inner):
            return False
        below, until = _BEYOND, _BEYOND
        if place > 0:
            below = _inner(frontier[place - 1])
        if place + 1 < len(frontier):
            until = _outer(frontier[place + 1])
        freed = self._uncovered(outer, inner, below, until)
        if len(freed) == 1:
            frontier[place] = freed[0]
        else:
            frontier[place : place + 1] = freed
        self._one_gone[0] = time
        self.gone = self._one_gone
        self.came = freed
        return True

    def _uncovered(self, outer: int, inner: int, below: int, until: int) -> list[Pair]:
        """The least of the times that (outer, inner) alone kept out of the frontier.

        They have second coordinates below `below`, that of the time before it in the frontier,
        and first ones below `until`, that of the one after it. What comes before
        (outer, inner) is not below `below`.
        """
        found: list[Pair] = []
        blocks = self._blocks
        at = self._block_of(outer, inner)
        while at < len(blocks) and below > inner:
            block = blocks[at]
            if block.least < below:
                if _outer(block.times[0]) >= until:
                    break
                below = _look_through(block, inner, below, until, found)
            at += 1
        return found


def _look_through(block: _Block, inner: int, below: int, until: int, found: list[Pair]) -> int:
    """Add what is uncovered in a block to `found`; below what it has to be from there on."""
    times, numbers = block.times, block.numbers
    least = _BEYOND
    for place in range(len(times)):
        number = numbers[place]
        if number <= 0:
            continue
        other = times[place]
        other_inner = _inner(other)
        if other_inner < least:
            least = other_inner
        if other_inner < below and _outer(other) < until:
            found.append(other)
            below = other_inner
            if below <= inner:
                return below  # nothing is lower; the bound stays as it was
    block.least = least
    return below


def _places_before(times: list[Pair], outer: int, inner: int) -> int:
    """How many of the sorted `times` come before (outer, inner)."""
    low, high = 0, len(times)
    middle = high - 1  # the last one first: most times are new, or the only one
    while low < high:
        if _is_before(times[middle], outer, inner):
            low = middle + 1
        else:
            high = middle
        middle = (low + high) // 2
    return low


def _places_to(times: list[Pair], outer: int, inner: int) -> int:
    """How many of the sorted `times` come before (outer, inner), or are it."""
    low, high = 0, len(times)
    middle = high - 1
    while low < high:
        if _is_after(times[middle], outer, inner):
            high = middle
        else:
            low = middle + 1
        middle = (low + high) // 2
    return low


# Of a pair that is kept here, which is a tuple of two: compiled, no index is checked.


def _is_before(time: Pair, outer: int, inner: int) -> bool:
    own = time[0]
    return own < outer or (own == outer and _inner(time) < inner)


def _is_after(time: Pair, outer: int, inner: int) -> bool:
    own = time[0]
    return own > outer or (own == outer and _inner(time) > inner)


def _is(time: Pair, outer: int, inner: int) -> bool:
    return _inner(time) == inner and _outer(time) == outer


def _outer(time: Pair) -> int:
    return time[0]


def _inner(time: Pair) -> int:
    return time[1]
