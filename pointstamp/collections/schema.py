"""Schemas of collections: names and types of columns, and where their words are in a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pointstamp.collections.row_encoder import RowEncoder
from pointstamp.containers.column_texts import columns_named
from pointstamp.containers.convert import plain_values, typed_nulls
from pointstamp.containers.frames import is_table, record_batches
from pointstamp.containers.nested import (
    column_type_of_arrow,
)
from pointstamp.containers.updates import Rows, Updates
from pointstamp.containers.words import WordType, record_batch
from pointstamp.errors import BuildError, ColumnError, DataError, SchemaError


@dataclass(frozen=True)
class Column:
    """A column of a collection.

    Its words are its value, and before that, if it may be null, 0 for a null and 1 for a value.
    """

    name: str
    type: WordType
    nullable: bool = False

    @property
    def n_words(self) -> int:
        """How many words of a row are its own."""
        return 2 if self.nullable else 1

    def __str__(self) -> str:
        return f"{self.name} {self.type.name}{'?' if self.nullable else ''}"


@dataclass(frozen=True)
class Schema:
    """The columns of a collection, in order.

    >>> schema = schema_of("shop long, item string?, price decimal(10, 2)")
    >>> str(schema), schema.n_words
    ('shop long, item string?, price decimal(10,2)', 4)
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise SchemaError(f"two columns are called {twice[0]!r}, in {self}; rename one of them")

    @cached_property
    def names(self) -> list[str]:
        """Of the columns."""
        return [column.name for column in self.columns]

    @cached_property
    def n_words(self) -> int:
        """How many words a record has."""
        return sum(column.n_words for column in self.columns)

    @cached_property
    def places(self) -> dict[str, int]:
        """By name: where the word of the value is."""
        places, at = {}, 0
        for column in self.columns:
            at += column.n_words
            places[column.name] = at - 1
        return places

    @cached_property
    def texts(self) -> tuple[int, ...]:
        """Which words are numbers of texts."""
        return tuple(self.places[column.name] for column in self.columns if column.type.is_text)

    @cached_property
    def encoder(self) -> RowEncoder:
        """What makes words of its rows."""
        return RowEncoder(self.columns, str(self))

    def column(self, name: str, operator: str = "a collection") -> Column:
        """The column of a name.

        Raises
        ------
        ColumnError
            If there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise ColumnError(f"{operator} is given the column {name!r}; there are: {self}")

    def words(self, name: str) -> list[int]:
        """The places of all words of a column."""
        place = self.places[name]
        return [place - 1, place] if self.column(name).nullable else [place]

    def texts_among(self, words: Sequence[int]) -> tuple[int, ...]:
        """Which of some words, by their places among these, are numbers of texts."""
        return tuple(place for place, word in enumerate(words) if word in self.texts)

    def updates(self, rows: Rows) -> Updates:
        """A batch of rows of this schema."""
        return Updates(rows, self.texts)

    def to_updates(self, data: Any, diff: int, where: str) -> Updates:
        """Records as updates of one diff.

        Parameters
        ----------
        data : iterable of rows, or columns
            Rows are tuples in the order of the columns, or dicts by name. Columns are a
            `pyarrow.RecordBatch` or `Table`, or a data frame of pandas or polars.
        where : str
            The input, for the message of an error.

        Raises
        ------
        DataError
            If a row does not fit the schema; the message has its place.
        SchemaError
            If columns do not.
        """
        # Most often it is a list, of which less is asked.
        if type(data) is not list:
            batches = _batches(data)
            if batches is not None:
                parts = [self._from_arrow(batch, where) for batch in batches]
                words = np.concatenate(parts) if parts else np.empty((0, self.n_words), np.int64)
                return self.updates(_with_diffs(words, diff))
            check_iterable(data, where, "rows, or columns such as a pyarrow.Table")
        return self.updates(self.encoder.updates(data, diff, where))

    def to_pairs(self, pairs: Iterable[tuple[Any, int]], where: str) -> Updates:
        """Pairs of a row and its diff as updates; raises as `to_updates`."""
        check_iterable(pairs, where, "pairs of a row and its diff")
        given = list(pairs)
        try:
            return self.updates(self.encoder.pairs(given, where))
        except (TypeError, ValueError):
            check_pairs(given, where)
            raise

    def to_rows(self, rows: Rows) -> list[tuple[Any, ...]]:
        """The records of updates as tuples of Python's values."""
        return self.encoder.rows(rows)

    def cells(self, row: Any) -> tuple[Any, ...]:
        """The values of a row, one for each column."""
        found: tuple[Any, ...] = row
        return found

    def in_order(self, pairs: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """Pairs of a row and its diff, sorted by row, nulls first."""
        return sorted(pairs, key=lambda pair: [nulls_first(value) for value in pair[0]])

    def to_arrow(self, rows: Rows) -> Any:
        """The records of updates as a `pyarrow.RecordBatch`."""
        arrays = []
        for column in self.columns:
            place = self.places[column.name]
            is_null = rows[:, place - 1] == 0 if column.nullable else None
            arrays.append(column.type.column_of(np.ascontiguousarray(rows[:, place]), is_null))
        return record_batch([(c.name, c.type, c.nullable) for c in self.columns], arrays)

    def __str__(self) -> str:
        return ", ".join(map(str, self.columns))

    def _from_arrow(self, batch: Any, where: str) -> Rows:
        """The words of a record batch, int64[n, n_words]."""
        if sorted(batch.schema.names) != sorted(self.names):
            raise SchemaError(
                f"columns for {where} are {batch.schema.names}, and should be those of: {self}"
            )
        rows = np.empty((batch.num_rows, self.n_words), np.int64)
        for column in self.columns:
            place = self.places[column.name]
            values, kind = _values_and_type(batch.column(column.name), column, where)
            if kind != column.type:
                raise SchemaError(
                    f"column {column.name!r} for {where} is of Arrow's type {values.type}, and "
                    f"should be {column.type.name} ({column.type.arrow()}); cast it"
                )
            try:
                rows[:, place] = column.type.words_of(values)
            except DataError as error:
                raise DataError(f"column {column.name!r} for {where}: {error}") from None
            if column.nullable:
                rows[:, place - 1] = 1
            if values.null_count:
                if not column.nullable:
                    raise DataError(
                        f"column {column.name!r} for {where} has {values.null_count} nulls, and is "
                        f"not nullable; its type would be {column.type.name}?"
                    )
                is_null = np.array(values.is_null().to_pylist())
                rows[is_null, place - 1 : place + 1] = 0
        return rows


def _values_and_type(values: Any, column: Column, where: str) -> tuple[Any, WordType]:
    """An Arrow array and its type, which is that of the values of a dictionary or of views.

    What has no value at all, such as a column of pandas with nothing but None, or lists that are
    empty, has no type in Arrow, and so that of the column.

    Raises
    ------
    SchemaError
        If a collection has no such columns.
    """
    try:
        return values, column_type_of_arrow(values.type)
    except SchemaError:
        values = plain_values(values)
    try:
        return values, column_type_of_arrow(values.type)
    except SchemaError as error:
        if (typed := typed_nulls(values, column.type.arrow())) is not None:
            return typed, column.type
        raise SchemaError(f"column {column.name!r} for {where}: {error}") from None


def nulls_first(value: Any) -> tuple[bool, bool, Any]:
    """What a value of a row is sorted by: nulls first, and NaN last; also in lists and structs.

    >>> sorted([(2, None), (1, 5), None, (1, None), (1,)], key=nulls_first)
    [None, (1,), (1, None), (1, 5), (2, None)]
    """
    if value is None or value != value:
        return value is not None, value is not None, None
    return True, False, tuple(map(nulls_first, value)) if type(value) is tuple else value


def check_iterable(given: Any, where: str, needed: str) -> None:
    """Raise `DataError` unless what an input is given can be gone through, and is no one text.

    where : the input
    """
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise DataError(f"{where} is given {given!r}, and needs an iterable of {needed}")


def check_pairs(given: Sequence[Any], where: str) -> None:
    """Raise `DataError` for the first of some values that is no pair."""
    for place, pair in enumerate(given):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise DataError(
                f"row {place} for {where} should be a pair of a row and its diff, and is {pair!r}"
            )


def schema_of(given: Any) -> Schema:
    """The schema that is given as a text, a `pyarrow.Schema` or a Spark `StructType`.

    A text has the names and types of the columns as in Spark's DDL, with `?` behind the type
    of one that may be null.

    Raises
    ------
    SchemaError
        If it is none of these, or has a type that a collection cannot have.

    >>> str(schema_of("a long, b string?"))
    'a long, b string?'
    """
    if isinstance(given, Schema):
        return given
    if hasattr(given, "types") and hasattr(given, "field"):  # of pyarrow, which is not imported
        return Schema(tuple(map(_of_arrow, given)))
    if (named := columns_named(given)) is not None:
        return Schema(tuple(Column(*each) for each in named))
    raise SchemaError(
        f"a schema is a text such as 'shop long, item string?', a pyarrow.Schema or a Spark "
        f"StructType, and {given!r} is none"
    )


def _of_arrow(field: Any) -> Column:
    try:
        return Column(field.name, column_type_of_arrow(field.type), field.nullable)
    except SchemaError as error:
        raise SchemaError(f"column {field.name!r} of a pyarrow.Schema: {error}") from None


def column_names(given: str | Sequence[str], name: str) -> list[str]:
    """The names of columns that are given: one, or several.

    Raises
    ------
    BuildError
        If it is something else.
    """
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(one, str) for one in names):
        raise BuildError(f"operator {name!r} is given {given!r}, and needs names of columns")
    return list(names)


def _batches(data: Any) -> list[Any] | None:
    """The record batches of what is columns; None of rows."""
    if hasattr(data, "num_rows") and hasattr(data, "schema") and not hasattr(data, "to_batches"):
        return [data]
    return list(record_batches(data)) if is_table(data) else None


def _with_diffs(words: Rows, diff: int) -> Rows:
    rows = np.empty((len(words), words.shape[1] + 1), np.int64)
    rows[:, :-1] = words
    rows[:, -1] = diff
    return rows
