"""A trace: what an arrangement keeps where times are in a partial order.

In a loop no order of batches says which updates are before a time, so that updates keep their
times: a batch has one time for all, or the coordinates of each behind the words of its record.
Batches form a geometric series as in a spine of times in one line.

When two are made one, times become their representatives at what the readers may still ask
for: the rounds of an epoch that is over stay apart, the epochs do not. So what cancels goes.

Source: differential-dataflow `trace/implementations/spine_fueled.rs` and `trace/mod.rs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pointstamp.collections.lattice import TimeWords
from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import consolidate_all, merge
from pointstamp.kernels.histories import advance_times, advance_together, representative

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates

LET_BE = 8
"""Fewer small batches are not merged: it takes longer than to look into them."""
SMALL = 256
"""So many rows are no small batch."""


class TraceBatch:
    """Consolidated updates.

    Attributes
    ----------
    rows : int64[n, w + 1], or int64[n, w + depth + 1]
        Words, and diff; between them the time of each where `time` is None.
    n : int
    time : tuple of int, optional
        Of all.
    last : int
        The number of the last insertion that is in it.
    """

    __slots__ = ("last", "n", "rows", "time")

    def __init__(self, rows: Rows, time: TimeWords | None, last: int) -> None:
        self.rows = rows
        self.n = len(rows)
        self.time = time
        self.last = last


class TraceReader:
    """Says which insertions it knows of, and from which times on it asks."""

    __slots__ = ("_trace", "frontier", "known")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.known = trace.n_inserted
        """Of so many insertions."""
        self.frontier: list[TimeWords] = [(0,) * trace.depth]
        """It asks for times at or after one of these; where there are none, for nothing."""

    def batches(self) -> list[TraceBatch]:
        """What it knows of."""
        return [batch for batch in self._trace.batches if batch.last <= self.known]

    def read(self) -> tuple[list[Rows], list[TimeWords | None]]:
        """The rows of what it knows of, and their times."""
        rows, times = [], []
        for batch in self._trace.batches:
            if batch.last <= self.known:
                rows.append(batch.rows)
                times.append(batch.time)
        return rows, times

    def advance(self, known: int, frontier: list[TimeWords]) -> None:
        """Know of more insertions, and never again ask for times before `frontier`."""
        self.known = known
        self.frontier = frontier
        self._trace.maintain()


class Trace:
    """The batches of an arrangement on this worker, oldest first.

    depth : how many coordinates a time has
    let_be : so many small batches are merged, and no fewer; `LET_BE` if it is not given
    """

    def __init__(self, depth: int, let_be: int | None = None) -> None:
        self.depth = depth
        self._let_be = LET_BE if let_be is None else let_be
        self.batches: list[TraceBatch] = []
        self.n_inserted = 0
        self._n_known = 0
        self._n_looked_at = 0
        """Of so many insertions all readers knew, and there were, when it was last maintained."""
        self._readers: list[TraceReader] = []
        self._log: KeyedUpdates | None = None
        self._name = ""

    def logs(self, log: KeyedUpdates | None, name: str) -> None:
        """Give `log`, for snapshots, what is inserted, by `name`."""
        self._log = log
        self._name = name

    def reader(self) -> TraceReader:
        """A new reader, of all times."""
        reader = TraceReader(self)
        self._readers.append(reader)
        return reader

    def insert(self, rows: Rows, time: TimeWords) -> int:
        """Add consolidated updates of a time; the number of insertions so far."""
        self.n_inserted += 1
        if self._is_read():
            self.batches.append(TraceBatch(rows, time, self.n_inserted))
            if self._log is not None:
                self._log.add(self._name, with_time(rows, (0, *time[1:])))
        return self.n_inserted

    def contents(self) -> Rows | None:
        """All updates with their times, of which the epochs are 0; None of none.

        For readers of later epochs all of those that are here are before; rounds stay apart.
        """
        parts = []
        for batch in self.batches:
            rows = self.timed(batch).copy()
            rows[:, -1 - self.depth] = 0
            parts.append(rows)
        return consolidate_all(parts) if parts else None

    def restore(self, rows: Rows) -> int:
        """Begin with what `contents` gave; the number of insertions so far."""
        self.n_inserted += 1
        self.batches.append(TraceBatch(rows, None, self.n_inserted))
        return self.n_inserted

    def maintain(self) -> None:
        """Merge what all readers know of, where an older batch is not twice as long."""
        if not self._is_read():
            self.batches.clear()
            if self._log is not None:
                self._log.begin_anew()
            return
        batches = self.batches
        known = self.n_inserted
        for reader in self._readers:
            if len(reader.frontier) and reader.known < known:
                known = reader.known
        if known == self._n_known and self.n_inserted == self._n_looked_at:
            return
        self._n_known, self._n_looked_at = known, self.n_inserted
        n = len(batches)
        while n and batches[n - 1].last > known:
            n -= 1
        n_small = 0
        while n_small < n and batches[n - n_small - 1].n < SMALL:
            n_small += 1
        if n_small < self._let_be:
            n -= n_small
        while n:
            begin, total = n - 1, batches[n - 1].n
            while begin and batches[begin - 1].n <= 2 * total:
                begin -= 1
                total += batches[begin].n
            self._merge(begin, n)
            n = begin

    def as_few(self, most: int) -> list[TraceBatch]:
        """At most so many batches, the last of them merged."""
        self._merge(most - 1, len(self.batches))
        return self.batches

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return sum(batch.n for batch in self.batches)

    @property
    def n_apart(self) -> int:
        """How many batches, the newest, not all readers know of, so that they are not merged."""
        known = [reader.known for reader in self._readers if len(reader.frontier)]
        return sum(batch.last > min(known) for batch in self.batches) if known else 0

    @property
    def asked_for(self) -> list[TimeWords]:
        """The times of which the readers may ask for those at or after one."""
        found: list[TimeWords] = []
        for reader in self._readers:
            found += reader.frontier
        return found

    def timed(self, batch: TraceBatch) -> Rows:
        """The rows of a batch with the time of each."""
        if batch.time is None:
            return batch.rows
        return with_time(batch.rows, batch.time)

    def _is_read(self) -> bool:
        for reader in self._readers:  # compiled, and asked often
            if len(reader.frontier):
                return True
        return False

    def _merge(self, begin: int, end: int) -> None:
        """Put one batch in the place of some, with the representatives of their times."""
        if end - begin < 2:
            return
        frontier, batches = self.asked_for, self.batches[begin:end]
        last = batches[-1].last
        # The small ones at once, then each larger one with what there is so far.
        small = [batch for batch in batches if batch.n < SMALL]
        parts = [self._advanced(batch, frontier) for batch in batches if batch.n >= SMALL]
        if small:
            rows, time = advance_together(
                [batch.rows for batch in small], [batch.time for batch in small], frontier
            )
            parts.append(TraceBatch(rows, time, last))
        parts = [part for part in parts if part.n]
        if not parts:
            self.batches[begin:end] = []
            return
        time = parts[0].time
        for part in parts:
            if part.time != time:
                time = None
        timed = [part.rows if time is not None else self.timed(part) for part in parts]
        merged = timed.pop()
        while timed:
            merged = merge(timed.pop(), merged)
        self.batches[begin:end] = [TraceBatch(merged, time, last)] if len(merged) else []

    def _advanced(self, batch: TraceBatch, frontier: list[TimeWords]) -> TraceBatch:
        """With the representatives of its times."""
        depth = self.depth
        if batch.time is not None:
            return TraceBatch(batch.rows, representative(batch.time, frontier), batch.last)
        rows = advance_times(batch.rows, frontier)
        times = rows[:, -1 - depth : -1]
        if not len(rows) or (times != times[0]).any():
            return TraceBatch(rows, None, batch.last)
        return TraceBatch(without_time(rows, depth), tuple(times[0].tolist()), batch.last)


def with_time(rows: Rows, time: TimeWords) -> Rows:
    """Rows with a time between words and diff.

    >>> with_time(np.array([[7, 1]]), (3, 4)).tolist()
    [[7, 3, 4, 1]]
    """
    timed = np.empty((len(rows), rows.shape[1] + len(time)), np.int64)
    timed[:, : rows.shape[1] - 1] = rows[:, :-1]
    timed[:, rows.shape[1] - 1 : -1] = time
    timed[:, -1] = rows[:, -1]
    return timed


def without_time(rows: Rows, depth: int) -> Rows:
    """Rows without the `depth` coordinates of their times.

    >>> without_time(np.array([[7, 3, 4, 1]]), 2).tolist()
    [[7, 1]]
    """
    plain = np.empty((len(rows), rows.shape[1] - depth), np.int64)
    plain[:, :-1] = rows[:, : -1 - depth]
    plain[:, -1] = rows[:, -1]
    return plain
