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

from pointstamp.kernels.forms import kernel

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Pools = npt.NDArray[np.int8]
Marks = npt.NDArray[np.uint8]

FIRST = int(np.iinfo(np.int64).min)
"""The cursor's value at the beginning of a prefix: below every vertex."""

_LONGER = 8
"""A list this many times longer than the other is galloped through, not read."""


@kernel("join_loops")
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


@kernel("join_loops")
def are_members(pool: Numbers, begins: Ints, ends: Ints, values: Numbers) -> Bools:
    """Whether each value is in the list that comes with it.

    pool : int32[any] · begins, ends : int64[m] · values : int32[m]
    Lists `pool[begin:end]` are sorted.
    returns bool[m]. Cost: the logarithm of the length of each list.
    """
    return np.fromiter(
        (
            bool(np.isin(value, pool[begin:end]))
            for begin, end, value in zip(begins, ends, values, strict=True)
        ),
        np.bool_,
        len(values),
    )
