"""Lists end to end: items by the number of their list, and ids by their number.

Graph algorithms count vertices from 0 and keep the neighbours of each in one array,
so that what belongs to a vertex is read in a row and an array can hold a value for
each. These are the steps that lead there from arbitrary int64 ids. What is made of many
edges takes them in parts, so that they need not be put together first.

Source: the counting sort of any textbook; stable, so that lists keep the order of
their items.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.key_tables import build_table
from pointstamp.kernels.sorting import sort_numbers, unique_sorted

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


def distinct(*parts: Ints) -> Ints:
    """The distinct ids of all parts, in order: by flags where they lie close together, else sorted.

    parts : int64[n] each, in any order; they are not put together first
    returns int64[m], strictly increasing. Uses a byte for each id from the least to the
    greatest, of which there are at most four times as many as ids; or else about 32 bytes
    for each distinct one.

    >>> distinct(np.array([7, 5, 7]), np.array([6])).tolist()
    [5, 6, 7]
    """
    filled = [part for part in parts if len(part)]
    if not filled:
        return np.empty(0, np.int64)
    low, high = _span(filled)
    if not _are_near(low, high, filled):
        return _sorted_distinct(filled)
    present = np.zeros(high - low + 1, np.bool_)
    for part in filled:
        flag(contiguous(part), low, present)
    return np.flatnonzero(present) + low


def counted(*parts: Ints) -> tuple[Ints, Ints]:
    """The distinct ids of all parts, in order, and how often each occurs.

    parts : as of `distinct`, with eight bytes in place of each · returns int64[m], int64[m]

    >>> [found.tolist() for found in counted(np.array([7, 5, 7]), np.array([6]))]
    [[5, 6, 7], [1, 1, 2]]
    """
    filled = [part for part in parts if len(part)]
    if not filled:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = _span(filled)
    if _are_near(low, high, filled):
        counts = np.zeros(high - low + 1, np.int64)
        for part in filled:
            count_buckets(contiguous(part), low, 0, counts)
        places = np.flatnonzero(counts)
        return places + low, counts[places]
    numbering = DenseIds.of(_sorted_distinct(filled))
    counts = np.zeros(len(numbering.ids), np.int64)
    for part in filled:
        count_into(counts, numbering.numbers_of(part))
    return numbering.ids, counts


def _span(parts: list[Ints]) -> tuple[int, int]:
    """The least and the greatest id; no part is empty."""
    return min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)


def _are_near(low: int, high: int, parts: list[Ints]) -> bool:
    """Whether a place for each id from the least to the greatest is worth it."""
    return high - low <= 4 * sum(map(len, parts)) + 64


def _sorted_distinct(parts: list[Ints]) -> Ints:
    """What repeats is dropped on the way, whenever as much has come as is there."""
    found, runs, n_new = np.empty(0, np.int64), list[Ints](), 0
    for part in parts:
        runs.append(unique_sorted(part))
        n_new += len(runs[-1])
        if n_new > len(found):
            found, runs, n_new = _union([found, *runs]), [], 0
    return _union([found, *runs])


def _union(runs: list[Ints]) -> Ints:
    filled = [run for run in runs if len(run)]
    return filled[0] if len(filled) == 1 else unique_sorted(np.concatenate(filled))


@kernel("table_loops")
def flag(ids: Ints, low: int, present: Bools) -> None:
    """Set `present[id - low]` for each of `ids`.

    ids : int64[n], from `low` up to, not with, `low + len(present)` · present : bool[k], changed
    """
    present[ids - low] = True


@dataclass(frozen=True, eq=False)
class DenseIds:
    """Ids by number, and numbers by id; made by `of`.

    Attributes
    ----------
    ids : int64[k], strictly increasing, k < 2^31: the id of each number
    table, dense : see `build_table`; at most 20 bytes per id
    """

    ids: Ints
    table: Numbers
    dense: bool

    @classmethod
    def of(cls, ids: Ints) -> DenseIds:
        """Number `ids`, int64[k], strictly increasing.

        >>> DenseIds.of(np.array([5, 7])).numbers_of(np.array([7, 6, 5])).tolist()
        [1, -1, 0]
        """
        table, dense = build_table(ids)
        return cls(contiguous(ids), contiguous(table), dense)

    def numbers_of(self, ids: Ints) -> Numbers:
        """The number of each id, int32; -1 of one that has none. One or two reads each."""
        return find_numbers(self.ids, self.table, self.dense, contiguous(ids))


def numbers_of(keys: Ints, ids: Ints) -> Numbers:
    """The position of each of `ids` in `keys`; -1 where it is not there.

    keys : int64[k], strictly increasing, k < 2^31 · ids : int64[n] · returns int32[n]

    >>> numbers_of(np.array([5, 7]), np.array([7, 6, 5])).tolist()
    [1, -1, 0]
    """
    return DenseIds.of(keys).numbers_of(ids)


@kernel("table_loops")
def find_numbers(keys: Ints, table: Numbers, dense: bool, ids: Ints) -> Numbers:
    """`numbers_of`, with the table of `build_table(keys)`."""
    if not len(keys):
        return np.full(len(ids), -1, np.int32)
    at = np.minimum(np.searchsorted(keys, ids), len(keys) - 1)
    return np.where(keys[at] == ids, at, -1).astype(np.int32)


def group(numbers: Numbers, n: int, items: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
    """The items of each of `n` lists, end to end, in the order in which they came.

    numbers : int32[m], from 0 to n - 1, the list of each item · items : [m] of any dtype
    returns (starts, items): int64[n + 1], [m]; of list i, `items[starts[i]:starts[i + 1]]`.

    >>> starts, items = group(np.array([1, 0, 1], np.int32), 3, np.array([10, 20, 30]))
    >>> starts.tolist(), items.tolist()
    ([0, 1, 3, 3], [20, 10, 30])
    """
    starts = starts_of(tally(numbers, n))
    grouped = np.empty(len(items), items.dtype)
    place_into(grouped, starts[:-1].copy(), numbers, items)
    return starts, grouped


def starts_of(counts: Ints) -> Ints:
    """Where each list begins, and the last one ends: int64[n + 1] of its lengths, int64[n]."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def place_into(
    grouped: npt.NDArray[Any], places: Ints, numbers: Numbers, items: npt.NDArray[Any]
) -> None:
    """Put a part of the items of lists where they belong; `group` for parts that come in turn.

    grouped : [m] of the items' dtype, filled
    places : int64[n], where the next item of each list goes, moved on
    numbers, items : as of `group`

    >>> grouped, places = np.zeros(3, np.int64), np.array([0, 1])
    >>> place_into(grouped, places, np.array([1, 0], np.int32), np.array([10, 20]))
    >>> place_into(grouped, places, np.array([1], np.int32), np.array([30]))
    >>> grouped.tolist(), places.tolist()
    ([20, 10, 30], [1, 3])
    """
    if items.dtype.hasobject or items.dtype.itemsize not in (1, 2, 4, 8):
        place_words.plain(numbers, items, places, grouped)  # type: ignore[attr-defined]
        return
    words = np.dtype(f"u{items.dtype.itemsize}")
    place_words(contiguous(numbers), contiguous(items).view(words), places, grouped.view(words))


@kernel("table_loops")
def place_words(
    numbers: Numbers, items: npt.NDArray[Any], places: Ints, grouped: npt.NDArray[Any]
) -> None:
    """`place_into`."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    which, begins, counts = np.unique(ordered, return_index=True, return_counts=True)
    # Of the items of each list that are in this part: how many come before.
    before = np.arange(len(order)) - np.repeat(begins, counts)
    grouped[places[ordered] + before] = items[order]
    places[which] += counts


def tally(numbers: Numbers, n: int) -> Ints:
    """How often each number from 0 to n - 1 occurs: `numpy.bincount` without a copy as int64.

    numbers : int32[m], from 0 to n - 1 · returns int64[n]

    >>> tally(np.array([2, 0, 2], np.int32), 4).tolist()
    [1, 0, 2, 0]
    """
    counts = np.zeros(n, np.int64)
    count_into(counts, numbers)
    return counts


def count_into(counts: Ints, numbers: Numbers) -> None:
    """Add how often each number occurs to `counts`, int64[n]; numbers are int32[m]."""
    tally_into(contiguous(numbers), counts)


@kernel("table_loops")
def tally_into(numbers: Numbers, counts: Ints) -> None:
    """`count_into`."""
    np.add.at(counts, numbers, 1)


def packed_pairs(
    parts: list[tuple[Ints, Ints]],
    of_first: Callable[[Ints], npt.NDArray[Any]],
    n_bits: int,
    of_second: Callable[[Ints], npt.NDArray[Any]],
) -> Ints:
    """`(of_first(a) << n_bits) | of_second(b)` of all pairs of ids, which are given in parts.

    parts : int64[m] and int64[m] each; the list lets go of each as soon as it is packed
    of_first, of_second : make numbers from 0 of ids, the second ones of at most `n_bits`

    >>> packed_pairs([(np.array([1, 2]), np.array([7, 8]))], abs, 4, abs).tolist()
    [23, 40]
    """
    packed = np.empty(sum(len(first) for first, _ in parts), np.int64)
    end = len(packed)
    while parts:
        first, second = parts.pop()
        room = packed[end - len(first) : end]
        room[:] = of_first(first)
        room <<= n_bits
        room |= of_second(second)
        end -= len(first)
    return packed


_FEW_PAIRS, _BUCKET_BITS = 1 << 16, 11


def sorted_pairs(
    parts: list[tuple[Ints, Ints]], first_low: int, n_firsts: int, second_low: int
) -> Ints:
    """`(a - first_low) << 32 | (b - second_low)` of all pairs of ids, in order.

    parts : int64[m] and int64[m] each; the list lets go of each as soon as it is packed
    first_low, n_firsts : the least of the first ids, and how many ids lie from it to the greatest
    second_low : the least of the second ids; both spans are less than 2^31

    Pairs are put into buckets by the first bits of their first ids, as they are packed, and
    then each bucket is sorted: what is sorted lies in the processor's cache, where sorting all
    pairs goes through memory some ten times.

    >>> parts = [(np.array([4, 3]), np.array([7, 9])), (np.array([3]), np.array([8]))]
    >>> sorted_pairs(parts, 3, 2, 7)
    array([         1,          2, 4294967296])
    """
    n_pairs = sum(len(first) for first, _ in parts)
    n_bits = (n_firsts - 1).bit_length() if n_firsts else 0
    shift = n_bits if n_pairs < _FEW_PAIRS else max(0, n_bits - _BUCKET_BITS)
    counts = np.zeros((n_firsts >> shift) + 1, np.int64)
    for first, _ in parts:
        count_buckets(contiguous(first), first_low, shift, counts)
    starts = starts_of(counts)
    packed, places = np.empty(n_pairs, np.int64), starts[:-1].copy()
    while parts:
        first, second = map(contiguous, parts.pop())
        pack_by_bucket(first, first_low, second, second_low, shift, places, packed)
    bounds = starts.tolist()
    for start, stop in itertools.pairwise(bounds):
        sort_numbers(packed[start:stop])
    return packed


@kernel("table_loops")
def count_buckets(ids: Ints, low: int, shift: int, counts: Ints) -> None:
    """Add how many of `ids` are in each bucket `(id - low) >> shift` to `counts`, int64[k]."""
    np.add.at(counts, (ids - low) >> shift, 1)


@kernel("table_loops")
def pack_by_bucket(
    first: Ints,
    first_low: int,
    second: Ints,
    second_low: int,
    shift: int,
    places: Ints,
    packed: Ints,
) -> None:
    """Put `(first - first_low) << 32 | (second - second_low)` where each pair's bucket goes on.

    first, second : int64[m] · shift : as of `count_buckets`
    places : int64[k], where the next pair of each bucket goes in `packed`, moved on
    """
    numbers = first - first_low
    pairs = numbers << 32 | (second - second_low)
    place_words.plain(numbers >> shift, pairs, places, packed)  # type: ignore[attr-defined]


def group_distinct(packed: Ints, n: int) -> tuple[Ints, Numbers]:
    """The distinct items of each of `n` lists, in order, end to end.

    packed : int64[m], `(number << 32) | item` of each item, both 0 or more; sorted in place
    returns (starts, items): int64[n + 1], int32[<= m]

    >>> numbers, items = np.array([1, 0, 1, 1]), np.array([9, 7, 8, 9])
    >>> starts, items = group_distinct(numbers << 32 | items, 2)
    >>> starts.tolist(), items.tolist()
    ([0, 1, 3], [7, 8, 9])
    """
    sort_numbers(packed)
    return group_sorted(packed, n)


def group_sorted(packed: Ints, n: int) -> tuple[Ints, Numbers]:
    """`group_distinct` of pairs that are sorted already."""
    starts, found = unpack(packed, n)
    return starts, found if len(found) == len(packed) else found.copy()


@kernel("sort_loops")
def unpack(packed: Ints, n: int) -> tuple[Ints, Numbers]:
    """Starts and distinct items of sorted pairs `(number << 32) | item`."""
    first = np.ones(len(packed), np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(packed[first] >> 32, minlength=n), out=starts[1:])
    return starts, packed[first].astype(np.int32)


@kernel("table_loops")
def copy_lists(items: Ints, starts: Ints, places: Ints, copied: Ints) -> None:
    """Copy lists that lie end to end to where each belongs.

    items : int64[m] · starts : int64[k + 1], of list i are `items[starts[i]:starts[i + 1]]`
    places : int64[k], where each goes in `copied`, int64[any], no two over each other

    >>> copied = np.zeros(4, np.int64)
    >>> copy_lists(np.array([10, 20, 30]), np.array([0, 2, 3]), np.array([2, 0]), copied)
    >>> copied.tolist()
    [30, 0, 10, 20]
    """
    sizes = np.diff(starts)
    copied[positions(places, places + sizes)] = items[starts[0] : starts[-1]]


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
