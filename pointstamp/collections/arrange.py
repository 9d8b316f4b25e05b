"""Arrange: a collection indexed by key, each worker its part.

Updates are exchanged by their key, kept until their time is complete, and then consolidated
into a batch of this time, which is put into the spine and sent on. An arrangement is made once
for a key, and has any number of readers.

Source: differential-dataflow `operators/arrange`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointstamp.collections.durable_rows import (
    StoredForm,
    StoredPart,
    as_stored,
    is_restored,
    last_epoch,
    restored_rows,
    stored_parts,
)
from pointstamp.collections.spine import Spine, SpineReader
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash_core import StashCore
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, DataError
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.operators.generic import Build, operator
from pointstamp.progress.operate import Interest


@dataclass(frozen=True)
class Arrangement:
    """A stream of batches, each a record of rows int64[n, w + 1], and where they are kept."""

    batches: StreamCore[Any]
    spine: Spine
    n_key: int
    """How many words are the key; they are the first."""
    texts: tuple[int, ...]

    def reader(self) -> SpineReader:
        """A new reader of what is kept, for what reads `batches` in the dataflow that is built."""
        reader = self.spine.reader()
        self.batches.scope.environment.closers.at_end(reader.close)
        return reader


def check_times(stream: StreamCore[Any], name: str) -> None:
    """Refuse times that are not in one line.

    Raises
    ------
    BuildError
    """
    if not stream.scope.timestamp.total:
        raise BuildError(
            f"operator {name!r} of a collection is made in {stream.scope.path}, whose times are "
            f"{stream.scope.timestamp.name}: this operator is not there in loops yet; make it in a "
            "dataflow whose times are in one line, such as epochs"
        )


def consolidated(parts: list[Rows], operator_name: str) -> Rows:
    """The consolidated rows of several, one at least.

    Raises
    ------
    DataError
        If a sum of diffs is beyond 64 bits.
    """
    try:
        return consolidate_all(parts)
    except OverflowError as error:
        raise DataError(f"operator {operator_name!r}: {error}") from error


def send_rows(
    output: Output, held: Capability | InputCapability, rows: Rows, texts: tuple[int, ...]
) -> None:
    """Send updates at the time of `held`, if there are any."""
    n = len(rows)
    if n > PREFERRED_RECORDS:
        output.session(held).give_batch(Updates(rows, texts))
    elif n:
        # As it is: nothing else is put together with it, and it need not be cut.
        output.push(held.time, Updates(rows, texts))


def arrange(
    stream: StreamCore[Any],
    n_key: int,
    texts: tuple[int, ...],
    name: str,
    form: StoredForm | None = None,
    what: str = "",
) -> Arrangement:
    """Arrange updates by their first `n_key` words.

    form : makes of what comes what is kept, of which `texts` are numbers of texts
    what : see `restored_rows`
    """
    check_times(stream, name)
    spine = Spine(stream.scope.timestamp)
    spine.live_in(stream.scope.environment)
    if (memory := stream.scope.environment.memory) is not None:
        # Not above: few workers have a limit.
        from pointstamp.collections.spine_memory import SpineMemory

        spine.memory = SpineMemory(memory)

    def kept() -> list[StoredPart]:
        return stored_parts("rows", (rows for _, rows in spine.listed()), texts, form)

    def build(capability: Capability, info: OperatorInfo) -> _ArrangeLogic:
        capability.drop()
        in_order = None if form is None else form.encode
        spine.outlasts = info.states.durable_state is not None
        stored = as_stored(texts, form)
        restored, log = restored_rows(info, n_key, kept, stored, lambda: spine.n_updates, what)
        if is_restored(info) and (rows := restored.get("rows")) is not None:
            if in_order is not None:
                rows = consolidated([in_order(rows)], name)
            spine.insert(rows, last_epoch(info))
        spine.log = log
        info.states.holds_texts(lambda: [(rows, texts) for _, rows in spine.listed()])
        return _ArrangeLogic(StashCore(info), spine, texts, name, in_order)

    return Arrangement(_by_key(stream, n_key, name, build), spine, n_key, texts)


def as_updates(
    stream: StreamCore[Any], n_key: int, texts: tuple[int, ...], name: str
) -> StreamCore[Any]:
    """Consolidate the updates of each time, exchanged by their first `n_key` words."""

    def build(capability: Capability, info: OperatorInfo) -> _ArrangeLogic:
        capability.drop()
        info.keeps_nothing()
        info.states.holds_no_texts()
        return _ArrangeLogic(StashCore(info), None, texts, name)

    return _by_key(stream, n_key, name, build)


def _by_key(stream: StreamCore[Any], n_key: int, name: str, build: Build) -> StreamCore[Any]:
    pact = Exchange(FirstWords(n_key))
    return operator([stream], [pact], name, build, Interest.IF_CAPABILITY)


class _ArrangeLogic(BuiltInLogic):
    """Consolidates the updates of each time, and puts them into the spine, if there is one."""

    __slots__ = ("_in_order", "_name", "_spine", "_stash", "_texts")

    def __init__(
        self,
        stash: StashCore,
        spine: Spine | None,
        texts: tuple[int, ...],
        name: str,
        in_order: Callable[[Rows], Rows] | None = None,
    ) -> None:
        self._stash = stash
        self._in_order = in_order
        self._spine = spine
        self._texts = texts
        self._name = name

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Seal the batches of the times that are complete."""
        stash, spine, output = self._stash, self._spine, outputs[0]
        stash.take_from(inputs[0])
        while (held := stash.next_complete()) is not None:
            try:
                rows = consolidated([batch.rows for batch in stash.value], self._name)
                if self._in_order is not None and len(rows):
                    rows = consolidated([self._in_order(rows)], self._name)
                if spine is None:
                    send_rows(output, held, rows, self._texts)
                elif len(rows):
                    spine.insert(rows, held.time)
                    output.push(held.time, [rows])
            finally:
                held.drop()
