"""The first records of each group, in an order of columns: an ordered reduction of whole rows.

The group's records are arranged by key and then by what they are ordered by, so the first
ones are at the head of each batch, behind what has cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pointstamp.collections.arrange import Arrangement
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.kernels.consolidation import consolidate
from pointstamp.kernels.matches import read_groups
from pointstamp.operators.generic import operator
from pointstamp.operators.transform import PIPELINE
from pointstamp.progress.operate import Interest


def first_rows(arranged: Arrangement, most: int, name: str) -> StreamCore[Any]:
    """Updates of the first `most` records of each group, in the order of their words."""
    reader = arranged.spine.reader()
    n_key = arranged.n_key

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)

        def logic(input_: Input, output: Output) -> None:
            stash.take(input_)
            for held, messages in stash:
                for (rows,) in messages:
                    keys = _distinct(rows[:, :n_key])
                    before = _first(reader.before(held.time), keys, most)
                    after = _first(reader.through(held.time), keys, most)
                    if len(before):
                        before[:, -1] *= -1
                    parts = [part for part in (before, after) if len(part)]
                    changes = consolidate(np.concatenate(parts)) if parts else before
                    if len(changes):
                        output.session(held).give_batch(Updates(changes, arranged.texts))
            elements = input_.frontier.elements
            if elements:
                reader.acknowledge(elements[0])
            elif not len(stash):
                reader.close()

        return logic

    return operator([arranged.batches], [PIPELINE], name, build, Interest.ALWAYS)


def _first(batches: list[Rows], keys: Rows, most: int) -> Rows:
    starts = np.empty((len(keys), 0), np.int64)
    rows, ends = read_groups(batches, keys, starts, most)
    rows = rows.copy()
    # Of the last record there may be more copies than are wanted.
    begin = 0
    for end in ends.tolist():
        if end > begin:
            rows[end - 1, -1] -= max(0, int(rows[begin:end, -1].sum()) - most)
        begin = end
    return rows


def _distinct(keys: Rows) -> Rows:
    """Of keys in order."""
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return np.ascontiguousarray(keys[first])
