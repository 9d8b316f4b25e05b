"""The first records of each group, in an order of columns: an ordered reduction of whole rows.

The group's records are arranged by key and then by what they are ordered by. The answer until
now says how often each record before its last one is there, and that no other one before that
is. So the new answer is that of before, with the records that changed looked up one by one; and
from its last record on, where it was full, what is read of the arrangement. What was deleted
before that is never looked at again.

Source: the search from the answer before on is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.arrange import Arrangement
from pointstamp.collections.durable_rows import StoredForm
from pointstamp.collections.group_answers import (
    TouchedGroups,
    answers_in_loops,
    answers_kept,
    is_first,
)
from pointstamp.collections.order import ALL, RecordOrder, from_first
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.kernels.consolidation import consolidate
from pointstamp.kernels.matches import read_groups

Ints = npt.NDArray[np.int64]


def first_rows(arranged: Arrangement, most: int, order: RecordOrder, name: str) -> StreamCore[Any]:
    """Updates of the first `most` records of each group, in order.

    arranged : of records in `order`
    """

    def answer(touched: TouchedGroups) -> Rows:
        return _first(touched, most, order)

    form = StoredForm(order.encode, order.decode_by_key, order.given_texts)
    what = f"{_first_of(most)} of {order.named}"
    return answers_kept(arranged, order.words.n_words, order.texts, answer, name, form, what)


def first_rows_in_loops(
    stream: StreamCore[Any], most: int, order: RecordOrder, name: str
) -> StreamCore[Any]:
    """The same at the times of a loop.

    stream : of updates of the schema of `order`, as what comes of it
    """

    def answer(rows: Rows) -> Rows:
        return _at_most(rows, order.n_key, most) if len(rows) else rows

    return answers_in_loops(stream, order, answer, (0, ()), name, _first_of(most))


def _first_of(most: int) -> str:
    """What is kept of a group, for workers to compare."""
    return f"the first {most}"


def _first(touched: TouchedGroups, most: int, order: RecordOrder) -> Rows:
    words, n_key, before = order.words, order.n_key, touched.before
    # The last record of each answer that is full, or the first that could be alike to it.
    full = _last_of_full(before, n_key, most)
    bounds = words.first_alike(full)
    known = before[_is_before(before, bounds, n_key)]
    changed = touched.changes[_is_before(touched.changes, bounds, n_key)]
    records = np.ascontiguousarray(changed[:, :-1])
    now, _ = read_groups(touched.batches, records, from_first(records), ALL)
    gone = known[:0]
    if len(known):
        gone, _ = read_groups([known], records, from_first(records), ALL)
        gone[:, -1] *= -1
    parts = [known, now, gone]
    if len(full):
        keys, starts = bounds[:, :n_key].copy(), bounds[:, n_key:].copy()
        parts.append(words.read(touched.batches, keys, starts, most))
    parts = [part for part in parts if len(part)]
    if not parts:
        return before[:0]
    return _at_most(words.sorted(consolidate(np.concatenate(parts))), n_key, most)


def _last_of_full(rows: Rows, n_key: int, most: int) -> Rows:
    """The last row of each group of `most` records, of rows in the order of their words."""
    if not len(rows):
        return rows
    begins = np.flatnonzero(is_first(rows, n_key))
    counts = np.add.reduceat(rows[:, -1], begins)
    ends = np.append(begins[1:], len(rows))
    last: Rows = rows[ends[counts >= most] - 1]
    return last


def _is_before(rows: Rows, bounds: Rows, n_key: int) -> npt.NDArray[np.bool_]:
    """Whether each row is before the bound of its group; where there is none, it is.

    rows : in the order of their words · bounds : int64[g, w], at most one of a key, in order
    """
    if not len(bounds) or not len(rows):
        return np.ones(len(rows), np.bool_)
    n_words = bounds.shape[1]
    # All in one order, a bound before what is equal to it: how many bounds are at or before each.
    together = np.concatenate([bounds, rows[:, :n_words]])
    is_row = np.arange(len(together)) >= len(bounds)
    places = np.lexsort([is_row, *together.T[::-1]])
    n_bounds = np.empty(len(together), np.int64)
    n_bounds[places] = np.cumsum(~is_row[places])
    at = n_bounds[len(bounds) :]
    last = bounds[np.maximum(at - 1, 0), :n_key]
    is_behind: npt.NDArray[np.bool_] = (at > 0) & (last == rows[:, :n_key]).all(axis=1)
    return ~is_behind


def _at_most(rows: Rows, n_key: int, most: int) -> Rows:
    """The first `most` copies of records of each group, of groups that go together."""
    counts = np.minimum(rows[:, -1], most)
    begins = is_first(rows, n_key)
    through = np.cumsum(counts)
    through -= (through - counts)[begins][np.cumsum(begins) - 1]
    rows = rows.copy()
    rows[:, -1] = np.minimum(through, most) - np.minimum(through - counts, most)
    return rows[rows[:, -1] > 0]
