"""Temporal filters: records that are there while a clock is from their start up to their end.

A record waits in a calendar until it enters, and in another until it leaves; what has left is not
kept. Whether it is there follows from the record and the clock alone, so that a deletion goes the
same way as the insertion; it goes to the same worker, too, so that both cancel while they wait.

Source: the temporal filters of Materialize (`mz_now()`). A calendar is a few sorted batches, of
which what is due is the beginning, and not a heap: records come and go many together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.casts import Bound
from pointstamp.collections.clock_input import Clock
from pointstamp.collections.clocked import bound_by_clock, check_clock, clocked
from pointstamp.collections.durable_rows import NO_TEXTS, StoredPart
from pointstamp.collections.negated import negated
from pointstamp.collections.schema import Schema
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError
from pointstamp.kernels.consolidation import consolidate

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


class Calendar:
    """Rows by the word that is due; the first word of each, int64[n, w + 1].

    >>> calendar = Calendar()
    >>> calendar.add(np.array([[7, 5, 1], [3, 6, 1], [4, 8, 1]]))
    >>> calendar.first(), calendar.take(4).tolist(), len(calendar)
    (3, [[3, 6, 1], [4, 8, 1]], 1)
    """

    def __init__(self) -> None:
        self._kept = BatchSeries()
        self._n_taken = 0
        """So many rows are still in memory, in front of those that are not taken."""

    def __len__(self) -> int:
        return self._kept.n_updates

    @property
    def batches(self) -> list[Rows]:
        """What is in it, each batch sorted."""
        return self._kept.rows

    def add(self, rows: Rows) -> None:
        """Enter rows, in any order; those whose diffs cancel go."""
        self.add_consolidated(consolidate(np.ascontiguousarray(rows)))

    def add_consolidated(self, rows: Rows) -> None:
        """The same of rows that are."""
        if len(rows):
            self._kept.insert(rows)

    def first(self) -> int | None:
        """The least word that is due."""
        return min((int(rows[0, 0]) for rows in self._kept.rows), default=None)

    def take(self, now: int) -> Rows | None:
        """The rows that are due at `now` or before, which are kept no longer; None of none."""
        due, rest = [], []
        for rows in self._kept.rows:
            n = int(np.searchsorted(rows[:, 0], now, side="right"))
            if n:
                due.append(rows[:n])
            if n < len(rows):
                rest.append(rows[n:])
        if not due:
            return None
        self._kept.restart(rest)
        self._n_taken += sum(map(len, due))
        if self._n_taken > len(self):
            self._kept.restart([rows.copy() for rows in rest])
            self._n_taken = 0
        return np.concatenate(due)


Interval = Callable[[Rows], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Any]]
"""Of rows: their starts and ends, int64[n] each, and which have both, bool[n] or None for all."""


class Presence:
    """Which records are there, as a clock goes on; the engine of a temporal filter.

    Parameters
    ----------
    interval : callable
    leaves : bool
        Whether there is an end; records without are not kept once they are there.
    texts : tuple of int
        Which words of the rows are numbers of texts.
    """

    is_canonical = False
    """A record may come while another copy of it enters."""

    def __init__(
        self, interval: Interval, *, leaves: bool, texts: tuple[int, ...] = NO_TEXTS
    ) -> None:
        self._interval = interval
        self._leaves = leaves
        self._texts = texts
        self._coming = Calendar()
        """[start, end, words..., diff]"""
        self._leaving = Calendar()
        """[end, words..., diff]"""
        self.now: int | None = None

    def __len__(self) -> int:
        """How many records wait."""
        return len(self._coming) + len(self._leaving)

    def first(self) -> int | None:
        """The next word of the clock at which something changes by itself."""
        found = [each for each in (self._coming.first(), self._leaving.first()) if each is not None]
        return min(found, default=None)

    def move(self, now: int) -> list[Rows]:
        """Move the clock; what enters and leaves by that, as updates."""
        self.now = now
        changes = []
        left = self._leaving.take(now)
        if left is not None:
            changes.append(negated(left[:, 1:]))
        came = self._coming.take(now)
        if came is not None:
            changes.append(self._enter(came[came[:, 1] > now] if self._leaves else came))
        return changes

    def add(self, rows: Rows) -> Rows:
        """Take in updates; those of records that are there now."""
        starts, ends, are_there = self._interval(rows)
        timed = np.column_stack([starts, ends, rows])
        kept = np.full(len(rows), True) if are_there is None else are_there.copy()
        if self._leaves:
            # The clock may reach the greatest word, which stands for the end of those without.
            kept &= starts < ends
            if self.now is not None:
                kept &= ends > self.now
        timed = timed[kept]
        if self.now is None:
            self._coming.add(timed)
            return rows[:0]
        is_later = timed[:, 0] > self.now
        self._coming.add(timed[is_later])
        return self._enter(timed[~is_later])

    def contents(self) -> Iterable[StoredPart]:
        """Records that will enter, and those that will leave."""
        for name, calendar, n_before in (
            ("coming", self._coming, 2),
            ("leaving", self._leaving, 1),
        ):
            for rows in calendar.batches:
                yield StoredPart(name, rows[:, n_before:], self._texts)

    def restore(self, parts: Mapping[str, Rows]) -> None:
        """The same."""
        for name, rows in parts.items():
            starts, ends, _ = self._interval(rows)
            if name == "coming":
                self._coming.add(np.column_stack([starts, ends, rows]))
            else:
                self._leaving.add(np.column_stack([ends, rows]))

    def _enter(self, timed: Rows) -> Rows:
        if self._leaves:
            self._leaving.add(timed[:, 1:])
        return timed[:, 2:]


def present(
    stream: StreamCore[Any], schema: Schema, start: Any, end: Any, clock: Clock | None, name: str
) -> StreamCore[Any]:
    """Updates of the records that are there, of `stream` of updates of `schema`."""
    check_clock(stream, clock, name)
    if start is None and end is None:
        raise BuildError(f"operator {name!r} is given neither a start nor an end")
    ends_of = [
        None if value is None else bound_by_clock(value, schema, clock, name)
        for value in (start, end)
    ]
    interval = _interval(*ends_of)

    def engine() -> Presence:
        return Presence(interval, leaves=end is not None, texts=schema.texts)

    kept = f"records from {start} up to {end}"
    return clocked(stream, clock, engine, schema.n_words, schema.texts, name, kept)


def _interval(start: Bound | None, end: Bound | None) -> Interval:
    """A side that is None is open; a record with a null on the other is never there, as in SQL."""

    def interval(rows: Rows) -> tuple[Any, Any, Any]:
        are_there = None
        sides = []
        for bound, far in ((start, _LEAST), (end, _GREATEST)):
            if bound is None:
                sides.append(np.full(len(rows), far, np.int64))
                continue
            values, there = bound.evaluate(rows)
            # A constant may be one value for all.
            sides.append(np.broadcast_to(values, (len(rows),)))
            if there is not None:
                are_there = there if are_there is None else are_there & there
        return sides[0], sides[1], are_there

    return interval
