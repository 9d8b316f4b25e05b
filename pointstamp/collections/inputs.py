"""Inputs of collections: rows that are inserted and deleted, at the time of the input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pointstamp.collections.collection import Collection
from pointstamp.collections.records import RecordCollection, record_schema
from pointstamp.collections.row_encoder import RowEncoder
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.containers.updates import Updates
from pointstamp.dataflow.texts_held import TextsHeld
from pointstamp.errors import DataError
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle


@dataclass(frozen=True)
class AppendInput:
    """Declares an append-only input of a `View`: a deletion is an error.

    So less has to be kept: of `distinct` which records there are, of `min` and `max` the answers.

    schema : as a text, a `pyarrow.Schema` or a Spark `StructType`

    >>> import pointstamp as ps
    >>> build = lambda scope, bids: bids.group_by("item").agg(most=ps.max("cents"))
    >>> view = ps.View(build, bids=ps.AppendInput("item long, cents long"))
    >>> view.insert("bids", [(1, 30), (1, 40)])
    >>> view.advance()
    [((1, 40), 1)]
    >>> view.delete("bids", [(1, 40)])
    Traceback (most recent call last):
    pointstamp.errors.DataError: the input 'bids' is append-only, and ...
    """

    schema: Any


class CollectionInput:
    """The input of a collection: inserts and deletes rows at its current time, and advances it.

    Rows are tuples in the order of the columns, or dicts; or columns: a `pyarrow.RecordBatch` or
    `Table`, or a data frame of pandas or polars. Every worker has an input, and all must advance
    or close theirs.
    """

    __slots__ = ("_encoder", "_handle", "_texts", "_texts_among", "_where", "append_only", "schema")

    def __init__(
        self,
        handle: InputHandle,
        schema: Schema,
        append_only: bool = False,
        texts: TextsHeld | None = None,
    ) -> None:
        self._handle = handle
        # What makes rows of values may be a program's, and begin a sweep by a step.
        self._texts = TextsHeld() if texts is None else texts
        self.schema = schema
        self._encoder: RowEncoder | None = schema.encoder if type(schema) is Schema else None
        self._texts_among = schema.texts
        self.append_only = append_only
        self._where = f"the input {handle.name!r}"

    @property
    def name(self) -> str:
        """For messages to people."""
        return self._handle.name

    @property
    def time(self) -> Any:
        """The time at which rows are inserted and deleted now."""
        return self._handle.time

    def insert(self, rows: Any) -> None:
        """Add each row once.

        Raises
        ------
        DataError
            If one does not fit the schema. None is added then.
        """
        self._texts.n_given += 1
        try:
            self._send(self._updates(rows, 1))
        finally:
            self._texts.n_given -= 1

    def delete(self, rows: Any) -> None:
        """Remove each row once.

        Raises
        ------
        DataError
            If one does not fit the schema, or the input is append-only. None is removed then.
        """
        self._texts.n_given += 1
        try:
            self._send(self._updates(rows, -1))
        finally:
            self._texts.n_given -= 1

    def update(self, changes: Iterable[tuple[Any, int]]) -> None:
        """Add each row as often as the diff beside it says, or remove it where that is below 0.

        Raises
        ------
        DataError
            If one does not fit the schema, a diff is no integer, or one is below 0 and the
            input is append-only. None is changed then.
        """
        self._texts.n_given += 1
        try:
            self._send(self.schema.to_pairs(changes, self._where))
        finally:
            self._texts.n_given -= 1

    def advance_to(self, time: Any) -> None:
        """Promise to change nothing before `time` any more.

        Raises
        ------
        InputError
            If `time` is not at or after the current time.
        """
        self._handle.advance_to(time)

    def close(self) -> None:
        """Promise to change nothing more. Closing twice is closing once."""
        self._handle.close()

    def __enter__(self) -> CollectionInput:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CollectionInput({self.name!r}, {self.schema})"

    def _updates(self, rows: Any, diff: int) -> Updates:
        """`Schema.to_updates`, for a list without calls of Python."""
        if type(rows) is list and self._encoder is not None:
            return Updates(self._encoder.updates(rows, diff, self._where), self._texts_among)
        updates: Updates = self.schema.to_updates(rows, diff, self._where)
        return updates

    def _send(self, updates: Updates) -> None:
        if self.append_only:
            check_insertions(self.schema, updates, self._where)
        if len(updates):
            self._handle.send_batch(updates)


def check_insertions(schema: Schema, updates: Updates, where: str) -> None:
    """Raise `DataError` if something is deleted from an input that is append-only."""
    deletions = updates.rows[updates.rows[:, -1] < 0]
    if len(deletions):
        row, diff = schema.to_rows(deletions[:1])[0], int(deletions[0, -1])
        raise DataError(
            f"{where} is append-only, and is given the diff {diff} of the row {row!r}: "
            "insert alone, or make the input without append_only"
        )


def new_collection(
    scope: Scope, schema: Any, name: str, append_only: bool = False
) -> tuple[CollectionInput, Collection]:
    """See `Scope.new_collection`."""
    found = record_schema(scope, f"input {name!r}") if schema is None else schema_of(schema)
    handle, stream = scope.new_input(name)
    kind = Collection if schema is not None else RecordCollection
    collection = kind(stream, found, append_only=append_only)
    texts = scope.environment.texts_held
    return CollectionInput(handle, found, append_only, texts), collection
