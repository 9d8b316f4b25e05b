"""A general reduction: a function of all records of a group gives its rows.

Nothing is known of the function, so it is called with the whole group whenever one of its
records changes; what it gave before is kept, so that what differs leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pointstamp.collections.arrange import Arrangement, arrange
from pointstamp.collections.group_answers import TouchedGroups, answers_kept, is_first
from pointstamp.collections.linear import changed, chosen_words
from pointstamp.collections.order import ALL, from_first
from pointstamp.collections.reduce import reduce_groups
from pointstamp.collections.schema import Schema
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.matches import read_groups

Row = tuple[Any, ...]
GroupFunction = Callable[[Row, list[Row]], Iterable[Any]]
"""Of a key and the records of its group: rows."""


def reduced(
    stream: StreamCore[Any],
    schema: Schema,
    keys: Sequence[str],
    function: GroupFunction,
    result: Schema,
    name: str,
    arranged: Arrangement | None = None,
) -> StreamCore[Any]:
    """Updates of the rows of `result` that `function` gives for each group.

    stream : of updates of `schema`
    arranged : the same by `keys`, which have no nulls then, if it is arranged for others
    """
    rest = [column for column in schema.names if column not in keys]
    words = [word for column in (*keys, *rest) for word in schema.words(column)]
    by_key = chosen_words(words, schema.n_words)
    back = chosen_words([words.index(word) for word in range(schema.n_words)], schema.n_words)
    n_key = sum(schema.column(key).n_words for key in keys)
    key_texts = tuple(place for place in schema.texts_among(words) if place < n_key)
    places = [schema.names.index(key) for key in keys]

    def answer(touched: TouchedGroups) -> Rows:
        rows, _ = read_groups(touched.batches, touched.keys, from_first(touched.keys), ALL)
        return of_groups(rows)

    def of_groups(rows: Rows) -> Rows:
        """The answers, each behind its key, of the records of some groups by key."""
        if not len(rows):
            return np.empty((0, n_key + result.n_words + 1), np.int64)
        begins = np.flatnonzero(is_first(rows, n_key)).tolist()
        records = schema.to_rows(rows if back is None else back(rows))
        counts = rows[:, -1].tolist()
        parts = []
        for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
            group = _in_order(zip(records[begin:end], counts[begin:end], strict=True))
            key = tuple(group[0][place] for place in places)
            given = _given(function, key, group, result, name)
            words_of_key = np.broadcast_to(rows[begin, :n_key], (len(given), n_key))
            parts.append(np.concatenate([words_of_key, given], axis=1))
        return np.concatenate(parts)

    given_texts = schema.texts_among(words)
    if arranged is None and by_key is not None:
        stream = changed(stream, f"{name}Order", by_key, given_texts)
    texts = (*key_texts, *(n_key + place for place in result.texts))
    n_words = n_key + result.n_words
    if stream.scope.timestamp.total:
        if arranged is None:
            arranged = arrange(stream, n_key, given_texts, f"{name}Arrange")
        answers = answers_kept(arranged, n_words, texts, answer, name)
    else:
        n_both = (schema.n_words, n_words)
        answers = reduce_groups(
            *(stream, n_both, n_key, lambda rows: of_groups(rows[rows[:, -1] > 0])),
            *((given_texts, texts), name),
        )
    without_key = chosen_words(list(range(n_key, n_words)), n_words)
    assert without_key is not None
    return changed(answers, f"{name}Rows", without_key, result.texts)


def _given(function: GroupFunction, key: Row, group: list[Row], result: Schema, name: str) -> Rows:
    """What the function gives for a group, as rows of `result`."""
    where = f"operator {name!r}, the group of the key {key!r}"
    try:
        rows = list(function(key, group))
    except Exception as error:
        raise DataError(f"{where}: {type(error).__name__}: {error}") from error
    return result.to_updates(rows, 1, where).rows


def _in_order(counted: Iterable[tuple[Row, int]]) -> list[Row]:
    """Each record as often as it is there, sorted, nulls first."""
    in_order = sorted(counted, key=lambda pair: [_nulls_first(value) for value in pair[0]])
    return [row for row, n in in_order for _ in range(n)]


def _nulls_first(value: Any) -> tuple[bool, bool, Any]:
    """What a value is sorted by; NaN is last."""
    is_nan = value != value
    return value is not None, is_nan, None if value is None or is_nan else value
