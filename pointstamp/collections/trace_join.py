"""Join of arrangements whose times are in a partial order: in loops.

A batch of one side meets what is known of the other one, whatever its times: a pair is there
from the join of both times on. Each side is known as far as its batches have come here, so
two batches meet once, when the later one comes.

Of many pairs some leave at a time (`join_fuel.py`). Until all of a batch have left nothing more is
read at either side, and nothing is acknowledged: what is known of both stays as it was when the
batch began. The batches of then are read to the end, whatever is merged in the meantime.

Source: differential-dataflow `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pointstamp.collections import join_fuel
from pointstamp.collections.arrange import send_rows
from pointstamp.collections.lattice import TimeEncoding, TimeWords, join_of
from pointstamp.collections.trace import TraceReader
from pointstamp.collections.trace_arrange import TraceArrangement
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.kernels.histories import match_times, split_by_first
from pointstamp.kernels.matches import match_some
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest

FEW = 64
"""So many changes look into all batches at once, and their pairs are sorted."""

Pairs = list[tuple[TimeWords, Rows]]
"""By the time from which on they are there."""


class Matcher:
    """Pairs batches of one side with batches of the other.

    Parameters
    ----------
    n_key, depth : int
        How many words a key has, and coordinates a time.
    recipe : int32[r]
        What a pair is: `k` for word `k` of the batch, `~k` of the others.
    n_other : int
        How many words a record of the others has.
    """

    __slots__ = ("depth", "n_key", "plain", "timed")

    def __init__(self, n_key: int, depth: int, recipe: Any, n_other: int) -> None:
        self.n_key = n_key
        self.depth = depth
        self.plain = recipe, ~recipe
        """To look into the others, and for those to look into the batch."""
        # Times first, so that what leaves at one time is in one piece.
        times = ~np.arange(n_other, n_other + depth, dtype=np.int32)
        timed = np.concatenate([times, recipe])
        self.timed = timed, ~timed

    def few(
        self, changes: Rows, time: TimeWords, kept: TraceReader, most: int
    ) -> tuple[Pairs | None, int]:
        """All pairs of a few updates of one time, and how many there were; None of more."""
        rows, times = kept.read()
        return match_times(changes, time, rows, times, self.n_key, self.plain[0], most)

    def many(self, changes: Rows, time: TimeWords, kept: TraceReader) -> BatchPairs:
        """The pairs of updates of one time, to be made by pieces."""
        return BatchPairs(self, changes, time, kept)


class BatchPairs:
    """The pairs of updates of one time with what was known of the other side, by pieces.

    Attributes
    ----------
    kept : list of int64[m, w + 1]
        The batches that were known when it began.
    is_over : bool
        Whether there are no more.
    """

    __slots__ = (
        "_after",
        "_at",
        "_begin",
        "_changes",
        "_matcher",
        "_time",
        "_times",
        "is_over",
        "kept",
    )

    def __init__(self, matcher: Matcher, changes: Rows, time: TimeWords, kept: TraceReader) -> None:
        self._matcher = matcher
        self._changes = changes
        self._time = time
        self.kept, self._times = kept.read()
        self.is_over = not self.kept
        self._at = self._begin = 0
        """Which batch is next, and which row of the shorter side."""
        self._after: Rows | None = None
        """The record up to which that row has been paired; see `match_some`."""

    def some(self, most: int) -> tuple[Pairs, int]:
        """The next pairs, and how many were made: about `most`, and never twice as many."""
        matcher, time = self._matcher, self._time
        by_time: dict[TimeWords, list[Rows]] = {}
        mixed: list[Rows] = []
        n = 0
        while n < most and not self.is_over:
            own = self._times[self._at]
            if own is None:
                rows = self._matched(matcher.timed, most - n)
                if len(rows):
                    times = rows[:, : matcher.depth]
                    np.maximum(times, time, out=times)
                    mixed.append(rows)
            else:
                rows = self._matched(matcher.plain, most - n)
                if len(rows):
                    by_time.setdefault(join_of(time, own), []).append(rows)
            n += len(rows)
        if mixed:
            # What came and went at other rounds of the same key cancels here.
            for words, rows in split_by_first(consolidate_all(mixed), matcher.depth):
                by_time.setdefault(words, []).append(rows)
        found = []
        for words, parts in by_time.items():
            found.append((words, parts[0] if len(parts) == 1 else np.concatenate(parts)))
        return found, n

    def _matched(self, recipes: tuple[Any, Any], most: int) -> Rows:
        """Pairs with the next batch, of which the shorter one looks into the longer one."""
        one, other, recipe = self._changes, self.kept[self._at], recipes[0]
        if len(other) < len(one):
            one, other, recipe = other, one, recipes[1]
        found = match_some(
            one, [other], self._matcher.n_key, recipe, self._begin, most, self._after
        )
        self._begin, self._after = found[1], found[2]
        if self._begin == len(one):
            self._begin = 0
            self._at += 1
            self.is_over = self._at == len(self.kept)
        return found[0]


def join_traces(
    left: TraceArrangement,
    right: TraceArrangement,
    recipe: Sequence[int],
    texts: tuple[int, ...],
    name: str,
) -> StreamCore[Any]:
    """Pairs of equal key; see `join.join`."""
    sides = left, right
    readers = left.trace.reader(), right.trace.reader()
    encoding = left.encoding
    forward = np.array(recipe, np.int32)
    matchers = (
        Matcher(left.n_key, encoding.depth, forward, right.n_words),
        Matcher(left.n_key, encoding.depth, ~forward, left.n_words),
    )

    def build(capability: Capability, info: OperatorInfo) -> _JoinTracesLogic:
        capability.drop()
        info.keeps_nothing()  # the arrangements do
        info.states.holds_no_texts()
        logic = _JoinTracesLogic(matchers, readers, encoding, info.activate, texts, name)
        texts_held = info.environment.texts_held
        if texts_held is not None:
            texts_held.waiting_with.append((info.name, logic.waiting))
        return logic

    streams = [side.batches for side in sides]
    return operator(streams, [PIPELINE, PIPELINE], name, build, Interest.IF_CAPABILITY)


class _JoinTracesLogic(BuiltInLogic):
    """The logic of `join_traces`."""

    __slots__ = (
        "_activate",
        "_encoding",
        "_held",
        "_matchers",
        "_messages",
        "_name",
        "_pairs",
        "_readers",
        "_side",
        "_texts",
    )

    def __init__(
        self,
        matchers: tuple[Matcher, Matcher],
        readers: tuple[TraceReader, TraceReader],
        encoding: TimeEncoding,
        activate: Callable[[], None],
        texts: tuple[int, ...],
        name: str,
    ) -> None:
        self._matchers = matchers
        self._readers = readers
        self._encoding = encoding
        self._activate = activate
        self._texts = texts
        self._name = name
        self._held: Capability | None = None
        """Of the time of what is under way, as long as something is."""
        self._side = 0
        self._messages: list[tuple[int, Rows]] = []
        """What is under way: of the first batch some pairs may have left."""
        self._pairs: BatchPairs | None = None
        """The rest of those."""

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Pair what has come with what is known of the other side."""
        encoding, readers, output = self._encoding, self._readers, outputs[0]
        fuel = join_fuel.FUEL
        if self._held is not None:
            fuel -= self._go_on(output, fuel)
        for side in range(2):
            input_ = inputs[side]
            while fuel > 0 and self._held is None:
                received = input_.next()
                if received is None:
                    break
                fuel -= self._take(side, received[0], received[1], output, fuel)
        if self._held is not None:
            self._activate()
            return
        if fuel <= 0:
            self._activate()  # for what may wait
        for side in range(2):
            input_, reader = inputs[1 - side], readers[side]
            reader.advance(reader.known, encoding.frontier(input_.frontier.elements))

    def waiting(self) -> list[Any]:
        """What is under way, with the batches that it meets: they may be merged in the meantime."""
        pairs = self._pairs
        return [self._messages, [] if pairs is None else pairs.kept]

    def _take(
        self,
        side: int,
        held: InputCapability,
        messages: list[tuple[int, Rows]],
        output: Output,
        fuel: int,
    ) -> int:
        """Send the pairs of what came, or some of many; how many were made."""
        matcher, other = self._matchers[side], self._readers[1 - side]
        time, n_made, most = self._encoding.words(held.time), 0, join_fuel.FUEL
        for at in range(len(messages)):
            number, rows = messages[at]
            found, n = None, 0
            if n_made < fuel and len(rows) <= FEW:
                try:
                    found, n = matcher.few(rows, time, other, most)
                except OverflowError as error:
                    raise DataError(f"operator {self._name!r}: {error}") from error
            if found is None:
                self._held, self._side = held.retain(), side
                self._messages = messages[at:]
                return n_made + self._go_on(output, fuel - n_made)
            self._send(found, held, output, len(messages) == 1)
            n_made += n
            self._readers[side].known = number
        return n_made

    def _go_on(self, output: Output, fuel: int) -> int:
        """Send more of what is under way, or the rest; how many pairs were made."""
        held, side, n_made = self._held, self._side, 0
        assert held is not None
        matcher, other = self._matchers[side], self._readers[1 - side]
        time = self._encoding.words(held.time)
        try:
            while self._messages and n_made < fuel:
                number, rows = self._messages[0]
                pairs = self._pairs
                if pairs is None:
                    pairs = self._pairs = matcher.many(rows, time, other)
                found, n = pairs.some(fuel - n_made)
                self._send(found, held, output)
                n_made += n
                if pairs.is_over:
                    self._readers[side].known = number
                    self._messages = self._messages[1:]
                    self._pairs = None
        except OverflowError as error:
            self._end(held)
            raise DataError(f"operator {self._name!r}: {error}") from error
        except BaseException:
            self._end(held)
            raise
        if not self._messages:
            self._end(held)
        return n_made

    def _end(self, held: Capability) -> None:
        held.drop()
        self._held, self._messages, self._pairs = None, [], None

    def _send(self, found: Pairs, held: Any, output: Output, is_alone: bool = False) -> None:
        """Send pairs; those of the time of `held` with what follows, but for what is alone."""
        for words, rows in found:
            time = self._encoding.time(words)
            if time != held.time:
                with held.delayed(time) as later:
                    send_rows(output, later, rows, self._texts)
            elif is_alone:
                send_rows(output, held, rows, self._texts)
            elif len(rows):
                output.session(held).give_batch(Updates(rows, self._texts))
