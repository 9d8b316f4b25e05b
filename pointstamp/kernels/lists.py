"""Lists end to end: items by the number of their list, and ids by their number.

Graph algorithms count vertices from 0 and keep the neighbours of each in one array,
so that what belongs to a vertex is read in a row and an array can hold a value for
each. These are the steps that lead there from arbitrary int64 ids.

Source: the counting sort of any textbook; stable, so that lists keep the order of
their items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import settled
from pointstamp.kernels.jit import kernel
from pointstamp.kernels.sorting import unique_sorted
from pointstamp.kernels.tables import bits_of, build_table, row_of

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


def distinct(ids: Ints) -> Ints:
    """The distinct `ids`, in order: by flags where they lie close together, else by sorting.

    ids : int64[n], in any order · returns int64[m], strictly increasing

    >>> distinct(np.array([7, 5, 7])).tolist()
    [5, 7]
    """
    if not len(ids):
        return np.empty(0, np.int64)
    low, high = int(ids.min()), int(ids.max())
    if high - low > 4 * len(ids) + 64:
        return unique_sorted(ids)
    return _flagged(settled(ids), low, high - low + 1)


def _flagged_plain(ids: Ints, low: int, span: int) -> Ints:
    present = np.zeros(span, np.bool_)
    present[ids - low] = True
    return np.flatnonzero(present) + low


@kernel(plain=_flagged_plain)
def _flagged(ids: Ints, low: int, span: int) -> Ints:
    """`distinct` of ids from `low` up to, not with, `low + span`; twin `_flagged_plain`."""
    present = np.zeros(span, np.bool_)
    for i in range(len(ids)):
        present[ids[i] - low] = True
    n_found = 0
    for i in range(span):
        n_found += present[i]
    found = np.empty(n_found, np.int64)
    at = 0
    for i in range(span):
        if present[i]:
            found[at] = i + low
            at += 1
    return found


def numbers_of(keys: Ints, ids: Ints) -> Numbers:
    """The position of each of `ids` in `keys`; -1 where it is not there.

    keys : int64[k], strictly increasing, k < 2^31 · ids : int64[n]
    returns int32[n]. Cost: one or two reads per id, and a table of at most 20 bytes per key.

    >>> numbers_of(np.array([5, 7]), np.array([7, 6, 5])).tolist()
    [1, -1, 0]
    """
    table, dense = build_table(keys)
    return find_numbers(settled(keys), settled(table), dense, settled(ids))


def _find_numbers_plain(keys: Ints, table: Numbers, dense: bool, ids: Ints) -> Numbers:
    if not len(keys):
        return np.full(len(ids), -1, np.int32)
    at = np.minimum(np.searchsorted(keys, ids), len(keys) - 1)
    return np.where(keys[at] == ids, at, -1).astype(np.int32)


@kernel(plain=_find_numbers_plain)
def find_numbers(keys: Ints, table: Numbers, dense: bool, ids: Ints) -> Numbers:
    """`numbers_of`, with the table of `build_table(keys)`; twin `_find_numbers_plain`."""
    found = np.full(len(ids), -1, np.int32)
    if len(keys) == 0:
        return found
    n_bits = bits_of(len(table))
    for i in range(len(ids)):
        found[i] = row_of(keys, table, dense, n_bits, ids[i])
    return found


def group(numbers: Numbers, n: int, items: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
    """The items of each of `n` lists, end to end, in the order in which they came.

    numbers : int32[m], from 0 to n - 1, the list of each item · items : [m] of any dtype
    returns (starts, items): int64[n + 1], [m]; of list i, `items[starts[i]:starts[i + 1]]`.

    >>> starts, items = group(np.array([1, 0, 1], np.int32), 3, np.array([10, 20, 30]))
    >>> starts.tolist(), items.tolist()
    ([0, 1, 3, 3], [20, 10, 30])
    """
    return _group(settled(numbers), n, settled(items))


def _group_plain(
    numbers: Numbers, n: int, items: npt.NDArray[Any]
) -> tuple[Ints, npt.NDArray[Any]]:
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=n), out=starts[1:])
    return starts, items[np.argsort(numbers, kind="stable")]


@kernel(plain=_group_plain)
def _group(numbers: Numbers, n: int, items: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
    """`group`: count, then put each item at the next place of its list; twin `_group_plain`."""
    starts = np.zeros(n + 1, np.int64)
    for i in range(len(numbers)):
        starts[numbers[i] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    places = starts[:-1].copy()
    grouped = np.empty(len(items), items.dtype)
    for i in range(len(items)):
        place = places[numbers[i]]
        grouped[place] = items[i]
        places[numbers[i]] = place + 1
    return starts, grouped


def tally(numbers: Numbers, n: int) -> Ints:
    """How often each number from 0 to n - 1 occurs: `numpy.bincount` without a copy as int64.

    numbers : int32[m], from 0 to n - 1 · returns int64[n]

    >>> tally(np.array([2, 0, 2], np.int32), 4).tolist()
    [1, 0, 2, 0]
    """
    return _tally(settled(numbers), n)


def _tally_plain(numbers: Numbers, n: int) -> Ints:
    return np.bincount(numbers, minlength=n).astype(np.int64)


@kernel(plain=_tally_plain)
def _tally(numbers: Numbers, n: int) -> Ints:
    """`tally`; twin `_tally_plain`."""
    counts = np.zeros(n, np.int64)
    for i in range(len(numbers)):
        counts[numbers[i]] += 1
    return counts


def group_distinct(numbers: Numbers, n: int, items: Numbers) -> tuple[Ints, Numbers]:
    """The distinct items of each of `n` lists, in order, end to end.

    numbers : int32[m], from 0 to n - 1, the list of each item · items : int32[m], 0 or more
    returns (starts, items): int64[n + 1], int32[<= m]. Uses 8 bytes per item beside these.

    >>> numbers, items = np.array([1, 0, 1, 1], np.int32), np.array([9, 7, 8, 9], np.int32)
    >>> starts, items = group_distinct(numbers, 2, items)
    >>> starts.tolist(), items.tolist()
    ([0, 1, 3], [7, 8, 9])
    """
    packed = numbers.astype(np.int64)
    packed <<= 32
    packed |= items
    packed.sort()
    starts, found = _unpack(packed, n)
    return starts, found if len(found) == len(packed) else found.copy()


def _unpack_plain(packed: Ints, n: int) -> tuple[Ints, Numbers]:
    first = np.ones(len(packed), np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(packed[first] >> 32, minlength=n), out=starts[1:])
    return starts, packed[first].astype(np.int32)


@kernel(plain=_unpack_plain)
def _unpack(packed: Ints, n: int) -> tuple[Ints, Numbers]:
    """Starts and distinct items of sorted pairs `(number << 32) | item`; twin `_unpack_plain`."""
    starts = np.zeros(n + 1, np.int64)
    items = np.empty(len(packed), np.int32)
    n_items = 0
    for i in range(len(packed)):
        if i == 0 or packed[i] != packed[i - 1]:
            items[n_items] = np.int32(packed[i] & 0x7FFFFFFF)
            n_items += 1
            starts[(packed[i] >> 32) + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    return starts, items[:n_items]


def positions(begins: Ints, ends: Ints) -> Ints:
    """Every position of every span, one span after the other.

    begins, ends : int64[k], begins <= ends · returns int64[sum(ends - begins)]

    >>> positions(np.array([5, 0]), np.array([7, 1])).tolist()
    [5, 6, 0]
    """
    sizes = ends - begins
    stops = np.cumsum(sizes)
    offsets = np.repeat(begins - (stops - sizes), sizes)
    return offsets + np.arange(len(offsets))
