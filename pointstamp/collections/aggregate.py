"""Aggregate: one row for each group that has records, kept up to date.

At each complete time the groups that its updates touch are looked up once. Where the answer is
another one, the row that it was leaves, and the row that it is comes.

A group is there while the diffs of its records have a sum above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pointstamp.collections.accumulators import CountAccumulator, Flags, Ints
from pointstamp.collections.aggregates import BoundAggregate
from pointstamp.collections.arrange import consolidated
from pointstamp.collections.groups import Groups
from pointstamp.collections.reduce import owner, reduce_groups
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest


class GroupState:
    """What a worker keeps of its groups.

    Parameters
    ----------
    n_key : int
        How many words a key has, one at least.
    aggregates : sequence of BoundAggregate
    """

    def __init__(self, n_key: int, aggregates: Sequence[BoundAggregate]) -> None:
        self._n_key = n_key
        self._groups = Groups(n_key)
        self._rows = CountAccumulator()
        self._aggregates = aggregates
        self._kept = [a.new_accumulator(n_key, self._groups.known) for a in aggregates]
        self._places = _value_places(n_key, aggregates)
        self._n_words = n_key + sum(a.column.n_words for a in aggregates)
        self._grow()

    def __len__(self) -> int:
        return len(self._groups)

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

    def answers_of(self, keys: Rows) -> Rows:
        """The answer rows of groups, there or not."""
        numbers = self._groups.number(keys).astype(np.int64)
        self._grow()
        return self._answers(numbers, keys)[1]

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
            words, there = kept.answers(chosen, chosen_keys)
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
) -> StreamCore[Any]:
    """Updates of the groups' rows.

    Parameters
    ----------
    stream : of updates: the words of a key, then those of each aggregate's value
    always : int64[1, n_key], optional
        The key of a group of which there is a row even if it has no records.
    """
    if not stream.scope.timestamp.total:
        return _in_loops(stream, n_key, aggregates, texts, name, always)

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        stash: Stash[list[Any]] = Stash(info)
        state = GroupState(n_key, aggregates)
        empty_row = None if always is None else _Always(state, always, capability, info)
        if empty_row is None:
            capability.drop()

        def logic(input_: Input, output: Output) -> None:
            stash.take(input_)
            for held, batches in stash:
                rows = consolidated(batches, name)
                changes = state.apply(rows)
                if empty_row is not None:
                    changes = empty_row.completed(changes, held.time)
                if len(changes):
                    output.session(held).give_batch(Updates(changes, texts))
            if empty_row is not None:
                empty_row.send(input_.frontier, output, texts)

        return logic

    pact = Exchange(FirstWords(n_key))
    interest = Interest.IF_CAPABILITY if always is None else Interest.ALWAYS
    return operator([stream], [pact], name, build, interest)


class _Always:
    """The row of the one group of a whole collection, while that is empty."""

    def __init__(
        self, state: GroupState, key: Rows, capability: Capability, info: OperatorInfo
    ) -> None:
        self._row = state.answers_of(key)
        self._capability: Capability | None = capability
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
) -> StreamCore[Any]:
    """The same at the times of a loop: from the whole group at each of them."""

    def answer(records: Rows) -> Rows:
        state = GroupState(n_key, aggregates)
        found = state.apply(records)
        if always is None or len(found):
            return found
        return np.column_stack([state.answers_of(always), [1]])

    values = [a.value for a in aggregates if a.value is not None]
    n_words = (
        n_key + sum(2 if value.nullable else 1 for value in values),
        n_key + sum(a.column.n_words for a in aggregates),
    )
    return reduce_groups(stream, n_words, n_key, answer, texts, name, always)


def _value_places(n_key: int, aggregates: Sequence[BoundAggregate]) -> list[int]:
    """Where the word of each aggregate's value is in a row; of rows nowhere."""
    places, at = [], n_key
    for aggregate in aggregates:
        if aggregate.value is not None:
            at += 2 if aggregate.value.nullable else 1
        places.append(at - 1)
        at += aggregate.n_beside
    return places


def _words_at(aggregate: BoundAggregate, place: int) -> int | slice:
    """The word of a value; with those of what is beside it, if there is something."""
    return slice(place, place + 1 + aggregate.n_beside) if aggregate.n_beside else place
