"""Updates joined with a batch, and the first records of groups that lie in several batches.

Rows are those of `consolidation`, with the words of the key first.

Source: differential-dataflow `operators/join.rs` and `trace/cursor`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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
    changes: Rows, batches: list[Rows], n_key: int, recipe: Recipe, begin: int, most: int
) -> tuple[Rows, int]:
    """Pair rows of `changes` from the row `begin` on, until some `most` pairs are made.

    Arguments and pairs are those of `match_batches`; those of all calls are its pairs, and of a
    key that many changes have in another order.

    Parameters
    ----------
    begin : int
    most : int
        At least 1. Of a key that several batches have, records are counted in each. A row's
        pairs are made in one call, however many, and never more than twice `most` of several.

    Returns
    -------
    pairs : int64[p, r + 1]
    end : int
        Where to begin next; `n` if that was all.

    >>> ages, towns = np.array([[1, 40, 1], [2, 50, 1]]), np.array([[1, 7, 1], [2, 8, 1]])
    >>> match_some(ages, [towns], 1, np.array([1, ~1], np.int32), 0, 1)
    (array([[40,  7,  1]]), 1)
    """
    by_key, sizes = defaultdict(list), Counter[tuple[int, ...]]()
    for row in consolidate_all(batches).tolist() if batches else []:
        by_key[tuple(row[:n_key])].append(row)
    for batch in batches:
        sizes.update(tuple(row[:n_key]) for row in batch.tolist())
    rows, pairs, made = changes.tolist(), [], 0
    while begin < len(rows) and made < most:
        key = tuple(rows[begin][:n_key])
        end, size = begin + 1, sizes[key]
        while end < len(rows) and tuple(rows[end][:n_key]) == key:
            end += 1
        some = max(most // size, 1) if size else end - begin
        is_split = end - begin > some
        end = min(end, begin + some)
        made += (end - begin) * size
        pairs += [
            [*(row[k] if k >= 0 else other[~k] for k in recipe.tolist()), row[-1] * other[-1]]
            for other in by_key.get(key, ())
            for row in rows[begin:end]
        ]
        begin = end
        if is_split:
            break
    if any(not -(1 << 63) <= pair[-1] < 1 << 63 for pair in pairs):
        raise OverflowError("the product of the diffs of two records is beyond 64 bits")
    return np.array(pairs, np.int64).reshape(len(pairs), len(recipe) + 1), begin


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
