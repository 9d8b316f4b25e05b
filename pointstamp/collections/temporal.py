"""Temporal filters: records that are there while a clock is from their start up to their end.

A record waits in a calendar until it enters, and in another until it leaves; what has left is not
kept. Whether it is there follows from the record and the clock alone, so that a deletion goes the
same way as the insertion; it goes to the same worker, too, so that both cancel while they wait.

Source: the temporal filters of Materialize (`mz_now()`). A calendar is a few sorted batches, of
which what is due is the beginning, and not a heap: records come and go many together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.arrange import check_times, consolidated, send_rows
from pointstamp.collections.casts import Bound
from pointstamp.collections.clock_input import Clock
from pointstamp.collections.expression import Expression, as_expression, col
from pointstamp.collections.schema import Schema
from pointstamp.collections.spine import insert_batch
from pointstamp.containers.updates import FirstWords, Rows
from pointstamp.containers.words import LONG, WordType
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange, Pact
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, SchemaError
from pointstamp.kernels.consolidation import consolidate
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Int

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


class Calendar:
    """Rows by the word that is due; the first word of each, int64[n, w + 1].

    >>> calendar = Calendar()
    >>> calendar.add(np.array([[7, 5, 1], [3, 6, 1], [4, 8, 1]]))
    >>> calendar.first(), calendar.take(4).tolist(), len(calendar)
    (3, [[3, 6, 1], [4, 8, 1]], 1)
    """

    def __init__(self) -> None:
        self._batches: list[Rows] = []
        self._n_taken = 0
        """So many rows are still in memory, in front of those that are not taken."""

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def add(self, rows: Rows) -> None:
        """Enter rows, in any order; those whose diffs cancel go."""
        rows = consolidate(np.ascontiguousarray(rows))
        if len(rows):
            insert_batch(self._batches, rows)

    def first(self) -> int | None:
        """The least word that is due."""
        return min((int(rows[0, 0]) for rows in self._batches), default=None)

    def take(self, now: int) -> Rows | None:
        """The rows that are due at `now` or before, which are kept no longer; None of none."""
        due, rest = [], []
        for rows in self._batches:
            n = int(np.searchsorted(rows[:, 0], now, side="right"))
            if n:
                due.append(rows[:n])
            if n < len(rows):
                rest.append(rows[n:])
        if not due:
            return None
        self._batches = rest
        self._n_taken += sum(map(len, due))
        if self._n_taken > len(self):
            self._batches = [rows.copy() for rows in rest]
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
    """

    def __init__(self, interval: Interval, *, leaves: bool) -> None:
        self._interval = interval
        self._leaves = leaves
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
            gone = left[:, 1:]
            gone[:, -1] *= -1
            changes.append(gone)
        came = self._coming.take(now)
        if came is not None:
            changes.append(self._enter(came[came[:, 1] > now]))
        return changes

    def add(self, rows: Rows) -> Rows:
        """Take in updates; those of records that are there now."""
        starts, ends, are_there = self._interval(rows)
        kept = starts < ends
        if are_there is not None:
            kept &= are_there
        if self.now is not None:
            kept &= ends > self.now
        timed = np.column_stack([starts, ends, rows])[kept]
        if self.now is None:
            self._coming.add(timed)
            return rows[:0]
        is_later = timed[:, 0] > self.now
        self._coming.add(timed[is_later])
        return self._enter(timed[~is_later])

    def _enter(self, timed: Rows) -> Rows:
        if self._leaves:
            self._leaving.add(timed[:, 1:])
        return timed[:, 2:]


def present(
    stream: StreamCore[Any], schema: Schema, start: Any, end: Any, clock: Clock | None, name: str
) -> StreamCore[Any]:
    """Updates of the records that are there, of `stream` of updates of `schema`."""
    check_times(stream, name)
    if clock is not None and not isinstance(clock, Clock):
        raise BuildError(
            f"operator {name!r} is given clock={clock!r}, and needs one of scope.new_clock() or of "
            "an input ps.ClockInput() of a view"
        )
    if clock is None and stream.scope.timestamp is not Int:
        raise BuildError(
            f"operator {name!r} is given no clock, and the times of {stream.scope.path} are "
            f"{stream.scope.timestamp.name}, not epochs; give it clock="
        )
    if start is None and end is None:
        raise BuildError(f"operator {name!r} is given neither a start nor an end")
    kind = LONG if clock is None else clock.type
    ends_of = [_bound(value, schema, kind, name) for value in (start, end)]
    interval, leaves = _interval(*ends_of), end is not None
    if clock is None:
        return _by_epoch(stream, schema, interval, leaves, name)
    return _by_clock(stream, clock, schema, interval, leaves, name)


def _by_clock(
    stream: StreamCore[Any],
    clock: Clock,
    schema: Schema,
    interval: Interval,
    leaves: bool,
    name: str,
) -> StreamCore[Any]:
    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        stash: Stash[Any] = Stash(info)
        presence = Presence(interval, leaves=leaves)

        def logic(records: Input, clock: Input, output: Output) -> None:
            stash.take(records, clock)
            for held, (batches, set_to) in stash:
                words = [word for batch in set_to for word in batch]
                now = max(words, default=None)
                parts = []
                if now is not None and (presence.now is None or now > presence.now):
                    parts = presence.move(now)
                parts += [presence.add(batch.rows) for batch in batches]
                _send(output, held, parts, schema, name)

        return logic

    pacts: list[Pact] = [Exchange(FirstWords(schema.n_words)), Broadcast()]
    return operator([stream, clock.words], pacts, name, build, Interest.IF_CAPABILITY)


def _by_epoch(
    stream: StreamCore[Any], schema: Schema, interval: Interval, leaves: bool, name: str
) -> StreamCore[Any]:
    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        stash: Stash[Any] = Stash(info)
        presence = Presence(interval, leaves=leaves)

        def logic(records: Input, output: Output) -> None:
            stash.take(records)
            for held, batches in stash:
                parts = presence.move(held.time)
                parts += [presence.add(batch.rows) for batch in batches]
                _send(output, held, parts, schema, name)
                following = presence.first()
                if following is not None:
                    # All that was due has been taken, or this epoch would come for ever.
                    assert following > held.time
                    # An entry without batches, so that this epoch is looked at by itself.
                    stash.at(held, following)

        return logic

    pacts = [Exchange(FirstWords(schema.n_words))]
    return operator([stream], pacts, name, build, Interest.IF_CAPABILITY)


def _send(output: Output, held: Capability, parts: list[Rows], schema: Schema, name: str) -> None:
    parts = [np.ascontiguousarray(rows) for rows in parts if len(rows)]
    if parts:
        send_rows(output, held, consolidated(parts, name), schema.texts)


def _bound(value: Any, schema: Schema, kind: WordType, name: str) -> Bound | None:
    if value is None:
        return None
    expression: Expression = col(value) if isinstance(value, str) else as_expression(value)
    bound = expression.bind(schema)
    if bound.type != kind and not (bound.type.is_signed and kind.is_signed):
        raise SchemaError(
            f"operator {name!r}: {expression} is {bound.type.name}, and its clock is {kind.name}; "
            "cast it, or give a clock of its type"
        )
    return bound


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
