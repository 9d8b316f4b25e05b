"""Histories of groups: their updates as of a time, and at which other times they change.

Rows are those of `consolidation`; those of a batch whose updates have times of their own have
the coordinates of each between the words and the diff.

Source: differential-dataflow `operators/reduce.rs`, the plain form of its `history_replay`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.consolidation import Rows, consolidate
from pointstamp.kernels.forms import kernel

Times = npt.NDArray[np.int64]


@kernel("trace_loops")
def read_history(
    batches: Sequence[Rows], times: Times, keys: Rows, time: Times, n_words: int
) -> tuple[Rows, Rows]:
    """The records of some groups as of a time, and the times of those that are not.

    Parameters
    ----------
    batches : at most 64, consolidated
        Each int64[n, n_words + 1] of one time, or int64[n, n_words + depth + 1].
    times : int64[b, depth]
        Of each batch; where its rows have times of their own it is not looked at.
    keys : int64[g, k + 1], consolidated
        The groups, by the first `k` words of their records, each with a 1.
    time : int64[depth]

    Returns
    -------
    rows : int64[r, n_words + 1], consolidated
        The updates at or before `time`, summed up.
    joins : int64[m, depth + k + 1]
        The join with `time` of each time that is not at or before it, then the key, then 1; in
        no order, and one may be there twice.

    Raises
    ------
    ValueError
        If there are more batches.

    >>> old, new = np.array([[7, 3, 1], [7, 5, 1]]), np.array([[7, 3, 0, 4, -1]])
    >>> times, keys = np.array([[0, 0], [0, 0]]), np.array([[7, 1]])
    >>> rows, joins = read_history([old, new], times, keys, np.array([1, 2]), 2)
    >>> rows.tolist(), joins.tolist()
    ([[7, 3, 1], [7, 5, 1]], [[1, 4, 7, 1]])
    """
    if len(batches) > 64:
        raise ValueError(f"{len(batches)} batches, where at most 64 are read at a time")
    n_key, depth = keys.shape[1] - 1, len(time)
    wanted = {tuple(key[:-1]) for key in keys.tolist()}
    now = time.tolist()
    totals: Counter[tuple[int, ...]] = Counter()
    joins: dict[tuple[int, ...], None] = {}
    for batch, shared in zip(batches, times.tolist(), strict=True):
        for row in batch.tolist():
            key = tuple(row[:n_key])
            if key not in wanted:
                continue
            own = shared if len(row) == n_words + 1 else row[n_words:-1]
            if all(one <= other for one, other in zip(own, now, strict=True)):
                totals[tuple(row[:n_words])] += row[-1]
            else:
                joins[(*map(max, own, now), *key, 1)] = None
    rows = [[*words, total] for words, total in sorted(totals.items()) if total]
    return (
        np.array(rows, np.int64).reshape(len(rows), n_words + 1),
        np.array(list(joins), np.int64).reshape(len(joins), depth + n_key + 1),
    )


@kernel("trace_loops")
def revise_firsts(
    batches: Sequence[Rows],
    times: Times,
    kept: Sequence[Rows],
    kept_times: Times,
    keys: Rows,
    time: Times,
    n_words: int,
    greatest: bool,
) -> tuple[Rows, Rows]:
    """How the first record of some groups changes at a time against what had left of them.

    A group has one while the sum of its diffs is above 0: the first whose own diff is.

    Parameters
    ----------
    batches, times, keys, time, n_words
        As of `read_history`.
    kept, kept_times
        The same of the records that had left.
    greatest : bool
        Whether the last record of a group is taken in place of the first.

    Returns
    -------
    changes : int64[r, n_words + 1], consolidated
        What is to leave at `time`.
    joins : int64[m, depth + k + 1]
        As of `read_history`, of both histories.

    >>> batches = [np.array([[7, 3, 1], [7, 5, 1]]), np.array([[7, 3, -1]])]
    >>> kept = [np.array([[7, 3, 1]])]
    >>> both, first = np.array([[0, 0], [1, 2]]), np.array([[0, 0]])
    >>> keys, now = np.array([[7, 1]]), np.array([1, 2])
    >>> changes, joins = revise_firsts(batches, both, kept, first, keys, now, 2, False)
    >>> changes.tolist(), joins.tolist()
    ([[7, 3, -1], [7, 5, 1]], [])
    """
    n_key = keys.shape[1] - 1
    records, joins = read_history.plain(batches, times, keys, time, n_words)  # type: ignore[attr-defined]  # as all kernels
    left, others = read_history.plain(kept, kept_times, keys, time, n_words)  # type: ignore[attr-defined]
    totals: Counter[tuple[int, ...]] = Counter()
    firsts: dict[tuple[int, ...], list[int]] = {}
    for *words, diff in records.tolist():
        key = tuple(words[:n_key])
        totals[key] += diff
        if diff > 0 and (greatest or key not in firsts):
            firsts[key] = words
    answers = [[*words, 1] for key, words in firsts.items() if totals[key] > 0]
    left[:, -1] *= -1
    changes = np.concatenate([left, np.array(answers, np.int64).reshape(-1, n_words + 1)])
    return consolidate.plain(changes), np.concatenate([joins, others])  # type: ignore[attr-defined]


@kernel("trace_loops")
def advance_times(rows: Rows, frontier: Times) -> Rows:
    """Replace times by representatives, and sum up what is equal then.

    Parameters
    ----------
    rows : int64[n, w + depth + 1], consolidated
    frontier : int64[m, depth], of at least one time
        The representative of a time is the meet of its joins with each of these.

    Returns
    -------
    int64[k, w + depth + 1], consolidated

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits.

    >>> rows = np.array([[7, 0, 3, 1], [7, 2, 3, 1], [7, 3, 0, 1]])
    >>> advance_times(rows, np.array([[2, 1]])).tolist()
    [[7, 2, 3, 2], [7, 3, 1, 1]]
    """
    depth = frontier.shape[1]
    times = rows[:, -1 - depth : -1]
    found = np.maximum(times, frontier[0])
    for element in frontier[1:]:
        np.minimum(found, np.maximum(times, element), out=found)
    advanced = rows.copy()
    advanced[:, -1 - depth : -1] = found
    return consolidate.plain(advanced)  # type: ignore[attr-defined,no-any-return]  # as all kernels
