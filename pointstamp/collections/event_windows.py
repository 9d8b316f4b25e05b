"""Windows of event time: groups that close, whose records are let go and whose results stay.

A record is in the windows of its time while these are open: until a clock is `lateness` past their
end. What comes for a window that is closed is late, and is left out.

Rules
-----
1. One operator keeps the records of open windows, in a calendar. When a window closes it deletes
   them, and whatever keeps something of them downstream lets go of it as of any deletion: sums,
   values in order, arrangements. So no reduction knows of windows.
2. What follows of that deletion stops behind the reduction: an operator that goes by the same
   clock leaves out the changes that a time brings to windows which are closed at that time. Since
   what is late has been left out before, these are the closing's own and no others.

Hence a reduction of open windows behind which changes of closed ones are left out is the
reduction of all records that were not late, with the state of the open windows alone.

Source: windows and lateness are the Dataflow model's, and `operators/windows.py` has them of
streams; to let go of state by deletions is how Materialize uses a temporal filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.casts import Bound
from pointstamp.collections.clock_input import Clock
from pointstamp.collections.clocked import (
    bound_by_clock,
    check_clock,
    clock_type_of,
    clocked,
    rows_at_times,
)
from pointstamp.collections.durable_rows import NO_TEXTS, StoredPart
from pointstamp.collections.grouped import GroupedCollection, with_keys
from pointstamp.collections.negated import negated
from pointstamp.collections.schema import Column, Schema
from pointstamp.collections.session_windows import SessionColumns, open_sessions
from pointstamp.collections.temporal import Calendar
from pointstamp.containers.updates import Rows, Updates
from pointstamp.containers.words import DAY_US, DateType, WordType, word_bounds
from pointstamp.dataflow.error_policy import OnError
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, DataError, SchemaError
from pointstamp.kernels.consolidation import consolidate
from pointstamp.operators.transform import transform
from pointstamp.operators.window_assigners import (
    Sessions,
    Sliding,
    check_lateness,
    span_number,
)

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.expression import Expression

Words = npt.NDArray[np.int64]

_GREATEST = (1 << 63) - 1

START, END = "window_start", "window_end"
"""The columns that windows add."""


class EventWindows:
    """In which windows records are, and when these close, in words of the clock.

    Parameters
    ----------
    windows : Sliding
        Of integers.
    lateness : int
    time : Bound
        Of a record when it happened.
    kind : WordType
        Of the clock, and of the bounds of windows.
    """

    def __init__(
        self, windows: Sliding, lateness: int, time: Bound, kind: WordType, name: str
    ) -> None:
        self._windows = windows
        self._lateness = lateness
        self._time = time
        self._kind = kind
        self._name = name
        self.size = span_number(windows.size)

    def assigned(self, rows: Rows) -> Rows:
        """Each record in each of its windows: with start and end behind its words.

        A record whose time is null is in none.

        Raises
        ------
        DataError
            If a window goes beyond what the type of the clock has.
        """
        rows, times = rows_at_times(self._time, rows)
        if not len(rows):
            return np.empty((0, rows.shape[1] + 2), np.int64)
        self._check(int(times.min()), int(times.max()))
        records, starts = self._windows.windows_of(times)
        rows = rows[records]
        return np.column_stack([rows[:, :-1], starts, starts + self.size, rows[:, -1]])

    def closes(self, ends: Words) -> Words:
        """At which word of the clock windows close that end there."""
        # A clock that is at the greatest word closes all.
        closes: Words = np.minimum(ends, _GREATEST - self._lateness) + self._lateness
        return closes

    def _check(self, first: int, last: int) -> None:
        start, end = self._windows.outermost(first, last)
        least, greatest = word_bounds(self._kind)
        if start < least or end > greatest:
            value = self._kind.to_value(first if start < least else last)
            raise DataError(
                f"operator {self._name!r}: the windows of {value} go beyond what "
                f"{self._kind.name} has"
            )


class WindowedRecords:
    """The records of open windows; the engine of `Collection.window`.

    It gives each record, once it is there and its window open, and deletes all of a window that
    closes.
    """

    is_canonical = True
    """What closes is of other windows than what comes."""

    def __init__(self, windows: EventWindows, texts: tuple[int, ...] = NO_TEXTS) -> None:
        self._windows = windows
        self._texts = texts
        self._closing = Calendar()
        """[when, words..., start, end, diff]"""
        self.now: int | None = None

    def __len__(self) -> int:
        """How many records are kept, in each of their windows."""
        return len(self._closing)

    def first(self) -> int | None:
        """When the next window closes."""
        return self._closing.first()

    def move(self, now: int) -> list[Rows]:
        """Move the clock; the deletions of the windows that close by that."""
        self.now = now
        closed = self._closing.take(now)
        if closed is None:
            return []
        # Copies of a record that came at other times are in other batches.
        return [negated(consolidate(np.ascontiguousarray(closed[:, 1:])))]

    def add(self, rows: Rows) -> Rows:
        """Take in updates; those of open windows."""
        rows = self._windows.assigned(rows)
        closes = self._windows.closes(rows[:, -2])
        if self.now is not None:
            is_open = closes > self.now
            rows, closes = rows[is_open], closes[is_open]
        timed = consolidate(np.ascontiguousarray(np.column_stack([closes, rows])))
        self._closing.add_consolidated(timed)
        return timed[:, 1:]

    def contents(self) -> Iterable[StoredPart]:
        """The records, in each of their windows."""
        for rows in self._closing.batches:
            yield StoredPart("open", rows[:, 1:], self._texts)

    def restore(self, parts: Mapping[str, Rows]) -> None:
        """The same."""
        for rows in parts.values():
            self._closing.add(np.column_stack([self._windows.closes(rows[:, -2]), rows]))


class KeepsNothing:
    """An engine that goes by the clock alone."""

    is_canonical = False

    def __init__(self) -> None:
        self.now: int | None = None

    def first(self) -> int | None:
        """Nothing changes by itself."""
        return None

    def move(self, now: int) -> list[Rows]:
        """Nothing follows."""
        self.now = now
        return []

    def contents(self) -> Iterable[StoredPart]:
        """None."""
        return ()

    def restore(self, parts: Mapping[str, Rows]) -> None:
        """Nothing comes."""


class LateUpdates(KeepsNothing):
    """The updates whose windows are closed, each as often as it would have changed something."""

    def __init__(self, windows: EventWindows) -> None:
        super().__init__()
        self._windows = windows

    def add(self, rows: Rows) -> Rows:
        """Those that are late, as insertions."""
        if self.now is None:
            return np.empty((0, rows.shape[1] + 2), np.int64)
        rows = self._windows.assigned(rows)
        late: Rows = rows[self._windows.closes(rows[:, -2]) <= self.now]
        # What cancels within a time changes nothing, however its updates came.
        late = consolidate(np.ascontiguousarray(late))
        late[:, -1] = np.abs(late[:, -1])
        return late


class LastingChanges(KeepsNothing):
    """The changes of open windows; those of closed ones are their closing, and are left out.

    Parameters
    ----------
    place : int
        Which word is the start or the end of the window.
    after : int
        So much after that word the window ends.
    """

    def __init__(self, windows: EventWindows, place: int, after: int) -> None:
        super().__init__()
        self._windows = windows
        self._place = place
        self._after = after

    def add(self, rows: Rows) -> Rows:
        """Those of windows that are open."""
        if self.now is None:
            return rows
        lasting: Rows = rows[self._windows.closes(rows[:, self._place] + self._after) > self.now]
        return lasting


@dataclass(frozen=True)
class WindowColumns:
    """Which columns of a collection are the bounds of its windows, and what these are."""

    windows: EventWindows
    clock: Clock | None
    name: str
    start: str | None = START
    end: str | None = END

    def under(self, names: Mapping[str, str]) -> WindowColumns | None:
        """The same where columns have other names, old ones by new; None where both are gone."""
        found = {old: new for new, old in names.items() if old in (self.start, self.end)}
        if not found:
            return None
        start, end = (found.get(each) if each else None for each in (self.start, self.end))
        return replace(self, start=start, end=end)

    def are_among(self, columns: Sequence[str]) -> bool:
        """Whether records of one group are of one window."""
        return self.start in columns or self.end in columns

    def lasting(
        self, stream: StreamCore[Any], columns: Mapping[str, int], texts: tuple[int, ...]
    ) -> StreamCore[Any]:
        """Of updates of open windows those that last, which are not of their closing.

        columns : by name, the places of their words
        """
        by_end = self.end in columns
        place = columns[str(self.end if by_end else self.start)]
        after = 0 if by_end else self.windows.size

        def engine() -> LastingChanges:
            return LastingChanges(self.windows, place, after)

        name = f"{self.name}Results"
        if self.clock is not None:
            return clocked(stream, self.clock, engine, None, texts, name)
        lasting = engine()

        # The epoch is the clock, and is known at once.
        def function(time: Any, batch: Updates) -> Updates | None:
            lasting.now = time
            rows = lasting.add(batch.rows)
            return Updates(rows, texts) if len(rows) else None

        return transform(stream, name, function, of_updates=True)


class WindowedMethods:
    """What a collection in windows does otherwise than others; see `WindowedCollection`."""

    schema: Schema
    _open: Collection
    _columns: WindowColumns | SessionColumns
    _late: Callable[[], Collection]
    _made: StreamCore[Any] | None

    def of_windows(
        self,
        open_: Collection,
        columns: WindowColumns | SessionColumns,
        late: Callable[[], Collection],
    ) -> Any:
        """A collection of the same windows."""
        raise NotImplementedError

    def made(self) -> StreamCore[Any]:
        """Updates of all records that were not late, which stay when their windows close."""
        if self._made is None:
            places, texts = self.schema.places, self.schema.texts
            self._made = self._columns.lasting(self._open.stream, places, texts)
        return self._made

    def late(self) -> Collection:
        """The records that came when their windows were closed, and are not in this collection.

        A record is there as often as copies of it came, or were deleted, too late: so its `count()`
        is how much was left out. What cancels within an epoch is not counted. They stay.
        """
        return self._late()

    def filter(
        self, *predicates: Expression, on_error: OnError = "raise", name: str = "Filter"
    ) -> Any:
        """As of other collections; of the same windows, unless errors are left out or data."""
        if on_error != "raise":
            return self.plain().filter(*predicates, on_error=on_error, name=name)
        return self._with(
            lambda records: records.filter(*predicates, name=name),
            {column: column for column in self.schema.names},
        )

    def rename(self, mapping: dict[str, str]) -> Any:
        """As of other collections; of the same windows."""
        return self._with(
            lambda records: records.rename(mapping),
            {mapping.get(column, column): column for column in self.schema.names},
        )

    def computed(self, columns: dict[str, Expression], name: str) -> Any:
        """As of other collections; of the same windows, if one of their bounds is left."""
        plain = {new: value.column for new, value in columns.items() if value.column is not None}
        return self._with(lambda records: records.computed(columns, name), plain)

    def group_by(self, *keys: str | Expression) -> GroupedCollection:
        """As of other collections; if a bound of windows is a key, closed ones are let go."""
        collection, names = with_keys(self, keys)
        if collection is self:
            if self._columns.are_among(names):
                return GroupedCollection(self._open, names, self._columns.lasting)
            collection = self.plain()
        found: GroupedCollection = collection.group_by(*names)
        return found

    def plain(self) -> Collection:
        """The same records, as a collection that knows nothing of windows."""
        return self._open.of(self.made(), self.schema)

    def _with(self, change: Callable[[Collection], Collection], names: dict[str, str]) -> Any:
        columns = self._columns.under(names)
        if columns is None:
            return change(self.plain())
        return self.of_windows(change(self._open), columns, lambda: change(self._late()))


def open_windows(
    collection: Collection,
    windows: Any,
    time: Any,
    key: str | Sequence[str] | None,
    lateness: Any,
    clock: Clock | None,
    name: str,
) -> tuple[Collection, WindowColumns | SessionColumns, Callable[[], Collection]]:
    """The records of open windows, with their bounds; which columns those are; what is late."""
    check_clock(collection.stream, clock, name)
    kind = clock_type_of(clock)
    if isinstance(windows, Sessions):
        gap = _in_words(span_number(windows.gap), windows, kind, name)
        form = gap, _in_words(check_lateness(lateness, windows), windows, kind, name)
        return open_sessions(collection, form, time, key, clock, (START, END), name)
    if not isinstance(windows, Sliding):
        raise BuildError(
            f"operator {name!r} is given the windows {windows!r}, and a collection has "
            "ps.Tumbling(size), ps.Sliding(size, step) and ps.Sessions(gap)"
        )
    if key is not None:
        raise BuildError(
            f"operator {name!r} is given key={key!r}, which is of ps.Sessions(gap); records are in "
            "other windows whatever their key"
        )
    bound = bound_by_clock(time, collection.schema, clock, name)
    in_words = _in_words(check_lateness(lateness, windows), windows, kind, name)
    size, slide, offset = (
        _in_words(span_number(span), windows, kind, name)
        for span in (windows.size, windows.slide, windows.offset)
    )
    of_words = Sliding(size, slide, offset, windows.has_gaps)
    event_windows = EventWindows(of_words, in_words, bound, kind, name)
    schema = Schema((*collection.schema.columns, Column(START, kind), Column(END, kind)))
    n_words = collection.schema.n_words
    said = f"{of_words} of {time}", f"lateness {in_words}"

    def made(engine: Callable[[], Any], of: str) -> Collection:
        rows = clocked(collection.stream, clock, engine, n_words, schema.texts, of, *said)
        return collection.of(rows, schema)

    @cache
    def late() -> Collection:
        return made(lambda: LateUpdates(event_windows), f"{name}Late")

    records = made(lambda: WindowedRecords(event_windows, schema.texts), name)
    return records, WindowColumns(event_windows, clock, name), late


def _in_words(length: int, windows: Sliding | Sessions, kind: WordType, name: str) -> int:
    """A length in units of the clock.

    Raises
    ------
    SchemaError
        If windows are not of the scale of the clock.
    """
    if kind.is_integer == windows.is_calendar:
        needed = "integers" if kind.is_integer else "timedeltas"
        raise SchemaError(
            f"operator {name!r} is given {windows}, and its clock is {kind.name}, whose windows "
            f"are of {needed}"
        )
    if not isinstance(kind, DateType):
        return length
    if length % DAY_US:
        raise SchemaError(
            f"operator {name!r} is given {windows}, and its clock is date: windows and lateness "
            "are of whole days"
        )
    return length // DAY_US
