"""Join of arrangements whose times are in a partial order: in loops.

A batch of one side meets what is known of the other one, whatever its times: a pair is there
from the join of both times on. Each side is known as far as its batches have come here, so
two batches meet once, when the later one comes.

Source: differential-dataflow `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pointstamp.collections.lattice import TimeWords, join_of
from pointstamp.collections.trace import TraceBatch, split_by_first
from pointstamp.collections.trace_arrange import TraceArrangement
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.consolidation import consolidate
from pointstamp.kernels.matches import match_batches
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest


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

    def __init__(self, n_key: int, depth: int, recipe: Any, n_other: int) -> None:
        self._n_key = n_key
        self._depth = depth
        self._plain = recipe, ~recipe
        # Times first, so that what leaves at one time is in one piece.
        times = ~np.arange(n_other, n_other + depth, dtype=np.int32)
        timed = np.concatenate([times, recipe])
        self._timed = timed, ~timed

    def pairs(
        self, changes: Rows, time: TimeWords, kept: Sequence[TraceBatch]
    ) -> Iterator[tuple[TimeWords, Rows]]:
        """The pairs of updates of one time, by the time from which on they are there."""
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
        for words, parts in by_time.items():
            yield words, parts[0] if len(parts) == 1 else np.concatenate(parts)

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

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()

        def logic(one: Input, two: Input, output: Output) -> None:
            for side, input_ in enumerate((one, two)):
                for held, messages in input_:
                    time = encoding.words(held.time)
                    for number, rows in messages:
                        send(
                            matchers[side].pairs(rows, time, readers[1 - side].batches()),
                            held,
                            output,
                        )
                        readers[side].known = number
            for side, other in ((0, two), (1, one)):
                readers[side].advance(
                    readers[side].known, encoding.frontier(other.frontier.elements)
                )

        return logic

    def send(found: Iterator[tuple[TimeWords, Rows]], held: Any, output: Output) -> None:
        try:
            for words, rows in found:
                time = encoding.time(words)
                if time == held.time:
                    output.session(held).give_batch(Updates(rows, texts))
                else:
                    with held.delayed(time) as later:
                        output.session(later).give_batch(Updates(rows, texts))
        except OverflowError as error:
            raise DataError(f"operator {name!r}: {error}") from error

    streams = [side.batches for side in sides]
    return operator(streams, [PIPELINE, PIPELINE], name, build, Interest.IF_CAPABILITY)
