"""Numbers of the records of both sides of a join, kept by key in one table: a symmetric hash join.

Each record of a side asks for those of the other side with its key, and is kept for what comes
there later. In a `Multimap` for each side that is two searches, and two waits for memory. Here a
slot is a cache line that has the first numbers of both sides, so that one search does both. The
idea of a symmetric hash join is that of Wilschut and Apers (1991), with two tables.

State is a value, as in `hash_join`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hash_join import Ints, Numbers
from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.key_tables import FEW, Slots, reserved, with_room

LIMIT = np.iinfo(np.int32).max
"""The largest number of a record that can be kept."""

_PIECE = 65_536
"""How many records room is made for at a time."""

_INSIDE = 5
"""How many numbers of a side are in the slot."""

_LEAST = 4
"""How many numbers a list has room for at first; each begins at a multiple of it."""

_SIZES, _BEGINS, _FIRSTS = 2, 4, 6
"""The words of a slot in which these begin, of the left side and then of the right one."""


class PairedMultimap(NamedTuple):
    """Numbers of two sides by key; made by `no_numbers`. The sides are 0 and 1.

    Attributes
    ----------
    slots : int64[2^k, 8]
        A key, and words of int32: how many numbers each side has, both 0 in an empty slot; a
        fourth part of where the rest of each begins, as uint32; and the first five of each. The
        list of the rest has room for a power of two, 4 or more.
    n : how many keys there are
    lists : int32[s], the rest of the numbers; and room
    n_used : how much of `lists` is taken
    """

    slots: Slots
    n: int
    lists: Numbers
    n_used: int


def no_numbers() -> PairedMultimap:
    """No keys yet."""
    return PairedMultimap(np.zeros((FEW, 8), np.int64), 0, np.empty(FEW, np.int32), 0)


def meet(
    kept: PairedMultimap, side: int, keys: Ints, numbers: Numbers, *, asks: bool = True
) -> tuple[PairedMultimap, Numbers, Numbers]:
    """The numbers that the other side has of the keys of a batch, which is kept.

    Parameters
    ----------
    kept : PairedMultimap, not to be used again
    side : int
        That of the batch, 0 or 1.
    keys : int64[m]
    numbers : int32[m]
        Of the records of the batch, each after those that its key has already.
    asks : bool
        False: the batch is kept only, and nothing is found.

    Returns
    -------
    (kept, records, found) : PairedMultimap, and both int32[pairs]
        `found[i]` is a number that the other side has of `keys[records[i]]`; records ascend, and
        the numbers of each are in the order in which they were added.

    >>> kept, records, found = meet(no_numbers(), 0, np.array([7, 9]), np.array([0, 1], np.int32))
    >>> len(found)
    0
    >>> kept, records, found = meet(kept, 1, np.array([5, 9, 7]), np.arange(3, dtype=np.int32))
    >>> records.tolist(), found.tolist()
    ([1, 2], [1, 0])
    """
    slots, n, lists, n_used = kept
    met = _room_for_met(len(keys) if asks else 0)
    for start in range(0, len(keys), _PIECE):
        of = contiguous(keys[start : start + _PIECE])
        new = contiguous(numbers[start : start + _PIECE])
        slots = reserved(slots, n, len(of))
        done = 0
        while done < len(of):
            n, n_used, done = meet_keys(
                slots, n, lists, n_used, of, new, side, done, met[start : start + _PIECE]
            )
            if done < len(of):  # a list that had to move did not find room
                lists = with_room(lists, n_used, len(lists) - n_used + 1)
    return PairedMultimap(slots, n, lists, n_used), *met_numbers(met, lists)


def ask(kept: PairedMultimap, side: int, keys: Ints) -> tuple[Numbers, Numbers]:
    """What `meet` finds, of a batch that is not kept.

    >>> kept = meet(no_numbers(), 0, np.array([7, 9]), np.array([0, 1], np.int32))[0]
    >>> ask(kept, 1, np.array([9]))[1].tolist(), ask(kept, 0, np.array([9]))[1].tolist()
    ([1], [])
    """
    met = _room_for_met(len(keys))
    meet_keys(*kept, contiguous(keys), np.empty(0, np.int32), side, 0, met)
    return met_numbers(met, kept.lists)


def of_side(kept: PairedMultimap, side: int) -> tuple[Ints, Numbers]:
    """The keys and the numbers of all records of a side, those of a key in their order.

    >>> kept = meet(no_numbers(), 0, np.array([7, 9]), np.array([0, 1], np.int32))[0]
    >>> keys, numbers = of_side(kept, 0)
    >>> dict(zip(keys.tolist(), numbers.tolist()))
    {7: 0, 9: 1}
    """
    words = kept.slots.view(np.int32)
    with_numbers = np.flatnonzero(words[:, _SIZES + side])
    met = _room_for_met(len(with_numbers))
    first = _FIRSTS + _INSIDE * side
    met[:, 0] = words[with_numbers, _SIZES + side]
    met[:, 1] = words[with_numbers, _BEGINS + side]
    met[:, 2 : 2 + _INSIDE] = words[with_numbers, first : first + _INSIDE]
    records, numbers = met_numbers(met, kept.lists)
    return kept.slots[with_numbers[records], 0], numbers


def _room_for_met(n: int) -> Numbers:
    """Of half a cache line for each of `n` keys: see `met_numbers`."""
    return np.empty((n, 8), np.int32)


@kernel("join_loops")
def meet_keys(
    slots: Slots,
    n: int,
    lists: Numbers,
    n_used: int,
    keys: Ints,
    numbers: Numbers,
    side: int,
    done: int,
    met: Numbers,
) -> tuple[int, int, int]:
    """Note what the other side has, and add records from `done` on, until `lists` is full.

    slots, n, lists, n_used : of `PairedMultimap`, with slots for all keys; changed
    keys : int64[m] · numbers : int32[m], or none: nothing is added
    met : int32[m, 8], or none: nothing is asked; see `met_numbers`
    returns (n, n_used, done), done = m if all are added

    The twin puts slots where no search would look.
    """
    words = slots.view(np.int32)
    slot_of = {key: i for i, (key, sizes) in enumerate(slots[:, :2].tolist()) if sizes}
    empty = iter(np.flatnonzero(slots[:, 1] == 0).tolist())
    own, other = _FIRSTS + _INSIDE * side, _FIRSTS + _INSIDE * (1 - side)
    for i, key in enumerate(keys[done:].tolist(), done):
        slot = slot_of.get(key)
        if len(met):
            met[i] = 0
            if slot is not None:
                met[i, 0] = words[slot, _SIZES + 1 - side]
                met[i, 1] = words[slot, _BEGINS + 1 - side]
                met[i, 2 : 2 + _INSIDE] = words[slot, other : other + _INSIDE]
        if not len(numbers):
            continue
        if slot is None:
            slot = slot_of[key] = next(empty)
            slots[slot] = [key, *[0] * 7]
            n += 1
        size = int(words[slot, _SIZES + side])
        rest = size - _INSIDE
        if rest < 0:
            words[slot, own + size] = numbers[i]
        else:
            begin = int(words[slot, _BEGINS + side].view(np.uint32)) * _LEAST
            if rest == 0 or (rest >= _LEAST and rest & (rest - 1) == 0):  # no room for more
                room = max(2 * rest, _LEAST)
                if n_used + room > len(lists):
                    return n, n_used, i
                lists[n_used : n_used + rest] = lists[begin : begin + rest]
                begin, n_used = n_used, n_used + room
                words[slot, _BEGINS + side] = np.uint32(begin // _LEAST).view(np.int32)
            lists[begin + rest] = numbers[i]
        words[slot, _SIZES + side] = size + 1
    return n, n_used, len(keys)


@kernel("join_loops")
def met_numbers(met: Numbers, lists: Numbers) -> tuple[Numbers, Numbers]:
    """The numbers that were met, and by which record each.

    met : int32[m, 8]
        Per record how many, a fourth part of where in `lists` the rest begins, as uint32, and the
        first five.
    returns (records, numbers), both int32[pairs]: half as much to write and to read as int64
    """
    found = []
    for size, begin, *inside in met[:, : 2 + _INSIDE].tolist():
        first = (begin & 0xFFFFFFFF) * _LEAST
        rest = lists[first : first + size - _INSIDE] if size > _INSIDE else lists[:0]
        found.append([*inside[:size], *rest.tolist()])
    records = np.repeat(np.arange(len(met), dtype=np.int32), np.array(list(map(len, found)), int))
    return records, np.array([number for of in found for number in of], np.int32)
