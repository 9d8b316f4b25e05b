"""The first records of each group, in an order of columns: an ordered reduction of whole rows.

The group's records are arranged by key and then by what they are ordered by, so the first
ones are at the head of each batch, behind what has cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pointstamp.collections.arrange import Arrangement
from pointstamp.containers.dictionary import TEXTS
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

_ALL = (1 << 63) - 1


def first_rows(arranged: Arrangement, most: int, n_order: int, name: str) -> StreamCore[Any]:
    """Updates of the first `most` records of each group, in the order of their words.

    n_order : the first words, behind which those are that break ties, texts by their bytes
    """
    texts = [place for place in arranged.texts if place >= n_order]

    def first(batches: list[Rows], keys: Rows) -> Rows:
        return _first(batches, keys, most, n_order, texts)

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
                    before = first(reader.before(held.time), keys)
                    after = first(reader.through(held.time), keys)
                    if len(before):
                        before[:, -1] *= -1
                    parts = [part for part in (before, after) if len(part)]
                    changes = consolidate(np.concatenate(parts)) if parts else before
                    if len(changes):
                        output.session(held).give_batch(Updates(changes, arranged.texts))
                reader.finish(held.time)
            elements = input_.frontier.elements
            if elements:
                reader.acknowledge(elements[0])
            elif not len(stash):
                reader.close()

        return logic

    return operator([arranged.batches], [PIPELINE], name, build, Interest.ALWAYS)


def _first(batches: list[Rows], keys: Rows, most: int, n_order: int, texts: list[int]) -> Rows:
    starts = np.empty((len(keys), 0), np.int64)
    rows, ends = read_groups(batches, keys, starts, most)
    rows = rows.copy()
    parts, begin = [], 0
    for end in ends.tolist():
        if end > begin:
            group = rows[begin:end]
            parts.append(_by_bytes(batches, group, n_order, texts) if texts else group)
            # Of the last record there may be more copies than are wanted.
            counts = np.minimum(np.cumsum(parts[-1][:, -1]), most)
            parts[-1][:, -1] = np.diff(counts, prepend=0)
            parts[-1] = parts[-1][parts[-1][:, -1] > 0]
        begin = end
    return np.concatenate(parts) if parts else rows[:0]


def _by_bytes(batches: list[Rows], group: Rows, n_order: int, texts: list[int]) -> Rows:
    """The rows of a group, and all that are tied with the last one, ties in the order of bytes."""
    tie = np.ascontiguousarray(group[-1:, :n_order])
    before = group[(group[:, :n_order] != tie).any(axis=1)]
    tied, _ = read_groups(batches, tie, np.empty((1, 0), np.int64), _ALL)

    def in_order(place: int) -> list[Any]:
        row: list[Any] = rows[place].tolist()
        for text in texts:
            row[text] = TEXTS.value(row[text])
        return row

    rows = np.concatenate([before, tied])
    return rows[sorted(range(len(rows)), key=in_order)]


def _distinct(keys: Rows) -> Rows:
    """Of keys in order."""
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return np.ascontiguousarray(keys[first])
