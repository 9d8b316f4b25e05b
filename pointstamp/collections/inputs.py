"""Inputs of collections: rows that are inserted and deleted, at the time of the input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pointstamp.collections.collection import Collection
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.containers.updates import Updates
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle


class CollectionInput:
    """Drives a collection: inserts and deletes rows at its current time, and advances it.

    Rows are tuples in the order of the columns, or dicts; or columns: a `pyarrow.RecordBatch` or
    `Table`, or a data frame of pandas or polars. Every worker has an input, and all must advance
    or close theirs.
    """

    __slots__ = ("_handle", "_where", "schema")

    def __init__(self, handle: InputHandle, schema: Schema) -> None:
        self._handle = handle
        self.schema = schema
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
        self._send(self.schema.to_updates(rows, 1, self._where))

    def delete(self, rows: Any) -> None:
        """Remove each row once.

        Raises
        ------
        DataError
            If one does not fit the schema. None is removed then.
        """
        self._send(self.schema.to_updates(rows, -1, self._where))

    def update(self, changes: Iterable[tuple[Any, int]]) -> None:
        """Add each row as often as the diff beside it says, or remove it where that is below 0.

        Raises
        ------
        DataError
            If one does not fit the schema, or a diff is no integer. None is changed then.
        """
        self._send(self.schema.to_pairs(changes, self._where))

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

    def _send(self, updates: Updates) -> None:
        if len(updates):
            self._handle.send_batch(updates)


def new_collection(scope: Scope, schema: Any, name: str) -> tuple[CollectionInput, Collection]:
    """See `Scope.new_collection`."""
    found = schema_of(schema)
    handle, stream = scope.new_input(name)
    return CollectionInput(handle, found), Collection(stream, found)
