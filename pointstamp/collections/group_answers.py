"""Reductions of an arrangement whose answers are rows: those of the groups that a time touches.

At each complete time the touched groups get their new answer. What it was is kept, in batches
like those of a spine, so that the difference is what leaves, whatever the answer is made by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.collections.arrange import Arrangement, arrange
from pointstamp.collections.batch_merges import BatchSeries
from pointstamp.collections.durable_rows import (
    StoredForm,
    StoredPart,
    as_stored,
    restored_rows,
    stored_parts,
)
from pointstamp.collections.linear import changed
from pointstamp.collections.order import ALL, RecordOrder, beside, from_first
from pointstamp.collections.reduce import reduce_groups
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


@dataclass(frozen=True)
class TouchedGroups:
    """The groups that the updates of a time touch."""

    keys: Rows
    """int64[g, k], in order."""
    changes: Rows
    """The updates of the time, consolidated."""
    before: Rows
    """The answers of these groups until now, consolidated."""
    batches: list[Rows]
    """All of the arrangement up to the time, as at most 64 batches."""


def arrange_in_order(stream: StreamCore[Any], order: RecordOrder, name: str) -> Arrangement:
    """Arrange updates of the schema of an order by its key, each group in that order."""
    by_key = changed(stream, f"{name}Order", order.by_key, order.given_texts)
    form = StoredForm(order.encode, order.decode_by_key, order.given_texts)
    return arrange(by_key, order.n_key, order.texts, f"{name}Arrange", form, order.named)


def answers_kept(
    arranged: Arrangement,
    n_words: int,
    texts: tuple[int, ...],
    answer: Callable[[TouchedGroups], Rows],
    name: str,
    form: StoredForm | None = None,
    what: str = "",
) -> StreamCore[Any]:
    """Updates of the answers.

    Parameters
    ----------
    n_words, texts
        How many words a row of an answer has, and which are numbers of texts.
    answer : callable
        The answers of the groups that are touched, int64[n, n_words + 1], in any order. A row
        begins with the words of the key.
    form : StoredForm, optional
        How answers are stored, if not as they are.
    what : str
        See `restored_rows`.
    """
    reader = arranged.reader()
    n_key = arranged.n_key

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        capability.drop()
        stash: Stash[list[Any]] = Stash(info)
        given = BatchSeries()

        def kept() -> list[StoredPart]:
            return stored_parts("answers", given.rows, texts, form)

        stored = as_stored(texts, form)
        restored, log = restored_rows(info, n_key, kept, stored, lambda: given.n_updates, what)
        if (rows := restored.get("answers")) is not None:
            given.restart([rows if form is None else consolidate(form.encode(rows))])
        info.states.holds_texts(lambda: [(rows, texts) for rows in given.rows])

        def changed_by(rows: Rows, time: Any) -> Rows:
            keys = first_of_each(rows, n_key)[:, :n_key].copy()
            before = np.empty((0, n_words + 1), np.int64)
            if given.rows:
                before, _ = read_groups(given.rows, keys, from_first(keys), ALL)
            after = answer(TouchedGroups(keys, rows, before, reader.through(time)))
            taken_back = before.copy()
            taken_back[:, -1] *= -1
            return consolidate(np.concatenate([after, taken_back]))

        def logic(input_: Input, output: Output) -> None:
            stash.take(input_)
            for held, messages in stash:
                for (rows,) in messages:
                    changes = changed_by(rows, held.time)
                    if len(changes):
                        given.insert(changes)
                        if log is not None:
                            log.add("answers", changes)
                        output.session(held).give_batch(Updates(changes, texts))
                reader.finish(held.time)
            elements = input_.frontier.elements
            if elements:
                reader.acknowledge(elements[0])
            elif not len(stash):
                reader.close()

        return logic

    return operator([arranged.batches], [PIPELINE], name, build, Interest.ALWAYS)


def answers_in_loops(
    stream: StreamCore[Any],
    order: RecordOrder,
    answer: Callable[[Rows], Rows],
    more: tuple[int, tuple[int, ...]],
    name: str,
    what: str,
) -> StreamCore[Any]:
    """Updates of answers at the times of a loop, each from the whole group as of its time.

    What is kept has no words in order, so that it is as it is stored.

    Parameters
    ----------
    stream : of updates of the schema of `order`
    answer : callable
        Of some groups' records in order, with words in order: those that are in the answers, and
        behind the words of each those that the answer adds.
    more : int, tuple of int
        How many words it adds, and which of them are numbers of texts.
    what : str
        What the answers are of a group, for workers to compare.

    Returns
    -------
    stream : of updates of the schema, with what is added behind
    """
    n_given, n_ordered = order.n_given, order.words.n_words
    n_more, more_texts = more

    def whole(records: Rows) -> Rows:
        encoded = consolidate(order.encode(records[records[:, -1] > 0]))
        return beside(answer(order.words.sorted(encoded)), n_ordered, order.decode_by_key)

    def by_schema(rows: Rows) -> Rows:
        return beside(rows, n_given, order.by_schema)

    by_key = changed(stream, f"{name}Order", order.by_key, order.given_texts)
    n_words = (n_given, n_given + n_more)
    texts = (*order.given_texts, *(n_given + place for place in more_texts))
    both_texts = (order.given_texts, texts)
    answers = reduce_groups(
        by_key, n_words, order.n_key, whole, both_texts, name, what=f"{what} of {order.named}"
    )
    of_schema = (*order.schema_texts, *(n_given + place for place in more_texts))
    return changed(answers, f"{name}Rows", by_schema, of_schema)


def first_of_each(rows: Rows, n_key: int) -> Rows:
    """The first row of each key, of rows that are in order.

    >>> first_of_each(np.array([[1, 5, 1], [1, 6, 1], [2, 4, 1]]), 1).tolist()
    [[1, 5, 1], [2, 4, 1]]
    """
    firsts: Rows = rows[is_first(rows, n_key)]
    return firsts


def is_first(rows: Rows, n_key: int) -> npt.NDArray[np.bool_]:
    """Whether each row is the first of its key, bool[n], of rows that are in order."""
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:, :n_key] != rows[:-1, :n_key]).any(axis=1)
    return first
