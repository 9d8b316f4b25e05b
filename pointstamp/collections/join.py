"""Join: pairs of records of two arrangements with equal keys.

At each complete time the changes of either side meet what there is of the other one: of the
left what is there before the time, and of the right all up to it, so that two changes of the
same time meet once. The diff of a pair is the product.

Source: differential-dataflow `operators/join.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.spine import SpineReader
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.matches import match
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
    backward = ~forward
    readers = left.spine.reader(), right.spine.reader()
    n_key = left.n_key

    def pairs(changes: Rows, kept: list[Rows], by_left: bool) -> list[Rows]:
        recipes = (forward, backward) if by_left else (backward, forward)
        try:
            # The shorter one looks into the longer one.
            return [
                match(changes, batch, n_key, recipes[0])
                if len(changes) <= len(batch)
                else match(batch, changes, n_key, recipes[1])
                for batch in kept
            ]
        except OverflowError as error:
            raise DataError(f"operator {name!r}: {error}") from error

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        stash: Stash[list[list[Any]]] = Stash(info)

        def logic(one: Input, other: Input, output: Output) -> None:
            stash.take(one, other)
            for held, (lefts, rights) in stash:
                session = output.session(held)
                for changes in _batches(lefts):
                    for rows in pairs(changes, readers[1].before(held.time), True):
                        if len(rows):
                            session.give_batch(Updates(rows, texts))
                for changes in _batches(rights):
                    for rows in pairs(changes, readers[0].through(held.time), False):
                        if len(rows):
                            session.give_batch(Updates(rows, texts))
                for reader in readers:
                    reader.finish(held.time)
            _acknowledge(readers, (one.frontier, other.frontier), not len(stash))

        return logic

    streams = [left.batches, right.batches]
    return operator(streams, [PIPELINE, PIPELINE], name, build, Interest.ALWAYS)


def _batches(messages: Any) -> list[Rows]:
    return [rows for message in messages for rows in message]


def _acknowledge(
    readers: tuple[SpineReader, SpineReader], frontiers: tuple[Frontier, Frontier], none_wait: bool
) -> None:
    """Let go of what no change can need: each side's is needed by changes of the other side.

    none_wait : whether no change has come that is not worked off
    """
    elements = [frontier.elements for frontier in frontiers]
    for reader, others in zip(readers, reversed(elements), strict=True):
        if not others and none_wait:
            reader.close()
    if all(elements):
        bound = min(one for (one,) in elements)
        for reader in readers:
            reader.acknowledge(bound)
    elif any(elements):
        (bound,) = elements[0] or elements[1]
        for reader in readers:
            if not reader.is_over:
                reader.acknowledge(bound)
