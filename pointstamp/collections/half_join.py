"""Half joins: changes on their way through a delta query look into arrangements.

A *prefix* is a row of words of the columns that are bound so far. A tactic makes of the prefixes
of a time those of the next step, by what some arrangements have of it: all up to the time, or
all before it. Nothing is kept but the arrangements, which others read, too.

On one worker all queries of a join are one operator, that calls a few kernels per time. On
several each step is an operator, to which prefixes come where the arrangement's part of their
key is.

What a time makes leaves by pieces (`join_fuel.py`): a piece goes through all steps before the next
is made, so that what a step makes of many prefixes is never in memory as a whole.

Source: `dogsdogsdogs/src/operators/half_join.rs` in differential-dataflow. There times are in a
partial order, and prefixes carry theirs; here they are in one line, and a time is done at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pointstamp.collections import join_fuel
from pointstamp.collections.arrange import Arrangement, consolidated
from pointstamp.collections.join_fuel import JoinTurns
from pointstamp.collections.negated import negated
from pointstamp.collections.spine import SpineReader
from pointstamp.containers.updates import ChosenWords, Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.kernels.consolidation import choose_words, consolidate, merge
from pointstamp.kernels.extensions import extend, list_sizes, weigh
from pointstamp.kernels.matches import match_some
from pointstamp.operators.generic import operator
from pointstamp.operators.split_merge import union
from pointstamp.operators.transform import PIPELINE, transform
from pointstamp.progress.operate import Interest

Places = npt.NDArray[np.int32]


@dataclass(frozen=True)
class HalfSide:
    """An arrangement that prefixes of a time look into.

    Attributes
    ----------
    through : bool
        Whether they see what it has of their own time, too.
    """

    arrangement: Arrangement
    through: bool


Reads = Callable[[HalfSide], list[Rows]]
"""What a side has, as at most 64 batches."""


class Tactic(Protocol):
    """What a step does with the prefixes of a time."""

    sides: Sequence[HalfSide]
    key: tuple[int, ...]
    """The words of a prefix by which its worker has what all sides say of it; none if any has."""

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """The next prefixes, by pieces. Raises OverflowError if a diff is beyond 64 bits."""


class LookUpTactic:
    """Each prefix with the rest of the records that begin with its key.

    key : the places of the key's words
    kept : which words of a prefix are kept, and in which order; the rest of the record follows
    n_rest : of so many words
    """

    def __init__(self, side: HalfSide, key: Sequence[int], n_words: int, n_rest: int) -> None:
        self.sides: Sequence[HalfSide] = [side]
        self.key = tuple(key)
        n_key = len(self.key)
        # The key comes first, as a search by key needs it, and what is kept goes by its old place.
        others = [word for word in range(n_words) if word not in self.key]
        order = [*self.key, *others]
        self._first = np.array(order, np.int32)
        recipe = [order.index(word) for word in range(n_words)]
        recipe += [~(n_key + word) for word in range(n_rest)]
        self._recipe = np.array(recipe, np.int32)

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """See `Tactic`."""
        by_key = consolidate(choose_words(rows, self._first))
        kept, n_key, begin, after = reads(self.sides[0]), len(self.key), 0, None
        while begin < len(by_key):
            made, begin, after = match_some(
                by_key, kept, n_key, self._recipe, begin, join_fuel.FUEL, after
            )
            yield made


class WeighTactic:
    """Each prefix times the diff of a record: the words at `places`, of which some are the key."""

    def __init__(self, side: HalfSide, places: Sequence[int], absent: bool) -> None:
        self.sides: Sequence[HalfSide] = [side]
        self.key = tuple(places[: side.arrangement.n_key])
        self._places = np.array(places, np.int32)
        self._absent = absent

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """See `Tactic`."""
        yield weigh(rows, reads(self.sides[0]), self._places, self._absent)


class ExtendTactic:
    """Each prefix with each value that all sides have for it.

    keys : of each side the places of its key's words
    """

    def __init__(self, sides: Sequence[HalfSide], keys: Sequence[Sequence[int]]) -> None:
        self.sides = sides
        self.key = tuple(keys[0])
        self.keys = [tuple(key) for key in keys]
        self._places = [np.array(key, np.int32) for key in keys]

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """See `Tactic`."""
        kept, begin = [reads(side) for side in self.sides], 0
        while begin < len(rows):
            made, begin = extend(rows, kept, self._places, begin, join_fuel.FUEL)
            yield made

    def by_worker(self) -> list[ExtendTactic]:
        """Parts of it, each of the sides that are read by the same words."""
        return [
            ExtendTactic(
                [side for side, own in zip(self.sides, self.keys, strict=True) if own == key],
                [key] * self.keys.count(key),
            )
            for key in dict.fromkeys(self.keys)
        ]


class CountTactic:
    """Which part of an extension has the shortest list of each prefix.

    Two words come behind a prefix, the length of that list, and the part's number; those of a
    prefix that has one already are replaced if the list of this part is shorter.
    """

    def __init__(self, part: ExtendTactic, number: int) -> None:
        self.sides = part.sides
        self.key = part.key
        self._number = number
        self._places = [np.array(key, np.int32) for key in part.keys]

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """See `Tactic`."""
        sizes = list_sizes(rows, [reads(side) for side in self.sides], self._places)
        if self._number == 0:
            counted = np.empty((len(rows), rows.shape[1] + 2), np.int64)
            counted[:, :-3], counted[:, -1] = rows[:, :-1], rows[:, -1]
            counted[:, -3], counted[:, -2] = sizes, 0
        else:
            counted = rows.copy()
            is_less = sizes < counted[:, -3]
            counted[is_less, -3], counted[is_less, -2] = sizes[is_less], self._number
        is_there = counted[:, -3] > 0
        yield counted[is_there]


class ValidateTactic:
    """Each prefix, whose last word is a value, times its diffs in all sides of a part."""

    def __init__(self, part: ExtendTactic) -> None:
        self.sides = part.sides
        self.key = part.key
        self._keys = part.keys

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """See `Tactic`."""
        value = rows.shape[1] - 2
        for side, key in zip(self.sides, self._keys, strict=True):
            rows = weigh(rows, reads(side), np.array([*key, value], np.int32), False)
        yield rows


class DifferTactic:
    """The prefixes in which one word is none of some others."""

    sides: Sequence[HalfSide] = ()
    key: tuple[int, ...] = ()

    def __init__(self, place: int, others: Sequence[int]) -> None:
        self._place = place
        self._others = list(others)

    def apply(self, rows: Rows, reads: Reads) -> Iterator[Rows]:
        """See `Tactic`."""
        differs = (rows[:, self._others] != rows[:, [self._place]]).all(axis=1)
        yield rows[differs]


@dataclass(frozen=True)
class DeltaQuery:
    """A path from the changes of an arrangement to changes of a join.

    Attributes
    ----------
    start : Arrangement
    negated : bool
        Whether what comes of it goes of the join.
    steps : sequence of Tactic
    texts : sequence of tuple of int
        Which words of the prefixes that each step is given are numbers of texts.
    chosen : int32[w]
        The words of the join's records, in their order.
    """

    start: Arrangement
    negated: bool
    steps: Sequence[Tactic]
    texts: Sequence[tuple[int, ...]]
    chosen: Places


def delta_join_of(
    queries: Sequence[DeltaQuery], texts: tuple[int, ...], name: str
) -> StreamCore[Any]:
    """Updates of a join, of the paths that lead to its changes.

    On one worker they are consolidated, if those of a time are no more than leave together.
    """
    if queries[0].start.batches.scope.peers == 1:
        return _in_one(queries, texts, name)
    return union([_in_steps(query, texts, name) for query in queries])


# One operator.


def _in_one(queries: Sequence[DeltaQuery], texts: tuple[int, ...], name: str) -> StreamCore[Any]:
    sides = [side for query in queries for step in query.steps for side in step.sides]
    arrangements = _distinct([*(q.start for q in queries), *(s.arrangement for s in sides)])
    readers = [arrangement.reader() for arrangement in arrangements]

    def build(capability: Capability, info: OperatorInfo) -> _QueriesLogic:
        capability.drop()
        info.keeps_nothing()  # the arrangements do
        info.states.holds_no_texts()
        stash: Stash[list[list[Rows]]] = Stash(info, lambda: [[] for _ in arrangements])
        turns = JoinTurns(info, texts, name, consolidates=True)
        return _QueriesLogic(stash, turns, list(queries), arrangements, readers)

    streams = [arrangement.batches for arrangement in arrangements]
    return operator_of(streams, [PIPELINE] * len(streams), name, build)


class _QueriesLogic(BuiltInLogic):
    """All queries of a join, one after the other."""

    __slots__ = ("_changes", "_queries", "_readers", "_stash", "_turns")

    def __init__(
        self,
        stash: Stash[list[list[Rows]]],
        turns: JoinTurns,
        queries: list[DeltaQuery],
        arrangements: list[Arrangement],
        readers: list[SpineReader],
    ) -> None:
        self._stash = stash
        self._turns = turns
        self._queries = queries
        self._changes = {id(one): place for place, one in enumerate(arrangements)}
        self._readers = readers

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Work off the times that are complete."""
        stash, turns = self._stash, self._turns
        for number, input_ in enumerate(inputs):
            for time, batch in input_:
                stash.at(time)[number].extend(batch)

        def begin(held: Capability) -> None:
            changes = stash.value
            turns.begin(held, self._joined(changes, held.time), changes)

        if not turns.go_on(stash, begin, outputs[0], self._readers):
            return
        for reader in self._readers:
            _let_go(reader, inputs, inputs, len(stash))

    def _joined(self, changes: list[list[Rows]], time: Any) -> Iterator[Rows]:
        n = sum(len(rows) for batches in changes for rows in batches)
        reads = _reads_at(time, self._changes, self._readers, n)
        for query in self._queries:
            for rows in changes[self._changes[id(query.start)]]:
                start = negated(rows) if query.negated else rows
                for made in _through(query.steps, 0, start, reads):
                    yield choose_words(np.ascontiguousarray(made), query.chosen)


def _through(steps: Sequence[Tactic], number: int, rows: Rows, reads: Reads) -> Iterator[Rows]:
    """What the steps from `number` on make of prefixes, by pieces."""
    if number == len(steps):
        yield rows
        return
    for made in steps[number].apply(rows, reads):
        if len(made):
            yield from _through(steps, number + 1, made, reads)


MANY, SMALL = 100, 64
"""From so many prefixes on, batches of at most so many times as many rows are read as one."""


def _reads_at(time: Any, places: dict[int, int], readers: list[SpineReader], n: int) -> Reads:
    """What sides have at a time, each asked for once.

    n : of how many prefixes; if they are many, small batches are merged for them
    """
    known: dict[tuple[int, bool], list[Rows]] = {}

    def reads(side: HalfSide) -> list[Rows]:
        asked = id(side.arrangement), side.through
        if asked not in known:
            reader = readers[places[asked[0]]]
            batches = reader.through(time) if side.through else reader.before(time)
            known[asked] = _as_fewer(batches, SMALL * n) if n >= MANY else batches
        return known[asked]

    return reads


def _as_fewer(batches: list[Rows], small: int) -> list[Rows]:
    """The same with the last ones, of at most `small` rows each, merged: each is looked into.

    Batches are the smaller the newer they are, so that a row is moved about twice.
    """
    at = len(batches)
    while at and len(batches[at - 1]) <= small:
        at -= 1
    if len(batches) - at < 2:
        return batches
    merged = batches[-1]
    for rows in reversed(batches[at:-1]):
        merged = merge(rows, merged)
    return [*batches[:at], merged]


def _let_go(
    reader: SpineReader, asking: Sequence[Input], inputs: Sequence[Input], n_waiting: int
) -> None:
    """Let go of what nothing can ask for any more.

    asking : the inputs whose times ask; while some wait, they wait for one of `inputs`
    """
    if reader.is_over:
        return
    if not n_waiting and all(input_.frontier.is_empty() for input_ in asking):
        reader.close()
        return
    least = [time for input_ in inputs for time in input_.frontier.elements]
    if least:
        reader.acknowledge(min(least))


# An operator for each step.


def _in_steps(query: DeltaQuery, texts: tuple[int, ...], name: str) -> StreamCore[Any]:
    own = query.texts[0]

    def start(time: Any, message: Any) -> Updates | None:
        rows = np.concatenate(message) if len(message) > 1 else message[0]
        return Updates(negated(rows) if query.negated else rows, own)

    stream: StreamCore[Any] = transform(
        query.start.batches, f"{name}Changes", start, of_updates=True
    )
    for step, before, behind in zip(query.steps, query.texts[:-1], query.texts[1:], strict=True):
        parts = step.by_worker() if isinstance(step, ExtendTactic) else []
        if len(parts) > 1:
            stream = _extended(stream, parts, before, behind, name)
        else:
            stream = half_join(stream, step, behind, name)

    def finish(time: Any, batch: Updates) -> Updates:
        return Updates(choose_words(np.ascontiguousarray(batch.rows), query.chosen), texts)

    return transform(stream, f"{name}Columns", finish, of_updates=True)


def _extended(
    stream: StreamCore[Any],
    parts: list[ExtendTactic],
    before: tuple[int, ...],
    behind: tuple[int, ...],
    name: str,
) -> StreamCore[Any]:
    """Count where the shortest lists are, propose their values there, and validate elsewhere."""
    for number, part in enumerate(parts):
        stream = half_join(stream, CountTactic(part, number), before, f"{name}Count")
    found: list[Any] = []
    for number, part in enumerate(parts):
        chosen = transform(stream, f"{name}Shortest", _shortest(number, before), of_updates=True)
        proposed = half_join(chosen, part, behind, f"{name}Propose")
        for other in parts:
            if other is not part:
                step = ValidateTactic(other)
                proposed = half_join(proposed, step, behind, f"{name}Validate")
        found.append(proposed)
    merged: StreamCore[Any] = found[0].concat(*found[1:])
    return merged


def _shortest(number: int, texts: tuple[int, ...]) -> Callable[[Any, Any], Updates | None]:
    def choose(time: Any, batch: Updates) -> Updates | None:
        rows = batch.rows[batch.rows[:, -2] == number]
        if not len(rows):
            return None
        places = np.arange(rows.shape[1] - 3, dtype=np.int32)
        return Updates(choose_words(np.ascontiguousarray(rows), places), texts)

    return choose


def half_join(
    stream: StreamCore[Any], step: Tactic, texts: tuple[int, ...], name: str
) -> StreamCore[Any]:
    """What a step makes of updates, each at the worker that has what is said of it.

    texts : which words of what it makes are numbers of texts
    """
    arrangements = _distinct([side.arrangement for side in step.sides])
    readers = [arrangement.reader() for arrangement in arrangements]

    def build(capability: Capability, info: OperatorInfo) -> _HalfJoinLogic:
        capability.drop()
        info.keeps_nothing()  # as above
        info.states.holds_no_texts()
        stash: Stash[list[Updates]] = Stash(info, list)
        turns = JoinTurns(info, texts, name)
        return _HalfJoinLogic(stash, turns, step, arrangements, readers, name)

    streams = [stream, *(arrangement.batches for arrangement in arrangements)]
    pacts: list[Any] = [Exchange(ChosenWords(step.key)) if step.key else PIPELINE]
    return operator_of(streams, [*pacts, *[PIPELINE] * len(arrangements)], name, build)


def operator_of(
    streams: Sequence[StreamCore[Any]], pacts: Sequence[Any], name: str, build: Any
) -> StreamCore[Any]:
    """An operator that sees each move of its inputs' frontiers, to let go of what it reads."""
    return operator(streams, pacts, name, build, Interest.ALWAYS)


class _HalfJoinLogic(BuiltInLogic):
    """The logic of `half_join`."""

    __slots__ = ("_name", "_places", "_readers", "_stash", "_step", "_turns")

    def __init__(
        self,
        stash: Stash[list[Updates]],
        turns: JoinTurns,
        step: Tactic,
        arrangements: list[Arrangement],
        readers: list[SpineReader],
        name: str,
    ) -> None:
        self._stash = stash
        self._turns = turns
        self._step = step
        self._places = {id(one): place for place, one in enumerate(arrangements)}
        self._readers = readers
        self._name = name

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Work off the prefixes of the times of which the arrangements have all."""
        stash, turns = self._stash, self._turns
        for time, batch in inputs[0]:
            stash.at(time).append(batch)
        for input_ in inputs[1:]:
            for _ in input_:
                pass  # It is in the spine, from where it is read.

        def begin(held: Capability) -> None:
            parts = [np.ascontiguousarray(batch.rows) for batch in stash.value]
            rows = consolidated(parts, self._name)
            reads = _reads_at(held.time, self._places, self._readers, len(rows))
            turns.begin(held, _through([self._step], 0, rows, reads), [rows])

        if not turns.go_on(stash, begin, outputs[0], self._readers):
            return
        for reader in self._readers:
            _let_go(reader, inputs[:1], inputs, len(stash))


def _distinct(arrangements: Sequence[Arrangement]) -> list[Arrangement]:
    return list({id(one): one for one in arrangements}.values())
