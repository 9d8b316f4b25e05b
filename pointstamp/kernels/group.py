"""Keys numbered or counted as they come, batch after batch, in a table that is kept.

What a keyed operator does with each record is to find the place of its key. Here a
whole batch finds its places at once: int64 keys get the numbers 0, 1, 2, ... in the
order of their first appearance, so that what is kept by key is an array. Counting
alone needs no numbers: a key and its count lie side by side, one read for both.

State is a value: a function takes it and returns the next one, which may share (and
have overwritten) the arrays of the last; the last is not to be used again.

How a table is read and grows: `tables.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import settled
from pointstamp.kernels.jit import kernel
from pointstamp.kernels.tables import (
    BLOCK,
    FEW,
    Slots,
    bits_of,
    reserved,
    slot_of,
    touch,
    with_room,
)

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

_PIECE = 65_536
"""How many keys room is made for at a time."""


class Groups(NamedTuple):
    """Keys and their numbers; made by `no_groups`.

    Attributes
    ----------
    slots : int64[2^k, 2], a key and its number + 1, or two zeros
    room : int64[r], the key of each number, and room for more
    n : how many there are
    """

    slots: Slots
    room: Ints
    n: int

    @property
    def keys(self) -> Ints:
        """The key of each number, int64[n]."""
        return self.room[: self.n]


def no_groups() -> Groups:
    """No keys yet."""
    return Groups(np.zeros((FEW, 2), np.int64), np.empty(FEW, np.int64), 0)


def group_ids(groups: Groups, keys: Ints) -> tuple[Groups, Numbers]:
    """The number of each key, and the groups with those that are new.

    Parameters
    ----------
    groups : Groups, not to be used again
    keys : int64[m]

    Returns
    -------
    (groups, numbers) : Groups, int32[m]
        Cost: one or two reads per key. A table takes 16 to 64 bytes per distinct key,
        of which there are less than 2^31.

    >>> groups, numbers = group_ids(no_groups(), np.array([7, 9, 7]))
    >>> groups, more = group_ids(groups, np.array([9, 5]))
    >>> numbers.tolist(), more.tolist(), groups.keys.tolist()
    ([0, 1, 0], [1, 2], [7, 9, 5])
    """
    numbers = np.empty(len(keys), np.int32)
    slots, room, n = groups
    for start in range(0, len(keys), _PIECE):
        piece = settled(keys[start : start + _PIECE])
        slots, room = reserved(slots, n, len(piece)), with_room(room, n, len(piece))
        n = _group_ids(slots, room, n, piece, numbers[start : start + _PIECE])
    return Groups(slots, room, n), numbers


def _group_ids_plain(slots: Slots, room: Ints, n: int, keys: Ints, numbers: Numbers) -> int:
    number_of = {key: number for number, key in enumerate(room[:n].tolist())}
    numbers[:] = [number_of.setdefault(key, len(number_of)) for key in keys.tolist()]
    room[: len(number_of)] = list(number_of)
    return len(number_of)


@kernel(plain=_group_ids_plain)
def _group_ids(slots: Slots, room: Ints, n: int, keys: Ints, numbers: Numbers) -> int:
    """Number a piece.

    slots, room, n : of `Groups`, with room for all keys; changed
    keys : int64[m] · numbers : int32[m], filled
    returns n. Twin `_group_ids_plain`, whose table is its own.
    """
    n_bits = bits_of(len(slots))
    read = np.empty(BLOCK, np.int64)
    for start in range(0, len(keys), BLOCK):
        stop = min(start + BLOCK, len(keys))
        touch(slots, n_bits, keys, start, stop, read)
        for i in range(start, stop):
            slot = slot_of(slots, n_bits, keys[i])
            if slots[slot, 1] == 0:
                room[n] = keys[i]
                n += 1
                slots[slot, 0] = keys[i]
                slots[slot, 1] = n
            numbers[i] = slots[slot, 1] - 1
    return n


class Counts(NamedTuple):
    """How often each key came; made by `no_counts`.

    Attributes
    ----------
    slots : int64[2^k, 2], a key and its count, or two zeros
    n : how many keys there are
    """

    slots: Slots
    n: int


def no_counts() -> Counts:
    """Nothing counted yet."""
    return Counts(np.zeros((FEW, 2), np.int64), 0)


def count_keys(counts: Counts, keys: Ints) -> Counts:
    """The counts with one more for each of `keys`.

    Parameters
    ----------
    counts : Counts, not to be used again
    keys : int64[m]
        Cost: one or two reads per key, and 32 to 64 bytes per distinct one.

    >>> counts = count_keys(no_counts(), np.array([7, 9, 7]))
    >>> keys, numbers = counted(count_keys(counts, np.array([9, 5])))
    >>> sorted(zip(keys.tolist(), numbers.tolist()))
    [(5, 1), (7, 2), (9, 2)]
    """
    slots, n = counts
    for start in range(0, len(keys), _PIECE):
        piece = settled(keys[start : start + _PIECE])
        slots = reserved(slots, n, len(piece))
        n = _count_keys(slots, n, piece)
    return Counts(slots, n)


def counted(counts: Counts) -> tuple[Ints, Ints]:
    """Each key and its count, both int64[n], in no particular order."""
    used = np.flatnonzero(counts.slots[:, 1])
    return counts.slots[used, 0], counts.slots[used, 1]


def _count_keys_plain(slots: Slots, n: int, keys: Ints) -> int:
    used = slots[slots[:, 1] != 0].tolist()
    counts = Counter(keys.tolist()) + Counter(dict(used))
    slots[:] = 0
    slots[: len(counts)] = list(counts.items()) or np.empty((0, 2))
    return len(counts)


@kernel(plain=_count_keys_plain)
def _count_keys(slots: Slots, n: int, keys: Ints) -> int:
    """Count a piece.

    slots, n : of `Counts`, with room for all keys; changed · keys : int64[m]
    returns n. Twin `_count_keys_plain`, whose slots are not where a search would look.
    """
    n_bits = bits_of(len(slots))
    read = np.empty(BLOCK, np.int64)
    for start in range(0, len(keys), BLOCK):
        stop = min(start + BLOCK, len(keys))
        touch(slots, n_bits, keys, start, stop, read)
        for i in range(start, stop):
            slot = slot_of(slots, n_bits, keys[i])
            n += slots[slot, 1] == 0
            slots[slot, 0] = keys[i]
            slots[slot, 1] += 1
    return n
