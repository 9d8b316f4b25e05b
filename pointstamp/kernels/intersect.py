"""Intersections of sorted lists, many at once and cut off where the caller says.

This is where a join spends its time. Each of n prefixes comes with k sorted
lists, slices of two pools; what is in all k of its lists extends it. The work is
that of the shortest list of each prefix, up to a logarithm, which is what makes
the join worst-case optimal.

Items are numbers from 0, int32, so that each can have a mark and a list is short in
memory; whose numbers they are is the caller's to know.

Theory of operation. For each prefix one list is read from end to end and the
others are asked. There are three ways to ask:

- *marks*: a byte per vertex, a bit per list. Prefixes that share a list usually
  follow each other (they were extended from the same one), so such a list is
  marked once, and each question then costs one read. This was three times as
  fast as merging on R-MAT graphs ordered by degree. It needs ids that lie close
  together, and is used only where the questions outnumber the marks.
- *galloping*, where the asked list is much the longer one;
- *merging* otherwise.

Results of a prefix come in ascending order whichever way was taken, so the
cursor at which a cut-off call is resumed is a prefix and a value, and not a
position in one of the lists.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.jit import kernel

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Pools = npt.NDArray[np.int8]
Marks = npt.NDArray[np.uint8]

FIRST = int(np.iinfo(np.int64).min)
"""The cursor's value at the beginning of a prefix: below every vertex."""

_LONGER = 8
"""A list this many times longer than the other is galloped through, not read."""


def _extend_plain(
    forward: Numbers,
    reverse: Numbers,
    carried: Numbers,
    pool_of: Pools,
    begins: Ints,
    ends: Ints,
    bound: Numbers,
    marks: Marks,
    at: int,
    resume: int,
    budget: int,
    counting: bool,
    parents: Ints,
    found: Numbers,
) -> tuple[int, int, int]:
    n_found = 0
    n = begins.shape[1]
    while at < n and budget > 0 and (counting or n_found < len(found)):
        lists = [
            (forward, reverse, carried)[pool_of[j]][begins[j, at] : ends[j, at]]
            for j in np.flatnonzero(ends[:, at] >= 0)
        ]
        lists.sort(key=len)
        common = lists[0][np.searchsorted(lists[0], resume) :]
        budget -= 1 + len(common)
        for other in lists[1:]:
            common = common[np.isin(common, other, assume_unique=True)]
        common = common[~np.isin(common, bound[:, at])]
        if counting:
            n_found += len(common)
        else:
            taken = common[: len(found) - n_found]
            parents[n_found : n_found + len(taken)] = at
            found[n_found : n_found + len(taken)] = taken
            n_found += len(taken)
            if len(taken) < len(common):
                return n_found, at, int(common[len(taken)])
        at, resume = at + 1, FIRST
    return n_found, at, resume


@kernel(plain=_extend_plain)
def extend(
    forward: Numbers,
    reverse: Numbers,
    carried: Numbers,
    pool_of: Pools,
    begins: Ints,
    ends: Ints,
    bound: Numbers,
    marks: Marks,
    at: int,
    resume: int,
    budget: int,
    counting: bool,
    parents: Ints,
    found: Numbers,
) -> tuple[int, int, int]:
    """What is in all lists of each prefix, from a cursor on, until the room is used up.

    forward, reverse, carried : int32[any], the pools, numbered 0, 1 and 2
    pool_of : int8[k], which pool the j-th list of every prefix is in; at most one is `carried`
    begins, ends : int64[k, n]; list j of prefix i is `pool[begins[j, i]:ends[j, i]]`, sorted
      and distinct; `ends[j, i]` is -1 where the list is elsewhere and not to be asked,
      but each prefix has one that is here
    bound : int32[b, n], b >= 0, distinct down each column but for -1; not to be found for
      that prefix
    marks : uint8[d], all 0, and again on return; one for each number in the pools
    at, resume : the cursor: first prefix, and least value for it (`FIRST` at its beginning)
    budget : about how many values may be read before the call returns
    counting : only count; `found` is then room to work in, and may have any length > 0
    parents, found : int64[room] and int32[room], filled with prefixes (ascending) and their
      values (ascending)
    returns (n, at, resume): how many were found, and the cursor to go on from;
      at = n once all prefixes are done.
    """
    n_lists, n_prefixes = begins.shape
    shown = np.full(n_lists, -1, np.int64)  # begin of the list last seen, marked or not
    shown_end = np.zeros(n_lists, np.int64)
    marked = np.zeros(n_lists, np.bool_)
    total = 0
    room = len(found)
    while at < n_prefixes and budget > 0 and (counting or total < room):
        n_here = 0
        for j in range(n_lists):
            n_here += ends[j, at] >= 0
        if n_here > 1:
            for j in range(min(n_lists, 8)):
                if ends[j, at] < 0 or (begins[j, at] == shown[j] and ends[j, at] == shown_end[j]):
                    continue
                pool = _pool(forward, reverse, carried, pool_of[j])
                if marked[j]:
                    _unmark(marks, pool, shown[j], shown_end[j], 1 << j)
                shown[j] = begins[j, at]
                shown_end[j] = ends[j, at]
                marked[j] = _worth_marking(begins, ends, j, at)
                if marked[j]:
                    _mark(marks, pool, shown[j], shown_end[j], 1 << j)

        # Which list to read: the shortest that is not marked, unless another is far shorter.
        shortest = -1
        unmarked = -1
        for j in range(n_lists):
            size = ends[j, at] - begins[j, at]
            if ends[j, at] < 0:
                continue
            if shortest < 0 or size < ends[shortest, at] - begins[shortest, at]:
                shortest = j
            if not marked[j] and (unmarked < 0 or size < ends[unmarked, at] - begins[unmarked, at]):
                unmarked = j
        chosen = unmarked
        if unmarked < 0 or _LONGER * (ends[shortest, at] - begins[shortest, at]) < (
            ends[unmarked, at] - begins[unmarked, at]
        ):
            chosen = shortest
        needed = 0
        n_asked = 0  # lists that have to be merged with, or galloped through
        for j in range(n_lists):
            if ends[j, at] >= 0 and j != chosen:
                if marked[j]:
                    needed |= 1 << j
                else:
                    n_asked += 1

        pool = _pool(forward, reverse, carried, pool_of[chosen])
        begin = begins[chosen, at]
        end = ends[chosen, at]
        if resume != FIRST:
            begin = _gallop(pool, begin, end, resume)

        if counting and n_asked == 0 and (needed == 0 or len(bound) == 0):
            if needed == 0:
                total += end - begin
                for b in range(len(bound)):
                    if begin < end and _contains(pool, begin, end, bound[b, at]):
                        total -= 1
            else:
                total += _count_marked(marks, pool, begin, end, needed)
                budget -= end - begin
            budget -= 1
            at += 1
            resume = FIRST
            continue

        while begin < end and budget > 0 and (counting or total < room):
            base = 0 if counting else total
            n_read = min(end - begin, room - base)
            n_kept = 0
            if needed == 0:
                found[base : base + n_read] = pool[begin : begin + n_read]
                n_kept = n_read
            else:
                for i in range(begin, begin + n_read):
                    if (marks[pool[i]] & needed) == needed:
                        found[base + n_kept] = pool[i]
                        n_kept += 1
            for j in range(n_lists):
                if n_kept > 0 and j != chosen and ends[j, at] >= 0 and not marked[j]:
                    other = _pool(forward, reverse, carried, pool_of[j])
                    n_kept = _keep_common(found, base, n_kept, other, begins[j, at], ends[j, at])
            if len(bound) > 0:
                n_kept = _drop_bound(found, base, n_kept, bound, at)
            if not counting:
                for i in range(base, base + n_kept):
                    parents[i] = at
            total += n_kept
            budget -= n_read
            begin += n_read
        if begin < end:
            resume = pool[begin]
        else:
            budget -= 1
            at += 1
            resume = FIRST
    for j in range(n_lists):
        if marked[j]:
            pool = _pool(forward, reverse, carried, pool_of[j])
            _unmark(marks, pool, shown[j], shown_end[j], 1 << j)
    return total, at, resume


@kernel
def _worth_marking(begins: Ints, ends: Ints, j: int, at: int) -> bool:
    """Whether the prefixes from `at` on that share list j ask more of it than marking costs."""
    size = ends[j, at] - begins[j, at]
    asked = 0
    for i in range(at, begins.shape[1]):
        if begins[j, i] != begins[j, at] or ends[j, i] != ends[j, at]:
            break
        least = size  # beyond its own size, a list is read instead of asked
        n_others = 0
        for other in range(len(begins)):
            if other != j and ends[other, i] >= 0:
                n_others += 1
                least = min(least, ends[other, i] - begins[other, i])
        if n_others > 0:
            asked += least
        if asked > 2 * size:
            return True
    return False


@kernel
def _pool(forward: Numbers, reverse: Numbers, carried: Numbers, number: int) -> Numbers:
    if number == 0:
        return forward
    return reverse if number == 1 else carried


@kernel
def _count_marked(marks: Marks, pool: Numbers, begin: int, end: int, needed: int) -> int:
    bits = np.uint8(needed)
    total = 0
    for i in range(begin, end):
        total += (marks[pool[i]] & bits) == bits
    return total


@kernel
def _mark(marks: Marks, pool: Numbers, begin: int, end: int, bit: int) -> None:
    for i in range(begin, end):
        marks[pool[i]] |= np.uint8(bit)


@kernel
def _unmark(marks: Marks, pool: Numbers, begin: int, end: int, bit: int) -> None:
    for i in range(begin, end):
        marks[pool[i]] &= np.uint8(255 - bit)


@kernel
def _gallop(pool: Numbers, begin: int, end: int, value: int) -> int:
    """The first position in `pool[begin:end]`, sorted, that holds `value` or more; or `end`.

    Cost: the logarithm of how far it is.
    """
    step = 1
    while begin + step < end and pool[begin + step] < value:
        begin += step
        step *= 2
    high = min(begin + step, end)
    while begin < high:
        middle = (begin + high) >> 1
        if pool[middle] < value:
            begin = middle + 1
        else:
            high = middle
    return begin


@kernel
def _contains(pool: Numbers, begin: int, end: int, value: int) -> bool:
    where = _gallop(pool, begin, end, value)
    return where < end and pool[where] == value


@kernel
def _keep_common(found: Numbers, base: int, n: int, other: Numbers, begin: int, end: int) -> int:
    """Keep of `found[base:base + n]` what is in `other[begin:end]`, in place; how many."""
    n_kept = 0
    if end - begin > _LONGER * n:
        for i in range(base, base + n):
            begin = _gallop(other, begin, end, found[i])
            if begin == end:
                break
            if other[begin] == found[i]:
                found[base + n_kept] = found[i]
                n_kept += 1
        return n_kept
    i = base
    while i < base + n and begin < end:
        mine, theirs = found[i], other[begin]
        if mine < theirs:
            i += 1
        elif theirs < mine:
            begin += 1
        else:
            found[base + n_kept] = mine
            n_kept += 1
            i += 1
            begin += 1
    return n_kept


@kernel
def _drop_bound(found: Numbers, base: int, n: int, bound: Numbers, at: int) -> int:
    """Drop from `found[base:base + n]` the values of `bound[:, at]`, in place; how many stay."""
    n_kept = 0
    for i in range(base, base + n):
        value = found[i]
        is_bound = False
        for b in range(len(bound)):
            is_bound |= bound[b, at] == value
        if not is_bound:
            found[base + n_kept] = value
            n_kept += 1
    return n_kept


def _are_members_plain(pool: Numbers, begins: Ints, ends: Ints, values: Numbers) -> Bools:
    return np.fromiter(
        (
            bool(np.isin(value, pool[begin:end]))
            for begin, end, value in zip(begins, ends, values, strict=True)
        ),
        np.bool_,
        len(values),
    )


@kernel(plain=_are_members_plain)
def are_members(pool: Numbers, begins: Ints, ends: Ints, values: Numbers) -> Bools:
    """Whether each value is in the list that comes with it.

    pool : int32[any] · begins, ends : int64[m] · values : int32[m]
    Lists `pool[begin:end]` are sorted.
    returns bool[m]. Cost: the logarithm of the length of each list.
    """
    found = np.zeros(len(values), np.bool_)
    for i in range(len(values)):
        if begins[i] < ends[i]:
            found[i] = _contains(pool, begins[i], ends[i], values[i])
    return found
