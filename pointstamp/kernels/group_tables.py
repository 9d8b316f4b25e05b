"""Records by group, as they come: keys numbered in a table that stays, totals by number.

A key's number is that of the group whose first record came so early: 0, 1, 2 and so on. The
table has the two-word slots of `key_tables`: the key, and its number and 1 more. Totals are
arrays, of one place for each number; the table is looked through once for a batch, and each
total added up by itself, so that there may be any number of them.

Source: hash aggregation, as in G. Graefe, "Query evaluation techniques for large databases",
ACM Computing Surveys 25(2), 1993, section 4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.key_tables import Ints, Rows, Slots, first_slot

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

LONG = 255
"""Bytes of a text from which on a slot does not say how many there are."""


@kernel("table_loops")
def number_keys(slots: Slots, n: int, distinct: Ints, keys: Ints, groups: Rows) -> int:
    """Find the number of each key, and give those that are new the next ones.

    slots : int64[2^k, 2], k >= 1, of which `n` are not empty, with room for all keys
    distinct : int64[m], m >= n + len(keys); the keys by number, the first `n` there already
    keys : int64[r] · groups : int32[r], written: the number of each key
    returns how many numbers there are now, fewer than 2^31.
    """
    n_bits = (len(slots) - 1).bit_length()
    for i, key in enumerate(keys.tolist()):
        slot = first_slot(key, n_bits)
        while slots[slot, 1] and slots[slot, 0] != key:
            slot = (slot + 1) & (len(slots) - 1)
        if not slots[slot, 1]:
            distinct[n] = key
            n += 1
            slots[slot] = key, n
        groups[i] = slots[slot, 1] - 1
    return n


@kernel("table_loops")
def number_texts(
    slots: Slots,
    n: int,
    ends: Ints,
    kept: Bytes,
    hashes: Ints,
    bounds: Ints,
    data: Bytes,
    groups: Rows,
) -> int:
    """Do the same of texts, which are found by their hashes, and then compared.

    slots : int64[2^k, 2], as of `number_keys`, by hash; texts of one hash lie one after the other.
        Above the number, from bit 32 on, is the length of the text, at most `LONG`.
    ends : int64[m], m > n + r; where the text of each number begins in `kept`, and after it
    kept : uint8[s], the texts by number, with room for all of `data` that `bounds` spans
    hashes : int64[r], by the bits of `hash_bytes`, which are different for different texts of one
        length up to eight, so that those are not compared · bounds : int64[r + 1], of the texts
        in `data`
    groups : int32[r], written: the number of each text
    returns how many numbers there are now, fewer than 2^31.
    """
    n_bits = (len(slots) - 1).bit_length()
    for i, key in enumerate(hashes.tolist()):
        text = data[bounds[i] : bounds[i + 1]]
        slot = first_slot(key, n_bits)
        while slots[slot, 1]:
            number = slots[slot, 1] & 0xFFFFFFFF
            known = kept[ends[number - 1] : ends[number]]
            if slots[slot, 0] == key and np.array_equal(known, text):
                break
            slot = (slot + 1) & (len(slots) - 1)
        if not slots[slot, 1]:
            ends[n + 1] = ends[n] + len(text)
            kept[ends[n] : ends[n + 1]] = text
            n += 1
            slots[slot] = key, n | min(len(text), LONG) << 32
        groups[i] = (slots[slot, 1] & 0xFFFFFFFF) - 1
    return n


@kernel("table_loops")
def add_ints(groups: Rows, values: Ints, totals: Ints) -> None:
    """Add each value to the total of its group; what goes beyond 64 bits wraps around.

    groups : int32[r], places of `totals` · values : int64[r] · totals : int64[m], changed
    """
    np.add.at(totals, groups, values)


@kernel("table_loops")
def add_floats(groups: Rows, values: Floats, totals: Floats) -> None:
    """Do the same of float64, in the order of the records."""
    np.add.at(totals, groups, values)


@kernel("table_loops")
def lower_ints(groups: Rows, values: Ints, totals: Ints) -> None:
    """Make the total of each group the least of itself and of the values of the group."""
    np.minimum.at(totals, groups, values)


@kernel("table_loops")
def raise_ints(groups: Rows, values: Ints, totals: Ints) -> None:
    """Make it the greatest."""
    np.maximum.at(totals, groups, values)
