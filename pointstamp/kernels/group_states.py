"""Groups by the words of their keys: stable hashes, and numbers in a table that stays.

The table is open addressing, as that of `key_tables`, with one word for a slot: 0, or the
number of a group and 1 more. The keys are kept by number, and compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.consolidation import Rows
from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import Hashes, combine, mix

Slots = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


@kernel("group_loops")
def hash_words(rows: Rows, n_key: int) -> Hashes:
    """Hash the first `n_key` words (one at least) of int64[n, w] to uint64[n].

    >>> hash_words(np.array([[0, 5], [0, 6]]), 1).tolist() == [mix(0)] * 2
    True
    """
    return np.array([_hash(row[:n_key]) for row in rows.tolist()], np.uint64)


@kernel("group_loops")
def split_rows(rows: Rows, n_key: int, n_parts: int) -> list[Rows]:
    """The rows of each of `n_parts` parts, in order: those of equal first words are together.

    rows : int64[n, w], contiguous; n_key, n_parts : one at least

    >>> rows = np.array([[7, 1], [8, 1], [7, -1]])
    >>> [part.tolist() for part in split_rows(rows, 1, 1)]
    [[[7, 1], [8, 1], [7, -1]]]
    """
    part_of = hash_words(rows, n_key) % np.uint64(n_parts)
    return [rows[part_of == part] for part in range(n_parts)]


@kernel("group_loops")
def number_groups(slots: Slots, n: int, kept: Rows, rows: Rows, numbers: Numbers) -> int:
    """Find the number of the group of each row, and give those that are new the next ones.

    slots : int64[2^b], of which `n` are not 0, with room for all rows
    kept : int64[m, k], m >= n + r, k >= 1; the keys by number, the first `n` there already
    rows : int64[r, w], of which the first `k` words are the key
    numbers : int32[r], written: the number of the group of each row
    returns how many numbers there are now, fewer than 2^31.

    >>> slots, kept = np.zeros(8, np.int64), np.empty((3, 1), np.int64)
    >>> numbers = np.empty(3, np.int32)
    >>> number_groups(slots, 0, kept, np.array([[7, 1], [4, 1], [7, 2]]), numbers), numbers.tolist()
    (2, [0, 1, 0])
    """
    n_key, mask = kept.shape[1], len(slots) - 1
    for i, row in enumerate(rows.tolist()):
        slot = _hash(row[:n_key]) & mask
        while slots[slot] and kept[slots[slot] - 1].tolist() != row[:n_key]:
            slot = (slot + 1) & mask
        if not slots[slot]:
            kept[n] = row[:n_key]
            n += 1
            slots[slot] = n
        numbers[i] = slots[slot] - 1
    return n


def _hash(words: list[int]) -> int:
    hash = mix(words[0])
    for word in words[1:]:
        hash = combine(hash, mix(word))
    return hash
