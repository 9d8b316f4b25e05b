"""A spine: what an arrangement keeps, as few sorted batches.

Each batch holds the updates of some times, those that came later fewer of them: two that
follow each other are made one when the older is not twice as long. So a record is merged a
number of times that grows with the logarithm of all, and as many batches are looked into.

Readers lag behind what is added. A batch of a time that a reader has not acknowledged is left
as it is, so that the reader can leave it out; what all have acknowledged is merged, and
needs no times any more.

Source: differential-dataflow `trace/implementations/spine_fueled.rs`; times are in one line here,
so that which batches to read takes the place of times in them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import merge
from pointstamp.progress.timestamp import Timestamp

MOST_READ = 64
"""How many batches a loop reads side by side."""


class SpineBatch:
    """Consolidated updates, and the last time that some of them have."""

    __slots__ = ("rows", "time")

    def __init__(self, rows: Rows, time: Any) -> None:
        self.rows = rows
        self.time = time


class SpineReader:
    """Reads a spine, and holds back the merging of what it has not acknowledged."""

    __slots__ = ("_spine", "bound", "done", "is_over")

    def __init__(self, spine: Spine) -> None:
        self._spine = spine
        self.bound: Any = spine.timestamp.minimum
        """Times before it are read together from now on."""
        self.done: Any = None
        """So are times up to this one."""
        self.is_over = False

    def through(self, time: Any) -> list[Rows]:
        """What there is of times up to `time`, as at most `MOST_READ` batches."""
        less_equal = self._spine.timestamp.less_equal
        return self._spine.read(lambda batch: less_equal(batch.time, time))

    def before(self, time: Any) -> list[Rows]:
        """What there is of times before `time`, as at most `MOST_READ` batches."""
        less_equal = self._spine.timestamp.less_equal
        return self._spine.read(lambda batch: not less_equal(time, batch.time))

    def finish(self, time: Any) -> None:
        """Never ask again for less than all times up to `time`."""
        self.done = time
        self._spine.maintain()

    def needs_apart(self, time: Any) -> bool:
        """Whether it may ask for what is before `time`, and not of it."""
        less_equal = self._spine.timestamp.less_equal
        is_done = self.done is not None and less_equal(time, self.done)
        return not is_done and less_equal(self.bound, time)

    def acknowledge(self, bound: Any) -> None:
        """Never ask again for less than all times before `bound`."""
        if bound != self.bound:
            self.bound = bound
            self._spine.maintain()

    def close(self) -> None:
        """Never ask again."""
        if not self.is_over:
            self.is_over = True
            self._spine.forget(self)


class Spine:
    """The batches of an arrangement on this worker, oldest first.

    Parameters
    ----------
    timestamp : Timestamp
        Of their times, which are in one line.
    """

    def __init__(self, timestamp: Timestamp) -> None:
        self.timestamp = timestamp
        self._batches: list[SpineBatch] = []
        self._readers: list[SpineReader] = []
        self.had_readers = False

    def reader(self) -> SpineReader:
        """A new reader, of all times."""
        reader = SpineReader(self)
        self._readers.append(reader)
        self.had_readers = True
        return reader

    def insert(self, rows: Rows, time: Any) -> None:
        """Add consolidated updates of a time that is after all before."""
        if self._readers or not self.had_readers:
            self._batches.append(SpineBatch(rows, time))
            self.maintain()

    def read(self, chosen: Callable[[SpineBatch], bool]) -> list[Rows]:
        """The rows of the first batches that are chosen; if they are many, the last as one."""
        found = [batch.rows for batch in takewhile(chosen, self._batches)]
        while len(found) > MOST_READ:
            last = found.pop()
            found[-1] = merge(found[-1], last)
        return found

    def maintain(self) -> None:
        """Merge what may be merged, and is to be."""
        # From the newest of those that may be, which are the first so many.
        n = self._n_acknowledged()
        at = n - 1
        while at > 0:
            older, newer = self._batches[at - 1], self._batches[at]
            if len(older.rows) > 2 * len(newer.rows):
                at -= 1
                continue
            rows = merge(older.rows, newer.rows)
            self._batches[at - 1 : at + 1] = [SpineBatch(rows, newer.time)] if len(rows) else []
            at = min(at, self._n_acknowledged() - 1)

    def forget(self, reader: SpineReader) -> None:
        """Without a reader that is over; with none left, nothing is kept."""
        self._readers.remove(reader)
        if self._readers:
            self.maintain()
        else:
            self._batches.clear()

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return sum(len(batch.rows) for batch in self._batches)

    @property
    def n_batches(self) -> int:
        """In how many batches."""
        return len(self._batches)

    def _n_acknowledged(self) -> int:
        for place, batch in enumerate(self._batches):
            if any(reader.needs_apart(batch.time) for reader in self._readers):
                return place
        return len(self._batches)


def insert_batch(batches: list[Rows], new: Rows) -> None:
    """Put consolidated rows behind others, and merge the last ones while they are alike long."""
    batches.append(new)
    while len(batches) > 1 and (
        len(batches[-2]) <= 2 * len(batches[-1]) or len(batches) > MOST_READ
    ):
        last = batches.pop()
        merged = merge(batches.pop(), last)
        if len(merged):
            batches.append(merged)
