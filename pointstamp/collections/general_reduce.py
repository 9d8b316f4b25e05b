"""A general reduction: a function of all records of a group gives its rows.

Nothing is known of the function, so it is called with the whole group whenever one of its
records changes; what it gave before is kept, so that what differs leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pointstamp.collections.arrange import Arrangement, arrange
from pointstamp.collections.copies import check_copies, copied
from pointstamp.collections.group_answers import TouchedGroups, answers_kept, is_first
from pointstamp.collections.linear import changed, chosen_words
from pointstamp.collections.order import ALL, from_first
from pointstamp.collections.reduce import reduce_groups
from pointstamp.collections.schema import Schema, nulls_first
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import DataError
from pointstamp.kernels.matches import read_groups

Row = tuple[Any, ...]
GroupFunction = Callable[[Row, list[Row]], Iterable[Any]]
"""Of a key and the records of its group: rows."""

BatchFunction = Callable[[Any, Any], Any]
"""Of the records of some groups as a `pyarrow.RecordBatch`, and where each group begins and ends,
int64[g + 1]: columns of one row for each group, or a pair of columns and of offsets as those."""

OfGroups = Callable[[Rows], Rows]
"""Of the records of some groups, each behind its key: the rows of the answers, each behind its."""

Lasting = Callable[
    [StreamCore[Any], Mapping[str, int], tuple[int, ...]],
    StreamCore[Any],
]
"""Of answers, the places of the columns of their keys, and which words are texts: what lasts."""


class GroupForm:
    """Where the words of the groups of a collection and of their answers are.

    Parameters
    ----------
    schema : Schema
        Of the records.
    keys : sequence of str
    result : Schema
        Of the answers, which need not have the key.
    """

    def __init__(self, schema: Schema, keys: Sequence[str], result: Schema) -> None:
        self.schema = schema
        self.keys = tuple(keys)
        self.result = result
        rest = [column for column in schema.names if column not in keys]
        words = [word for column in (*keys, *rest) for word in schema.words(column)]
        n_words = schema.n_words
        self.by_key = chosen_words(words, n_words)
        """Puts the words of the key of a record first; None if they are."""
        self._back = chosen_words([words.index(word) for word in range(n_words)], n_words)
        self.n_key = sum(schema.column(key).n_words for key in keys)
        self.texts = schema.texts_among(words)
        """Of records, behind `by_key`."""
        key_texts = tuple(place for place in self.texts if place < self.n_key)
        self.answer_texts = (*key_texts, *(self.n_key + place for place in result.texts))
        self.n_answer = self.n_key + result.n_words
        self.named = f"({schema}) by ({', '.join(keys)}) to ({result})"
        """What is made of what, for snapshots."""

    @property
    def key_places(self) -> dict[str, int]:
        """By name, the words of the values of the key in an answer."""
        places, at = {}, 0
        for key in self.keys:
            at += self.schema.column(key).n_words
            places[key] = at - 1
        return places

    def records(self, rows: Rows) -> Rows:
        """Records without the order of `by_key`."""
        return rows if self._back is None else self._back(rows)


def reduced(
    stream: StreamCore[Any],
    form: GroupForm,
    of_groups: OfGroups,
    name: str,
    arranged: Arrangement | None = None,
    lasting: Lasting | None = None,
) -> StreamCore[Any]:
    """Updates of the answers of all groups.

    Parameters
    ----------
    stream : of updates of the form's schema
    of_groups : callable
        Is called with the records of some groups, each consolidated and above 0.
    arranged : Arrangement, optional
        The same by the key, which has no nulls then, if it is arranged for others.
    lasting : callable, optional
        Leaves out some of the changes of the answers.
    """
    n_key, n_answer = form.n_key, form.n_answer

    def answers_of(rows: Rows) -> Rows:
        return of_groups(rows) if len(rows) else np.empty((0, n_answer + 1), np.int64)

    def answer(touched: TouchedGroups) -> Rows:
        rows, _ = read_groups(touched.batches, touched.keys, from_first(touched.keys), ALL)
        return answers_of(rows)

    if arranged is None and form.by_key is not None:
        stream = changed(stream, f"{name}Order", form.by_key, form.texts)
    if stream.scope.timestamp.total:
        if arranged is None:
            arranged = arrange(stream, n_key, form.texts, f"{name}Arrange", what=form.named)
        answers = answers_kept(arranged, n_answer, form.answer_texts, answer, name, what=form.named)
    else:
        n_both = (form.schema.n_words, n_answer)
        answers = reduce_groups(
            *(stream, n_both, n_key, lambda rows: answers_of(rows[rows[:, -1] > 0])),
            *((form.texts, form.answer_texts), name),
            what=form.named,
        )
    if lasting is not None:
        answers = lasting(answers, form.key_places, form.answer_texts)
    without_key = chosen_words(list(range(n_key, n_answer)), n_answer)
    assert without_key is not None
    return changed(answers, f"{name}Rows", without_key, form.result.texts)


def by_group(form: GroupForm, function: GroupFunction, name: str) -> OfGroups:
    """What `function(key, records)` gives of each group, called with one after the other."""
    places = [form.schema.names.index(key) for key in form.keys]

    def of_groups(rows: Rows) -> Rows:
        begins = np.flatnonzero(is_first(rows, form.n_key)).tolist()
        records = form.schema.to_rows(form.records(rows))
        check_copies(rows[:, -1], "groups")
        counts = rows[:, -1].tolist()
        parts = []
        for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
            group = _in_order(zip(records[begin:end], counts[begin:end], strict=True))
            key = tuple(group[0][place] for place in places)
            given = _given(function, key, group, form.result, name)
            words_of_key = np.broadcast_to(rows[begin, : form.n_key], (len(given), form.n_key))
            parts.append(np.concatenate([words_of_key, given], axis=1))
        return np.concatenate(parts)

    return of_groups


def by_batch(form: GroupForm, function: BatchFunction, name: str) -> OfGroups:
    """What `function(batch, offsets)` gives of all groups, called once."""

    def of_groups(rows: Rows) -> Rows:
        begins = np.flatnonzero(is_first(rows, form.n_key))
        keys = rows[begins, : form.n_key]
        counts = rows[:, -1]
        offsets = np.zeros(len(begins) + 1, np.int64)
        np.cumsum(np.add.reduceat(counts, begins), out=offsets[1:])
        where = f"operator {name!r}, a batch of {len(begins)} groups"
        # Each record as often as it is there.
        batch = form.schema.to_arrow(copied(form.records(rows), counts, "a batch of groups"))
        try:
            found = function(batch, offsets)
        except Exception as error:
            raise DataError(f"{where}: {type(error).__name__}: {error}") from error
        columns, ends = found if isinstance(found, tuple) else (found, None)
        if columns is None:
            raise DataError(f"{where}: the function gave None, and should give columns or rows")
        given = form.result.to_updates(columns, 1, where).rows
        lengths = _lengths(ends, len(begins), len(given), where)
        return np.concatenate([np.repeat(keys, lengths, axis=0), given], axis=1)

    return of_groups


def _lengths(offsets: Any, n_groups: int, n_rows: int, where: str) -> Any:
    """How many of the rows that a function gave are of each group.

    Raises
    ------
    DataError
        If it did not say so.
    """
    if offsets is None:
        if n_rows != n_groups:
            raise DataError(
                f"{where}: the function gave {n_rows} rows, and should give one for each group, or "
                "a pair of rows and offsets"
            )
        return 1
    bounds = np.asarray(offsets)
    fits = bounds.dtype.kind in "iu" and bounds.shape == (n_groups + 1,)
    if not fits or bounds[0] != 0 or bounds[-1] != n_rows or (np.diff(bounds) < 0).any():
        raise DataError(
            f"{where}: the function gave {n_rows} rows and the offsets {offsets!r}, and should "
            f"give {n_groups + 1} integers up from 0 to {n_rows}"
        )
    return np.diff(bounds)


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
    in_order = sorted(counted, key=lambda pair: [nulls_first(value) for value in pair[0]])
    return [row for row, n in in_order for _ in range(n)]
