"""Items of sorted lists in which an item may be several times: where they are, and in which both.

The lists are slices of one array each, of a pool: of the edges of a graph, those of one vertex in
the order of their other ends, where parallel edges follow each other.
"""

from __future__ import annotations

import numpy as np

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Ints, Numbers, starts_of


@kernel("join_loops")
def equal_ranges(
    pool: Ints, begins: Ints, ends: Ints, wanted: Ints, marks: Numbers
) -> tuple[Ints, Ints]:
    """Where in its list each wanted item begins and ends; an empty span where it is not there.

    pool : int64[any] · begins, ends : int64[n]; list i is `pool[begins[i]:ends[i]]`, sorted, of
      items from 0
    wanted : int64[n] · returns int64[n] twice, positions in the pool
    marks : int32[d], all 0, and again on return; one for each item that may be
    Cost: for each, the logarithm of the length of its list; a read of a mark where as many that
    follow each other have the same list.

    >>> pool, marks = np.array([3, 5, 5, 8, 1, 5]), np.zeros(9, np.int32)
    >>> spans = equal_ranges(pool, np.array([0, 4]), np.array([4, 6]), np.array([5, 5]), marks)
    >>> [bounds.tolist() for bounds in spans]
    [[1, 5], [3, 6]]
    """
    return _bounds(pool, begins, ends, wanted), _bounds(pool, begins, ends, wanted, "right")


def _bounds(pool: Ints, begins: Ints, ends: Ints, wanted: Ints, side: str = "left") -> Ints:
    low, high = begins.copy(), ends.copy()
    while len(open_ones := np.flatnonzero(low < high)):
        middle = (low[open_ones] + high[open_ones]) >> 1
        items, limits = pool[middle], wanted[open_ones]
        is_before = items < limits if side == "left" else items <= limits
        low[open_ones[is_before]] = middle[is_before] + 1
        high[open_ones[~is_before]] = middle[~is_before]
    return low


@kernel("join_loops")
def common_items(
    pool: Ints,
    begins: Ints,
    ends: Ints,
    other_pool: Ints,
    other_begins: Ints,
    other_ends: Ints,
    marks: Numbers,
    marked: Ints,
    at: int,
    resume: int,
    budget: int,
    counting: bool,
    of: Ints,
    positions: Ints,
    firsts: Ints,
    lasts: Ints,
) -> tuple[int, int, int]:
    """What is in both lists of each of n pairs, from a cursor on, until the room is used up.

    pool, other_pool : int64[any] · begins, ends, other_begins, other_ends : int64[n]; the lists of
      pair i are `pool[begins[i]:ends[i]]` and `other_pool[other_begins[i]:other_ends[i]]`, sorted,
      of items from 0
    marks : int32[d], one for each item that may be; all 0 at first, and again at the end
    marked : int64[2], where the other list begins and ends that has marks, which the next call
      finds so; both 0 at first, and again at the end
    at, resume : the cursor: the first pair, and from which position on in its first list (-1 at
      the beginning)
    budget : about how many items of first lists may be read before the call returns
    counting : only count each item of a first list with each that is like it in the other
    of, positions, firsts, lasts : int64[room], room > 0 unless counting; filled with, for each item
      of a first list that is in the other: the pair, the position in `pool`, and where its like
      begin and end in `other_pool`
    returns (m, at, resume): how many were found, and the cursor to go on from; at = n at the end
    Cost: for each item of the first list, the logarithm of how far the next is in the other; where
    pairs that follow each other have the same other list, and together as many items as it has,
    a read of a mark.

    >>> pool, other = np.array([1, 4, 4, 9]), np.array([4, 4, 7, 9])
    >>> whole = np.array([0]), np.array([4])
    >>> of, positions, firsts, lasts = np.zeros((4, 3), np.int64)
    >>> room = of, positions, firsts, lasts
    >>> marks = np.zeros(10, np.int32), np.zeros(2, np.int64)
    >>> common_items(pool, *whole, other, *whole, *marks, 0, -1, 100, False, *room)
    (3, 1, -1)
    >>> positions.tolist(), firsts.tolist(), lasts.tolist()
    ([1, 2, 3], [0, 0, 3], [2, 2, 4])
    >>> common_items(pool, *whole, other, *whole, *marks, 0, -1, 100, True, *room)
    (5, 1, -1)
    """
    found, n = 0, len(begins)
    while at < n and budget > 0:
        from_here = begins[at:].copy()
        from_here[0] = max(from_here[0], resume)
        before = starts_of(ends[at:] - from_here)
        k = max(1, int(np.searchsorted(before, _TOGETHER, "right")) - 1)
        budget -= max(k, int(before[k]))
        pairs = np.repeat(np.arange(at, at + k), np.diff(before[: k + 1]))
        mine = (from_here - before[:-1])[pairs - at] + np.arange(len(pairs))
        others = other_begins[pairs], other_ends[pairs]
        low, high = (_bounds(other_pool, *others, pool[mine], side) for side in ("left", "right"))
        hits = np.flatnonzero(low < high)
        at, resume = at + k, -1
        if counting:
            found += int((high - low).sum())
            continue
        room = len(of) - found
        filled = slice(found, found + len(hits[:room]))
        for column, values in ((of, pairs), (positions, mine), (firsts, low), (lasts, high)):
            column[filled] = values[hits[:room]]
        found = filled.stop
        if len(hits) > room:
            return found, int(pairs[hits[room]]), int(mine[hits[room]])
    return found, at, resume


_TOGETHER = 1 << 16
"""Pairs with so many items in their first lists are looked at together by the plain form."""
