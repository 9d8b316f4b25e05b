"""Groups by key on one worker: their numbers, and what is added up of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.containers.updates import Rows
from pointstamp.errors import DataError
from pointstamp.kernels.group_states import number_groups

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

_FEWEST = 16
_FEW = 64
_BLOCK = 4_096


class Groups:
    """A table of keys that gives each a number: 0, 1, 2 and so on.

    Parameters
    ----------
    n_key : int
        How many words a key has, one at least.

    >>> groups = Groups(1)
    >>> groups.number(np.array([[7, 1], [9, 1], [7, 1]])).tolist(), len(groups)
    ([0, 1, 0], 2)
    """

    def __init__(self, n_key: int) -> None:
        self._n = 0
        self._kept = np.empty((_FEWEST, n_key), np.int64)
        self._slots = np.zeros(2 * _FEWEST, np.int64)

    def __len__(self) -> int:
        return self._n

    @property
    def room(self) -> int:
        """For how many groups others should have room."""
        return len(self._kept)

    def may_grow(self, n_rows: int) -> bool:
        """Whether so many more rows may need more room: the moment to forget what is empty."""
        return self._n + min(n_rows, _BLOCK) > len(self._kept)

    def number(self, rows: Rows) -> Numbers:
        """The number of the group of each row, whose first words are the key."""
        numbers = np.empty(len(rows), np.int32)
        # In blocks: there may be far fewer groups than rows.
        for begin in range(0, len(rows), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            if self._n + len(block) > len(self._kept):
                self._grow(self._n + len(block))
            into = numbers[begin : begin + _BLOCK]
            self._n = number_groups(self._slots, self._n, self._kept, block, into)
        return numbers

    def known(self, rows: Rows) -> Numbers:
        """The same of rows whose groups all have a number."""
        numbers = np.empty(len(rows), np.int32)
        number_groups(self._slots, self._n, self._kept, rows, numbers)
        return numbers

    def keys(self, numbers: npt.NDArray[Any]) -> Rows:
        """The words of the keys of some groups, int64[n, n_key]."""
        keys: Rows = self._kept[numbers]
        return keys

    def all_keys(self) -> Rows:
        """The keys of all groups, int64[n, n_key], in an array that does not change any more."""
        return self._kept[: self._n]

    def keep(self, numbers: npt.NDArray[Any]) -> None:
        """Forget all but some groups, which are numbered anew, in this order."""
        keys = self._kept[numbers]
        self._n = 0
        self._kept = np.empty((max(_FEWEST, len(keys)), keys.shape[1]), np.int64)
        self._slots = np.zeros(_n_slots(len(self._kept)), np.int64)
        self.number(keys)

    def _grow(self, most: int) -> None:
        kept = np.empty((max(most, 2 * len(self._kept)), self._kept.shape[1]), np.int64)
        known = self._kept[: self._n]
        self._kept = kept
        self._slots = np.zeros(_n_slots(len(kept)), np.int64)
        self._n = number_groups(self._slots, 0, kept, known, np.empty(len(known), np.int32))


def _n_slots(n: int) -> int:
    """The least power of two that is at least twice as large."""
    return 1 << (2 * n - 1).bit_length()


def add_diffs(counts: Ints, numbers: Numbers, diffs: Ints, what: str) -> None:
    """Add diffs to counts, int64[m]; `numbers` are the places of theirs.

    Raises
    ------
    DataError
        If a count is beyond 64 bits then, with `what` it is of.

    >>> counts = np.array([1 << 62, 5])
    >>> add_diffs(counts, np.array([0, 1, 0]), np.array([1 << 62, 2, -1]), "a group")
    >>> counts.tolist() == [(1 << 63) - 1, 7]
    True
    """
    # Most often none can be, which takes less than to add them up.
    if _greatest(counts[numbers]) + len(diffs) * _greatest(diffs) >> 63:
        totals = {place: int(counts[place]) for place in numbers.tolist()}
        for place, diff in zip(numbers.tolist(), diffs.tolist(), strict=True):
            totals[place] += diff
        if any(total >> 63 not in (0, -1) for total in totals.values()):
            raise DataError(f"the sum of the diffs of {what} is beyond 64 bits")
    np.add.at(counts, numbers, diffs)


def _greatest(values: Ints) -> int:
    """The greatest of the values without their signs; 0 of none."""
    if len(values) > _FEW:
        return max(int(values.max()), -int(values.min()))
    return max(map(abs, values.tolist()), default=0)


def grown(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """An array of length `n`, if it is shorter, that begins as `array` and goes on with zeros."""
    if len(array) >= n:
        return array
    larger = np.zeros((n, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
