"""Rows of Python's values as words, and back: what is done with each record of a collection.

Integers, which most keys are, become words here; of other types the type says the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.containers.updates import Rows
from pointstamp.errors import DataError
from pointstamp.kernels.consolidation import concatenate, rows_of

if TYPE_CHECKING:
    from pointstamp.collections.schema import Column

MANY_WORDS = 1 << 9
"""So many words are put into an array at once: as a list they take several times the room."""


class RowEncoder:
    """Makes words of rows, which are tuples in the order of the columns, or dicts by name.

    >>> from pointstamp.collections.schema import schema_of
    >>> encoder = schema_of("a long, b string?").encoder
    >>> words = encoder.updates([(7, None), {"a": 8, "b": ""}], 1, "it")
    >>> words.tolist(), encoder.rows(words)
    ([[7, 0, 0, 1], [8, 1, 0, 1]], [(7, None), (8, '')])
    """

    __slots__ = (
        "_are_nullable",
        "_bounds",
        "_names",
        "_schema",
        "_to_values",
        "_to_words",
        "_types",
        "_width",
    )

    def __init__(self, columns: Sequence[Column], schema: Any) -> None:
        self._schema = schema
        """Of whose columns, for messages to people."""
        self._names = [column.name for column in columns]
        self._types = [column.type.name for column in columns]
        self._to_words = [column.type.to_word for column in columns]
        self._to_values = [column.type.to_value for column in columns]
        self._are_nullable = [column.nullable for column in columns]
        self._bounds = [column.type.bounds for column in columns]
        self._width = sum(column.n_words for column in columns) + 1

    def updates(self, given: Iterable[Any], diff: int, where: str) -> Rows:
        """Rows as updates of one diff, int64[n, w + 1].

        where : the input, for the message of an error

        Raises
        ------
        DataError
            If one does not fit the schema; the message has its place.
        """
        rows = list(given)
        words: list[int] = []
        parts: list[Rows] = []
        for place in range(len(rows)):
            self._write(words, place, rows[place], where)
            words.append(diff)
            if len(words) >= MANY_WORDS:
                self._end_part(words, parts)
        return self._in_one(words, parts)

    def pairs(self, given: Iterable[tuple[Any, Any]], where: str) -> Rows:
        """Pairs of a row and its diff as updates; raises as `updates` does."""
        pairs = list(given)
        words: list[int] = []
        parts: list[Rows] = []
        for place, (row, diff) in enumerate(pairs):
            if isinstance(diff, bool) or not isinstance(diff, (int, np.integer)):
                raise DataError(f"the diff of row {place} for {where} is no integer: {diff!r}")
            if not -(1 << 63) <= diff < 1 << 63:
                raise DataError(f"the diff of row {place} for {where} is beyond 64 bits: {diff}")
            self._write(words, place, row, where)
            words.append(int(diff))
            if len(words) >= MANY_WORDS:
                self._end_part(words, parts)
        return self._in_one(words, parts)

    def rows(self, updates: Rows) -> list[tuple[Any, ...]]:
        """The records of updates as tuples of Python's values."""
        words, found = updates, []
        for place in range(len(updates)):
            row: list[Any] = []
            at = 0
            for column in range(len(self._names)):
                if self._are_nullable[column]:
                    at += 1
                    if words[place, at - 1] == 0:
                        row.append(None)
                        at += 1
                        continue
                word = int(words[place, at])
                row.append(word if self._bounds[column] else self._to_values[column](word))
                at += 1
            found.append(tuple(row))
        return found

    def _end_part(self, words: list[int], parts: list[Rows]) -> None:
        parts.append(rows_of(words, self._width))
        words.clear()

    def _in_one(self, words: list[int], parts: list[Rows]) -> Rows:
        """The rows of the parts, and of the words behind them."""
        if not parts:
            return rows_of(words, self._width)
        self._end_part(words, parts)
        return concatenate(parts)

    def _write(self, words: list[int], place: int, given: Any, where: str) -> None:
        row = given if type(given) is tuple else self._as_sequence(given, place, where)
        if len(row) != len(self._names):
            raise self._refused(given, place, where)
        for column in range(len(self._names)):
            value = row[column]
            is_nullable = self._are_nullable[column]
            if value is None:
                if not is_nullable:
                    raise DataError(
                        f"row {place} for {where} has None as {self._names[column]!r}, which is "
                        f"not nullable; its type would be {self._types[column]}?"
                    )
                words.append(0)
                words.append(0)
                continue
            if is_nullable:
                words.append(1)
            bounds = self._bounds[column]
            if bounds is not None and type(value) is int and bounds[0] <= value <= bounds[1]:
                words.append(value)
            else:
                try:
                    words.append(self._to_words[column](value))
                except DataError as error:
                    raise DataError(
                        f"row {place} for {where}, column {self._names[column]!r}: {error}"
                    ) from None

    def _as_sequence(self, row: Any, place: int, where: str) -> Sequence[Any]:
        if isinstance(row, Mapping):
            if row.keys() != set(self._names):
                raise DataError(
                    f"row {place} for {where} has the keys {list(row)}, not: {self._schema}"
                )
            return [row[name] for name in self._names]
        if not isinstance(row, (tuple, list)):
            raise self._refused(row, place, where)
        return row

    def _refused(self, row: Any, place: int, where: str) -> DataError:
        return DataError(
            f"row {place} for {where} should be a tuple of {len(self._names)} values, or a dict, "
            f"of: {self._schema}; it is {row!r}"
        )
