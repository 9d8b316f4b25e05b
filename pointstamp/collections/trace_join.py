"""Join of arrangements whose times are in a partial order: in loops.

A batch of one side meets what is known of the other one, whatever its times: a pair is there
from the join of both times on. Each side is known as far as its batches have come here, so
two batches meet once, when the later one comes.

Source: differential-dataflow `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pointstamp.collections.arrange import send_rows
from pointstamp.collections.lattice import TimeEncoding, TimeWords, join_of
from pointstamp.collections.trace import TraceBatch, TraceReader
from pointstamp.collections.trace_arrange import TraceArrangement
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.consolidation import consolidate
from pointstamp.kernels.histories import match_times, split_by_first
from pointstamp.kernels.matches import match_batches
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest

FEW = 64
"""So many changes look into all batches at once, and their pairs are sorted."""


class Matcher:
    """Pairs a batch of one side with batches of the other.

    Parameters
    ----------
    n_key, depth : int
        How many words a key has, and coordinates a time.
    recipe : int32[r]
        What a pair is: `k` for word `k` of the batch, `~k` of the others.
    n_other : int
        How many words a record of the others has.
    """

    __slots__ = ("_depth", "_n_key", "_plain", "_timed")

    def __init__(self, n_key: int, depth: int, recipe: Any, n_other: int) -> None:
        self._n_key = n_key
        self._depth = depth
        self._plain = recipe, ~recipe
        # Times first, so that what leaves at one time is in one piece.
        times = ~np.arange(n_other, n_other + depth, dtype=np.int32)
        timed = np.concatenate([times, recipe])
        self._timed = timed, ~timed

    def pairs(
        self, changes: Rows, time: TimeWords, kept: TraceReader
    ) -> list[tuple[TimeWords, Rows]]:
        """The pairs of updates of one time, by the time from which on they are there."""
        if len(changes) <= FEW:
            rows, times = kept.read()
            return match_times(changes, time, rows, times, self._n_key, self._plain[0])
        return self._pairs_of_many(changes, time, kept.batches())

    def _pairs_of_many(
        self, changes: Rows, time: TimeWords, kept: list[TraceBatch]
    ) -> list[tuple[TimeWords, Rows]]:
        by_time: dict[TimeWords, list[Rows]] = {}
        mixed = []
        for batch in kept:
            if batch.time is None:
                rows = self._matched(changes, batch.rows, self._timed)
                if len(rows):
                    np.maximum(rows[:, : self._depth], time, out=rows[:, : self._depth])
                    mixed.append(rows)
            else:
                rows = self._matched(changes, batch.rows, self._plain)
                if len(rows):
                    by_time.setdefault(join_of(time, batch.time), []).append(rows)
        if mixed:
            # What came and went at other rounds of the same key cancels here.
            for words, rows in split_by_first(consolidate(np.concatenate(mixed)), self._depth):
                by_time.setdefault(words, []).append(rows)
        found = []
        for words, parts in by_time.items():
            found.append((words, parts[0] if len(parts) == 1 else np.concatenate(parts)))
        return found

    def _matched(self, changes: Rows, batch: Rows, recipes: tuple[Any, Any]) -> Rows:
        # The shorter one looks into the longer one.
        if len(changes) <= len(batch):
            return match_batches(changes, [batch], self._n_key, recipes[0])
        return match_batches(batch, [changes], self._n_key, recipes[1])


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
        return _JoinTracesLogic(matchers, readers, encoding, texts, name)

    streams = [side.batches for side in sides]
    return operator(streams, [PIPELINE, PIPELINE], name, build, Interest.IF_CAPABILITY)


class _JoinTracesLogic(BuiltInLogic):
    """The logic of `join_traces`."""

    __slots__ = ("_encoding", "_matchers", "_name", "_readers", "_texts")

    def __init__(
        self,
        matchers: tuple[Matcher, Matcher],
        readers: tuple[TraceReader, TraceReader],
        encoding: TimeEncoding,
        texts: tuple[int, ...],
        name: str,
    ) -> None:
        self._matchers = matchers
        self._readers = readers
        self._encoding = encoding
        self._texts = texts
        self._name = name

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Pair what has come with what is known of the other side."""
        encoding, readers = self._encoding, self._readers
        for side in range(2):
            input_, reader, other = inputs[side], readers[side], readers[1 - side]
            for held, messages in input_:
                time = encoding.words(held.time)
                for number, rows in messages:
                    found = self._pairs(side, rows, time, other)
                    self._send(found, held, outputs)
                    reader.known = number
        for side in range(2):
            input_, reader = inputs[1 - side], readers[side]
            reader.advance(reader.known, encoding.frontier(input_.frontier.elements))

    def _pairs(
        self, side: int, rows: Rows, time: TimeWords, kept: TraceReader
    ) -> list[tuple[TimeWords, Rows]]:
        try:
            return self._matchers[side].pairs(rows, time, kept)
        except OverflowError as error:
            raise DataError(f"operator {self._name!r}: {error}") from error

    def _send(self, found: list[tuple[TimeWords, Rows]], held: Any, outputs: list[Output]) -> None:
        output = outputs[0]
        for words, rows in found:
            time = self._encoding.time(words)
            if time != held.time:
                with held.delayed(time) as later:
                    send_rows(output, later, rows, self._texts)
            elif len(rows):
                output.session(held).give_batch(Updates(rows, self._texts))
