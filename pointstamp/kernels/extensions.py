"""Prefixes extended by a value that several relations agree on, and records that are looked up.

A *prefix* is a row of words and a diff, of some columns of a join that is under way. A relation
is a list of batches, and has for a prefix the records that begin with the words at some of its
places. To extend a prefix costs what its shortest list is long, and a search in the others for
each of its values: with each variable bound so, a join is worst-case optimal.

Rows are those of `consolidation`. Prefixes may be in any order, and are quickest in that of the
words that are looked up.

Source: Ngo, Porat, Re, Rudra, "Worst-case optimal join algorithms", PODS 2012; count, propose
and validate are those of `dogsdogsdogs` in differential-dataflow, here one loop.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.consolidation import Rows
from pointstamp.kernels.forms import kernel

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


@kernel("extension_loops")
def list_sizes(prefixes: Rows, relations: list[list[Rows]], places: list[Places]) -> Ints:
    """The length of the shortest list of each prefix, int64[n].

    Records that several batches have are counted in each, also where they cancel.

    Parameters
    ----------
    prefixes : int64[n, w + 1]
    relations : of each the batches, int64[m, k + 2], consolidated
    places : of each int32[k], below `w`
        What it is asked for: the words of a prefix that its records begin with.

    >>> edges = np.array([[1, 2, 1], [1, 3, 1], [3, 1, 1]])
    >>> both = [np.array([0], np.int32), np.array([1], np.int32)]
    >>> list_sizes(np.array([[1, 3, 1], [1, 2, 1]]), [[edges], [edges]], both).tolist()
    [1, 0]
    """
    sizes = [
        [
            sum((batch[:, : len(at)] == prefix[at]).all(axis=1).sum() for batch in batches)
            for batches, at in zip(relations, places, strict=True)
        ]
        for prefix in prefixes
    ]
    return np.array([min(of_prefix) for of_prefix in sizes], np.int64)


@kernel("extension_loops")
def extend(
    prefixes: Rows,
    relations: list[list[Rows]],
    places: list[Places],
    begin: int = 0,
    most: int = 1 << 62,
) -> tuple[Rows, int]:
    """Each prefix with each value that all relations have for it, at least one relation.

    Parameters
    ----------
    prefixes : int64[n, w + 1]
    relations : of each the batches, int64[m, k + 2], consolidated
        Records are `k` words that are asked for, and a value.
    places : of each int32[k], below `w`
    begin, most : int
        From the row `begin` on, until `most` or more are made. A prefix is extended by all of its
        values in one call.

    Returns
    -------
    made : int64[p, w + 2]
        The prefix, the value, and the product of the diffs of the prefix and of the records,
        which are summed up over batches first; none is 0. Prefixes are in their order, and of
        each the values in theirs.
    end : int
        Where to begin next; `n` if that was all.

    Raises
    ------
    OverflowError
        If a sum or a product of diffs is beyond 64 bits.

    >>> edges = np.array([[1, 2, 1], [1, 3, 1], [2, 3, 1]])
    >>> both = [np.array([0], np.int32), np.array([1], np.int32)]
    >>> made, end = extend(np.array([[1, 2, -1]]), [[edges], [edges]], both)
    >>> made.tolist(), end
    ([[1, 2, 3, -1]], 1)
    >>> made, end = extend(np.array([[1, 1], [2, 1]]), [[edges]], both[:1], 0, 1)
    >>> made.tolist(), end
    ([[1, 2, 1], [1, 3, 1]], 1)
    """
    totals = [_totals(batches) for batches in relations]
    made: list[list[int]] = []
    for *words, diff in prefixes[begin:].tolist():
        if len(made) >= most:
            break
        begin += 1
        lists = [
            total.get(tuple(words[place] for place in at.tolist()), {})
            for total, at in zip(totals, places, strict=True)
        ]
        for value in sorted(set(lists[0]).intersection(*lists[1:])):
            product = diff
            for values in lists:
                product = _checked(product * values[value], "product")
            made.append([*words, value, product])
    return np.array(made, np.int64).reshape(len(made), prefixes.shape[1] + 1), begin


@kernel("extension_loops")
def weigh(prefixes: Rows, batches: list[Rows], places: Places, absent: bool) -> Rows:
    """Each prefix with its diff times that of a record, which is made of some of its words.

    Parameters
    ----------
    prefixes : int64[n, w + 1]
    batches : of int64[m, k + 1], consolidated
    places : int32[k], below `w`
    absent : bool
        Times 1 less that diff instead: of a record that is there once or not, whether it is not.

    Returns
    -------
    int64[p, w + 1], those that are not 0, in their order

    Raises
    ------
    OverflowError
        If a sum or a product of diffs is beyond 64 bits.

    >>> edges, ends = np.array([[1, 2, 3]]), np.array([0, 1], np.int32)
    >>> weigh(np.array([[1, 2, 2], [2, 1, 1]]), [edges], ends, False).tolist()
    [[1, 2, 6]]
    """
    totals: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        for *record, n in batch.tolist():
            totals[tuple(record)] += n
    made = []
    for *words, diff in prefixes.tolist():
        n = _checked(totals[tuple(words[place] for place in places.tolist())], "sum")
        product = _checked(diff * (1 - n if absent else n), "product")
        if product:
            made.append([*words, product])
    return np.array(made, np.int64).reshape(len(made), prefixes.shape[1])


def _totals(batches: list[Rows]) -> dict[tuple[int, ...], dict[int, int]]:
    """By key and value the sum of the diffs, where it is not 0."""
    sums: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        for *record, diff in batch.tolist():
            sums[tuple(record)] += diff
    found: dict[tuple[int, ...], dict[int, int]] = {}
    for record, total in sums.items():
        if total:
            found.setdefault(record[:-1], {})[record[-1]] = _checked(total, "sum")
    return found


def _checked(number: int, what: str) -> int:
    if not _LEAST <= number <= _GREATEST:
        raise OverflowError(f"the {what} of the diffs of two records is beyond 64 bits")
    return number
