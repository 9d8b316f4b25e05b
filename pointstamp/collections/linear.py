"""Operators that keep nothing: each update becomes updates of its own.

They are one operator over batches, whatever they do: words of columns chosen, computed, left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pointstamp.collections.casts import Bound
from pointstamp.collections.evaluation import true_where
from pointstamp.collections.instructions import MOST_ROWS, program, stored, table
from pointstamp.collections.schema import Schema
from pointstamp.containers.updates import Rows, Updates
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.kernels.consolidation import choose_words
from pointstamp.kernels.evaluate import evaluate_rows, keep_rows
from pointstamp.operators.transform import transform

Change = Callable[[Rows], Rows]


def changed(
    stream: StreamCore[Any], name: str, change: Change, texts: tuple[int, ...]
) -> StreamCore[Any]:
    """Replace the rows of each batch by `change(rows)`, of which `texts` are numbers of texts."""

    def function(time: Any, batch: Updates) -> Updates | None:
        rows = change(batch.rows)
        return Updates(rows, texts) if len(rows) else None

    return transform(stream, name, function, of_updates=True)


def chosen_words(words: list[int], n_words: int) -> Change | None:
    """Rows of some words of a row of `n_words`, in an order of their own; None where it is as is.

    >>> chosen_words([1, 0], 2)(np.array([[7, 8, 1]])).tolist(), chosen_words([0, 1], 2)
    ([[8, 7, 1]], None)
    """
    if words == list(range(n_words)):
        return None
    places = np.array(words, np.int32)
    return lambda rows: choose_words(rows, places)


def computing(bound: dict[str, Bound], schema: Schema) -> Change:
    """Rows of `schema`, each column computed."""
    places = [(value, schema.places[column]) for column, value in bound.items()]
    parts = [
        program(value.instructions, stored(place, value.type, value.nullable))
        for value, place in places
    ]
    few = table(program(*parts))
    n_words = schema.n_words

    def compute(rows: Rows) -> Rows:
        if few is not None and len(rows) <= MOST_ROWS:
            made = evaluate_rows(np.ascontiguousarray(rows), few, n_words)
            if made is not None:
                return made
        computed = np.empty((len(rows), n_words + 1), np.int64)
        for value, place in places:
            value.write(rows, computed, place)
        computed[:, -1] = rows[:, -1]
        return computed

    return compute


def keeping(condition: Bound) -> Change:
    """The rows for which a condition, a boolean, is true, which null is not."""
    few = table(condition.instructions)

    def keep(rows: Rows) -> Rows:
        if few is not None and len(rows) <= MOST_ROWS:
            kept = keep_rows(np.ascontiguousarray(rows), few)
            if kept is not None:
                return kept
        return rows[true_where(*condition.evaluate(rows))]

    return keep
