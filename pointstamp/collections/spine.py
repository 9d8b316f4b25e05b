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

from typing import TYPE_CHECKING, Any

from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import merge
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates
    from pointstamp.collections.spine_memory import SpineMemory

MOST_READ = 64
"""How many batches a loop reads side by side."""

FEW_ROWS = 64
"""A batch of no more takes the next one in, whatever that costs: to look into one more costs as
much, each time."""

MOST_NEW = 32
"""Of many batches the newest so many are read as they are: their readers differ by a few."""

# Compiled, numbers of C.
_MOST_READ, _FEW_ROWS, _MOST_NEW = MOST_READ, FEW_ROWS, MOST_NEW


class SpineBatch:
    """Consolidated updates, and the last time that some of them have."""

    __slots__ = ("n", "rows", "time")

    def __init__(self, rows: Rows, time: Any) -> None:
        self.rows = rows
        self.n = len(rows)
        self.time = time


class SpineRun:
    """The rows of some batches that follow each other, merged, beside them."""

    __slots__ = ("n", "n_batches", "rows")

    def __init__(self, rows: Rows, n_batches: int) -> None:
        self.rows = rows
        self.n = len(rows)
        self.n_batches = n_batches


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
        return self._spine.read(time, True)

    def before(self, time: Any) -> list[Rows]:
        """What there is of times before `time`, as at most `MOST_READ` batches."""
        return self._spine.read(time, False)

    def finish(self, time: Any) -> None:
        """Never ask again for less than all times up to `time`."""
        self.done = time
        self._spine.maintain()

    def needs_apart(self, time: Any) -> bool:
        """Whether it may ask for what is before `time`, and not of it."""
        is_done = self.done is not None and self._spine.less_equal(time, self.done)
        return not is_done and self._spine.less_equal(self.bound, time)

    def acknowledge(self, bound: Any) -> None:
        """Never ask again for less than all times before `bound`."""
        if bound != self.bound:
            self.bound = bound
            self._spine.maintain()

    def close(self) -> None:
        """Never ask again; where snapshots have what is kept, the next program does."""
        if not self.is_over and not self._spine.outlasts:
            self.is_over = True
            self._spine.forget(self)


class Spine:
    """The batches of an arrangement on this worker, oldest first.

    Parameters
    ----------
    timestamp : Timestamp
        Of their times, which are in one line.
    """

    __slots__ = (
        "_batches",
        "_is_natural",
        "_n_acknowledged",
        "_n_in_runs",
        "_readers",
        "_runs",
        "had_readers",
        "log",
        "memory",
        "newest",
        "outlasts",
        "timestamp",
    )

    def __init__(self, timestamp: Timestamp) -> None:
        self.timestamp = timestamp
        self._is_natural = bool(timestamp.total and timestamp.natural)
        self._batches: list[SpineBatch] = []
        self._n_acknowledged = 0
        """So many, the first ones, no reader needs apart: it never will again."""
        self._runs: list[SpineRun] = []
        self._n_in_runs = 0
        """So many, the first ones, are also in runs."""
        self._readers: list[SpineReader] = []
        self.had_readers = False
        self.outlasts = False
        """Whether what is kept is in snapshots."""
        self.newest: Any = None
        """The time of the last insertion, also where what was inserted has cancelled."""
        self.log: KeyedUpdates | None = None
        """Is given each insertion, for snapshots."""
        self.memory: SpineMemory | None = None
        """Has large batches on disk, if the worker has a limit."""

    def reader(self) -> SpineReader:
        """A new reader, of all times."""
        reader = SpineReader(self)
        self._readers.append(reader)
        self._n_acknowledged = 0
        self.had_readers = True
        return reader

    def less_equal(self, a: Any, b: Any) -> bool:
        """Whether a time is before another, or the same."""
        if self._is_natural:
            return bool(a <= b)
        return self.timestamp.less_equal(a, b)

    def insert(self, rows: Rows, time: Any) -> None:
        """Add consolidated updates of a time that is after all before."""
        self.newest = time
        if self._readers or not self.had_readers:
            if self.log is not None:
                self.log.add("rows", rows)
            if self.memory is not None:
                rows = self.memory.keep(rows)
            self._batches.append(SpineBatch(rows, time))
            self._count()
            self.maintain()

    def read(self, time: Any, through: bool) -> list[Rows]:
        """The rows of the batches before `time`, or `through` it, as at most `MOST_READ`."""
        if self.memory is not None:
            self.memory.trim()
        n = self._n_of(time, through)
        if n > _MOST_READ:
            return self._read_many(n)
        return [batch.rows for batch in self._batches[:n]]

    def _n_of(self, time: Any, through: bool) -> int:
        """How many batches are before a time, or `through` it: times are in one line."""
        low, high = 0, len(self._batches)
        while low < high:
            middle = (low + high) // 2
            batch = self._batches[middle]
            if through:
                is_read = self.less_equal(batch.time, time)
            else:
                is_read = not self.less_equal(time, batch.time)
            if is_read:
                low = middle + 1
            else:
                high = middle
        return low

    def _read_many(self, n: int) -> list[Rows]:
        """The rows of the first `n` batches: the older ones in runs, which stay for the next time.

        A handle or a slow reader may need any number of batches apart. Those that are not behind
        them read runs of them, merged beside them, so that what each reads does not grow.
        """
        runs, batches = self._runs, self._batches
        while self._n_in_runs > n:
            run = runs.pop()
            self._n_in_runs -= run.n_batches
        while self._n_in_runs < n - _MOST_NEW:
            first = batches[self._n_in_runs]
            run = SpineRun(first.rows, 1)
            self._n_in_runs += 1
            while runs:
                older = runs[-1]
                if older.n > 2 * run.n and older.n > _FEW_ROWS:
                    break
                runs.pop()
                merged = self._merged(older.rows, run.rows)
                run = SpineRun(merged, older.n_batches + run.n_batches)
            runs.append(run)
        found = [run.rows for run in runs]
        found += [batch.rows for batch in batches[self._n_in_runs : n]]
        while len(found) > _MOST_READ:
            newest = found.pop()
            found[-1] = self._merged(found[-1], newest)
        return found

    def _count(self) -> None:
        """Have counted what is in memory."""
        if self.memory is not None:
            self.memory.note([batch.rows for batch in self._batches])

    def _merged(self, left: Rows, right: Rows) -> Rows:
        return merge(left, right) if self.memory is None else self.memory.merge(left, right)

    def maintain(self) -> None:
        """Merge what may be merged, and is to be."""
        batches = self._batches
        n_before = self._n_acknowledged
        while self._n_acknowledged < len(batches) and not self._is_needed_apart(
            batches[self._n_acknowledged].time
        ):
            self._n_acknowledged += 1
        if self._n_acknowledged == n_before:
            return
        n_all, n_before = len(batches), self._n_acknowledged
        # From the newest of those that may be, which are the first so many.
        at = self._n_acknowledged - 1
        while at > 0:
            older, newer = batches[at - 1], batches[at]
            if older.n > 2 * newer.n and older.n > _FEW_ROWS:
                at -= 1
                continue
            rows = self._merged(older.rows, newer.rows)
            batches[at - 1 : at + 1] = [SpineBatch(rows, newer.time)] if len(rows) else []
            self._n_acknowledged -= 1 if len(rows) else 2
            at = min(at, self._n_acknowledged - 1)
        self._runs_have_fewer(n_all - len(batches), n_before)
        self._count()

    def _runs_have_fewer(self, n_gone: int, n_merged: int) -> None:
        """Take note that of the first `n_merged` batches so many are gone, merged with others."""
        if not self._runs or n_gone == 0:
            return
        run = self._runs[0]
        if n_merged <= run.n_batches:
            # All were in this run, whose rows are the same as before.
            run.n_batches -= n_gone
            self._n_in_runs -= n_gone
        else:
            self._runs.clear()
            self._n_in_runs = 0

    def _is_needed_apart(self, time: Any) -> bool:
        for reader in self._readers:
            if reader.needs_apart(time):
                return True
        return False

    def forget(self, reader: SpineReader) -> None:
        """Without a reader that is over; with none left, nothing is kept."""
        self._readers.remove(reader)
        if self._readers:
            self.maintain()
        else:
            self._batches.clear()
            self._n_acknowledged = 0
            self._runs.clear()
            self._n_in_runs = 0
            if self.log is not None:
                self.log.begin_anew()
            self._count()

    def listed(self) -> list[tuple[Any, Rows]]:
        """The batches, oldest first: the last time that some of their rows have, and the rows."""
        return [(batch.time, batch.rows) for batch in self._batches]

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return sum(batch.n for batch in self._batches)

    @property
    def n_batches(self) -> int:
        """In how many batches."""
        return len(self._batches)

    @property
    def n_apart(self) -> int:
        """How many of them, the newest, a reader may need apart, so that they are not merged."""
        return len(self._batches) - self._n_acknowledged

    @property
    def is_kept(self) -> bool:
        """Whether it keeps what comes: a reader is there, or there was none yet."""
        return bool(self._readers) or not self.had_readers

    @property
    def since(self) -> Any:
        """What is kept is exact at this time and all after it."""
        n = self._n_acknowledged
        return self._batches[n - 1].time if n else self.timestamp.minimum

    @property
    def n_bytes(self) -> int:
        """Of the batches, and of the runs beside them."""
        runs = sum(run.rows.nbytes for run in self._runs if run.n_batches > 1)
        return sum(batch.rows.nbytes for batch in self._batches) + runs


def as_one(batches: list[Rows], none: Rows) -> Rows:
    """Merge batches, in place, and give what they come to; `none` where there are none."""
    while len(batches) > 1:
        last = batches.pop()
        batches[-1] = merge(batches[-1], last)
    return batches[0] if batches else none


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
