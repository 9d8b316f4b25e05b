"""Reduce where times are in a partial order: in loops.

At each time at which the answer of a group may change, the group's updates up to that time are
added up, the answer is computed, and what leaves is the difference to what had left up to there.
The answer may change at the times of updates, and at the joins of those: of an update of round
1 in epoch 6 and one of round 4 in epoch 5, also at round 4 in epoch 6. So each visit of
a group schedules visits at the joins of its time with all others in the group's history.

What sets off a visit are times of updates as they came, never those of a history, in which an
update that came before may have cancelled one, and hide its time.

Source: differential-dataflow `operators/reduce.rs`. That an answer is computed from the whole
group, by what computes it from nothing, is the plainest form of it; where it is a record of the
group, one loop does all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.collections.arrange import consolidated, send_rows
from pointstamp.collections.batch_merges import MOST_READ
from pointstamp.collections.durable_rows import StoredPart, first_time, is_restored, restored_rows
from pointstamp.collections.lattice import TimeEncoding, TimeWords
from pointstamp.collections.trace import Trace
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash_core import StashCore
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.kernels.group_states import hash_words
from pointstamp.kernels.histories import distinct, read_history, revise_firsts, split_by_first
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates
    from pointstamp.dataflow.environment import Environment

Answer = Callable[[Rows], Rows]
"""Of the consolidated records of some groups: what the output has of those groups."""


@dataclass(frozen=True)
class FirstRecord:
    """The answer that is the group's first record, or with `greatest` its last, once."""

    greatest: bool = False


class Touched:
    """What a time waits with: updates that came, and groups to be looked at again."""

    __slots__ = ("batches", "keys")

    def __init__(self) -> None:
        self.batches: list[Updates] = []
        self.keys: list[Rows] = []
        """int64[g, k + 1]: keys, each with a 1 behind it."""

    def held_batches(self) -> list[Any]:
        """All of it, for sweeps of texts."""
        return [self.batches, self.keys]


class History:
    """Updates of groups, by time.

    n_words, depth : of a record and a time
    """

    __slots__ = ("_n_words", "_reader", "_trace")

    def __init__(self, n_words: int, depth: int) -> None:
        self._n_words = n_words
        self._trace = Trace(depth)
        self._reader = self._trace.reader()

    @property
    def n_updates(self) -> int:
        """How many updates are kept."""
        return self._trace.n_updates

    def insert(self, rows: Rows, time: TimeWords) -> None:
        """Add consolidated updates of a time."""
        if len(rows):
            self._reader.known = self._trace.insert(rows, time)

    def advance(self, frontier: list[TimeWords]) -> None:
        """Never again read as of a time that is not at or after `frontier`."""
        self._reader.advance(self._reader.known, frontier)

    def batches(self) -> tuple[list[Rows], list[TimeWords | None]]:
        """All batches, and the time of each; None where rows have times of their own."""
        if len(self._trace.batches) > MOST_READ:
            self._trace.as_few(MOST_READ)
        return self._reader.read()

    def contents(self) -> Rows | None:
        """All updates with their rounds; None of none."""
        return self._trace.contents()

    def restore(self, rows: Rows) -> None:
        """Take in what `contents` gave, where there is nothing yet."""
        self._reader.known = self._trace.restore(rows)

    def rows(self) -> list[Rows]:
        """The rows of all batches, as they are, some of them with times behind the words."""
        return [batch.rows for batch in self._trace.batches]

    def logs(self, log: KeyedUpdates | None, name: str) -> None:
        """See `Trace.logs`."""
        self._trace.logs(log, name)

    def live_in(self, environment: Environment) -> None:
        """See `Trace.live_in`."""
        self._trace.live_in(environment)

    def read(self, keys: Rows, time: TimeWords) -> tuple[Rows, Rows]:
        """The records of some groups as of a time, and later times; see `read_history`."""
        return read_history(*self.batches(), keys, time, self._n_words)


class Reduction:
    """The groups of a worker, with the answers that left.

    Parameters
    ----------
    n_words : of an input's record, and of an output's
    n_key, depth : of a key and a time
    """

    __slots__ = ("_answer", "_depth", "_input", "_n_key", "_n_words", "_name", "_output")

    def __init__(
        self,
        n_words: tuple[int, int],
        n_key: int,
        depth: int,
        answer: Answer | FirstRecord,
        name: str,
    ) -> None:
        self._n_words = n_words
        self._n_key = n_key
        self._depth = depth
        self._answer = answer
        self._name = name
        self._input, self._output = History(n_words[0], depth), History(n_words[1], depth)

    @property
    def n_updates(self) -> int:
        """How many updates are kept, of inputs and of answers."""
        return self._input.n_updates + self._output.n_updates

    def at(self, time: TimeWords, touched: Touched) -> tuple[Rows, list[tuple[TimeWords, Rows]]]:
        """Take in what waited for a time: the changes of the answers, and later visits."""
        parts = touched.keys
        if touched.batches:
            rows = consolidated([batch.rows for batch in touched.batches], self._name)
            self._input.insert(rows, time)
            parts = [rows, *parts]
        keys = distinct(parts, self._n_key)
        if not len(keys):  # all that came has cancelled
            return np.empty((0, self._n_words[1] + 1), np.int64), []
        changes, joins = self._revised(keys, time)
        self._output.insert(changes, time)
        if len(joins) > 1:
            joins = distinct([joins], self._depth + self._n_key)
        return changes, split_by_first(joins, self._depth)

    def _revised(self, keys: Rows, now: TimeWords) -> tuple[Rows, Rows]:
        """How the answers of some groups change, and the later times to look again, with keys."""
        answer = self._answer
        if isinstance(answer, FirstRecord):
            kept, left = self._input.batches(), self._output.batches()
            return revise_firsts(*kept, *left, keys, now, self._n_words[0], answer.greatest)
        records, joins = self._input.read(keys, now)
        rows, others = self._output.read(keys, now)
        answers = answer(records)
        rows[:, -1] *= -1
        changes = consolidate_all([answers, rows])
        return changes, np.concatenate([joins, others]) if len(others) else joins

    def contents(self, texts: tuple[tuple[int, ...], tuple[int, ...]]) -> list[StoredPart]:
        """What is kept; `texts` are which words of an input and of an output are."""
        parts = []
        for (name, history), of_words in zip(self._histories(), texts, strict=True):
            rows = history.contents()
            if rows is not None:
                parts.append(StoredPart(name, rows, of_words))
        return parts

    def held_texts(
        self, texts: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> list[tuple[Rows, tuple[int, ...]]]:
        """What is kept as it is, and which words are numbers of texts."""
        histories = zip((self._input, self._output), texts, strict=True)
        return [(rows, of_words) for history, of_words in histories for rows in history.rows()]

    def restore(self, parts: dict[Any, Rows], log: KeyedUpdates | None) -> None:
        """Take in what `contents` gave, by name, where there is nothing yet.

        log : is given what changes from then on
        """
        for name, history in self._histories():
            if name in parts:
                history.restore(parts[name])
            history.logs(log, name)

    def live_in(self, environment: Environment) -> None:
        """See `Trace.live_in`."""
        self._input.live_in(environment)
        self._output.live_in(environment)

    def _histories(self) -> tuple[tuple[str, History], tuple[str, History]]:
        return ("input", self._input), ("output", self._output)

    def advance(self, frontier: list[TimeWords]) -> None:
        """Times that are not at or after `frontier` are over."""
        self._input.advance(frontier)
        self._output.advance(frontier)


def _with_one(keys: Rows) -> Rows:
    found = np.ones((len(keys), keys.shape[1] + 1), np.int64)
    found[:, :-1] = keys
    return found


def reduce_groups(
    stream: StreamCore[Any],
    n_words: tuple[int, int],
    n_key: int,
    answer: Answer | FirstRecord,
    texts: tuple[tuple[int, ...], tuple[int, ...]],
    name: str,
    always: Rows | None = None,
    what: str = "",
) -> StreamCore[Any]:
    """Updates of what `answer` gives of each group, at the times of a loop.

    Parameters
    ----------
    stream : of updates of `n_words[0]` words, of which the first `n_key` are the key
    n_words : of a record, and of what is answered, which begins with the key, too
    texts : which words of a record are numbers of texts, and of an answer
    always : int64[1, n_key], optional
        The key of a group that has an answer also if it has no records.
    what : see `restored_rows`
    """
    encoding = TimeEncoding(stream.scope.timestamp, f"operator {name!r} in {stream.scope.path}")

    def build(capability: Capability, info: OperatorInfo) -> _ReduceLogic:
        stash: StashCore = StashCore(info, Touched)
        reduction = Reduction(n_words, n_key, encoding.depth, answer, name)
        reduction.live_in(stream.scope.environment)
        encoding.outlasts = info.states.durable_state is not None

        def kept() -> list[StoredPart]:
            return reduction.contents(texts)

        def stored(name: str, rows: Rows) -> StoredPart:
            return StoredPart(name, rows, texts[0] if name == "input" else texts[1])

        restored = restored_rows(info, n_key, kept, stored, lambda: reduction.n_updates, what)
        reduction.restore(*restored)
        info.states.holds_texts(lambda: reduction.held_texts(texts))
        if always is not None and not is_restored(info) and owner(always, info.peers) == info.index:
            stash.at(capability, first_time(stream.scope, info)).keys.append(_with_one(always))
        capability.drop()
        return _ReduceLogic(stash, reduction, encoding, texts[1])

    pact = Exchange(FirstWords(n_key))
    return operator([stream], [pact], name, build, Interest.IF_CAPABILITY)


class _ReduceLogic(BuiltInLogic):
    """The logic of `reduce_groups`."""

    __slots__ = ("_encoding", "_reduction", "_stash", "_texts")

    def __init__(
        self,
        stash: StashCore,
        reduction: Reduction,
        encoding: TimeEncoding,
        texts: tuple[int, ...],
    ) -> None:
        self._stash = stash
        self._reduction = reduction
        self._encoding = encoding
        self._texts = texts

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Visit the groups of the times that are complete."""
        stash, reduction, encoding = self._stash, self._reduction, self._encoding
        input_, output = inputs[0], outputs[0]
        for received, batch in input_:
            touched = stash.at(received)
            touched.batches.append(batch)
        while (held := stash.next_complete()) is not None:
            try:
                touched = stash.value
                changes, visits = reduction.at(encoding.words(held.time), touched)
                for later, keys in visits:
                    stash.at(held, encoding.time(later)).keys.append(keys)
                send_rows(output, held, changes, self._texts)
            finally:
                held.drop()
        times = list(input_.frontier.elements)
        times.extend(stash.times())
        reduction.advance(encoding.frontier(times))


def owner(key: Rows, peers: int) -> int:
    """The worker that has the group of a key, int64[1, k]."""
    return int(hash_words(key, key.shape[1])[0] % np.uint64(peers))
