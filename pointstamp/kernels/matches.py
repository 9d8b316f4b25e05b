"""Updates joined with a batch, and the first records of groups that lie in several batches.

Rows are those of `consolidation`, with the words of the key first.

Source: differential-dataflow `operators/join.rs` and `trace/cursor`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.consolidation import Rows, consolidate_all, merge
from pointstamp.kernels.forms import kernel

Ints = npt.NDArray[np.int64]
Recipe = npt.NDArray[np.int32]

_ALL = 1 << 62


@kernel("update_loops")
def match_batches(changes: Rows, batches: list[Rows], n_key: int, recipe: Recipe) -> Rows:
    """Pair each row of `changes` with the records of the same first `n_key` words in `batches`.

    A record that is in several batches is there once, with the sum of its diffs, and not at
    all if that is 0.

    Parameters
    ----------
    changes : int64[n, w + 1], consolidated
    batches : at most 64 of int64[m, v + 1], each consolidated
    recipe : int32[r]
        What the words of a pair are: `k` is word `k` of `changes`, and `~k` of a batch.

    Returns
    -------
    int64[p, r + 1], by key in the order of `changes`; the diff is the product of both.

    Raises
    ------
    OverflowError
        If a sum or a product of diffs is beyond 64 bits.

    >>> ages, towns = np.array([[1, 40, 1], [2, 50, 1]]), np.array([[2, 7, 3], [2, 8, 1]])
    >>> match_batches(ages, [towns, np.array([[2, 8, -1]])], 1, np.array([0, 1, ~1], np.int32))
    array([[ 2, 50,  7,  3]])
    """
    plain: Any = match_some
    pairs: Rows = plain.plain(changes, batches, n_key, recipe, 0, _ALL)[0]
    return pairs


@kernel("update_loops")
def match_some(
    changes: Rows,
    batches: list[Rows],
    n_key: int,
    recipe: Recipe,
    begin: int,
    most: int,
    after: Rows | None = None,
) -> tuple[Rows, int, Rows | None]:
    """Pair rows of `changes` from the row `begin` on, until some `most` pairs are made.

    Arguments and pairs are those of `match_batches`; those of all calls are its pairs, and of a
    key that many changes have in another order.

    Parameters
    ----------
    begin : int
    most : int
        At least 1. Of a key that several batches have, records are counted in each.
    after : int64[1, v], optional
        With the row `begin` the records up to this one are paired already.

    Returns
    -------
    pairs : int64[p, r + 1]
        Fewer than twice `most`, or at most one of each batch.
    end, after
        Where to begin next; `n` and None if that was all.

    >>> ages, towns = np.array([[1, 40, 1], [2, 50, 1]]), np.array([[1, 7, 1], [1, 9, 1]])
    >>> recipe = np.array([1, ~1], np.int32)
    >>> match_some(ages, [towns], 1, recipe, 0, 1)
    (array([[40,  7,  1]]), 0, array([[1, 7]]))
    >>> match_some(ages, [towns], 1, recipe, 0, 1, np.array([[1, 7]]))
    (array([[40,  9,  1]]), 1, None)
    """
    by_key, runs = defaultdict(list), defaultdict(list)
    for row in consolidate_all(batches).tolist() if batches else []:
        by_key[tuple(row[:n_key])].append(row)
    for batch in batches:
        of_batch = defaultdict(list)
        for row in batch.tolist():
            of_batch[tuple(row[:n_key])].append(row[:-1])
        for key, run in of_batch.items():
            runs[key].append(run)
    rows, pairs, made = changes.tolist(), [], 0
    last = None if after is None else after[0].tolist()
    while begin < len(rows) and made < most:
        key = tuple(rows[begin][:n_key])
        # What is left of the row that was begun goes alone, as it meets fewer than the others.
        is_rest, met, last = last is not None, last, None
        ahead = [[row for row in run if met is None or row > met] for run in runs[key]]
        ahead = [run for run in ahead if run]
        size, end = sum(map(len, ahead)), begin + 1
        while not is_rest and end < len(rows) and tuple(rows[end][:n_key]) == key:
            end += 1
        is_split = is_rest
        if size and end - begin > max(most // size, 1):
            end, is_split = begin + max(most // size, 1), True
        if size > most:
            part = max(most // len(ahead), 1)
            ends = [run[part - 1] for run in ahead if len(run) > part]
            last = min(ends) if ends else None
            size = sum(row <= last for run in ahead for row in run) if last is not None else size
        made += (end - begin) * size
        pairs += [
            [*(row[k] if k >= 0 else other[~k] for k in recipe.tolist()), row[-1] * other[-1]]
            for other in by_key.get(key, ())
            if (met is None or other[:-1] > met) and (last is None or other[:-1] <= last)
            for row in rows[begin:end]
        ]
        begin = end if last is None else begin
        if is_split or last is not None:
            break
    if any(not -(1 << 63) <= pair[-1] < 1 << 63 for pair in pairs):
        raise OverflowError("the product of the diffs of two records is beyond 64 bits")
    found = np.array(pairs, np.int64).reshape(len(pairs), len(recipe) + 1)
    return found, begin, None if last is None else np.array([last], np.int64)


@kernel("update_loops")
def read_groups(batches: Sequence[Rows], keys: Rows, starts: Rows, most: int) -> tuple[Rows, Ints]:
    """Read the first records of each group that are there, from a place of the group on.

    Parameters
    ----------
    batches : at most 64 of int64[n, w + 1], each consolidated; a record may be in several
    keys : int64[g, k]
        The groups, each by the first `k` words of its records.
    starts : int64[g, s]
        Where to begin in each: records whose next `s` words are before these are not read.
    most : int
        After so many copies of records of a group, no more of it are read.

    Returns
    -------
    rows : int64[r, w + 1]
        The records whose diffs in all batches have a sum above 0, by group, with that sum.
    ends : int64[g]
        Where those of each group end.

    >>> old, new = np.array([[1, 3, 1], [1, 5, 2], [1, 9, 1]]), np.array([[1, 3, -1]])
    >>> rows, ends = read_groups([old, new], np.array([[1]]), np.empty((1, 0), np.int64), 1)
    >>> rows.tolist(), ends.tolist()
    ([[1, 5, 2]], [1])
    """
    batches = [rows for rows in batches if len(rows)]
    if not batches:
        width = keys.shape[1] + starts.shape[1] + 1
        return np.empty((0, width), np.int64), np.zeros(len(keys), np.int64)
    everything = batches[0]
    for rows in batches[1:]:
        everything = merge(everything, rows)
    n_key, read, ends = keys.shape[1], [], []
    for key, start in zip(keys.tolist(), starts.tolist(), strict=True):
        found = 0
        for row in everything.tolist():
            next_words = row[n_key : n_key + len(start)]
            if row[:n_key] == key and next_words >= start and row[-1] > 0 and found < most:
                read.append(row)
                found += row[-1]
        ends.append(len(read))
    width = batches[0].shape[1]
    return np.array(read, np.int64).reshape(len(read), width), np.array(ends, np.int64)
