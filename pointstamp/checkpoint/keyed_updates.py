"""A table of updates: rows with diffs, of which a snapshot writes what came since the last one.

What is kept of a collection is the sum of the updates that came. So a snapshot writes the
updates since the one before, and the batches of that one are named again, whatever became of
them in memory: that batches were merged there writes nothing. What cancels what is named makes
it dead; when more than a fifth of what is named is, everything is written anew.

Theory of operation. Of each bin there is on disk a *base*, and behind it *levels*: what came
since, each with less than half of the level before it. What is new and the levels that are
not larger than it by that rule are written as one, in their place. So after any number of small
snapshots there are few batches, and each update was written a number of times that grows with
the logarithm of their number. For this the rows of levels stay in memory, as long as they are
few beside all; a large level is never written again but with everything.

Source: differential-dataflow's spines (`trace/implementations/spine_fueled.rs`), on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pointstamp.checkpoint.deltas import AGAIN, BinDelta, TableDelta
from pointstamp.checkpoint.keyed_state import TaggedHashes, in_bins, messages, of_worker
from pointstamp.containers.updates import Rows, Updates
from pointstamp.kernels.consolidation import consolidate_all

DEAD_PART = 5
"""All is written anew when more than one in so many of the rows that are named is dead."""

NEW_PART = 4
"""So it is when what came since the last snapshot is more than one part in so many."""

FEW = 4_096
"""So many rows are no large level, and are not put together before a snapshot."""

LEVEL_PART = 64
"""Neither are they where they are one part of all in so many."""

MOST_BATCHES = 32
"""A table that is loaded from more batches in each bin is written anew."""

Named = Iterable[tuple[Any, Updates]]
"""(name, updates): of each kind of rows that a table has."""


@dataclass(frozen=True)
class _Level:
    """What was written at once, and may be written again with what comes next."""

    rows: dict[Any, Rows]
    n: int
    bins: frozenset[int]


class KeyedUpdates:
    """Updates that an operator keeps in whatever form it likes.

    Parameters
    ----------
    everything : callable
        Gives all that is kept, as (name, updates), in the form in which it is stored.
    take_in : callable
        Is called with each (name, updates) that was stored; updates of one name may cancel.
    hashes : callable
        Of a name and updates, the stable hash of the key of each.
    as_stored : callable or None
        Makes of a name and rows that were given to `add` what is stored of them. Without it none
        are given, and each snapshot has everything.
    n_kept : callable, optional
        How many rows `everything` has now. Without it, as many as when all was written: for
        tables to which updates are added by the name `AGAIN`.

    Notes
    -----
    A delta costs a sort of what is new, and now and then a pass over everything: what is named
    is at most five quarters of what is kept.
    """

    kind = "updates"

    def __init__(
        self,
        everything: Callable[[], Named],
        take_in: Callable[[Any, Updates], None],
        hashes: TaggedHashes,
        as_stored: Callable[[Any, Rows], Updates] | None,
        n_kept: Callable[[], int] | None = None,
    ) -> None:
        self._everything = everything
        self._take_in = take_in
        self._hashes = hashes
        self._as_stored = as_stored
        self._n_kept = n_kept
        self._new: dict[Any, list[Rows]] = {}
        self._n_new = 0
        self._n_most = FEW
        """With more rows than that, those that are new are put together."""
        self._levels: list[_Level] = []
        self._n_named = 0
        """How many rows the last snapshot names."""
        self._n_base = 0
        """How many it had when everything was written."""
        self._nonempty: set[int] = set()
        self._is_anew = True

    def add(self, name: Any, rows: Rows) -> None:
        """Say that updates came, int64[n, w + 1], in any order; they are not changed afterwards."""
        if self._is_anew:
            return  # everything has them
        self._new.setdefault(name, []).append(rows)
        self._n_new += len(rows)
        if self._n_new > self._n_most:
            self._put_together()
            self._n_most = max(FEW, 2 * self._n_new)
            if self._n_new * NEW_PART > self._n_named:
                self.begin_anew()

    def begin_anew(self) -> None:
        """See `tables.Table`."""
        self._is_anew = True
        self._new, self._n_new, self._n_most = {}, 0, FEW
        self._levels = []

    def take_delta(self) -> TableDelta:
        """See `tables.Table`."""
        self._put_together()
        if self._is_anew or self._has_dead():
            return TableDelta(self.kind, self._whole())
        return TableDelta(self.kind, self._more())

    def _has_dead(self) -> bool:
        n_named = self._n_named + self._n_new
        n_kept = self._n_base if self._n_kept is None else self._n_kept()
        return (n_named - n_kept) * DEAD_PART > n_named

    def _whole(self) -> dict[int, BinDelta]:
        self.begin_anew()
        parts = list(self._everything())
        changes = {bin: BinDelta(batch) for bin, batch in in_bins(parts, self._hashes).items()}
        nonempty = set(changes)
        for bin in self._nonempty - nonempty:
            changes[bin] = BinDelta(messages([]))
        self._nonempty = nonempty
        self._n_named = self._n_base = sum(len(updates) for _, updates in parts)
        self._is_anew = self._as_stored is None
        return changes

    def _more(self) -> dict[int, BinDelta]:
        """What is new, with the levels that are not twice as large; see above."""
        if not self._n_new:
            return {}
        replaced: Counter[int] = Counter()
        while self._levels and self._levels[-1].n <= 2 * self._n_new:
            level = self._levels.pop()
            replaced.update(level.bins)
            self._n_named -= level.n
            for name, rows in level.rows.items():
                self._new.setdefault(name, []).append(rows)
            self._put_together()
        rows_of = {name: rows for name, (rows,) in self._new.items()}
        assert self._as_stored is not None
        parts = [(name, self._as_stored(name, rows)) for name, rows in rows_of.items()]
        binned = in_bins(parts, self._hashes)
        changes = {bin: BinDelta(batch, False, replaced[bin]) for bin, batch in binned.items()}
        for bin in set(replaced) - set(binned):
            changes[bin] = BinDelta(messages([]), False, replaced[bin])
        self._nonempty.update(binned)
        self._n_named += self._n_new
        if 0 < self._n_new <= max(FEW, self._n_named // LEVEL_PART):
            self._levels.append(_Level(rows_of, self._n_new, frozenset(binned)))
        self._new, self._n_new, self._n_most = {}, 0, FEW
        return changes

    def rows(self) -> list[tuple[Any, Rows]]:
        """(name, rows) of all that is in memory for later snapshots, as it was given to `add`."""
        found = [(name, rows) for name, parts in self._new.items() for rows in parts]
        for level in self._levels:
            found += level.rows.items()
        return found

    def _put_together(self) -> None:
        """Have one batch of each name, without what cancels."""
        together = {name: consolidate_all(parts) for name, parts in self._new.items()}
        self._new = {name: [rows] for name, rows in together.items() if len(rows)}
        self._n_new = sum(len(rows) for rows in together.values())

    def load(self, batches: Iterable[Any], index: int, peers: int) -> None:
        """See `tables.Table`."""
        n_batches = 0
        for stored in batches:
            n_batches += 1
            for name, updates, bins in of_worker(stored, self._hashes, index, peers):
                self._n_named += len(updates)
                self._n_base += len(updates) if name != AGAIN else 0
                self._nonempty |= bins
                self._take_in(name, updates)
        # Which of them are levels is not known any more.
        self._is_anew = self._as_stored is None or n_batches > MOST_BATCHES * len(self._nonempty)
