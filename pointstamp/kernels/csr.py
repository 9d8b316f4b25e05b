"""Compressed sparse rows: the sorted, distinct neighbours of each vertex, end to end.

Of edges as two int64 arrays, in any order and with repeats, this makes three:
`keys`, the vertices that have neighbours; `values`, all neighbours; `starts`,
where those of each key begin. Vertices are arbitrary int64 ids, so a table
(`key_tables.py`) leads from a vertex to its row.

Sorting pairs is sorting integers: a pair is packed into one int64 where the
ranges of ids allow it, and ids are replaced by their ranks where they do not (found
by hash: searching for each in the sorted ids took ten times as long).
`sorting.py` says how they are sorted; `numpy.unique` was slower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.key_tables import Rows, with_room
from pointstamp.kernels.lists import DenseIds, distinct, packed_pairs
from pointstamp.kernels.sorting import sort_numbers

Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class Pairs:
    """Pairs of ids that are collected, part by part, to be built into rows.

    Ids from 0 to 2^31 - 1 are packed as they come, so a pair takes 8 bytes and room
    for others; parts with other ids are kept as they are.

    >>> pairs = Pairs()
    >>> pairs.add(np.array([7, 3]), np.array([1, 9]))
    >>> pairs.add(np.array([7, 7]), np.array([0, 1]))
    >>> keys, starts, values = pairs.build()
    >>> keys.tolist(), starts.tolist(), values.tolist()
    ([3, 7], [0, 1, 3], [9, 0, 1])
    """

    def __init__(self) -> None:
        self._packed = _NONE
        self._n = 0
        self._far: list[tuple[Ints, Ints]] = []

    def add(self, sources: Ints, targets: Ints) -> None:
        """Add pairs, int64[m] each, in any order, which may repeat."""
        if not (_are_near(sources) and _are_near(targets)):
            self._far.append((sources, targets))
            return
        self._packed = with_room(self._packed, self._n, len(sources))
        room = self._packed[self._n : self._n + len(sources)]
        np.left_shift(sources, _NEAR_BITS, out=room)
        room |= targets
        self._n += len(sources)

    def build(self) -> tuple[Ints, Ints, Ints]:
        """The neighbours of each source, sorted and distinct: see `build_csr`; ends these pairs."""
        packed, far = self._packed[: self._n], self._far
        self._packed, self._n, self._far = _NONE, 0, []
        if not far:
            return _rows_of(packed, _NEAR_BITS, 0, 0)
        if len(packed):
            far.append((packed >> _NEAR_BITS, packed & (1 << _NEAR_BITS) - 1))
        del packed
        return _build_parts(far)


_NEAR_BITS = 31


def _are_near(ids: Ints) -> bool:
    return not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) >> _NEAR_BITS == 0)


def build_csr(sources: Ints, targets: Ints) -> tuple[Ints, Ints, Ints]:
    """The neighbours of each source, sorted and distinct.

    sources, targets : int64[m], in any order, pairs may repeat
    returns (keys, starts, values):
      keys : int64[n], sorted, distinct · starts : int64[n + 1] · values : int64[<= m]

    The targets of `keys[i]` are `values[starts[i]:starts[i + 1]]`. Uses 8 bytes per
    edge beside its arguments and its result.

    >>> keys, starts, values = build_csr(np.array([7, 3, 7, 7]), np.array([1, 9, 0, 1]))
    >>> keys.tolist(), starts.tolist(), values.tolist()
    ([3, 7], [0, 1, 3], [9, 0, 1])
    """
    return _build_parts([(sources, targets)])


def _build_parts(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """The same of parts, at least one; the list lets go of each as soon as it is packed."""
    source_low, source_bits = _low_and_bits([sources for sources, _ in parts])
    target_low, target_bits = _low_and_bits([targets for _, targets in parts])
    if source_bits + target_bits > 63:
        return _build_ranked(parts)
    packed = packed_pairs(parts, lambda s: s - source_low, target_bits, lambda t: t - target_low)
    return _rows_of(packed, target_bits, source_low, target_low)


def _low_and_bits(parts: list[Ints]) -> tuple[int, int]:
    """The least id, and how many bits distinguish the ids once it is subtracted."""
    filled = [part for part in parts if len(part)]
    low = min((int(part.min()) for part in filled), default=0)
    high = max((int(part.max()) for part in filled), default=0)
    return low, (high - low).bit_length()


def _rows_of(
    packed: Ints, target_bits: int, source_low: int, target_low: int
) -> tuple[Ints, Ints, Ints]:
    """Keys, starts and values of pairs as `split_packed` takes them, but in any order."""
    if len(packed) == 0:
        return _NONE, np.zeros(1, np.int64), _NONE
    sort_numbers(packed)
    keys, starts, values = split_packed(packed, target_bits, source_low, target_low)
    # What repeated left room behind; a copy gives it back, where it is worth one.
    wasteful = 4 * len(values) < 3 * len(packed)
    return keys, starts, values.copy() if wasteful else values


def _build_ranked(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """The same for ids too far apart to pack: their numbers are packed in their place."""
    of_sources = DenseIds.of(distinct(*(sources for sources, _ in parts)))
    of_targets = DenseIds.of(distinct(*(targets for _, targets in parts)))
    packed = packed_pairs(parts, of_sources.numbers_of, 32, of_targets.numbers_of)
    keys, starts, values = _rows_of(packed, 32, 0, 0)
    return of_sources.ids[keys], starts, of_targets.ids[values]


def _first_of_equal(ordered: Ints) -> npt.NDArray[np.bool_]:
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


@kernel("sort_loops")
def split_packed(
    packed: Ints, n_bits: int, source_low: int, target_low: int
) -> tuple[Ints, Ints, Ints]:
    """Keys, starts and values of sorted pairs, each `(source << n_bits) | target`.

    packed : int64[m], m > 0, sorted; overwritten, and `values` is a view of it
    n_bits : bits of a target · source_low, target_low : added to what is unpacked
    returns (keys, starts, values) as `build_csr` does.
    """
    distinct = packed[_first_of_equal(packed)]
    row_of = distinct >> n_bits
    begins = np.flatnonzero(_first_of_equal(row_of))
    values = (distinct & ((1 << n_bits) - 1)) + target_low
    return row_of[begins] + source_low, np.append(begins, len(distinct)), values


@kernel("table_loops")
def find_spans(
    keys: Ints, starts: Ints, table: Rows, dense: bool, vertices: Ints
) -> tuple[Ints, Ints]:
    """Where the neighbours of each vertex begin and end; 0 and 0 for one that has none.

    keys, starts : as of `build_csr` · table, dense : `build_table(keys)`
    vertices : int64[m]
    returns (begins, ends), both int64[m]. Cost: one or two reads per vertex.
    """
    if len(keys) == 0:
        return np.zeros(len(vertices), np.int64), np.zeros(len(vertices), np.int64)
    rows = np.minimum(np.searchsorted(keys, vertices), len(keys) - 1)
    found = keys[rows] == vertices
    return np.where(found, starts[rows], 0), np.where(found, starts[rows + 1], 0)
