"""Operators on how often each record is there: threshold, intersect, subtract.

What they keep is a count of each record for each input, and they answer with the change of
what a function makes of those counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.arrange import consolidated
from pointstamp.collections.durable_rows import StoredPart, as_stored, restored_rows
from pointstamp.collections.groups import Groups, add_diffs, grown
from pointstamp.collections.linear import changed
from pointstamp.collections.reduce import reduce_groups
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.operators.generic import operator
from pointstamp.operators.split_merge import concatenate
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates

Multiplicity = Callable[..., Any]
"""Of the counts of each input, int64[n] each: how often the record is in the output."""


class RecordCounts:
    """How often each record is there, of each input."""

    def __init__(self, n_words: int, n_inputs: int) -> None:
        self._records = Groups(n_words)
        self._counts = np.zeros((self._records.room, n_inputs), np.int64)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def n_counts(self) -> int:
        """How many of the counts are not 0."""
        return int(np.count_nonzero(self._counts[: len(self._records)]))

    def records(self) -> Rows:
        """The words of all that have a count, or had one not long ago, int64[n, w]."""
        return self._records.all_keys()

    def contents(self, number: int) -> Rows:
        """How often each record of an input is there, as its diff."""
        n = len(self._records)
        numbers = np.flatnonzero(self._counts[:n, number])
        return np.column_stack([self._records.keys(numbers), self._counts[numbers, number]])

    def apply(self, inputs: Sequence[Rows], multiplicity: Multiplicity) -> Rows:
        """Take in the updates of a time, of each input; the changes of the output."""
        records, before, after = self.count(inputs)
        diffs = _difference(multiplicity(*after.T), multiplicity(*before.T))
        changed = diffs != 0
        return np.ascontiguousarray(np.column_stack([records[changed], diffs[changed]]))

    def count(self, inputs: Sequence[Rows]) -> tuple[Rows, Rows, Rows]:
        """Take in the updates of a time, of each input.

        Returns
        -------
        records, before, after
            int64[n, w], the records that are touched, and int64[n, inputs], how often each was
            there and is.

        Raises
        ------
        DataError
            If a count is beyond 64 bits.
        """
        if self._records.may_grow(sum(map(len, inputs))):
            self._forget_absent()
        numbers = [self._records.number(rows) for rows in inputs]
        if self._records.room > len(self._counts):
            self._counts = grown(self._counts, self._records.room)
        touched = np.unique(np.concatenate(numbers))
        before: Rows = self._counts[touched]
        for number, (at, rows) in enumerate(zip(numbers, inputs, strict=True)):
            add_diffs(self._counts[:, number], at, rows[:, -1], "equal records")
        return self._records.keys(touched), before, self._counts[touched]

    def _forget_absent(self) -> None:
        """Number records anew if half of them are not there."""
        n = len(self._records)
        there = np.flatnonzero((self._counts[:n] != 0).any(axis=1))
        if 2 * len(there) <= n:
            self._records.keep(there)
            self._counts = grown(self._counts[there], self._records.room)


def _difference(one: Any, two: Any) -> Any:
    difference = one - two
    if (((one ^ two) & (one ^ difference)) < 0).any():
        raise DataError("the change of how often a record is there is beyond 64 bits")
    return difference


def counted(
    streams: Sequence[StreamCore[Any]],
    n_words: int,
    texts: tuple[int, ...],
    multiplicity: Multiplicity,
    name: str,
    what: str,
) -> StreamCore[Any]:
    """Updates of the records, each as often as `multiplicity` says.

    what : see `restored_rows`
    """
    if not streams[0].scope.timestamp.total:
        return _in_loops(streams, n_words, texts, multiplicity, name)

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        stash: Stash[Any] = Stash(info)
        state = RecordCounts(n_words, len(streams))
        numbers = range(len(streams))

        def kept() -> list[StoredPart]:
            return [StoredPart(number, state.contents(number), texts) for number in numbers]

        none = np.empty((0, n_words + 1), np.int64)
        stored = as_stored(texts)
        restored, log = restored_rows(info, n_words, kept, stored, lambda: state.n_counts, what)
        if restored:
            state.count([restored.get(number, none) for number in numbers])
        info.states.holds_texts(lambda: [(state.records(), texts)])

        def logic(*handles: Any) -> None:
            *inputs, output = handles
            _run(inputs, output, stash, state, log)

        return logic

    def _run(
        inputs: list[Input],
        output: Output,
        stash: Stash[Any],
        state: RecordCounts,
        log: KeyedUpdates | None,
    ) -> None:
        stash.take(*inputs)
        for held, value in stash:
            by_input = [value] if len(inputs) == 1 else value
            rows = [
                consolidated([batch.rows for batch in batches], name)
                if len(batches)
                else np.empty((0, n_words + 1), np.int64)
                for batches in by_input
            ]
            if log is not None:
                for number, changes in enumerate(rows):
                    log.add(number, changes)
            changes = state.apply(rows, multiplicity)
            if len(changes):
                output.session(held).give_batch(Updates(changes, texts))

    pacts = [Exchange(FirstWords(n_words))] * len(streams)
    return operator(streams, pacts, name, build, Interest.IF_CAPABILITY)


def _in_loops(
    streams: Sequence[StreamCore[Any]],
    n_words: int,
    texts: tuple[int, ...],
    multiplicity: Multiplicity,
    name: str,
) -> StreamCore[Any]:
    """The same at the times of a loop; behind each record stands the number of its input."""
    n_inputs = len(streams)

    def numbered(number: int) -> Callable[[Rows], Rows]:
        def change(rows: Rows) -> Rows:
            return np.insert(rows, n_words, number, axis=1)

        return change

    def answer(records: Rows) -> Rows:
        inputs = [
            np.delete(records[records[:, n_words] == number], n_words, axis=1)
            for number in range(n_inputs)
        ]
        return RecordCounts(n_words, n_inputs).apply(inputs, multiplicity)

    tagged = [
        changed(stream, f"{name}Number", numbered(number), texts)
        for number, stream in enumerate(streams)
    ]
    sizes = (n_words + 1, n_words)
    return reduce_groups(concatenate(tagged), sizes, n_words, answer, (texts, texts), name)
