"""Merges by pieces: two batches become one while what reads them reads the two.

To merge all at once would stall a single change for as long as the largest merge takes. So a
merge that is under way goes on with each update that comes, by `FUEL` rows at most, and a worker
with nothing else to do goes on with it, too (`dataflow/idle_work.py`). Of two batches, the older
one at most twice as long, the merge is over when three quarters as many updates have come as the
newer one has: before what came meanwhile is long enough to be merged with its result.

Source: differential-dataflow `trace/implementations/spine_fueled.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import merge, merge_some

FUEL = 4
"""A merge goes on by so many rows for each update that comes."""

AT_ONCE = 4_096
"""Batches of no more rows together are merged at once: that takes some 20 us."""

LUMP = 64
"""Fuel is spent when so many updates have come, as it takes a call for each merge."""

MOST_READ = 64
"""How many batches a loop reads side by side."""

FEW_ROWS = 64
"""A batch of no more takes the next one in, however long that is: to look into one more costs as
much, each time."""

SPARE = 3
"""When idle, a batch is merged with all behind it if those have one row for each so many of its
own: so what has been deleted takes, with what it was deleted by, no more than what is there."""

# Compiled, numbers of C.
_MOST_READ, _FEW_ROWS = MOST_READ, FEW_ROWS


class BatchMerge:
    """Two consolidated batches on their way to one.

    Attributes
    ----------
    is_complete : bool
        Whether `rows` are those of both.
    n_fuel : int
        How many rows it was allowed to read.
    """

    __slots__ = ("_at", "_into", "_left", "_n_all", "_right", "is_complete", "n_fuel")

    def __init__(self, left: Rows, right: Rows) -> None:
        self._left, self._right = left, right
        self._n_all = len(left) + len(right)
        self._into = np.empty((self._n_all, left.shape[1]), np.int64)
        self._at = np.zeros(3, np.int64)
        self.is_complete = False
        self.n_fuel = 0

    def advance(self, fuel: int) -> bool:
        """Read so many more rows at most, with what was left over before; whether it is over."""
        self.n_fuel += fuel
        merge_some(self._left, self._right, self._into, self._at, self.n_fuel - self.n_read)
        self.is_complete = self.n_read == self._n_all
        return self.is_complete

    @property
    def n_read(self) -> int:
        """How many rows it has read."""
        return int(self._at[0]) + int(self._at[1])

    @property
    def rows(self) -> Rows:
        """What there is so far."""
        return self._into[: self._at[2]]

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self._into.nbytes)


class BatchSeries:
    """Consolidated rows in batches, those that came later fewer, that are merged by pieces.

    Attributes
    ----------
    rows : list of int64[n, w + 1]
        The batches to read, oldest first, 64 at most.

    >>> series = BatchSeries()
    >>> series.insert(np.array([[3, 1], [7, 1]]))
    >>> series.insert(np.array([[3, -1]]))
    >>> [rows.tolist() for rows in series.rows], series.n_updates
    ([[[7, 1]]], 1)
    """

    __slots__ = ("_at_once", "_fuel", "_lump", "_merges", "_owed", "rows")

    def __init__(self, rows: Sequence[Rows] = ()) -> None:
        self._fuel, self._at_once, self._lump = FUEL, AT_ONCE, LUMP
        self.restart(rows)

    def set_fuel(self, fuel: int, at_once: int, lump: int) -> None:
        """Have others than the defaults."""
        self._fuel, self._at_once, self._lump = fuel, at_once, lump

    def restart(self, rows: Sequence[Rows]) -> None:
        """Have these batches in the place of those that there are."""
        self.rows: list[Rows] = list(rows)
        self._merges: list[BatchMerge | None] = [None] * len(self.rows)
        """Of each batch with the one behind it, if that is under way."""
        self._owed = 0

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return sum(map(len, self.rows))

    @property
    def merges(self) -> list[BatchMerge]:
        """Those that are under way."""
        return [one for one in self._merges if one is not None]

    def insert(self, new: Rows) -> None:
        """Add consolidated rows, and go on with merging."""
        self._owed += len(new)
        if self._owed >= self._lump:
            for under_way in self._merges:
                if under_way is not None:
                    under_way.advance(self._fuel * self._owed)
            self._owed = 0
        self.rows.append(new)
        self._merges.append(None)
        self._tidy(new)

    def as_one(self, none: Rows) -> Rows:
        """All rows as one batch, merged now; `none` where there are none."""
        if len(self.rows) != 1:
            self.restart([as_one(self.rows, none)])
        return self.rows[0]

    def _tidy(self, new: Rows) -> None:
        rows, merges = self.rows, self._merges
        at = len(rows) - 1
        while at > 0:
            under_way = merges[at - 1]
            if under_way is None:
                older, newer = rows[at - 1], rows[at]
                is_free = merges[at] is None and (at < 2 or merges[at - 2] is None)
                if not is_free or (len(older) > 2 * len(newer) and len(older) > _FEW_ROWS):
                    at -= 1
                    continue
                if len(older) + len(newer) <= self._at_once:
                    self._put(at, merge(older, newer))
                    at = min(at, len(rows) - 1)
                    continue
                under_way = merges[at - 1] = BatchMerge(older, newer)
                if newer is new:
                    # What comes pays for its own merge.
                    under_way.advance(self._fuel * len(new))
            if under_way.is_complete:
                self._put(at, under_way.rows)
                at = min(at, len(rows) - 1)
            else:
                at -= 1
        while len(rows) > _MOST_READ:
            self._merge_last()

    def _put(self, at: int, merged: Rows) -> None:
        """Have one batch in the place of one and that before it."""
        found = [merged] if len(merged) else []
        self.rows[at - 1 : at + 1] = found
        self._merges[at - 1 : at + 1] = [None] * len(found)

    def _merge_last(self) -> None:
        """Have one batch less: there are too many to be read."""
        at = len(self.rows) - 1
        if self._merges[at - 1] is None and self._merges[at - 2] is not None:
            at -= 1
        self._put(at, merge(self.rows[at - 1], self.rows[at]))


def first_to_merge(sizes: Sequence[int], at_once: int) -> int:
    """From which batch on all are to be merged when there is time; -1 if none is.

    sizes : of the batches, oldest first

    >>> first_to_merge([90, 20, 10], 0), first_to_merge([91, 20, 10], 0)
    (0, 1)
    >>> first_to_merge([91, 9, 3], 0), first_to_merge([91, 9, 2], 0), first_to_merge([9, 3], 12)
    (1, -1, -1)
    """
    behind, found = 0, -1
    for at in reversed(range(len(sizes))):
        size = sizes[at]
        if behind and size <= SPARE * behind and size + behind > at_once:
            found = at
        behind += size
    return found


def as_one(batches: list[Rows], none: Rows) -> Rows:
    """Merge batches, in place, and give what they come to; `none` where there are none."""
    while len(batches) > 1:
        last = batches.pop()
        batches[-1] = merge(batches[-1], last)
    return batches[0] if batches else none
