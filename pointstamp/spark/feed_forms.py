"""Forms of feeds: what the rows of a DataFrame say of a collection's changes.

A form is checked against the columns of a DataFrame before a job runs, and makes, in the tasks of
the job, batches of changes: the columns of the collection, and a diff.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pointstamp.collections.schema import Schema, schema_of
from pointstamp.errors import DataError, SchemaError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class FeedForm(Protocol):
    """What the rows of a DataFrame say."""

    def check(self, given: StructType, schema: Schema, where: str) -> None:
        """Raise `SchemaError` unless a DataFrame with these columns can be read so."""

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """What a batch of it says, with the columns of `wire`, of which the last is the diff.

        Raises `DataError` for a row that says nothing that there is.
        """


@dataclass(frozen=True)
class Append:
    """Each row is inserted once."""

    def check(self, given: StructType, schema: Schema, where: str) -> None:
        """Raise `SchemaError` unless it has the columns of the collection, and no others."""
        check_columns(given, schema, where, ())

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """All rows, with a diff of 1."""
        return with_diffs(batch, pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows), wire)


def with_diffs(batch: pa.RecordBatch, diffs: pa.Array[Any], wire: pa.Schema) -> pa.RecordBatch:
    """The columns of the collection, and beside them diffs."""
    names = wire.names[:-1]
    columns = [batch.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count and not wire.field(name).nullable:
            raise DataError(
                f"column {name!r} has {column.null_count} nulls of {len(column)} values in one "
                "batch, and is not nullable; its type would have a ? behind it"
            )
    return pa.RecordBatch.from_arrays([*columns, diffs], names=wire.names)


def check_columns(
    given: StructType, schema: Schema, where: str, besides: Sequence[str], ignored: str = ""
) -> None:
    """Raise `SchemaError` unless there are the columns of a collection, of the same types.

    besides : others that the form needs
    ignored : what the names of columns begin with that may be there, too
    """
    expected = [*schema.names, *besides]
    found = [name for name in given.names if not ignored or not name.startswith(ignored)]
    found += [name for name in expected if name in given.names and name not in found]
    lacking = [name for name in expected if name not in found]
    others = [name for name in found if name not in expected]
    if lacking or others:
        said = [f"lacks {', '.join(map(repr, lacking))}"] if lacking else []
        said += [f"has {', '.join(map(repr, others))} besides"] if others else []
        raise SchemaError(
            f"{where} is given a DataFrame that {' and '.join(said)}: its columns are "
            f"{', '.join(given.names)}, and should be {', '.join(expected)}; select them"
        )
    for column in schema.columns:
        field = given[column.name]
        try:
            (is_of,) = schema_of(type(given)([field])).columns
        except SchemaError as cause:
            raise SchemaError(f"{where} is given a column {column.name!r}: {cause}") from cause
        if is_of.type != column.type:
            raise SchemaError(
                f"{where} is given column {column.name!r} of Spark's type "
                f"{field.dataType.simpleString()}, and it should be {column.type.name}: cast it"
            )


class ChangesOfRows:
    """The changes that batches of a form say, up to the first that says nothing that there is.

    It ends there as if there were no more, so that what takes them comes to its end, and can be
    dropped as a whole; `wrong` is why.
    """

    def __init__(self, form: FeedForm, wire: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.wrong: str | None = None
        self._form = form
        self._wire = wire
        self._batches = (batch for batch in batches if batch.num_rows)
        self._first = next(self._batches, None)

    @property
    def has_any(self) -> bool:
        """Whether there are rows."""
        return self._first is not None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        batch = self._first
        while batch is not None:
            try:
                made = self._form.changes(batch, self._wire)
            except DataError as error:
                self.wrong = str(error)
                return
            yield made
            batch = next(self._batches, None)
