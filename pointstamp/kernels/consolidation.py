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
