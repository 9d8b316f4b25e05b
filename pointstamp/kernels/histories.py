"""Histories of groups: their updates as of a time, and at which other times they change.

Rows are those of `consolidation`; those of a batch whose updates have times of their own have
the coordinates of each between the words and the diff.

Source: differential-dataflow `operators/reduce.rs`, the plain form of its `history_replay`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.consolidation import Rows, consolidate
from pointstamp.kernels.forms import kernel

TimeWords = tuple[int, ...]
Recipe = npt.NDArray[np.int32]


@kernel("trace_loops")
def read_history(
    batches: list[Rows],
    times: Sequence[TimeWords | None],
    keys: Rows,
    time: TimeWords,
    n_words: int,
) -> tuple[Rows, Rows]:
    """The records of some groups as of a time, and the times of those that are not.

    Parameters
    ----------
    batches : at most 64, consolidated
        Each int64[n, n_words + 1] of one time, or int64[n, n_words + depth + 1].
    times : of b times
        Of each batch; where its rows have times of their own it is not looked at.
    keys : int64[g, k + 1], consolidated
        The groups, by the first `k` words of their records, each with a 1.
    time : of depth words

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
    >>> rows, joins = read_history([old, new], [(0, 0), None], np.array([[7, 1]]), (1, 2), 2)
    >>> rows.tolist(), joins.tolist()
    ([[7, 3, 1], [7, 5, 1]], [[1, 4, 7, 1]])
    """
    if len(batches) > 64:
        raise ValueError(f"{len(batches)} batches, where at most 64 are read at a time")
    n_key, depth = keys.shape[1] - 1, len(time)
    wanted = {tuple(key[:-1]) for key in keys.tolist()}
    totals: Counter[tuple[int, ...]] = Counter()
    joins: dict[tuple[int, ...], None] = {}
    for batch, shared in zip(batches, times, strict=True):
        for row in batch.tolist():
            key = tuple(row[:n_key])
            if key not in wanted:
                continue
            own = tuple(row[n_words:-1]) or shared or ()
            if all(one <= other for one, other in zip(own, time, strict=True)):
                totals[tuple(row[:n_words])] += row[-1]
            else:
                joins[(*map(max, own, time), *key, 1)] = None
    rows = [[*words, total] for words, total in sorted(totals.items()) if total]
    return (
        np.array(rows, np.int64).reshape(len(rows), n_words + 1),
        np.array(list(joins), np.int64).reshape(len(joins), depth + n_key + 1),
    )


@kernel("trace_loops")
def revise_firsts(
    batches: list[Rows],
    times: Sequence[TimeWords | None],
    kept: list[Rows],
    kept_times: Sequence[TimeWords | None],
    keys: Rows,
    time: TimeWords,
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
    >>> both, first, keys = [(0, 0), (1, 2)], [(0, 0)], np.array([[7, 1]])
    >>> changes, joins = revise_firsts(batches, both, kept, first, keys, (1, 2), 2, False)
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
def advance_times(rows: Rows, frontier: list[TimeWords]) -> Rows:
    """Replace times by representatives, and sum up what is equal then.

    Parameters
    ----------
    rows : int64[n, w + depth + 1], consolidated
    frontier : of at least one time
        The representative of a time is the meet of its joins with each of these.

    Returns
    -------
    int64[k, w + depth + 1], consolidated

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits.

    >>> rows = np.array([[7, 0, 3, 1], [7, 2, 3, 1], [7, 3, 0, 1]])
    >>> advance_times(rows, [(2, 1)]).tolist()
    [[7, 2, 3, 2], [7, 3, 1, 1]]
    """
    depth = len(frontier[0])
    advanced = rows.copy()
    for row in advanced:
        row[-1 - depth : -1] = representative(tuple(row[-1 - depth : -1].tolist()), frontier)
    return consolidate.plain(advanced)  # type: ignore[attr-defined,no-any-return]  # as all kernels


@kernel("trace_loops")
def advance_together(
    batches: list[Rows],
    times: Sequence[TimeWords | None],
    frontier: list[TimeWords],
) -> tuple[Rows, TimeWords | None]:
    """Make one of several batches, with the representatives of their times.

    Parameters
    ----------
    batches, times
        As of `read_history`; the time of a batch whose rows have times of their own is None.
    frontier
        As of `advance_times`.

    Returns
    -------
    rows : consolidated, with the time of each unless all have the same
    time : the one that all have, or None

    Raises
    ------
    OverflowError
        If a sum of diffs is beyond 64 bits.

    >>> one, other = np.array([[7, 1]]), np.array([[7, 2, 3, 1], [8, 0, 1, 1]])
    >>> rows, time = advance_together([one, other], [(1, 3), None], [(4, 0)])
    >>> rows.tolist(), time
    ([[7, 4, 3, 2], [8, 4, 1, 1]], None)
    >>> rows, time = advance_together([one, other], [(1, 3), None], [(4, 3)])
    >>> rows.tolist(), time
    ([[7, 2], [8, 1]], (4, 3))
    """
    depth, found = len(frontier[0]), []
    for batch, shared in zip(batches, times, strict=True):
        for row in batch.tolist():
            words, own = (row[:-1], shared) if shared else (row[: -1 - depth], row[-1 - depth : -1])
            found.append((words, representative(tuple(own), frontier), row[-1]))
    together = {time for _, time, _ in found}
    one = next(iter(together)) if len(together) == 1 else None
    rows = [[*words, *(time if one is None else ()), diff] for words, time, diff in found]
    width = batches[0].shape[1] + (depth if times[0] and one is None else 0)
    if not rows:
        return np.empty((0, width), np.int64), None
    return consolidate.plain(np.array(rows, np.int64)), one  # type: ignore[attr-defined]


@kernel("trace_loops")
def match_times(
    changes: Rows,
    time: TimeWords,
    batches: list[Rows],
    times: Sequence[TimeWords | None],
    n_key: int,
    recipe: Recipe,
    most: int,
) -> tuple[list[tuple[TimeWords, Rows]] | None, int]:
    """Pair few changes of one time with the records of equal key, by when the pairs are there.

    Parameters
    ----------
    changes : int64[n, w + 1], consolidated
    time : of the changes
    batches, times
        As of `advance_together`.
    recipe : int32[r]
        As of `match_batches`.
    most : int

    Returns
    -------
    found : list, or None if there are more than `most` pairs
        Of each join of times that has pairs, least first: int64[p, r + 1], consolidated.
    n : int
        How many pairs were made, before equal ones were summed up.

    Raises
    ------
    OverflowError
        If a sum or a product of diffs is beyond 64 bits.

    >>> ages, recipe = np.array([[1, 40, 1], [2, 50, 1]]), np.array([0, 1, ~1], np.int32)
    >>> towns = np.array([[2, 7, 0, 3, 1], [2, 8, 2, 0, 1]])
    >>> found, n = match_times(ages, (1, 1), [towns], [None], 1, recipe, 2)
    >>> [(time, rows.tolist()) for time, rows in found], n
    ([((1, 3), [[2, 50, 7, 1]]), ((2, 1), [[2, 50, 8, 1]])], 2)
    >>> match_times(ages, (1, 1), [towns], [None], 1, recipe, 1)[0] is None
    True
    """
    by_key, depth, n = defaultdict(list), len(time), 0
    for row in changes.tolist():
        by_key[tuple(row[:n_key])].append(row)
    found = defaultdict(list)
    for batch, shared in zip(batches, times, strict=True):
        for other in batch.tolist():
            own = shared or tuple(other[-1 - depth : -1])
            for row in by_key.get(tuple(other[:n_key]), ()):
                words = [row[k] if k >= 0 else other[~k] for k in recipe.tolist()]
                found[tuple(map(max, time, own))].append([*words, row[-1] * other[-1]])
                n += 1
    if n > most:
        return None, n
    pairs = []
    for join, rows in sorted(found.items()):
        if any(not -(1 << 63) <= row[-1] < 1 << 63 for row in rows):
            raise OverflowError("the product of the diffs of two records is beyond 64 bits")
        summed = consolidate.plain(np.array(rows, np.int64))  # type: ignore[attr-defined]
        if len(summed):
            pairs.append((join, summed))
    return pairs, n


@kernel("trace_loops")
def distinct(parts: list[Rows], n_words: int) -> Rows:
    """The distinct first words of the rows of several, int64[m, n_words + 1] with a 1 behind.

    parts : at least one, each of any width above `n_words`

    >>> distinct([np.array([[7, 3, 1], [7, 4, 1]]), np.array([[5, 1]])], 1).tolist()
    [[5, 1], [7, 1]]
    """
    found = sorted({tuple(row[:n_words]) for rows in parts for row in rows.tolist()})
    rows = [[*words, 1] for words in found]
    return np.array(rows, np.int64).reshape(len(rows), n_words + 1)


@kernel("trace_loops")
def split_by_first(rows: Rows, depth: int) -> list[tuple[TimeWords, Rows]]:
    """The rows behind each distinct start of `depth` words, of rows in order.

    >>> [(words, part.tolist()) for words, part in split_by_first(np.array([[0, 7], [2, 8]]), 1)]
    [((0,), [[7]]), ((2,), [[8]])]
    """
    found = defaultdict(list)
    for row in rows.tolist():
        found[tuple(row[:depth])].append(row[depth:])
    return [(words, np.array(part, np.int64)) for words, part in found.items()]


def representative(time: TimeWords, frontier: list[TimeWords]) -> TimeWords:
    """A time that is `time` for all that is at or after `frontier`, and the same for many times.

    It is the meet of the joins of `time` with the elements of the frontier: it is at or before each
    time at or after the frontier exactly if `time` is.

    frontier : of at least one time

    >>> representative((0, 3), [(5, 0), (4, 2)])
    (4, 3)
    """
    found = list(map(max, time, frontier[0]))
    for element in frontier[1:]:
        found = list(map(min, found, map(max, time, element)))
    return tuple(found)
