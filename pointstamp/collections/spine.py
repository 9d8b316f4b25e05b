"""A spine: what an arrangement keeps, as few sorted batches.

Each batch holds the updates of some times, those that came later fewer of them: two that
follow each other are made one when the older is not twice as long. So a record is merged a
number of times that grows with the logarithm of all, and as many batches are looked into. A merge
goes on by pieces (`batch_merges.py`), and is there for readers when it is complete, not before.

Readers lag behind what is added. A batch of a time that a reader has not acknowledged is left
as it is, so that the reader can leave it out; what all have acknowledged is merged, and
needs no times any more.

Source: differential-dataflow `trace/implementations/spine_fueled.rs`; times are in one line here,
so that which batches to read takes the place of times in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.collections import batch_merges
from pointstamp.collections.batch_merges import FEW_ROWS, MOST_READ, BatchMerge, first_to_merge
from pointstamp.containers.updates import Rows
from pointstamp.kernels.consolidation import merge
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates
    from pointstamp.collections.spine_memory import SpineMemory
    from pointstamp.dataflow.environment import Environment
    from pointstamp.dataflow.idle_work import IdleWork

MOST_NEW = 32
"""Of many batches the newest so many are read as they are: their readers differ by a few."""

# Compiled, numbers of C.
_MOST_READ, _FEW_ROWS, _MOST_NEW = MOST_READ, FEW_ROWS, MOST_NEW


class SpineBatch:
    """Consolidated updates, and the last time that some of them have.

    Attributes
    ----------
    n_new : int
        How many came with it, and were not merged before.
    merge : BatchMerge, optional
        With the batch behind it, under way.
    is_merging : bool
        Whether it is part of a merge that is under way.
    """

    __slots__ = ("is_merging", "merge", "n", "n_new", "rows", "time")

    def __init__(self, rows: Rows, time: Any, n_new: int) -> None:
        self.rows = rows
        self.n = len(rows)
        self.n_new = n_new
        self.time = time
        self.merge: Any = None
        self.is_merging = False


class SpineRun:
    """The rows of some batches that follow each other, merged, beside them."""

    __slots__ = ("n", "n_batches", "rows")

    def __init__(self, rows: Rows, n_batches: int) -> None:
        self.rows = rows
        self.n = len(rows)
        self.n_batches = n_batches


class SpineReader:
    """Reads a spine, and holds back the merging of what it has not acknowledged."""

    __slots__ = ("_spine", "bound", "done", "first", "is_over")

    def __init__(self, spine: Spine) -> None:
        self._spine = spine
        self.bound: Any = spine.timestamp.minimum
        """Times before it are read together from now on."""
        self.done: Any = None
        """So are times up to this one."""
        self.first: Any = None
        """What is of times before it counts as of this one; None: of none."""
        self.is_over = False

    def through(self, time: Any) -> list[Rows]:
        """What there is of times up to `time`, as at most `MOST_READ` batches."""
        return self._spine.read(time, True)

    def before(self, time: Any) -> list[Rows]:
        """What there is of times before `time`, as at most `MOST_READ` batches."""
        if self.first is not None and self._spine.less_equal(time, self.first):
            return []
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
    fuel, at_once, lump : int, optional
        See `batch_merges`, where the defaults are.
    """

    __slots__ = (
        "_at_once",
        "_batches",
        "_fuel",
        "_is_idle_known",
        "_is_natural",
        "_lump",
        "_n_acknowledged",
        "_n_in_runs",
        "_n_merges",
        "_owed",
        "_readers",
        "_runs",
        "had_readers",
        "idle",
        "log",
        "memory",
        "newest",
        "outlasts",
        "timestamp",
    )

    def __init__(
        self,
        timestamp: Timestamp,
        fuel: int | None = None,
        at_once: int | None = None,
        lump: int | None = None,
    ) -> None:
        self.timestamp = timestamp
        self._fuel = batch_merges.FUEL if fuel is None else fuel
        self._at_once = batch_merges.AT_ONCE if at_once is None else at_once
        self._lump = batch_merges.LUMP if lump is None else lump
        self._n_merges = 0
        """So many are under way."""
        self._owed = 0
        """So many updates came for which no fuel was spent on those."""
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
        """Whether what is kept is in snapshots: if nothing reads it here, the next program does."""
        self.newest: Any = None
        """The time of the last insertion, also where what was inserted has cancelled."""
        self.log: KeyedUpdates | None = None
        """Is given each insertion, for snapshots."""
        self.memory: SpineMemory | None = None
        """Has large batches on disk, if the worker has a limit."""
        self.idle: IdleWork | None = None
        """Where it says that there is something to merge when there is time."""
        self._is_idle_known = False

    def live_in(self, environment: Environment) -> None:
        """Merge when the worker has time for it, and end with the dataflow that is being built."""
        self.idle = environment.idle
        environment.closers.at_end(self.let_go)

    def let_go(self) -> None:
        """Keep nothing but for readers outside of the dataflow, which has ended."""
        self.had_readers = True
        self._keep_what_is_read()

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
        if self._readers or self.outlasts or not self.had_readers:
            if self.log is not None:
                self.log.add("rows", rows)
            if self.memory is not None:
                rows = self.memory.keep(rows)
            n = len(rows)
            if self._n_merges:
                self._owed += n
                if self._owed >= self._lump:
                    self._spend(self._fuel * self._owed)
            self._batches.append(SpineBatch(rows, time, n))
            self._count()
            self.maintain()
            if self.idle is not None and not self._is_idle_known:
                self._is_idle_known = True
                self.idle.add(self.work)

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
            kept = [batch.rows for batch in self._batches]
            under_way = [batch.merge.nbytes for batch in self._batches if batch.merge is not None]
            self.memory.note(kept, sum(under_way))

    def _merged(self, left: Rows, right: Rows) -> Rows:
        return merge(left, right) if self.memory is None else self.memory.merge(left, right)

    def maintain(self) -> None:
        """Begin the merges of what may be merged, and is to be."""
        batches = self._batches
        n_before = self._n_acknowledged
        while self._n_acknowledged < len(batches) and not self._is_needed_apart(
            batches[self._n_acknowledged].time
        ):
            self._n_acknowledged += 1
        if self._n_acknowledged != n_before:
            self._tidy()

    def _tidy(self) -> None:
        """Begin merges, and put those that are complete in the place of their batches."""
        batches = self._batches
        # From the newest of those that may be, which are the first so many.
        at = self._n_acknowledged - 1
        while at > 0:
            older, newer = batches[at - 1], batches[at]
            if older.merge is None:
                is_longer = older.n > 2 * newer.n and older.n > _FEW_ROWS
                if is_longer or older.is_merging or newer.is_merging:
                    at -= 1
                    continue
                if older.n + newer.n <= self._at_once:
                    self._publish(at, self._merged(older.rows, newer.rows))
                    at = min(at, self._n_acknowledged - 1)
                    continue
                # What comes pays for its own merge.
                self._begin(older, newer).advance(self._fuel * newer.n_new)
            if older.merge.is_complete:
                self._n_merges -= 1
                self._publish(at, older.merge.rows)
                at = min(at, self._n_acknowledged - 1)
            else:
                at -= 1
        self._count()

    def _begin(self, older: SpineBatch, newer: SpineBatch) -> Any:
        """Begin a merge of two that follow each other."""
        if self.memory is None:
            older.merge = BatchMerge(older.rows, newer.rows)
        else:
            older.merge = self.memory.begin(older.rows, newer.rows)
        older.is_merging = newer.is_merging = True
        self._n_merges += 1
        return older.merge

    def _publish(self, at: int, rows: Rows) -> None:
        """Have merged rows in the place of a batch and that before it."""
        self._runs_have_fewer(1 if len(rows) else 2, at + 1)
        time = self._batches[at].time
        self._batches[at - 1 : at + 1] = [SpineBatch(rows, time, 0)] if len(rows) else []
        self._n_acknowledged -= 1 if len(rows) else 2

    def _spend(self, fuel: int) -> None:
        """Have all merges that are under way go on."""
        self._owed = 0
        is_complete = False
        for batch in self._batches:
            if batch.merge is not None and batch.merge.advance(fuel):
                is_complete = True
        if is_complete:
            self._tidy()

    def work(self, budget: int) -> bool:
        """Merge by so many rows, when idle; whether more is to be merged."""
        n = self._n_acknowledged
        for at in range(n - 2, -1, -1):
            batch = self._batches[at]
            if batch.merge is not None:
                if batch.merge.advance(budget):
                    self._tidy()
                return True
        sizes = [kept.n for kept in self._batches[:n]]
        first = first_to_merge(sizes, self._at_once)
        if first >= 0 and not self._batches[n - 1].is_merging:
            self._begin(self._batches[n - 2], self._batches[n - 1])
            self._count()
            return True
        self._is_idle_known = False
        return False

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
        """Without a reader that is over; with none left, nothing is kept but for snapshots."""
        self._readers.remove(reader)
        self._keep_what_is_read()

    def _keep_what_is_read(self) -> None:
        if self._readers or self.outlasts:
            self.maintain()
        else:
            self._batches.clear()
            self._n_acknowledged = self._n_merges = 0
            self._runs.clear()
            self._n_in_runs = 0
            self._count()

    @property
    def merges(self) -> list[Any]:
        """Those that are under way."""
        return [batch.merge for batch in self._batches if batch.merge is not None]

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
        """Whether it keeps what comes: for a reader, for snapshots, or for want of a first one."""
        return bool(self._readers) or self.outlasts or not self.had_readers

    @property
    def since(self) -> Any:
        """What is kept is exact at this time and all after it."""
        n = self._n_acknowledged
        return self._batches[n - 1].time if n else self.timestamp.minimum

    @property
    def n_bytes(self) -> int:
        """Of the batches, of the runs beside them, and of merges that are under way."""
        merges: int = sum(one.nbytes for one in self.merges)
        runs = sum(run.rows.nbytes for run in self._runs if run.n_batches > 1)
        return sum(batch.rows.nbytes for batch in self._batches) + runs + merges
