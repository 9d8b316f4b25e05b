"""Numbers of the records of one side of a join, by the hashes of their keys.

Each side has a `Multimap` at first: one side of many joins stays small, or ends before the other
begins, and where few keys are of both sides, a table of both would take twice the memory. Once both
have many records that meet, they are in one `PairedMultimap`, in which a batch is kept and asks by
one search for each key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hash_join import (
    Multimap,
    add_values,
    all_values,
    find_values,
    no_values,
)
from pointstamp.kernels.paired_multimap import (
    LIMIT,
    PairedMultimap,
    ask,
    meet,
    no_numbers,
    of_side,
)
from pointstamp.kernels.permute import Places

Ints = npt.NDArray[np.int64]

_MANY = 4_096
"""How many records both sides need before they are put into one table."""

_TIMES = 4
"""How many times as many as the other has one side may have then: to put them there is then paid
for by what is asked."""

_MEETING = 0.25
"""The part of a batch that has to have met something before."""


class _Table:
    """What two sides share."""

    def __init__(self) -> None:
        self.numbers: PairedMultimap = no_numbers()


class RecordNumbers:
    """Which records have a key; the first that is added has the number 0.

    >>> left, right = RecordNumbers(), RecordNumbers()
    >>> left.add(np.array([7, 9]))
    >>> records, numbers = right.meet(np.array([9, 5]), left)
    >>> records.tolist(), numbers.tolist(), right.n
    ([0], [1], 2)
    """

    def __init__(self) -> None:
        self.n = 0
        """How many records there are."""
        self._kept: Multimap | _Table = no_values()
        self._side = 0
        self._met = 0.0
        """The part of the last batch that met something of the other side."""

    def add(self, hashes: Ints) -> None:
        """Keep the records of a batch, by the hashes of their keys, int64[m]."""
        n = self.n + len(hashes)
        if isinstance(self._kept, _Table) and n <= LIMIT:
            self._meet(self._kept, hashes, asks=False)
            return
        self._kept = add_values(self._part(), hashes, np.arange(self.n, n))
        self.n = n

    def find(self, hashes: Ints) -> tuple[Places, Places]:
        """The numbers that are kept of hashes, int64[m].

        Returns
        -------
        (records, numbers) : both int32[pairs] or int64[pairs]
            `numbers[i]` is of `hashes[records[i]]`; records ascend, and so do the numbers of each.
        """
        if isinstance(self._kept, _Table):
            return ask(self._kept.numbers, 1 - self._side, hashes)
        return find_values(self._kept, hashes)

    def meet(self, hashes: Ints, other: RecordNumbers) -> tuple[Places, Places]:
        """Keep the records of a batch as `add` does; what `find` finds in the other side."""
        table = self._table_with(other, len(hashes))
        if table is not None:
            return self._meet(table, hashes)
        records, numbers = other.find(hashes)
        self._met = np.count_nonzero(np.diff(records, prepend=-1)) / max(len(hashes), 1)
        self.add(hashes)
        return records, numbers

    def _meet(self, table: _Table, hashes: Ints, *, asks: bool = True) -> tuple[Places, Places]:
        n = self.n + len(hashes)
        numbers = np.arange(self.n, n, dtype=np.int32)
        table.numbers, *found = meet(table.numbers, self._side, hashes, numbers, asks=asks)
        self.n = n
        return found[0], found[1]

    def _table_with(self, other: RecordNumbers, n_more: int) -> _Table | None:
        """The table that has both sides, which they may be put into now; None: there is none."""
        fewer, more = sorted((self.n, other.n))
        mine, theirs = self._kept, other._kept
        if isinstance(mine, _Table) and mine is theirs:
            if self.n + n_more <= LIMIT:
                return mine
            self._part()
            other._part()
            return None
        if isinstance(mine, _Table) or isinstance(theirs, _Table):
            return None
        if fewer < _MANY or more > _TIMES * fewer or more + n_more > LIMIT:
            return None
        if max(self._met, other._met) < _MEETING:
            return None
        table = _Table()
        self._move(mine, table, 0)
        other._move(theirs, table, 1)
        return table

    def _move(self, kept: Multimap, table: _Table, side: int) -> None:
        hashes, numbers = all_values(kept)
        table.numbers, *_ = meet(table.numbers, side, hashes, numbers.astype(np.int32), asks=False)
        self._kept, self._side = table, side

    def _part(self) -> Multimap:
        """What is this side's, in a table of its own."""
        if isinstance(self._kept, _Table):
            hashes, numbers = of_side(self._kept.numbers, self._side)
            self._kept = add_values(no_values(), hashes, numbers.astype(np.int64))
        return self._kept
