"""Updates sorted and summed: equal records become one, those whose diffs cancel go.

Updates are rows of words, int64[n, w + 1]: the `w` words of a record, and behind them its
diff, how many copies of it are added or, below 0, removed. Records are in the order of their
words, the first one first; *consolidated* rows are in this order, no two are equal, and no diff
is 0. Where a record has a time, its coordinates are words among the others.

Source: differential-dataflow `consolidation.rs`. That a record's words lie side by side is ours:
to sort, merge and compare reads each of them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel

Rows = npt.NDArray[np.int64]

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


@kernel("update_loops")
def consolidate(rows: Rows) -> Rows:
    """Consolidate `rows`, int64[n, w + 1] in any order.

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits.

    >>> consolidate(np.array([[7, 1], [3, 2], [7, 4], [5, 1], [5, -1]])).tolist()
    [[3, 2], [7, 5]]
    """
    return _summed([rows], rows.shape[1])


@kernel("update_loops")
def consolidate_all(parts: list[Rows]) -> Rows:
    """Consolidate the rows of several int64[n, w + 1], one at least, in any order.

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits.

    >>> consolidate_all([np.array([[7, 1], [3, 2]]), np.array([[3, -2]])]).tolist()
    [[7, 1]]
    """
    return _summed(parts, parts[0].shape[1])


@kernel("update_loops")
def concatenate(parts: list[Rows]) -> Rows:
    """The rows of several int64[n, w + 1], one at least, in their order.

    >>> concatenate([np.array([[7, 1], [3, 2]]), np.array([[3, -2]])]).tolist()
    [[7, 1], [3, 2], [3, -2]]
    """
    return np.concatenate(parts)


@kernel("update_loops")
def rows_of(words: list[int], width: int) -> Rows:
    """Rows of `width` words each, int64[n, width], from all their words one after another.

    Raises
    ------
    OverflowError
        If one is beyond 64 bits.
    ValueError
        If the last row has too few.

    >>> rows_of([7, 1, 3, 2], 2).tolist()
    [[7, 1], [3, 2]]
    """
    return np.array(words, np.int64).reshape(-1, width)


@kernel("update_loops")
def merge(left: Rows, right: Rows) -> Rows:
    """Make one of two consolidated int64[n, w + 1].

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits.

    >>> merge(np.array([[3, 2], [7, 1]]), np.array([[3, -2], [4, 1]])).tolist()
    [[4, 1], [7, 1]]
    """
    return _summed([left, right], left.shape[1])


@kernel("update_loops")
def merge_some(left: Rows, right: Rows, into: Rows, at: Rows, most: int) -> None:
    """Go on with a merge of two consolidated int64[n, w + 1], by at most so many of their rows.

    Parameters
    ----------
    into : int64[m, w + 1], m >= n_left + n_right, written
        What they are merged to.
    at : int64[3], written
        How many rows were read of the left one and of the right one, and how many are merged.

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits; `at` is as before then.

    >>> left, right = np.array([[3, 2], [7, 1]]), np.array([[3, -2], [4, 1]])
    >>> into, at = np.zeros((4, 2), np.int64), np.zeros(3, np.int64)
    >>> merge_some(left, right, into, at, 3)
    >>> at.tolist(), into[: at[2]].tolist()
    ([1, 2, 1], [[4, 1]])
    """
    i, j, n = at.tolist()
    lefts, rights = left.tolist(), right.tolist()
    while most > 0 and (i < len(left) or j < len(right)):
        one: list[int] = lefts[i] if i < len(left) else []
        other: list[int] = rights[j] if j < len(right) else []
        if not other or (one and one[:-1] < other[:-1]):
            into[n] = one
            i, n, most = i + 1, n + 1, most - 1
        elif not one or other[:-1] < one[:-1]:
            into[n] = other
            j, n, most = j + 1, n + 1, most - 1
        else:
            # Both at once, or neither: it takes two rows.
            if most < 2:
                break
            total = one[-1] + other[-1]
            if not _LEAST <= total <= _GREATEST:
                raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")
            into[n] = [*one[:-1], total]
            i, j, n, most = i + 1, j + 1, n + (total != 0), most - 2
    at[:] = i, j, n


@kernel("update_loops")
def piece_of_two(
    left: Rows, i: int, right: Rows, j: int, most: int, n_words: int
) -> tuple[int, int]:
    """Where a piece of two int64[n, w] ends that are in order, from rows `i` and `j` on.

    Of about `most` rows, and not between rows with the same first `n_words`, which are alike
    in both.

    >>> piece_of_two(np.array([[1, 5], [1, 6], [3, 5]]), 0, np.array([[1, 4], [2, 4]]), 0, 2, 1)
    (2, 1)
    """
    part = max(most // 2, 1)
    lasts = [
        tuple(rows[min(at + part, len(rows)) - 1, :n_words].tolist())
        for rows, at in ((left, i), (right, j))
        if at < len(rows)
    ]
    if not lasts:
        return i, j
    for row in left[i:].tolist():
        i += tuple(row[:n_words]) <= min(lasts)
    for row in right[j:].tolist():
        j += tuple(row[:n_words]) <= min(lasts)
    return i, j


@kernel("update_loops")
def choose_words(rows: Rows, places: npt.NDArray[np.int32]) -> Rows:
    """Some words of int64[n, w + 1], and the diffs, as int64[n, p + 1].

    places : int32[p], below `w`

    >>> choose_words(np.array([[7, 8, 1]]), np.array([1, 0, 1], np.int32)).tolist()
    [[8, 7, 8, 1]]
    """
    return np.ascontiguousarray(rows[:, [*places.tolist(), rows.shape[1] - 1]])


@kernel("update_loops")
def values_by_key(rows: Rows, n_key: int, value: int, flag: int, mask: int) -> Rows:
    """The key, a value and the diff of the rows that have one, int64[m, n_key + 2].

    Parameters
    ----------
    value, flag : int
        Which words are the value and whether there is one; -1 where there always is.
    mask : int
        0, or -1 to turn the order of values round.

    >>> values_by_key(np.array([[7, 1, 5, 2], [7, 0, 0, 1]]), 1, 2, 1, -1).tolist()
    [[7, -6, 2]]
    """
    there = rows if flag < 0 else rows[rows[:, flag] != 0]
    chosen = np.ascontiguousarray(there[:, [*range(n_key), value, rows.shape[1] - 1]])
    chosen[:, n_key] ^= mask
    return chosen


def _summed(parts: Iterable[Rows], width: int) -> Rows:
    totals: Counter[tuple[int, ...]] = Counter()
    for rows in parts:
        for *words, diff in rows.tolist():
            totals[tuple(words)] += diff
    kept = [[*words, total] for words, total in sorted(totals.items()) if total]
    if not all(_LEAST <= row[-1] <= _GREATEST for row in kept):
        raise OverflowError("the sum of the diffs of equal records is beyond 64 bits")
    return np.array(kept, np.int64).reshape(len(kept), width)


def is_consolidated(rows: Rows) -> bool:
    """Whether int64[n, w + 1] are in order, no two equal, and without a diff of 0.

    >>> is_consolidated(np.array([[3, 2], [3, 1]])), is_consolidated(np.array([[3, 2], [4, 1]]))
    (False, True)
    """
    words = [tuple(row[:-1]) for row in rows.tolist()]
    in_order = all(words[i] < words[i + 1] for i in range(len(words) - 1))
    return in_order and bool((rows[:, -1] != 0).all())
