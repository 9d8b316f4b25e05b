"""A trace: what an arrangement keeps where times are in a partial order.

In a loop no order of batches says which updates are before a time, so that updates keep their
times: a batch has one time for all, or the coordinates of each behind the words of its record.
Batches form a geometric series as in a spine of times in one line.

When two are made one, times become their representatives at what the readers may still ask
for: the rounds of an epoch that is over stay apart, the epochs do not. So what cancels goes. A
merge goes on by pieces (`batch_merges.py`). What readers ask for is that of when it began: later
they ask for less, so that a representative then is one still.

Source: differential-dataflow `trace/implementations/spine_fueled.rs` and `trace/mod.rs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pointstamp.collections import batch_merges
from pointstamp.collections.batch_merges import BatchMerge, first_to_merge
from pointstamp.collections.lattice import TimeWords
from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import consolidate_all, merge, piece_of_two
from pointstamp.kernels.histories import advance_times, advance_together, representative

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates
    from pointstamp.dataflow.environment import Environment
    from pointstamp.dataflow.idle_work import IdleWork

LET_BE = 8
"""Fewer small batches are not merged: it takes longer than to look into them."""
SMALL = 256
"""So many rows are no small batch."""

PIECE = 4_096
"""A merge of rows with times goes on by so many at a time."""

SOME = 4
"""To begin on a piece takes so many times as long as in a spine, so that lumps are larger."""


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
    n_new : int
        How many rows came with it, and were not merged before.
    merge : TraceMerge, optional
        With the batch behind it, under way.
    is_merging : bool
        Whether it is part of a merge that is under way.
    """

    __slots__ = ("is_merging", "last", "merge", "n", "n_new", "rows", "time")

    def __init__(self, rows: Rows, time: TimeWords | None, last: int, n_new: int = 0) -> None:
        self.rows = rows
        self.n = len(rows)
        self.time = time
        self.last = last
        self.n_new = n_new
        self.merge: TraceMerge | None = None
        self.is_merging = False


class TraceMerge:
    """Two batches of a trace on their way to one.

    Parameters
    ----------
    frontier : list of tuples of int
        Times become their representatives at these.
    n_words : int
        Of a record.

    Attributes
    ----------
    time : tuple of int, optional
        Of all rows, in the end.
    n_fuel : int
        About so many rows it was allowed to read, or to write once more without their time.
    """

    __slots__ = (
        "_frontier",
        "_into",
        "_left",
        "_n",
        "_n_plain",
        "_n_words",
        "_of_one_time",
        "_plain",
        "_read",
        "_right",
        "_seen",
        "is_complete",
        "n_fuel",
        "time",
    )

    def __init__(
        self, left: TraceBatch, right: TraceBatch, frontier: list[TimeWords], n_words: int
    ) -> None:
        depth = len(frontier[0])
        self._left, self._right = left, right
        self._n_words = n_words
        self._frontier = frontier
        self._read = (0, 0)
        self._n = self._n_plain = 0
        self.n_fuel = 0
        self.is_complete = False
        self._seen: TimeWords | None = None
        """The time of all rows so far; None where they have several."""
        self._plain: Rows | None = None
        """Rows without their time, when all are merged and it is known that they have one."""
        self._of_one_time: BatchMerge | None = None
        times = []
        for batch in (left, right):
            time = batch.time
            times.append(None if time is None else representative(time, frontier))
        self.time: TimeWords | None = times[0] if times[0] == times[1] else None
        if self.time is not None:
            self._of_one_time = BatchMerge(left.rows, right.rows)
        else:
            self._into = np.empty((left.n + right.n, n_words + depth + 1), np.int64)

    @property
    def n_read(self) -> int:
        """How many rows it has read, and written once more."""
        if self._of_one_time is not None:
            return self._of_one_time.n_read
        return self._read[0] + self._read[1] + self._n_plain

    @property
    def rows(self) -> Rows:
        """What there is in the end."""
        if self._of_one_time is not None:
            return self._of_one_time.rows
        return self._into[: self._n] if self._plain is None else self._plain

    def advance(self, fuel: int) -> bool:
        """Read about so many more rows, with what was left over before; whether it is over."""
        self.n_fuel += fuel
        if self._of_one_time is not None:
            self.is_complete = self._of_one_time.advance(fuel)
            return self.is_complete
        while not self.is_complete and self.n_fuel > self.n_read:
            most = min(self.n_fuel - self.n_read, PIECE)
            if self._plain is None:
                self._merge_some(most)
            else:
                end = min(self._n_plain + most, self._n)
                some = self._into[self._n_plain : end]
                self._plain[self._n_plain : end] = without_time(some, len(self._frontier[0]))
                self._n_plain = end
                self.is_complete = end == self._n
        return self.is_complete

    def _merge_some(self, most: int) -> None:
        left, right, (i, j) = self._left, self._right, self._read
        depth = len(self._frontier[0])
        ends = piece_of_two(left.rows, i, right.rows, j, most, self._n_words)
        merged = merge(
            self._advanced(left, left.rows[i : ends[0]]),
            self._advanced(right, right.rows[j : ends[1]]),
        )
        n = len(merged)
        if n and (self._n == 0 or self._seen is not None):
            times = merged[:, -1 - depth : -1]
            first = tuple(times[0].tolist()) if self._n == 0 else self._seen
            self._seen = first if (times == first).all() else None
        self._into[self._n : self._n + n] = merged
        self._n += n
        self._read = ends
        if ends[0] + ends[1] == left.n + right.n:
            self.is_complete = self._seen is None
            if self._seen is not None:
                self.time = self._seen
                self._plain = np.empty((self._n, self._n_words + 1), np.int64)

    def _advanced(self, batch: TraceBatch, rows: Rows) -> Rows:
        """Rows of a batch, with the representatives of their times."""
        timed = rows if batch.time is None else with_time(rows, batch.time)
        return advance_times(timed, self._frontier)


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
    fuel, at_once, lump : see `batch_merges`, where the defaults are
    """

    def __init__(
        self,
        depth: int,
        let_be: int | None = None,
        fuel: int | None = None,
        at_once: int | None = None,
        lump: int | None = None,
    ) -> None:
        self.depth = depth
        self._let_be = LET_BE if let_be is None else let_be
        self._small = SMALL
        self._fuel = batch_merges.FUEL if fuel is None else fuel
        self._at_once = batch_merges.AT_ONCE if at_once is None else at_once
        self._lump = SOME * batch_merges.LUMP if lump is None else lump
        self._n_merges = 0
        """So many are under way."""
        self._owed = 0
        """So many updates came for which no fuel was spent on those."""
        self.idle: IdleWork | None = None
        """Where it says that there is something to merge when there is time."""
        self._is_idle_known = False
        self.batches: list[TraceBatch] = []
        self.n_inserted = 0
        self._n_known = 0
        self._n_looked_at = 0
        """Of so many insertions all readers knew, and there were, when it was last maintained."""
        self._readers: list[TraceReader] = []
        self._log: KeyedUpdates | None = None
        self._name = ""

    def live_in(self, environment: Environment) -> None:
        """Merge when the worker has time for it, and end with the dataflow that is being built."""
        self.idle = environment.idle
        if environment.durable_state is None:  # else the next program goes on with it
            environment.closers.at_end(self.let_go)

    def let_go(self) -> None:
        """Keep nothing: the dataflow has ended."""
        self._give_up_merges(0)
        self.batches = []

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
            n = len(rows)
            if self._n_merges:
                self._owed += n
                if self._owed >= self._lump:
                    self._spend(self._fuel * self._owed)
            self.batches.append(TraceBatch(rows, time, self.n_inserted, n))
            if self.idle is not None and not self._is_idle_known:
                self._is_idle_known = True
                self.idle.add(self.work)
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
            self._n_merges = 0
            if self._log is not None:
                self._log.begin_anew()
            return
        known = self._known()
        if known == self._n_known and self.n_inserted == self._n_looked_at:
            return
        self._n_known, self._n_looked_at = known, self.n_inserted
        batches, n = self.batches, self._n_mergeable(known)
        n_large = n
        while n_large:
            older = batches[n_large - 1]
            if older.n >= self._small:
                break
            n_large -= 1
        if n - n_large < self._let_be:
            n = n_large
        while n:
            begin = n - 1
            newest = batches[begin]
            total, is_fitting = newest.n, True
            if not newest.is_merging:
                while begin and is_fitting:
                    older = batches[begin - 1]
                    is_fitting = (
                        older.n <= 2 * total
                        and older.n + total <= self._at_once
                        and not older.is_merging
                    )
                    if is_fitting:
                        begin -= 1
                        total += older.n
                if begin < n - 1:
                    self._merge(begin, n)
                elif begin and older.n <= 2 * total:
                    n_all = len(batches)
                    self._begin(begin - 1)
                    if n_all - len(batches) == 2:
                        begin -= 1  # all of both has cancelled
            n = begin

    def _known(self) -> int:
        """Of so many insertions all readers know."""
        known = self.n_inserted
        for reader in self._readers:
            if len(reader.frontier) and reader.known < known:
                known = reader.known
        return known

    def _n_mergeable(self, known: int) -> int:
        """How many batches, the oldest, are of so many insertions."""
        batches = self.batches
        n = len(batches)
        while n:
            newest = batches[n - 1]
            if newest.last <= known:
                break
            n -= 1
        return n

    def _begin(self, at: int) -> None:
        """Begin a merge of a batch and that behind it, if neither is in another one."""
        older, newer = self.batches[at], self.batches[at + 1]
        if older.is_merging or newer.is_merging:
            return
        width = older.rows.shape[1] - (self.depth if older.time is None else 0)
        older.merge = TraceMerge(older, newer, self.asked_for, width - 1)
        older.is_merging = newer.is_merging = True
        self._n_merges += 1
        # What comes pays for its own merge.
        if older.merge.advance(self._fuel * newer.n_new):
            self._publish(at)

    def _publish(self, at: int) -> None:
        """Have what is merged in the place of a batch and that behind it."""
        older, last = self.batches[at], self.batches[at + 1].last
        merged = older.merge
        assert merged is not None
        older.merge = None  # it has the batch: together they would stay
        self._n_merges -= 1
        found = TraceBatch(merged.rows, merged.time, last)
        self.batches[at : at + 2] = [found] if found.n else []

    def _spend(self, fuel: int) -> None:
        """Have all merges that are under way go on."""
        self._owed = 0
        for at in range(len(self.batches) - 1, -1, -1):
            batch = self.batches[at]
            if batch.merge is not None and batch.merge.advance(fuel):
                self._publish(at)

    def work(self, budget: int) -> bool:
        """Merge by so many rows, when idle; whether more is to be merged."""
        n = self._n_mergeable(self._known())
        for at in range(n - 2, -1, -1):
            batch = self.batches[at]
            if batch.merge is not None:
                if batch.merge.advance(budget):
                    self._publish(at)
                return True
        if n and self._is_read():
            first = first_to_merge([batch.n for batch in self.batches[:n]], self._at_once)
            if first >= 0:
                self._begin(n - 2)
                if self._n_merges:
                    return True
        self._is_idle_known = False
        return False

    def as_few(self, most: int) -> list[TraceBatch]:
        """At most so many batches, the last of them merged."""
        begin = most - 1
        while begin and self.batches[begin - 1].merge is not None:
            begin -= 1
        self._give_up_merges(begin)
        self._merge(begin, len(self.batches))
        return self.batches

    def _give_up_merges(self, begin: int) -> None:
        """Forget what is under way from a batch on."""
        for batch in self.batches[begin:]:
            if batch.merge is not None:
                batch.merge = None
                self._n_merges -= 1

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return sum(batch.n for batch in self.batches)

    @property
    def merges(self) -> list[TraceMerge]:
        """Those that are under way."""
        return [batch.merge for batch in self.batches if batch.merge is not None]

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
        small, times, parts = [], [], []
        for batch in batches:  # compiled, and not in the scope of a comprehension
            if batch.n < self._small:
                small.append(batch.rows)
                times.append(batch.time)
            else:
                part = self._advanced(batch, frontier)
                if part.n:
                    parts.append(part)
        if small:
            part = TraceBatch(*advance_together(small, times, frontier), last)
            if part.n:
                parts.append(part)
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
