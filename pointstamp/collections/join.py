"""Join: pairs of records of two arrangements with equal keys.

At each complete time the changes of either side meet what there is of the other one: of the
left what is there before the time, and of the right all up to it, so that two changes of the
same time meet once. The diff of a pair is the product. Of many pairs some leave at a time
(`join_fuel.py`).

Source: differential-dataflow `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections import join_fuel
from pointstamp.collections.arrange import Arrangement, send_rows
from pointstamp.collections.join_fuel import JoinTurns
from pointstamp.collections.spine import SpineReader
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import BuiltInLogic, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stash_core import StashCore
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.matches import match_some
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest


def join(
    left: Arrangement,
    right: Arrangement,
    recipe: Sequence[int],
    texts: tuple[int, ...],
    name: str,
) -> StreamCore[Any]:
    """Pairs of equal key.

    recipe : the words of a pair, `k` for word `k` of the left side, `~k` of the right one
    """
    forward = np.array(recipe, np.int32)
    readers = left.reader(), right.reader()
    n_key = left.n_key

    def build(capability: Capability, info: OperatorInfo) -> _JoinLogic:
        capability.drop()
        info.keeps_nothing()  # the arrangements do
        info.states.holds_no_texts()
        turns = JoinTurns(info, texts, name)
        return _JoinLogic(StashCore(info), turns, readers, n_key, forward, texts, name)

    streams = [left.batches, right.batches]
    return operator(streams, [PIPELINE, PIPELINE], name, build, Interest.ALWAYS)


class _JoinLogic(BuiltInLogic):
    """The logic of `join`."""

    __slots__ = (
        "_backward",
        "_forward",
        "_fuel",
        "_is_under_way",
        "_left",
        "_n_key",
        "_name",
        "_readers",
        "_right",
        "_stash",
        "_texts",
        "_turns",
    )

    def __init__(
        self,
        stash: StashCore,
        turns: JoinTurns,
        readers: tuple[SpineReader, SpineReader],
        n_key: int,
        recipe: npt.NDArray[np.int32],
        texts: tuple[int, ...],
        name: str,
    ) -> None:
        self._stash = stash
        self._turns = turns
        self._is_under_way = False
        self._fuel = 0
        """What is left of that of a turn."""
        self._readers = readers
        self._left, self._right = readers
        self._n_key = n_key
        self._forward = recipe
        self._backward = ~recipe
        self._texts = texts
        self._name = name

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """Pair the changes of the times that are complete."""
        stash, output, turns = self._stash, outputs[0], self._turns
        one, other = inputs[0], inputs[1]
        stash.take_from(one, 0)
        stash.take_from(other, 1)
        self._fuel = join_fuel.FUEL
        if self._is_under_way:
            self._fuel -= turns.take(output, self._readers, self._fuel)
            self._is_under_way = turns.is_under_way
            if self._is_under_way:
                return
        while self._fuel > 0 and (held := stash.next_complete()) is not None:
            rest = None
            try:
                rest = self._pair(output, held)
            finally:
                if rest is None:
                    held.drop()
            if rest:
                turns.begin(held, _paired(rest, self._n_key), list(stash.value))
                self._fuel -= turns.take(output, self._readers, self._fuel)
                self._is_under_way = turns.is_under_way
                if self._is_under_way:
                    return
            else:
                self._left.finish(held.time)
                self._right.finish(held.time)
                held.drop()
        if self._fuel <= 0:
            turns.ask()  # of times that are complete some may wait
            return
        self._acknowledge(one.frontier.elements, other.frontier.elements)

    def _pair(self, output: Output, held: Capability) -> list[tuple[Any, ...]]:
        """Send pairs of the time of `held`: all, or some and what is left."""
        lefts, rights = self._stash.value
        rest: list[tuple[Any, ...]] = []
        for changes in _batches(lefts):
            kept = self._right.before(held.time)
            self._send(output, held, changes, kept, self._forward, rest)
        for changes in _batches(rights):
            kept = self._left.through(held.time)
            self._send(output, held, changes, kept, self._backward, rest)
        return rest

    def _send(
        self,
        output: Output,
        held: Capability,
        changes: Rows,
        kept: list[Rows],
        recipe: npt.NDArray[np.int32],
        rest: list[tuple[Any, ...]],
    ) -> None:
        end, after = 0, None
        if not rest:
            try:
                rows, end, after = match_some(changes, kept, self._n_key, recipe, 0, join_fuel.FUEL)
            except OverflowError as error:
                raise DataError(f"operator {self._name!r}: {error}") from error
            send_rows(output, held, rows, self._texts)
        if end < len(changes):
            rest.append((changes, kept, recipe, end, after))

    def _acknowledge(self, lefts: list[Any], rights: list[Any]) -> None:
        """Let go of what no change can need: each side's is needed by changes of the other side.

        lefts, rights : the least times that may still come at both sides, at most one each
        """
        none_wait = not len(self._stash)
        if none_wait and not rights:
            self._left.close()
        if none_wait and not lefts:
            self._right.close()
        if not lefts and not rights:
            return
        bound = min(lefts[0], rights[0]) if lefts and rights else (lefts or rights)[0]
        if not self._left.is_over:
            self._left.acknowledge(bound)
        if not self._right.is_over:
            self._right.acknowledge(bound)


def _batches(messages: Any) -> list[Rows]:
    return [rows for message in messages for rows in message]


def _paired(rest: list[tuple[Any, ...]], n_key: int) -> Iterator[Rows]:
    """The pairs of (changes, what they meet, recipe, where to begin), by pieces."""
    for changes, kept, recipe, begin, after in rest:
        while begin < len(changes):
            rows, begin, after = match_some(
                changes, kept, n_key, recipe, begin, join_fuel.FUEL, after
            )
            yield rows
