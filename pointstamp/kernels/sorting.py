"""Sorted runs of int64: distinct items, summed diffs, and the merge of two runs.

Sorting is NumPy's, which is vectorised; what comes after it is one pass that
compares neighbours (`np.unique` hashes or sorts far slower).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import settled
from pointstamp.kernels.jit import kernel

Ints = npt.NDArray[np.int64]


def _distinct_plain(keys: Ints) -> Ints:
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


@kernel(plain=_distinct_plain)
def _distinct(keys: Ints) -> Ints:
    found = np.empty(len(keys), np.int64)
    n_found = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1]:
            found[n_found] = keys[i]
            n_found += 1
    return found[:n_found].copy()


def unique_sorted(keys: Ints) -> Ints:
    """The distinct `keys`, in order.

    Parameters
    ----------
    keys : int64[n], in any order

    Returns
    -------
    int64[m], strictly increasing. Twin `_distinct_plain`.

    >>> unique_sorted(np.array([3, 1, 3, 2, 1])).tolist()
    [1, 2, 3]
    """
    return _distinct(settled(np.sort(keys)))


def _sums_plain(keys: Ints, diffs: Ints) -> tuple[Ints, Ints]:
    if not len(keys):
        return keys.copy(), diffs.copy()
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    sums = np.add.reduceat(diffs, starts)
    return keys[starts][sums != 0], sums[sums != 0]


@kernel(plain=_sums_plain)
def _sums(keys: Ints, diffs: Ints) -> tuple[Ints, Ints]:
    """Sum the diffs of equal neighbours.

    keys, diffs : int64[n], keys sorted · returns (keys, sums), both [m], no sum 0
    twin `_sums_plain`
    """
    found = np.empty(len(keys), np.int64)
    sums = np.empty(len(keys), np.int64)
    n_found = 0
    i = 0
    while i < len(keys):
        key = keys[i]
        total = np.int64(0)
        while i < len(keys) and keys[i] == key:
            total += diffs[i]
            i += 1
        if total != 0:
            found[n_found] = key
            sums[n_found] = total
            n_found += 1
    return found[:n_found].copy(), sums[:n_found].copy()


def consolidate(keys: Ints, diffs: Ints) -> tuple[Ints, Ints]:
    """Each key once with the sum of its diffs; keys whose diffs cancel vanish.

    Parameters
    ----------
    keys, diffs : int64[n], keys in any order

    Returns
    -------
    (keys, diffs) : int64[m], m <= n, keys strictly increasing, no diff 0.

    >>> keys, diffs = consolidate(np.array([5, 3, 5, 3]), np.array([1, 1, 1, -1]))
    >>> keys.tolist(), diffs.tolist()
    ([5], [2])
    """
    order = np.argsort(keys)
    return _sums(settled(keys[order]), settled(diffs[order]))


def _merged_plain(left: Ints, right: Ints) -> Ints:
    # Stable means a radix or merge sort, which is quick on two sorted runs.
    return np.sort(np.concatenate((left, right)), kind="stable")


@kernel(plain=_merged_plain)
def _merged(left: Ints, right: Ints) -> Ints:
    merged = np.empty(len(left) + len(right), np.int64)
    i = 0
    j = 0
    while i < len(left) and j < len(right):
        if right[j] < left[i]:
            merged[i + j] = right[j]
            j += 1
        else:
            merged[i + j] = left[i]
            i += 1
    # One of the two is used up: what is left of the other follows.
    if i == len(left):
        merged[i + j :] = right[j:]
    else:
        merged[i + j :] = left[i:]
    return merged


def merge_sorted(left: Ints, right: Ints) -> Ints:
    """One sorted run of two.

    Parameters
    ----------
    left : int64[n], sorted
    right : int64[m], sorted

    Returns
    -------
    int64[n + m], sorted; duplicates are kept. Twin `_merged_plain`.

    >>> merge_sorted(np.array([1, 4]), np.array([2, 4, 9])).tolist()
    [1, 2, 4, 4, 9]
    """
    return _merged(settled(left), settled(right))
