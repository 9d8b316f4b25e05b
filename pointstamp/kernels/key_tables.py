"""From an arbitrary int64 to what belongs to it, without sorting: tables of two forms.

- *Rows*, of sorted keys that are known beforehand: an array of row numbers, by the
  distance from the least key where keys lie close together, else by hash.
- *Slots*, of keys that come one after the other: records of a key, something that
  is not 0, and more; a slot of zeros is empty.

Hashing is open addressing with linear probing; a key's first slot is the top of its
product with an odd number near 2^64 / golden ratio. Large tables are read at random,
and what costs is waiting for memory. A loop that goes on or not by what it has read
waits for each read; so kernels that look up many keys ask for the first slots of
a few hundred before they look at any, and wait for all at once (half the time, with a
million keys). For the same reason tables are allocated here by NumPy, which asks
for huge pages, and not inside a kernel.

Source: D. E. Knuth, "The Art of Computer Programming" vol. 3, 6.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Slots = npt.NDArray[np.int64]

_SPREAD = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, odd


def build_table(keys: Ints) -> tuple[Rows, bool]:
    """A table that leads from each of `keys` to its row; for `lists.find_numbers`.

    keys : int64[n], sorted, distinct, n < 2^31
    returns (table, dense). Where the keys lie close together (dense), the row of
    `v` is `table[v - keys[0]]`; elsewhere the table is hashed. Both hold -1 where
    there is no row, and take at most 20 bytes per key.

    >>> build_table(np.array([5, 6, 8]))
    (array([ 0,  1, -1,  2], dtype=int32), True)
    """
    if len(keys) == 0:
        return np.empty(0, np.int32), True
    span = int(keys[-1]) - int(keys[0]) + 1
    if span <= 4 * len(keys) + 64:
        table = np.full(span, -1, np.int32)
        table[keys - keys[0]] = np.arange(len(keys), dtype=np.int32)
        return table, True
    return hash_rows(contiguous(keys), (2 * len(keys) - 1).bit_length()), False


@kernel("table_loops")
def hash_rows(keys: Ints, n_bits: int) -> Rows:
    """A hash table of `2^n_bits` slots with the row of each key, -1 where empty.

    keys : int64[n], distinct · n_bits : 1 to 31, 2^n_bits > n
    """
    table = np.full(1 << n_bits, -1, np.int32)
    for row, key in enumerate(keys.tolist()):
        slot = first_slot(key, n_bits)
        while table[slot] >= 0:
            slot = (slot + 1) & (len(table) - 1)
        table[slot] = row
    return table


def first_slot(key: int, n_bits: int) -> int:
    """Where a key's search begins in a table of `2^n_bits` slots."""
    return ((int(key) * _SPREAD) & (2**64 - 1)) >> (64 - n_bits)


# Slots.

FEW = 1024
"""Slots of an empty table."""

_LARGE = 1 << 20
"""Bytes of an array that grows more than twofold."""


def reserved(slots: Slots, n: int, n_more: int) -> Slots:
    """The same slots, or larger ones, in which `n + n_more` keys fill at most five eighths.

    slots : int64[2^k, w], of which `n` are not empty · returns int64[2^l, w], l >= k

    >>> reserved(np.zeros((8, 2), np.int64), 3, 3).shape
    (16, 2)
    """
    size = len(slots)
    while 8 * (n + n_more) > 5 * size:
        size *= 2
    if size == len(slots):
        return slots
    larger = _empty_slots(size, slots.shape[1])
    refill(slots, larger)
    return larger


def _empty_slots(size: int, width: int) -> Slots:
    """Slots that begin with a cache line: where they are half of one, none lies in two."""
    words = np.zeros(size * width + 8, np.int64)
    first = -words.ctypes.data % 64 // words.itemsize
    return words[first : first + size * width].reshape(size, width)


def with_room(values: npt.NDArray[Any], n: int, n_more: int) -> npt.NDArray[Any]:
    """The same array, or one of twice the length or more, with room for `n_more` after `n`."""
    if n + n_more <= len(values):
        return values
    # Room costs nothing before it is used; what moves is copied into new pages, which the
    # system clears first. So large arrays move seldom.
    more = 2 if values.nbytes < _LARGE else 8
    larger = np.empty(max(n + n_more, more * len(values)), values.dtype)
    larger[:n] = values[:n]
    return larger


@kernel("table_loops")
def refill(slots: Slots, larger: Slots) -> None:
    """Put the records of `slots` into `larger`, int64[2^l, w], all zeros."""
    n_bits = (len(larger) - 1).bit_length()
    for record in slots[slots[:, 1] != 0]:
        slot = first_slot(record[0], n_bits)
        while larger[slot, 1] != 0:
            slot = (slot + 1) & (len(larger) - 1)
        larger[slot] = record
