"""Upserts and change feeds: streams that say what a record is now, as collections.

An upsert has a key, and the record that this key has from now on, or none. What changes of the
collection depends on the record before, so that of each key is kept, by the worker of the key's
hash. Events of one time are brought in order, and the last one of a key is what counts.

Source: the upsert envelope of Materialize, and the messages of Debezium; the feeds of Delta, whose
rows say what changes, need nothing kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointstamp.collections.arrange import check_times, consolidated, send_rows
from pointstamp.collections.collection import Collection
from pointstamp.collections.durable_rows import StoredPart, as_stored, restored_rows
from pointstamp.collections.groups import Groups, grown
from pointstamp.collections.schema import Schema, check_iterable, column_names, schema_of
from pointstamp.containers import kind_of
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.dataflow.texts_held import TextsHeld
from pointstamp.errors import BuildError, DataError
from pointstamp.operators.generic import operator
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle
from pointstamp.operators.transform import transform
from pointstamp.progress.operate import Interest

Sequencer = Callable[[Any], int]
"""Of an event of the stream: its place among those of its time."""


@dataclass(frozen=True)
class Event:
    """What a key has from now on."""

    key: tuple[Any, ...] | None
    """Its values; None where they are those of `after`."""
    after: Any
    """A row, or None."""
    before: Any = None
    """The row that should be there until now; None where that is not said."""
    place: int = 0
    """Among the events of its time."""


class EventForm:
    """Where the words of an event are: key, place, before, after, each record behind 0 or 1."""

    def __init__(self, schema: Schema, key: str | Sequence[str], name: str) -> None:
        self.keys = column_names(key, name)
        if not self.keys:
            raise BuildError(f"operator {name!r} is given no column as key")
        self.schema = schema
        self.key_schema = Schema(tuple(schema.column(each, name) for each in self.keys))
        self.key_words = [word for each in self.keys for word in schema.words(each)]
        self.n_key = len(self.key_words)
        self.before = self.n_key + 2
        self.after = self.before + schema.n_words + 1
        self.width = self.after + schema.n_words + 1
        self.texts = (
            *self.key_schema.texts,
            *(begin + place for begin in (self.before, self.after) for place in schema.texts),
        )

    def encode(self, events: Sequence[Event], where: str) -> Updates:
        """Events as rows, int64[n, width]; raises `DataError` for one that does not fit."""
        rows = np.zeros((len(events), self.width), np.int64)
        rows[:, -1] = 1
        for place, event in enumerate(events):
            if not -(1 << 63) <= event.place < 1 << 63:
                raise DataError(f"{where}: the place {event.place} of an event is beyond 64 bits")
            rows[place, self.n_key] = event.place
        self._write(rows, self.before, [event.before for event in events], where)
        self._write(rows, self.after, [event.after for event in events], where)
        has_after = rows[:, self.after - 1] != 0
        of_after = [self.after + word for word in self.key_words]
        rows[:, : self.n_key] = rows[:, of_after]
        keyed = [at for at, event in enumerate(events) if event.key is not None]
        if keyed:
            given = self._encoded(self.key_schema, [events[at].key for at in keyed], where)
            differs = has_after[keyed] & (rows[keyed, : self.n_key] != given).any(axis=1)
            if differs.any():
                event = events[keyed[int(differs.argmax())]]
                raise DataError(
                    f"{where}: the key {event.key!r} is given for {event.after!r}, whose columns "
                    f"{self.keys} are another"
                )
            rows[keyed, : self.n_key] = given
        return Updates(rows, self.texts)

    def of_rows(self, data: Any, where: str) -> Updates:
        """Events that put each row in the place of that of its key; rows as `Schema.to_updates`."""
        words = self.schema.to_updates(data, 1, where).rows[:, :-1]
        rows = np.zeros((len(words), self.width), np.int64)
        rows[:, -1] = rows[:, self.after - 1] = 1
        rows[:, self.after : -1] = words
        rows[:, : self.n_key] = words[:, self.key_words]
        return Updates(rows, self.texts)

    def _write(self, rows: Rows, begin: int, records: list[Any], where: str) -> None:
        there = [at for at, record in enumerate(records) if record is not None]
        if there:
            words = self._encoded(self.schema, [records[at] for at in there], where)
            rows[there, begin : begin + self.schema.n_words] = words
            rows[there, begin - 1] = 1

    def _encoded(self, schema: Schema, given: list[Any], where: str) -> Rows:
        words: Rows = schema.encoder.updates(given, 1, where)[:, :-1]
        return words


class CurrentRecords:
    """The record of each key; the engine of upserts."""

    def __init__(self, form: EventForm, name: str) -> None:
        self._form = form
        self._name = name
        self._keys = Groups(form.n_key)
        self._records = np.zeros((self._keys.room, form.schema.n_words + 1), np.int64)
        """Behind 1 where there is one, and 0 where there is none."""

    def __len__(self) -> int:
        """How many keys are kept."""
        return len(self._keys)

    def contents(self) -> list[StoredPart]:
        """The record of each key that has one, behind the key."""
        there = np.flatnonzero(self._records[: len(self._keys), 0])
        ones = np.ones(len(there), np.int64)
        rows = np.column_stack([self._keys.keys(there), self._records[there, 1:], ones])
        return [StoredPart("records", rows, self.texts)]

    @property
    def texts(self) -> tuple[int, ...]:
        """Which words of a record behind its key are numbers of texts."""
        n_key = self._form.n_key
        of_records = (n_key + place for place in self._form.schema.texts)
        return (*self._form.key_schema.texts, *of_records)

    @property
    def n(self) -> int:
        """How many keys have a record."""
        return int(np.count_nonzero(self._records[: len(self._keys), 0]))

    def restore(self, parts: Mapping[str, Rows]) -> None:
        """Take in what `contents` gave, where there is nothing yet."""
        for rows in parts.values():
            numbers = self._keys.number(rows)
            self._records = grown(self._records, self._keys.room)
            self._records[numbers, 0] = 1
            self._records[numbers, 1:] = rows[:, self._form.n_key : -1]

    def apply(self, events: Rows) -> Rows:
        """Take in all events of a time, in the order in which they came; what changes.

        Raises
        ------
        DataError
            If the record of a key is another than an event says it was before.
        """
        form = self._form
        if self._keys.may_grow(len(events)):
            self._forget_absent()
        numbers = self._keys.number(events)
        self._records = grown(self._records, self._keys.room)
        # Stable, so that of events of one place the last one that came is last.
        order = np.lexsort((events[:, form.n_key], numbers))
        events, numbers = events[order], numbers[order]
        ends = np.ones(len(events), np.bool_)
        ends[:-1] = numbers[1:] != numbers[:-1]
        after = events[:, form.after - 1 : -1]
        self._check(events, numbers, after, ends)
        touched, now = numbers[ends], after[ends]
        before = self._records[touched]
        self._records[touched] = now
        differs = (before != now).any(axis=1)
        gone = before[differs & (before[:, 0] != 0), 1:]
        came = now[differs & (now[:, 0] != 0), 1:]
        diffs = np.repeat([-1, 1], [len(gone), len(came)])
        changes: Rows = np.column_stack([np.concatenate([gone, came]), diffs])
        return np.ascontiguousarray(changes)

    def _check(self, events: Rows, numbers: Any, after: Rows, ends: Any) -> None:
        """Compare what events say was there with what was."""
        form = self._form
        said = events[:, form.before - 1 : form.after - 1]
        if not said[:, 0].any():
            return
        known = self._records[numbers]
        follows = np.flatnonzero(~ends[:-1]) + 1
        known[follows] = after[follows - 1]
        wrong = (said[:, 0] != 0) & (said != known).any(axis=1)
        if wrong.any():
            at = int(wrong.argmax())
            found = [self._shown(each[at]) for each in (said, known)]
            (key,) = form.key_schema.to_rows(events[at : at + 1, : form.n_key + 1])
            raise DataError(
                f"operator {self._name!r}: an event of the key {key!r} says that the record before "
                f"was {found[0]}, and it is {found[1]}; an event is missing, or out of order"
            )

    def _shown(self, record: Rows) -> str:
        if not record[0]:
            return "not there"
        (row,) = self._form.schema.to_rows(record[None, 1:])
        return repr(row)

    def _forget_absent(self) -> None:
        """Number keys anew if half of them have no record."""
        n = len(self._keys)
        there = np.flatnonzero(self._records[:n, 0])
        if 2 * len(there) <= n:
            self._keys.keep(there)
            self._records = grown(self._records[there], self._keys.room)


def current(stream: StreamCore[Any], form: EventForm, name: str) -> Collection:
    """The collection of the current records, of a stream of events as rows."""
    check_times(stream, name)

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[Any] = Stash(info)
        records = CurrentRecords(form, name)
        stored = as_stored(records.texts)
        what = f"records by {', '.join(form.keys)}"
        rows, log = restored_rows(
            info, form.n_key, records.contents, stored, lambda: records.n, what
        )
        records.restore(rows)
        info.states.holds_texts(lambda: [(p.rows, p.texts) for p in records.contents()])

        def logic(input_: Input, output: Output) -> None:
            stash.take(input_)
            for held, batches in stash:
                changes = records.apply(np.concatenate([batch.rows for batch in batches]))
                if log is not None:
                    keys = changes[:, form.key_words]
                    log.add("records", np.column_stack([keys, changes]))
                if len(changes):
                    send_rows(output, held, consolidated([changes], name), form.schema.texts)

        return logic

    pacts = [Exchange(FirstWords(form.n_key))]
    return Collection(operator([stream], pacts, name, build, Interest.IF_CAPABILITY), form.schema)


def from_upserts(
    stream: StreamCore[Any],
    schema: Any,
    key: str | Sequence[str],
    sequence: Sequencer | None,
    name: str,
) -> Collection:
    """See `Scope.from_upserts`."""

    def event(record: Any, where: str) -> Event:
        if not isinstance(record, (tuple, list)) or len(record) < 2:
            raise DataError(f"{where} is given {record!r}, and needs pairs of a key and a row")
        given = record[0]
        values = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        return Event(values, record[1], place=_place(sequence, record, where))

    return _of_events(stream, schema, key, event, name)


def from_debezium(
    stream: StreamCore[Any],
    schema: Any,
    key: str | Sequence[str],
    sequence: Sequencer | None,
    name: str,
) -> Collection:
    """See `Scope.from_debezium`."""
    names = column_names(key, name)
    found = schema_of(schema)

    def event(record: Any, where: str) -> Event | None:
        if record is None:  # a tombstone, which follows a deletion and says nothing new
            return None
        op = record.get("op") if isinstance(record, Mapping) else None
        if op not in ("c", "r", "u", "d"):
            raise DataError(
                f"{where} is given {record!r}, and needs dicts with 'op', which is c, r, u or d"
            )
        before, after = record.get("before"), record.get("after")
        place = _place(sequence, record, where)
        if op != "d":
            if after is None:
                raise DataError(f"{where} is given {record!r}, of op {op!r} and without 'after'")
            return Event(None, after, before, place)
        if before is None:
            raise DataError(f"{where} is given {record!r}, of op 'd' and without 'before'")
        if not isinstance(before, Mapping) or not all(each in before for each in names):
            raise DataError(f"{where} is given {record!r}, whose 'before' has no {names}")
        return Event(tuple(before[each] for each in names), None, before, place)

    return _of_events(stream, found, key, event, name)


DIFFS_OF_CHANGES = {"insert": 1, "delete": -1, "update_preimage": -1, "update_postimage": 1}
"""By `_change_type` of a change data feed: how often the row is there more."""
OF_FEED = CHANGE_TYPE, VERSION, TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
"""The columns that a change data feed has beside those of its table."""


def from_cdf(stream: StreamCore[Any], schema: Any, name: str) -> Collection:
    """See `Scope.from_cdf`."""
    found = schema_of(schema)
    where = f"operator {name!r}"

    def pair(record: Any) -> tuple[dict[str, Any], int]:
        change = record.get(CHANGE_TYPE) if isinstance(record, Mapping) else None
        if not isinstance(change, str) or change not in DIFFS_OF_CHANGES:
            raise DataError(
                f"{where} is given {record!r}, and needs dicts with '_change_type', which is one "
                f"of {', '.join(DIFFS_OF_CHANGES)}"
            )
        row = {column: value for column, value in record.items() if column not in OF_FEED}
        return row, DIFFS_OF_CHANGES[change]

    def updates(time: Any, batch: Any) -> Updates | None:
        return found.to_pairs(map(pair, kind_of(batch).records(batch)), where)

    return Collection(transform(stream, name, updates, of_updates=True), found)


def _of_events(
    stream: StreamCore[Any],
    schema: Any,
    key: str | Sequence[str],
    event: Callable[[Any, str], Event | None],
    name: str,
) -> Collection:
    form = EventForm(schema_of(schema), key, name)
    where = f"operator {name!r}"

    def encode(time: Any, batch: Any) -> Updates | None:
        made = [event(record, where) for record in kind_of(batch).records(batch)]
        events = [each for each in made if each is not None]
        return form.encode(events, where) if events else None

    return current(transform(stream, f"{name}Events", encode, of_updates=True), form, name)


def _place(sequence: Sequencer | None, record: Any, where: str) -> int:
    if sequence is None:
        return 0
    place = sequence(record)
    if isinstance(place, bool) or not isinstance(place, (int, np.integer)):
        raise DataError(f"{where}: sequence= gave {place!r} for {record!r}, which is no integer")
    return int(place)


@dataclass(frozen=True)
class UpsertInput:
    """Declares an input of a `View` as upserts, changed by `view.upsert` and `view.remove`.

    Parameters
    ----------
    schema : str, pyarrow.Schema or Spark StructType
    key : str or sequence of str
        Columns; of each of their values there is one row at most.

    >>> import pointstamp as ps
    >>> def by_state(scope, orders):
    ...     return orders.group_by("state").count()
    >>> orders = ps.UpsertInput("id long, state string", key="id")
    >>> view = ps.View(by_state, orders=orders)
    >>> view.upsert("orders", [(1, "open"), (2, "open"), (2, "paid")])
    >>> view.advance()
    [(('open', 1), 1), (('paid', 1), 1)]
    >>> view.remove("orders", [1])
    >>> view.advance()
    [(('open', 1), -1)]
    """

    schema: Any
    key: str | Sequence[str]


class UpsertHandle:
    """The input of a collection of upserts, at its current time; the last one of a key counts."""

    def __init__(self, handle: InputHandle, form: EventForm, texts: TextsHeld) -> None:
        self._handle = handle
        self._form = form
        self._texts = texts
        self._where = f"the input {handle.name!r}"

    def upsert(self, rows: Any) -> None:
        """Have each row in the place of that of its key; `DataError` if one does not fit.

        Rows are tuples, dicts, or columns, as those of `CollectionInput.insert`.
        """
        self._texts.n_given += 1
        try:
            self._send(self._form.of_rows(rows, self._where))
        finally:
            self._texts.n_given -= 1

    def remove(self, keys: Iterable[Any]) -> None:
        """Have no rows of these keys, each a value, or a tuple; `DataError` if one does not fit."""
        check_iterable(keys, self._where, "keys")
        events = [Event(key if isinstance(key, tuple) else (key,), None) for key in keys]
        self._texts.n_given += 1
        try:
            self._send(self._form.encode(events, self._where))
        finally:
            self._texts.n_given -= 1

    def advance_to(self, time: Any) -> None:
        """Promise to change nothing before `time` any more."""
        self._handle.advance_to(time)

    def close(self) -> None:
        """Promise to change nothing more. Closing twice is closing once."""
        self._handle.close()

    def __repr__(self) -> str:
        return f"UpsertHandle({self._handle.name!r}, {self._form.schema}, key={self._form.keys})"

    def _send(self, events: Updates) -> None:
        if len(events):
            self._handle.send_batch(events)


def new_upserts(scope: Scope, declared: UpsertInput, name: str) -> tuple[UpsertHandle, Collection]:
    """An input of upserts, and its collection."""
    form = EventForm(schema_of(declared.schema), declared.key, name)
    handle, events = scope.new_input(name)
    texts = scope.environment.texts_held
    assert texts is not None  # as it is made while a dataflow is built
    return UpsertHandle(handle, form, texts), current(events, form, "Upserts")
