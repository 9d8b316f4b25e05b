"""Arrange a collection of a loop: by key, and by times of a partial order.

As `arrange`, except that what is kept is a `Trace`, and that batches are numbered, so that
each reader knows how far its own stream has come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointstamp.collections.arrange import consolidated
from pointstamp.collections.durable_rows import StoredPart, as_stored, restored_rows
from pointstamp.collections.lattice import TimeEncoding
from pointstamp.collections.trace import Trace
from pointstamp.containers.updates import FirstWords
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash_core import StashCore
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest


@dataclass(frozen=True)
class TraceArrangement:
    """A stream of batches, each a record (number, rows int64[n, w + 1]), and where they are."""

    batches: StreamCore[Any]
    trace: Trace
    encoding: TimeEncoding
    n_key: int
    """How many words are the key; they are the first."""
    n_words: int
    """Of a record."""


def arrange_trace(
    stream: StreamCore[Any],
    n_key: int,
    n_words: int,
    texts: tuple[int, ...],
    name: str,
    what: str = "",
) -> TraceArrangement:
    """Arrange updates by their first `n_key` words, at the times of a loop.

    what : see `restored_rows`
    """
    encoding = TimeEncoding(stream.scope.timestamp, f"operator {name!r} in {stream.scope.path}")
    trace = Trace(encoding.depth)
    trace.live_in(stream.scope.environment)

    def kept() -> list[StoredPart]:
        rows = trace.contents()
        return [] if rows is None else [StoredPart("rows", rows, texts)]

    def build(capability: Capability, info: OperatorInfo) -> _ArrangeTraceLogic:
        capability.drop()
        encoding.outlasts = info.states.durable_state is not None
        stored = as_stored(texts)
        restored, log = restored_rows(info, n_key, kept, stored, lambda: trace.n_updates, what)
        if "rows" in restored:
            trace.restore(restored["rows"])
        trace.logs(log, "rows")
        info.states.holds_texts(lambda: [(batch.rows, texts) for batch in trace.batches])
        return _ArrangeTraceLogic(StashCore(info), trace, encoding, name)

    pact = Exchange(FirstWords(n_key))
    batches = operator([stream], [pact], name, build, Interest.IF_CAPABILITY)
    return TraceArrangement(batches, trace, encoding, n_key, n_words)


class _ArrangeTraceLogic(BuiltInLogic):
    """The logic of `arrange_trace`."""

    __slots__ = ("_encoding", "_name", "_stash", "_trace")

    def __init__(self, stash: StashCore, trace: Trace, encoding: TimeEncoding, name: str) -> None:
        self._stash = stash
        self._trace = trace
        self._encoding = encoding
        self._name = name

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Put the batches of the times that are complete into the trace."""
        stash, output = self._stash, outputs[0]
        stash.take_from(inputs[0])
        while (held := stash.next_complete()) is not None:
            try:
                rows = consolidated([batch.rows for batch in stash.value], self._name)
                if len(rows):
                    number = self._trace.insert(rows, self._encoding.words(held.time))
                    output.push(held.time, [(number, rows)])
            finally:
                held.drop()
