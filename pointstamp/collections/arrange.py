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

import numpy as np

from pointstamp.collections.spine import Spine
from pointstamp.containers.updates import FirstWords, Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, DataError
from pointstamp.kernels.consolidation import consolidate
from pointstamp.operators.generic import operator
from pointstamp.progress.operate import Interest


@dataclass(frozen=True)
class Arrangement:
    """A stream of batches, each a record of rows int64[n, w + 1], and where they are kept."""

    batches: StreamCore[Any]
    spine: Spine
    n_key: int
    """How many words are the key; they are the first."""
    texts: tuple[int, ...]


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


def consolidated(batches: Any, operator_name: str) -> Rows:
    """The consolidated rows of several batches of updates.

    Raises
    ------
    DataError
        If a sum of diffs is beyond 64 bits.
    """
    parts = [batch.rows for batch in batches]
    try:
        return consolidate(parts[0] if len(parts) == 1 else np.concatenate(parts))
    except OverflowError as error:
        raise DataError(f"operator {operator_name!r}: {error}") from error


def arrange(
    stream: StreamCore[Any],
    n_key: int,
    texts: tuple[int, ...],
    name: str,
    in_order: Callable[[Rows], Rows] | None = None,
) -> Arrangement:
    """Arrange updates by their first `n_key` words.

    in_order : makes of rows those that are kept, of which `texts` are numbers of texts
    """
    check_times(stream, name)
    spine = Spine(stream.scope.timestamp)

    def seal(rows: Rows, held: Capability, output: Output) -> None:
        if in_order is not None:
            rows = consolidate(in_order(rows))
        spine.insert(rows, held.time)
        output.session(held).give(rows)

    return Arrangement(_by_time(stream, n_key, name, seal), spine, n_key, texts)


def as_updates(
    stream: StreamCore[Any], n_key: int, texts: tuple[int, ...], name: str
) -> StreamCore[Any]:
    """Consolidate the updates of each time, exchanged by their first `n_key` words."""

    def send(rows: Rows, held: Capability, output: Output) -> None:
        output.session(held).give_batch(Updates(rows, texts))

    return _by_time(stream, n_key, name, send)


def _by_time(
    stream: StreamCore[Any],
    n_key: int,
    name: str,
    finish: Callable[[Rows, Capability, Output], None],
) -> StreamCore[Any]:
    """Exchange updates by their first words, and `finish` those of each time, consolidated."""

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)

        def logic(input_: Input, output: Output) -> None:
            stash.take(input_)
            for held, batches in stash:
                rows = consolidated(batches, name)
                if len(rows):
                    finish(rows, held, output)

        return logic

    pact = Exchange(FirstWords(n_key))
    return operator([stream], [pact], name, build, Interest.IF_CAPABILITY)
