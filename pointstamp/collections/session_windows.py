"""Sessions of event time: records of a key that follow each other, under inserts and deletions.

Records of a key are in one session as long as each comes less than a gap after the one before it.
A record that comes between two sessions joins them, and one that is deleted may part them; so the
bounds of a session follow from its records, and a change computes those of its key anew.

Rules
-----
1. An operator keeps the records of open sessions, by key and time. A session closes when the clock
   is `lateness` past its end: its records are deleted, so that what follows lets go of them.
2. At a time the clock moves first, then what is deleted goes, then what is inserted comes. A record
   is late if it would be in a closed session, together with what comes with it; a deletion, if its
   record is not there and a session of that record alone would be closed.
3. What a deletion leaves of a session may be over already. It is a result as any other, and closes
   at the next time that the operator sees; nothing joins it any more.
4. As a session that is made may end before the clock, bounds do not say which changes are of
   closing, as those of windows do. So what goes that way is marked, and an operator behind the
   reduction leaves out what a time brings to the sessions which are marked then. By rule 2 no
   other change of these comes at that time.

Source: sessions that merge are the Dataflow model's; to part them again is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.arrange import send_rows
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.casts import Bound
from pointstamp.collections.clock_input import Clock
from pointstamp.collections.clocked import bound_by_clock, clock_type_of, clocked, rows_at_times
from pointstamp.collections.durable_rows import StoredPart
from pointstamp.collections.group_answers import is_first
from pointstamp.collections.linear import changed
from pointstamp.collections.order import ALL, from_first
from pointstamp.collections.schema import Column, Schema, column_names
from pointstamp.collections.temporal import Calendar
from pointstamp.containers.updates import ChosenWords, FirstWords, Rows
from pointstamp.containers.words import WordType, word_bounds
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, DataError
from pointstamp.kernels.consolidation import choose_words, consolidate
from pointstamp.kernels.matches import read_groups
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.collections.collection import Collection

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_GREATEST = (1 << 63) - 1

LASTS, CLOSES, LATE = 0, 1, 2
"""What an update of a record in its session is: a change, the closing of it, or left out."""


@dataclass(frozen=True)
class SessionForm:
    """How records are in sessions, in words of the clock.

    Rows that come have the words of the key first. They are kept *timed*, with the time behind the
    key; and given with start, end and mark behind all words.
    """

    schema: Schema
    """Of what comes."""
    n_key: int
    gap: int
    lateness: int
    time: Bound
    """Of a record when it happened."""
    kind: WordType
    """Of the clock, and of the bounds of sessions."""
    name: str

    @cached_property
    def none(self) -> Rows:
        """No timed rows."""
        return np.empty((0, self.schema.n_words + 2), np.int64)

    @cached_property
    def timed_texts(self) -> tuple[int, ...]:
        """Which words of timed rows are numbers of texts."""
        return tuple(place + (place >= self.n_key) for place in self.schema.texts)

    def timed(self, rows: Rows) -> Rows:
        """Timed rows, consolidated; a record whose time is null is in no session.

        Raises
        ------
        DataError
            If a session goes beyond what the type of the clock has.
        """
        rows, times = rows_at_times(self.time, rows)
        if len(rows):
            self._check(int(times.min()), int(times.max()))
        timed = np.column_stack([rows[:, : self.n_key], times, rows[:, self.n_key :]])
        return consolidate(np.ascontiguousarray(timed))

    def bounds(self, timed: Rows) -> tuple[Ints, Ints]:
        """Of rows in order: where the session of each begins and ends."""
        times = timed[:, self.n_key]
        if not len(timed):
            return times, times
        begins = is_first(timed, self.n_key)
        # As unsigned words, as two of them may be further apart than 63 bits say.
        unsigned = times.astype(np.uint64)
        begins[1:] |= unsigned[1:] - unsigned[:-1] >= np.uint64(self.gap)
        first = np.flatnonzero(begins)
        session = np.cumsum(begins) - 1
        last = times[np.append(first[1:], len(timed)) - 1]
        return times[first][session], last[session] + self.gap

    def closes(self, ends: Ints) -> Ints:
        """At which word of the clock sessions close that end there."""
        closes: Ints = np.minimum(ends, _GREATEST - self.lateness) + self.lateness
        return closes

    def given(self, timed: Rows, starts: Ints, ends: Ints, mark: int) -> Rows:
        """Rows with bounds and mark."""
        key, record = timed[:, : self.n_key], timed[:, self.n_key + 1 : -1]
        marks = np.full(len(timed), mark)
        return np.column_stack([key, record, starts, ends, marks, timed[:, -1]])

    def _check(self, first: int, last: int) -> None:
        least, greatest = word_bounds(self.kind)
        if first < least or last + self.gap > greatest:
            value = self.kind.to_value(first if first < least else last)
            raise DataError(
                f"operator {self.name!r}: the session of {value} goes beyond what "
                f"{self.kind.name} has"
            )


class SessionRecords:
    """The records of open sessions; the engine of `Collection.window` of `Sessions`."""

    is_canonical = False
    """A record may come late while another copy of it closes."""

    def __init__(self, form: SessionForm) -> None:
        self._form = form
        self._kept = BatchSeries()
        """Timed rows of open sessions."""
        self._closing = Calendar()
        """[when, key..., n]: when a session of the key may close."""
        self._missing = form.none
        """Timed rows that were deleted and are not there, with diffs below 0."""
        self._leaving: list[Rows] = []
        """Rows as they are given, of sessions that were over when a deletion left them."""
        self.now: int | None = None

    def __len__(self) -> int:
        """How many updates are kept."""
        return self._kept.n_updates + len(self._missing) + sum(map(len, self._leaving))

    def first(self) -> int | None:
        """When the next session may close."""
        # Those of a snapshot leave with whatever comes next.
        if self._leaving and self.now is not None:
            return self.now + 1
        return self._closing.first()

    def move(self, now: int) -> list[Rows]:
        """Move the clock; the deletions of the sessions that close by that."""
        self.now = now
        form = self._form
        gone = self._left()
        if len(self._missing):
            self._missing = self._missing[~self._are_over(self._alone(self._missing))]
        due = self._closing.take(now)
        if due is None:
            return gone
        keys = consolidate(np.ascontiguousarray(due[:, 1:]))[:, :-1].copy()
        rows = self._of(keys)
        starts, ends = form.bounds(rows)
        over = self._are_over(ends)
        if over.any():
            closed = _negated(rows[over])
            self._kept.insert(closed)
            gone.append(form.given(closed, starts[over], ends[over], CLOSES))
        self._await(rows[~over], ends[~over])
        return gone

    def add(self, rows: Rows) -> Rows:
        """Take in updates; what changes of open sessions, and what is late."""
        form, n_key = self._form, self._form.n_key
        found = self._left()
        new = form.timed(rows)
        keys = new[is_first(new, n_key), :n_key].copy()
        before = self._of(keys)
        is_deletion = new[:, -1] < 0
        comes, goes = new[~is_deletion], new[is_deletion]

        is_late = self._are_over(self._alone(goes)) & ~_are_among(goes, before)
        found.append(self._late(goes[is_late]))
        left = _added([before, goes[~is_late]])
        comes = _added([comes, self._take_missing(keys)])
        self._miss([left[left[:, -1] < 0], comes[comes[:, -1] < 0]])
        left, comes = left[left[:, -1] > 0], comes[comes[:, -1] > 0]

        starts, ends = form.bounds(left)
        over = self._are_over(ends)
        parted = form.given(left[over], starts[over], ends[over], LASTS)
        # Sessions that are open stay so: one that is over has nothing but what comes.
        after = _added([left[~over], comes])
        starts, ends = form.bounds(after)
        late = self._are_over(ends)
        found.append(self._late(after[late]))
        after, starts, ends = after[~late], starts[~late], ends[~late]

        of_before = form.given(_negated(before), *form.bounds(before), LASTS)
        found += [of_before, parted, form.given(after, starts, ends, LASTS)]
        change = _added([after, _negated(before)])
        if len(change):
            self._kept.insert(change)
        if len(parted):
            parted = parted.copy()
            parted[:, -2] = CLOSES
            self._leaving.append(parted)
        self._await(after, ends)
        return _added(found)

    def contents(self) -> Iterable[StoredPart]:
        """The records of open sessions, those that are missing, and those that leave."""
        texts = self._form.timed_texts
        for rows in self._kept.rows:
            yield StoredPart("open", rows, texts)
        yield StoredPart("missing", self._missing, texts)
        for rows in self._leaving:
            yield StoredPart("leaving", rows, self._form.schema.texts)

    def restore(self, parts: Mapping[str, Rows]) -> None:
        """The same."""
        for name, rows in parts.items():
            if name == "open":
                self._kept.insert(rows)
                self._await(rows, self._form.bounds(rows)[1])
            elif name == "missing":
                self._missing = rows
            else:
                self._leaving.append(rows)

    def _of(self, keys: Rows) -> Rows:
        """The timed rows of some keys, each in order, that are there."""
        rows, _ = read_groups(self._kept.rows, keys, from_first(keys), ALL)
        return rows if len(rows) else self._form.none

    def _await(self, rows: Rows, ends: Ints) -> None:
        """Have each key looked at when its first session closes."""
        n_key = self._form.n_key
        first = is_first(rows, n_key)
        if len(rows):
            closes = self._form.closes(ends[first])
            ones = np.ones(len(closes), np.int64)
            self._closing.add(np.column_stack([closes, rows[first, :n_key], ones]))

    def _left(self) -> list[Rows]:
        """The deletions of what was over when it was made."""
        left = [_negated(rows) for rows in self._leaving]
        self._leaving.clear()
        return left

    def _alone(self, timed: Rows) -> Ints:
        """The ends of sessions of one record each."""
        ends: Ints = timed[:, self._form.n_key] + self._form.gap
        return ends

    def _are_over(self, ends: Ints) -> Flags:
        if self.now is None:
            return np.zeros(len(ends), np.bool_)
        over: Flags = self._form.closes(ends) <= self.now
        return over

    def _late(self, timed: Rows) -> Rows:
        """Updates that are left out, as insertions, each as a session of its own."""
        rows = self._form.given(timed, timed[:, self._form.n_key], self._alone(timed), LATE)
        rows[:, -1] = np.abs(rows[:, -1])
        return rows

    def _take_missing(self, keys: Rows) -> Rows:
        """Those of some keys, which are kept no longer."""
        if not len(self._missing):
            return self._missing
        are_of = _are_among(self._missing, keys, keys.shape[1])
        found = self._missing[are_of]
        self._missing = self._missing[~are_of]
        return found

    def _miss(self, parts: list[Rows]) -> None:
        """Keep what was deleted and is not there, until its time is over."""
        if any(map(len, parts)):
            self._missing = _added([self._missing, *parts])


def _added(parts: Sequence[Rows]) -> Rows:
    return consolidate(np.ascontiguousarray(np.concatenate(parts)))


def _negated(rows: Rows) -> Rows:
    rows = rows.copy()
    rows[:, -1] *= -1
    return rows


def _are_among(rows: Rows, others: Rows, n_words: int | None = None) -> Flags:
    """Whether the first words of each row, all without it, are those of one of some others."""
    if not len(rows) or not len(others):
        return np.zeros(len(rows), np.bool_)
    n = rows.shape[1] - 1 if n_words is None else n_words
    known = set(map(tuple, others[:, :n].tolist()))
    return np.array([tuple(row) in known for row in rows[:, :n].tolist()], np.bool_)


@dataclass(frozen=True)
class SessionColumns:
    """Which columns of a collection say in which sessions its records are."""

    closings: Callable[[], StreamCore[Any]]
    """Updates of key, start and end of the sessions that close, by these words."""
    names: tuple[str, ...]
    """Of the columns of the key, the start and the end."""
    are_nullable: tuple[bool, ...]
    name: str

    def under(self, names: Mapping[str, str]) -> SessionColumns | None:
        """The same where columns have other names, old ones by new; None where one is gone."""
        found = {old: new for new, old in names.items()}
        if not all(name in found for name in self.names):
            return None
        return replace(self, names=tuple(found[name] for name in self.names))

    def are_among(self, columns: Sequence[str]) -> bool:
        """Whether records of one group are of one session."""
        return all(name in columns for name in self.names)

    def lasting(
        self, stream: StreamCore[Any], columns: Mapping[str, int], texts: tuple[int, ...]
    ) -> StreamCore[Any]:
        """Of updates of sessions those that last, which are not of their closing.

        columns : by name, the places of their words
        """
        places: list[int] = []
        for name, is_nullable in zip(self.names, self.are_nullable, strict=True):
            place = columns[name]
            places += [place - 1, place] if is_nullable else [place]
        return _without_closing(stream, self.closings(), places, texts, f"{self.name}Results")


def _without_closing(
    stream: StreamCore[Any],
    closings: StreamCore[Any],
    places: list[int],
    texts: tuple[int, ...],
    name: str,
) -> StreamCore[Any]:
    """Updates whose words at some places are not those of a session that closes at their time."""
    n_words = len(places)

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        info.keeps_nothing()
        info.states.holds_no_texts()
        stash: Stash[Any] = Stash(info)

        def logic(changes: Input, closing: Input, output: Output) -> None:
            stash.take(changes, closing)
            for held, (batches, closed) in stash:
                given = [batch.rows for batch in batches]
                if not given:
                    continue
                rows = np.concatenate(given)
                gone = [batch.rows[:, :n_words] for batch in closed]
                if gone:
                    rows = rows[~_are_among(rows[:, places], np.concatenate(gone), n_words)]
                send_rows(output, held, np.ascontiguousarray(rows), texts)

        return logic

    pacts = [Exchange(ChosenWords(tuple(places))), Exchange(FirstWords(n_words))]
    return operator([stream, closings], pacts, name, build, Interest.IF_CAPABILITY)


def open_sessions(
    collection: Collection,
    form: tuple[int, int],
    time: Any,
    key: str | Sequence[str] | None,
    clock: Clock | None,
    bounds: tuple[str, str],
    name: str,
) -> tuple[Collection, SessionColumns, Callable[[], Collection]]:
    """As `open_windows`; `form` is the gap and the lateness in words of the clock."""
    names = [] if key is None else column_names(key, name)
    if not names:
        raise BuildError(
            f"operator {name!r} is given no key=, and sessions are of the records of a key, as "
            "in window(ps.Sessions(gap), time=..., key='user')"
        )
    schema = collection.schema
    keys = [schema.column(each, name) for each in names]
    kind = clock_type_of(clock)
    bound_columns = [Column(bound, kind) for bound in bounds]
    result = Schema((*schema.columns, *bound_columns))
    # With the key first, by which records are exchanged.
    by_key = Schema((*keys, *(each for each in schema.columns if each.name not in names)))
    n_key = sum(column.n_words for column in keys)
    sessions = SessionForm(
        by_key, n_key, *form, bound_by_clock(time, by_key, clock, name), kind, name
    )
    keyed = _chosen(collection.stream, schema, by_key, f"{name}Keys")
    gap, lateness = form
    said = f"sessions of {time} by {', '.join(names)}, gap {gap}", f"lateness {lateness}"
    marked = clocked(
        keyed, clock, lambda: SessionRecords(sessions), n_key, by_key.texts, name, *said
    )
    given = Schema((*by_key.columns, *bound_columns))
    words = [word for column in result.columns for word in given.words(column.name)]
    places = np.array(words, np.int32)

    def records(chosen: Callable[[Rows], Flags], of: str) -> Collection:
        def change(rows: Rows) -> Rows:
            return choose_words(_unmarked(rows[chosen(rows[:, -2])]), places)

        return collection.of(changed(marked, of, change, result.texts), result)

    @cache
    def late() -> Collection:
        return records(lambda marks: marks == LATE, f"{name}Late")

    @cache
    def closings() -> StreamCore[Any]:
        n_words = by_key.n_words

        def change(rows: Rows) -> Rows:
            closed = rows[rows[:, -2] == CLOSES]
            bounds = np.column_stack([closed[:, :n_key], closed[:, n_words:-2], closed[:, -1]])
            # Each once.
            return consolidate(np.ascontiguousarray(bounds))

        texts = tuple(place for place in by_key.texts if place < n_key)
        return changed(marked, f"{name}Closings", change, texts)

    columns = SessionColumns(
        closings,
        (*names, *bounds),
        (*(column.nullable for column in keys), False, False),
        name,
    )
    return records(lambda marks: marks != LATE, f"{name}Records"), columns, late


def _chosen(stream: StreamCore[Any], schema: Schema, chosen: Schema, name: str) -> StreamCore[Any]:
    """Updates with their columns in another order."""
    places = np.array([word for each in chosen.names for word in schema.words(each)], np.int32)
    return changed(stream, name, lambda rows: choose_words(rows, places), chosen.texts)


def _unmarked(rows: Rows) -> Rows:
    return np.ascontiguousarray(np.delete(rows, -2, axis=1))
