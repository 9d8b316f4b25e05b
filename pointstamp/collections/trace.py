"""A trace: what an arrangement keeps where times are in a partial order.

In a loop no order of batches says which updates are before a time, so that updates keep their
times: a batch has one time for all, or the coordinates of each behind the words of its record.
Batches form a geometric series as in a spine of times in one line.

When two are made one, times become their representatives at what the readers may still ask
for: the rounds of an epoch that is over stay apart, the epochs do not. So what cancels goes.

Source: differential-dataflow `trace/implementations/spine_fueled.rs` and `trace/mod.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pointstamp.collections.lattice import Times, TimeWords, representatives
from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import merge
from pointstamp.kernels.histories import advance_times


class TraceBatch:
    """Consolidated updates.

    Attributes
    ----------
    rows : int64[n, w + 1], or int64[n, w + depth + 1]
        Words, and diff; between them the time of each where `time` is None.
    time : tuple of int, optional
        Of all.
    last : int
        The number of the last insertion that is in it.
    """

    __slots__ = ("last", "rows", "time")

    def __init__(self, rows: Rows, time: TimeWords | None, last: int) -> None:
        self.rows = rows
        self.time = time
        self.last = last


class TraceReader:
    """Says which insertions it knows of, and from which times on it asks."""

    __slots__ = ("_trace", "frontier", "known")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.known = trace.n_inserted
        """Of so many insertions."""
        self.frontier = np.zeros((1, trace.depth), np.int64)
        """It asks for times at or after one of these; where there are none, for nothing."""

    def batches(self) -> list[TraceBatch]:
        """What it knows of."""
        return [batch for batch in self._trace.batches if batch.last <= self.known]

    def advance(self, known: int, frontier: Times) -> None:
        """Know of more insertions, and never again ask for times before `frontier`."""
        self.known = known
        self.frontier = frontier
        self._trace.maintain()


class Trace:
    """The batches of an arrangement on this worker, oldest first.

    depth : how many coordinates a time has
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.batches: list[TraceBatch] = []
        self.n_inserted = 0
        self._readers: list[TraceReader] = []

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
        return self.n_inserted

    def maintain(self) -> None:
        """Merge what all readers know of, where an older batch is not twice as long."""
        if not self._is_read():
            self.batches.clear()
            return
        known = min(reader.known for reader in self._readers if len(reader.frontier))
        n = len(self.batches)
        while n and self.batches[n - 1].last > known:
            n -= 1
        at = n - 1
        while at > 0:
            older, newer = self.batches[at - 1], self.batches[at]
            if len(older.rows) > 2 * len(newer.rows):
                at -= 1
                continue
            merged = self._merged(older, newer)
            found = [merged] if len(merged.rows) else []
            self.batches[at - 1 : at + 1] = found
            n += len(found) - 2
            at = min(at, n - 1)

    def as_few(self, most: int) -> list[TraceBatch]:
        """At most so many batches, the last of them merged."""
        while len(self.batches) > most:
            last = self.batches.pop()
            self.batches[-1] = self._merged(self.batches[-1], last)
        return self.batches

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return sum(len(batch.rows) for batch in self.batches)

    def timed(self, batch: TraceBatch) -> Rows:
        """The rows of a batch with the time of each."""
        if batch.time is None:
            return batch.rows
        return with_time(batch.rows, batch.time)

    def _is_read(self) -> bool:
        return any(len(reader.frontier) for reader in self._readers)

    def _merged(self, older: TraceBatch, newer: TraceBatch) -> TraceBatch:
        frontier = np.concatenate([reader.frontier for reader in self._readers])
        one, two = (self._advanced(batch, frontier) for batch in (older, newer))
        time = one.time if one.time == two.time else None
        if time is None:
            one, two = (TraceBatch(self.timed(batch), None, 0) for batch in (one, two))
        return TraceBatch(merge(one.rows, two.rows), time, newer.last)

    def _advanced(self, batch: TraceBatch, frontier: Times) -> TraceBatch:
        """With the representatives of its times."""
        depth = self.depth
        if batch.time is not None:
            (time,) = representatives(np.array([batch.time]), frontier).tolist()
            return TraceBatch(batch.rows, tuple(time), batch.last)
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


def split_by_first(rows: Rows, depth: int) -> Iterator[tuple[TimeWords, Rows]]:
    """The rows behind each distinct start of `depth` words, of rows in order.

    >>> [(words, part.tolist()) for words, part in split_by_first(np.array([[0, 7], [2, 8]]), 1)]
    [((0,), [[7]]), ((2,), [[8]])]
    """
    differs = (rows[1:, :depth] != rows[:-1, :depth]).any(axis=1)
    begin = 0
    for end in [*(np.flatnonzero(differs) + 1).tolist(), len(rows)]:
        if end > begin:
            yield tuple(rows[begin, :depth].tolist()), np.ascontiguousarray(rows[begin:end, depth:])
        begin = end
