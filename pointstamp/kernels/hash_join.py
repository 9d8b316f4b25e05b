"""Values kept by key, and asked for by key, a batch at a time: half of a hash join.

A `Multimap` holds the first values of each int64 key beside the key, in the same half of a
cache line, so that few values cost one wait for memory. The rest are side by side in one long
array. A list that is full moves to the end of the array, with room for twice as many; what it
leaves behind is not used again, and is at most as much as is in use.

A join of two streams keeps one for each side: a batch of one side asks the other's,
then is added to its own. Values are int64: numbers of rows that are kept elsewhere,
or the values themselves. They are kept and found as int32 for as long as all are so small.

State is a value: a function takes it and returns the next one, which may share (and
have overwritten) the arrays of the last; the last is not to be used again.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.key_tables import (
    FEW,
    Slots,
    reserved,
    with_room,
)

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

_PIECE = 65_536
"""How many values room is made for at a time."""


class Multimap(NamedTuple):
    """Values by key; made by `no_values`.

    Attributes
    ----------
    slots : int64[2^k, 4]
        A key; in one word how many values it has in the lower half, 0 in an empty slot, and in
        the upper the fourth part of where the rest begins; and its first four values as
        int32, or two as int64. The list of the rest has room for a power of two, 4 or more.
    n : how many keys there are
    lists : int32[s] or int64[s], the rest of the values; and room
    n_used : how much of `lists` is taken
    """

    slots: Slots
    n: int
    lists: Ints | Numbers
    n_used: int


def no_values() -> Multimap:
    """No keys yet."""
    return Multimap(np.zeros((FEW, 4), np.int64), 0, np.empty(FEW, np.int32), 0)


def add_values(kept: Multimap, keys: Ints, values: Ints) -> Multimap:
    """The values with those of a batch, each after those that its key has already.

    Parameters
    ----------
    kept : Multimap, not to be used again
    keys, values : int64[m]

    >>> kept = add_values(no_values(), np.array([7, 9, 7]), np.array([1, 2, 3]))
    >>> records, values = find_values(kept, np.array([5, 7]))
    >>> records.tolist(), values.tolist()
    ([1, 1], [1, 3])
    """
    slots, n, lists, n_used = kept
    for start in range(0, len(keys), _PIECE):
        of, new = (
            contiguous(keys[start : start + _PIECE]),
            contiguous(values[start : start + _PIECE]),
        )
        slots = reserved(slots, n, len(of))
        done = 0
        while done < len(of):
            n, n_used, done = insert_values(slots, n, lists, n_used, of, new, done)
            if done == len(of):
                break
            if lists.itemsize == 4 and not _are_small(new[done:]):
                slots, n, lists, n_used = _widened(Multimap(slots, n, lists, n_used))
            else:  # a list that had to move did not find room
                lists = with_room(lists, n_used, len(lists) - n_used + 1)
    return Multimap(slots, n, lists, n_used)


def find_values(kept: Multimap, keys: Ints) -> tuple[Numbers, Ints | Numbers]:
    """The values of each key of a batch.

    Parameters
    ----------
    kept : Multimap
    keys : int64[m]

    Returns
    -------
    (records, values) : int32[found], and int32[found] or int64[found] as `kept.lists` are
        `values[i]` is one of `keys[records[i]]`; records ascend, and the values of each
        are in the order in which they were added.
    """
    return values_of(*kept, contiguous(keys))


def _are_small(values: Ints) -> bool:
    """Whether all are as int32 what they are."""
    limits = np.iinfo(np.int32)
    return int(values.min()) >= limits.min and int(values.max()) <= limits.max


def _widened(kept: Multimap) -> Multimap:
    """The same values as int64, of which half as many are beside their keys."""
    keys = kept.slots[kept.slots[:, 1] != 0, 0]
    lists = np.empty(len(kept.lists), np.int64)
    wide = Multimap(np.zeros_like(kept.slots), 0, lists, 0)
    if not len(keys):
        return wide
    records, values = find_values(kept, keys)
    return add_values(wide, keys[records], values.astype(np.int64))


_LEAST = 4
"""How many values a list has room for at first; each begins at a multiple of it."""


def _lists_of(slots: Slots, lists: Ints | Numbers) -> dict[int, list[int]]:
    used = slots[slots[:, 1] != 0]
    begins = (used[:, 1].view(np.uint64) >> np.uint64(32)).astype(np.int64) * _LEAST
    rests = (used[:, 1] & 0xFFFFFFFF) - _n_inside(lists)
    words = used.view(lists.dtype)[:, _n_inside(lists) :]
    found = {}
    for key, begin, rest, first in zip(used[:, 0].tolist(), begins, rests, words, strict=True):
        inside = first[: len(first) + rest] if rest < 0 else first
        found[key] = [*inside.tolist(), *lists[begin : begin + max(rest, 0)].tolist()]
    return found


def _n_inside(lists: Ints | Numbers) -> int:
    """How many values are in a slot; also, as words of their width, where they begin there."""
    return 16 // lists.itemsize


@kernel("table_loops")
def insert_values(
    slots: Slots,
    n: int,
    lists: Ints | Numbers,
    n_used: int,
    keys: Ints,
    values: Ints,
    done: int,
) -> tuple[int, int, int]:
    """Add a piece, from its record `done` on, until `lists` is full or a value too large for it.

    slots, n, lists, n_used : of `Multimap`, with slots for all keys; changed
    keys, values : int64[m]
    returns (n, n_used, done), done = m if all are added

    The twin puts slots where no search would look, and adds all or nothing.
    """
    found = _lists_of(slots, lists)
    added = zip(keys[done:].tolist(), values[done:].tolist(), strict=True)
    for key, value in added:
        found.setdefault(key, []).append(value)
    first = _n_inside(lists)
    rests = [of_key[first:] for of_key in found.values()]
    begins = [0, *itertools.accumulate(len(rest) + -len(rest) % _LEAST for rest in rests)]
    is_narrow = lists.itemsize == 4
    if begins[-1] > len(lists) or (
        is_narrow and done < len(keys) and not _are_small(values[done:])
    ):
        return n, n_used, done
    slots[:] = 0
    words = slots.view(lists.dtype)
    of_keys = zip(found.items(), rests, begins, strict=False)
    for slot, ((key, of_key), rest, begin) in enumerate(of_keys):
        slots[slot, :2] = key, begin // _LEAST << 32 | len(of_key)
        words[slot, first : first + len(of_key[:first])] = of_key[:first]
        lists[begin : begin + len(rest)] = rest
    return len(found), begins[-1], len(keys)


@kernel("table_loops")
def values_of(
    slots: Slots, n: int, lists: Ints | Numbers, n_used: int, keys: Ints
) -> tuple[Numbers, Ints | Numbers]:
    """`find_values`, on the parts of `Multimap`."""
    by_key = _lists_of(slots, lists)
    found = [by_key.get(key, []) for key in keys.tolist()]
    records = np.repeat(np.arange(len(keys), dtype=np.int32), np.array(list(map(len, found)), int))
    values: Any = np.array([value for values in found for value in values], lists.dtype)
    return records, values
