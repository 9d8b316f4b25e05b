"""Aggregate: one row for each group that has records, kept up to date.

At each complete time the groups that its updates touch are looked up once. Where the answer is
another one, the row that it was leaves, and the row that it is comes.

A group is there while the diffs of its records have a sum above 0.

What waits for its time to be complete is consolidated now and then: of a join that an aggregate
follows, all pairs of a time may wait, and most be the same once only key and values are left.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.accumulators import VALUES, CountAccumulator, Flags, HeldTexts, Ints
from pointstamp.collections.aggregates import BoundAggregate
from pointstamp.collections.arrange import consolidated, send_rows
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.durable_rows import (
    AGAIN,
    StoredPart,
    as_stored,
    first_time,
    is_restored,
    restored_rows,
)
from pointstamp.collections.groups import Groups
from pointstamp.collections.reduce import FirstRecord, owner, reduce_groups
from pointstamp.collections.schema import Column, Schema
from pointstamp.collections.seen_records import SeenRecords
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.containers.words import DecimalType
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash_core import StashCore
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.consolidation import values_by_key
from pointstamp.kernels.group_sums import GroupSums, SumForm, SumOverflow
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates


def state_of(
    n_key: int,
    aggregates: Sequence[BoundAggregate],
    name: str,
    append_only: bool = False,
    key_columns: Sequence[Column] = (),
) -> GroupState | SummedState | SeenRecords:
    """What is kept for some aggregates: sums where those suffice for all.

    append_only : whether no record is ever deleted, so that less suffices
    key_columns : those of the key, to name a group in an error; none where there is one group
    """
    if append_only and not aggregates:
        return SeenRecords(n_key)
    if all(aggregate.summed is not None for aggregate in aggregates):
        return SummedState(n_key, aggregates, name, append_only, key_columns)
    return GroupState(n_key, aggregates, name, key_columns)


def _group_of(key: Sequence[int], key_columns: Sequence[Column]) -> str:
    """A group by its key, for messages to people."""
    if not key_columns:
        return "the group of all records"
    (values,) = Schema(tuple(key_columns)).to_rows(np.array([key], np.int64))
    return f"the group of the key {values!r}"


def beyond(aggregate: BoundAggregate, total: int, group: str) -> DataError:
    """For a sum that its column cannot hold."""
    if isinstance(aggregate.column.type, DecimalType):
        return DataError(
            f"{aggregate.what} has more digits than a decimal can for {group}: {total} of the last"
        )
    return DataError(f"{aggregate.what} is {total} for {group}, which is beyond 64 bits")


class SummedState:
    """What a worker keeps of its groups where sums suffice; see `GroupState`.

    append_only : whether no record is ever deleted, so that of values the first one is kept alone
    """

    is_approximate = False

    def __init__(
        self,
        n_key: int,
        aggregates: Sequence[BoundAggregate],
        name: str,
        append_only: bool = False,
        key_columns: Sequence[Column] = (),
    ) -> None:
        self._key_columns = key_columns
        places = _value_places(n_key, aggregates)
        plan = []
        for aggregate, place in zip(aggregates, places, strict=True):
            assert aggregate.summed is not None
            form, unit = aggregate.summed
            is_nullable = aggregate.value is not None and aggregate.value.nullable
            flag = place - 1 if is_nullable else -1
            plan.append([int(form), max(place, 0), flag, int(aggregate.column.nullable), unit])
        n_words = n_key + sum(_n_value_words(aggregate) for aggregate in aggregates)
        table = np.array(plan, np.int64).reshape(len(plan), 5)
        self._sums = GroupSums(n_key, n_words, table)
        self._firsts = [place for place, row in enumerate(plan) if row[0] == SumForm.FIRST]
        self._plan = plan
        self._values = [BatchSeries() for _ in self._firsts]
        """Of each first value: all values by key, as `GroupSums.update` is given them."""
        self._n_key = n_key
        self._aggregates = aggregates
        self._append_only = append_only
        self._name = name

    def __len__(self) -> int:
        return len(self._sums)

    def contents(self, key_texts: tuple[int, ...]) -> list[StoredPart]:
        """The sums of each group."""
        sums = self._sums.dump()
        parts = [
            StoredPart("sums", np.column_stack([sums, np.ones(len(sums), np.int64)]), key_texts)
        ]
        for place, batches in zip(self._firsts, self._values, strict=True):
            parts += [StoredPart((place, VALUES), rows, key_texts) for rows in batches.rows]
        return parts

    def held_texts(self, key_texts: tuple[int, ...]) -> HeldTexts:
        """What may name texts: the keys alone, as values of which sums are kept are numbers."""
        if not key_texts:
            return []
        batches = [rows for series in self._values for rows in series.rows]
        return [(rows, key_texts) for rows in (self._sums.dump(), *batches)]

    def restore(self, parts: dict[Any, Rows]) -> None:
        """Take in what `contents` gave, by name, where there is nothing yet."""
        if "sums" in parts:
            self._sums.load(np.ascontiguousarray(parts["sums"][:, :-1]))
        for place, batches in zip(self._firsts, self._values, strict=True):
            if (place, VALUES) in parts:
                batches.restart([parts[place, VALUES]])

    def take_in(self, parts: list[Rows]) -> Rows:
        """Take in the updates of a time, in any order; the changes of the answers.

        Raises
        ------
        DataError
            If a sum is beyond what its column can hold.
        """
        for place, batches in zip(self._firsts, self._values, strict=True):
            _, value, flag, _, unit = self._plan[place]
            values = [values_by_key(rows, self._n_key, value, flag, unit) for rows in parts]
            new = consolidated(values, self._name)
            if self._append_only:
                # Nothing goes, so what is first now was so before, or has come now.
                batches.restart([new])
            elif len(new):
                batches.insert(new)
        try:
            changes = self._sums.update(parts, [batches.rows for batches in self._values])
        except SumOverflow as error:
            raise self._refused(error) from None
        if self._append_only:
            for batches in self._values:
                batches.restart([])
        return changes

    def _refused(self, error: SumOverflow) -> DataError:
        group = _group_of(error.key, self._key_columns)
        if error.place < 0:
            return DataError(
                f"operator {self._name!r}: the sum of the diffs of {group} is beyond 64 bits"
            )
        return beyond(self._aggregates[error.place], error.total, group)


class GroupState:
    """What a worker keeps of its groups.

    Parameters
    ----------
    n_key : int
        How many words a key has, one at least.
    aggregates : sequence of BoundAggregate
    name : str
        Of the operator, for messages to people.
    """

    def __init__(
        self,
        n_key: int,
        aggregates: Sequence[BoundAggregate],
        name: str = "Aggregate",
        key_columns: Sequence[Column] = (),
    ) -> None:
        self._name = name
        self._key_columns = key_columns
        self._n_key = n_key
        self._groups = Groups(n_key)
        self._rows = CountAccumulator()
        self._aggregates = aggregates
        self._kept = [a.new_accumulator(n_key, self._groups.known) for a in aggregates]
        self.is_approximate = any(kept.is_approximate for kept in self._kept)
        self._places = _value_places(n_key, aggregates)
        self._n_words = n_key + sum(a.column.n_words for a in aggregates)
        self._grow()

    def __len__(self) -> int:
        return len(self._groups)

    def contents(self, key_texts: tuple[int, ...]) -> list[StoredPart]:
        """What is kept of each group: how many records, and for each aggregate its own."""
        keys = self._groups.keys(np.arange(len(self._groups)))
        parts = []
        for number, kept in enumerate((self._rows, *self._kept)):
            for name, rows in kept.contents(keys):
                is_value = name == VALUES and number
                texts = _texts_of(self._aggregates[number - 1], self._n_key) if is_value else ()
                parts.append(StoredPart((number, name), rows, (*key_texts, *texts)))
        return parts

    def held_texts(self, key_texts: tuple[int, ...]) -> HeldTexts:
        """What may name texts, as it is kept: keys, and values that are not added up."""
        self._forget_empty()
        held: list[tuple[Rows, tuple[int, ...]]] = [(self._groups.all_keys(), key_texts)]
        for aggregate, kept in zip(self._aggregates, self._kept, strict=True):
            held += kept.held_texts((*key_texts, *_texts_of(aggregate, self._n_key)))
        return held

    def restore(self, parts: dict[Any, Rows]) -> None:
        """Take in what `contents` gave, by name, where there is nothing yet."""
        for rows in parts.values():
            self._groups.number(rows)
        self._grow()
        every = (self._rows, *self._kept)
        for (number, name), rows in parts.items():
            numbers, keys = self._groups.known(rows), rows[:, : self._n_key]
            words = rows[:, self._n_key : -1]
            every[number].restore(name, numbers, np.ascontiguousarray(keys), words, rows[:, -1])

    def take_in(self, parts: list[Rows]) -> Rows:
        """Take in the updates of a time, in any order; the changes of the answers."""
        return self.apply(consolidated(parts, self._name))

    def apply(self, rows: Rows) -> Rows:
        """Take in the updates of a time; the changes of the answers.

        rows : the words of the key, then those of each aggregate's value, consolidated
        """
        if self._groups.may_grow(len(rows)):
            self._forget_empty()
        numbers = self._groups.number(rows)
        self._grow()
        touched = np.unique(numbers).astype(np.int64)
        keys = self._groups.keys(touched)
        was_there, before = self._answers(touched, keys)
        self._add(numbers, rows)
        is_there, after = self._answers(touched, keys)
        differs = (before != after).any(axis=1) | (was_there != is_there)
        before, after = before[was_there & differs], after[is_there & differs]
        changes = np.empty((len(before) + len(after), self._n_words + 1), np.int64)
        changes[: len(before), :-1], changes[: len(before), -1] = before, -1
        changes[len(before) :, :-1], changes[len(before) :, -1] = after, 1
        return changes

    def _add(self, numbers: Any, rows: Rows) -> None:
        diffs = rows[:, -1]
        keys = rows[:, : self._n_key]
        self._rows.add(numbers, keys, diffs, diffs)
        for aggregate, kept, place in zip(self._aggregates, self._kept, self._places, strict=True):
            if aggregate.value is None:
                kept.add(numbers, keys, diffs, diffs)
            elif aggregate.value.nullable:
                there = rows[:, place - 1] != 0
                words = rows[there][:, _words_at(aggregate, place)]
                kept.add(numbers[there], keys[there], words, diffs[there])
            else:
                kept.add(numbers, keys, rows[:, _words_at(aggregate, place)], diffs)

    def _answers(self, numbers: Ints, keys: Rows) -> tuple[Flags, Rows]:
        is_there = self._rows.counts(numbers) > 0
        answers = np.empty((len(numbers), self._n_words), np.int64)
        answers[:, : self._n_key] = keys
        place = self._n_key
        # Only of those that are there: a sum of those that are not may be beyond all bounds.
        chosen, chosen_keys = numbers[is_there], keys[is_there]
        for aggregate, kept in zip(self._aggregates, self._kept, strict=True):
            try:
                words, there = kept.answers(chosen, chosen_keys)
            except SumOverflow as error:
                group = _group_of(error.key, self._key_columns)
                raise beyond(aggregate, error.total, group) from None
            if aggregate.column.nullable:
                answers[is_there, place] = there
                answers[~is_there, place] = 0
                place += 1
            answers[is_there, place] = words
            answers[~is_there, place] = 0
            place += 1
        return is_there, answers

    def _grow(self) -> None:
        n = self._groups.room
        for kept in (self._rows, *self._kept):
            kept.grow(n)

    def _forget_empty(self) -> None:
        """Number groups anew if half of them are empty."""
        numbers = np.arange(len(self._groups))
        empty = self._rows.is_empty(numbers)
        for kept in self._kept:
            empty &= kept.is_empty(numbers)
        if 2 * int(empty.sum()) <= len(numbers):
            return
        left = numbers[~empty]
        self._groups.keep(left)
        for kept in (self._rows, *self._kept):
            kept.keep(left)
        self._grow()


def aggregate(
    stream: StreamCore[Any],
    n_key: int,
    aggregates: Sequence[BoundAggregate],
    texts: tuple[int, ...],
    name: str,
    always: Rows | None = None,
    append_only: bool = False,
    key_columns: Sequence[Column] = (),
) -> StreamCore[Any]:
    """Updates of the groups' rows.

    Parameters
    ----------
    stream : of updates: the words of a key, then those of each aggregate's value
    always : int64[1, n_key], optional
        The key of a group of which there is a row even if it has no records.
    append_only : bool
        Whether no record is ever deleted.
    key_columns : sequence of Column
        Those of the key, for messages to people; none where there is one group.
    """
    if not stream.scope.timestamp.total:
        return _in_loops(stream, n_key, aggregates, texts, name, always, key_columns)

    def build(capability: Capability, info: OperatorInfo) -> _AggregateLogic:
        state = state_of(n_key, aggregates, name, append_only, key_columns)
        key_texts = tuple(place for place in texts if place < n_key)
        # A sum that is made anew of updates in another order need not be that which was sent.
        is_exact = not state.is_approximate
        texts_given = (*key_texts, *_value_texts(n_key, aggregates))
        stored = as_stored(texts_given) if is_exact else None
        restored, log = restored_rows(
            info,
            n_key,
            lambda: state.contents(key_texts),
            stored,
            what=_in_words(aggregates, key_columns),
        )
        again = restored.pop(AGAIN, None)
        if restored:
            state.restore(restored)
        if again is not None:
            state.take_in([again])
        info.states.holds_texts(lambda: state.held_texts(key_texts))
        empty_row = None
        if always is None:
            capability.drop()
        else:
            row = np.zeros((1, n_key + sum(a.column.n_words for a in aggregates)), np.int64)
            row[:, :n_key] = always
            capability.downgrade(first_time(stream.scope, info))
            empty_row = _Always(row, always, capability, info)
        # Where memory is limited what waits is on disk, and sums that are not exact depend on the
        # order in which they are made.
        puts_together = is_exact and info.environment.memory is None
        stash = StashCore(info)
        return _AggregateLogic(stash, state, empty_row, texts, log, name, puts_together)

    pact = Exchange(FirstWords(n_key))
    interest = Interest.IF_CAPABILITY if always is None else Interest.ALWAYS
    # Of another name, as a snapshot of the one has not what the other would need.
    called = f"{name} (append-only)" if append_only else name
    return operator([stream], [pact], called, build, interest)


MANY_PARTS, MANY_ROWS = 8, 1 << 18
"""Of a time that waits in so many parts, so many rows are put together."""


class _AggregateLogic(BuiltInLogic):
    """The logic of `aggregate`."""

    __slots__ = (
        "_empty_row",
        "_log",
        "_many",
        "_most_parts",
        "_name",
        "_stash",
        "_state",
        "_texts",
    )

    def __init__(
        self,
        stash: StashCore,
        state: GroupState | SummedState | SeenRecords,
        empty_row: _Always | None,
        texts: tuple[int, ...],
        log: KeyedUpdates | None,
        name: str,
        puts_together: bool,
    ) -> None:
        self._name = name
        self._many = MANY_PARTS if puts_together else sys.maxsize
        self._most_parts = self._many
        self._stash = stash
        self._log = log
        self._state = state
        self._empty_row = empty_row
        self._texts = texts

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Take in what is complete, and send how the rows of groups change."""
        stash, output, empty_row = self._stash, outputs[0], self._empty_row
        input_ = inputs[0]
        received = input_.next()
        while received is not None:
            held_input, given = received
            waiting = stash.at(held_input)
            waiting.append(given)
            if len(waiting) >= self._most_parts:
                self._put_together(waiting)
            received = input_.next()
        while (held := stash.next_complete()) is not None:
            try:
                parts = [batch.rows for batch in stash.value]
                if self._log is not None:
                    for rows in parts:
                        self._log.add(AGAIN, rows)
                changes = self._state.take_in(parts)
                if empty_row is not None:
                    changes = empty_row.completed(changes, held.time)
                send_rows(output, held, changes, self._texts)
                self._most_parts = self._many
            finally:
                held.drop()
        if empty_row is not None:
            empty_row.send(input_.frontier, output, self._texts)

    def _put_together(self, waiting: Any) -> None:
        """Consolidate what waits of a time, where it is worth it.

        Each time as much has come as was left the last time, so that a row is sorted a number of
        times that grows with the logarithm of all.
        """
        first, n = waiting[0], sum(map(len, waiting))
        if n - len(first) < max(len(first), MANY_ROWS):
            self._most_parts = max(self._most_parts, 2 * len(waiting))
            return
        rows = consolidated([batch.rows for batch in waiting], self._name)
        waiting[:] = [Updates(rows, first.texts)]


class _Always:
    """The row of the one group of a whole collection, while that is empty."""

    def __init__(self, row: Rows, key: Rows, capability: Capability, info: OperatorInfo) -> None:
        self._row = row
        self._capability: Capability | None = capability
        if is_restored(info):  # it was sent at the first time
            capability.drop()
            self._capability = None
        # Of all workers one has the group.
        self._is_here = info.index == owner(key, info.peers)

    def completed(self, changes: Rows, time: Any) -> Rows:
        """With the row of the empty collection, where the group comes or goes."""
        total = int(changes[:, -1].sum()) if len(changes) else 0
        if self._capability is not None and time == self._capability.time:
            # The changes of the least time are those of nothing at all.
            self._capability.drop()
            self._capability = None
            total -= self._is_here
        return changes if not total else self._with(changes, -total)

    def send(self, frontier: Frontier, output: Output, texts: tuple[int, ...]) -> None:
        """The row of a collection without records, where the least time has ended without any."""
        if self._capability is None or frontier.less_equal(self._capability.time):
            return
        with self._capability as capability:
            if self._is_here:
                row = self._with(np.empty((0, self._row.shape[1] + 1), np.int64), 1)
                output.session(capability).give_batch(Updates(row, texts))
        self._capability = None

    def _with(self, changes: Rows, diff: int) -> Rows:
        return np.concatenate([changes, np.column_stack([self._row, [diff]])])


def _in_loops(
    stream: StreamCore[Any],
    n_key: int,
    aggregates: Sequence[BoundAggregate],
    texts: tuple[int, ...],
    name: str,
    always: Rows | None,
    key_columns: Sequence[Column],
) -> StreamCore[Any]:
    """The same at the times of a loop: from the whole group at each of them."""
    n_words = (
        n_key + sum(_n_value_words(a) + a.n_beside for a in aggregates),
        n_key + sum(a.column.n_words for a in aggregates),
    )
    empty = np.zeros((1, n_words[1] + 1), np.int64)
    empty[:, -1] = 1
    if always is not None:
        empty[:, :n_key] = always

    def answer(records: Rows) -> Rows:
        state = state_of(n_key, aggregates, name, key_columns=key_columns)
        found = state.take_in([records])
        return found if always is None or len(found) else empty

    # The least or the greatest of values whose words have their order is a record of the group,
    # and so is a record that is a group by itself.
    is_record = len(aggregates) <= 1 and always is None and all(map(_is_extreme_word, aggregates))
    greatest = is_record and any(aggregate.greatest for aggregate in aggregates)
    how = FirstRecord(greatest) if is_record else answer
    key_texts = tuple(place for place in texts if place < n_key)
    given_texts = (*key_texts, *_value_texts(n_key, aggregates))
    what = _in_words(aggregates, key_columns)
    return reduce_groups(stream, n_words, n_key, how, (given_texts, texts), name, always, what)


def _in_words(aggregates: Sequence[BoundAggregate], key_columns: Sequence[Column]) -> str:
    """What is kept of which groups: a snapshot of other sums has the same words, or too few."""
    each = ", ".join(column.name for column in key_columns)
    found = ", ".join(aggregate.kept_of for aggregate in aggregates)
    return f"{found or 'records'} for {'each ' + each if each else 'all records'}"


def _value_texts(n_key: int, aggregates: Sequence[BoundAggregate]) -> list[int]:
    """Which words of an update are numbers of texts, behind its key."""
    texts = []
    for aggregate, place in zip(aggregates, _value_places(n_key, aggregates), strict=True):
        texts += _texts_of(aggregate, place)
    return texts


def _texts_of(aggregate: BoundAggregate, place: int) -> list[int]:
    """Which words of a value, at `place`, and of what is beside it are numbers of texts."""
    texts = []
    if aggregate.value is not None and aggregate.value.type.is_text:
        texts.append(place)
    if aggregate.beside is not None and aggregate.beside.type.is_text:
        texts.append(place + aggregate.n_beside)
    return texts


def _is_extreme_word(aggregate: BoundAggregate) -> bool:
    value = aggregate.value
    return (
        aggregate.greatest is not None
        and value is not None
        and not value.nullable
        and not value.type.is_text
    )


def _value_places(n_key: int, aggregates: Sequence[BoundAggregate]) -> list[int]:
    """Where the word of each aggregate's value is in a row; of rows nowhere."""
    places, at = [], n_key
    for aggregate in aggregates:
        at += _n_value_words(aggregate)
        places.append(at - 1)
        at += aggregate.n_beside
    return places


def _n_value_words(aggregate: BoundAggregate) -> int:
    """How many words of a row are its value's."""
    return 0 if aggregate.value is None else 2 if aggregate.value.nullable else 1


def _words_at(aggregate: BoundAggregate, place: int) -> int | slice:
    """The word of a value; with those of what is beside it, if there is something."""
    return slice(place, place + 1 + aggregate.n_beside) if aggregate.n_beside else place
