"""Forms of feeds of upserts: what the rows of a DataFrame say that the record of a key is.

As `feed_forms`, for inputs that are declared as `UpsertInput`: what goes to the workers are the
columns of the collection, whether the key goes, and a place among those of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.collections.schema import Schema
from pointstamp.errors import DataError, SchemaError, UsageError
from pointstamp.spark.feed_forms import (
    INTEGERS,
    FeedForm,
    check_columns,
    check_type,
    first_row,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMS = ("upserts", "debezium")
ORDERED = (*INTEGERS, "timestamp", "timestamp_ntz")
OPS = ("c", "r", "u", "d")


@dataclass(frozen=True)
class Upserts:
    """Each row is there instead of that of its key, or goes where a column says so."""

    keys: Sequence[str]
    required: Sequence[str]
    """Columns that are not null, unless the key goes and they are none of it."""
    deleted: str | None = None
    sequence: str | None = None

    def check(self, given: StructType, schema: Schema, where: str) -> None:
        """The columns of the collection, and those that are named."""
        if self.deleted in schema.names:
            raise UsageError(
                f"{where}: deleted={self.deleted!r} is a column of the collection, {schema}; "
                "rename the one that says which keys go"
            )
        besides: dict[str, Sequence[str]] = {}
        if self.deleted is not None:
            besides[self.deleted] = ("boolean",)
        if self.sequence is not None and self.sequence not in schema.names:
            besides[self.sequence] = ORDERED
        check_columns(given, schema, where, besides)
        if self.sequence is not None:
            check_type(given, self.sequence, ORDERED, where)

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """All rows."""
        deleted = pa.repeat(pa.scalar(False), batch.num_rows)
        if self.deleted is not None:
            deleted = without_nulls(batch, self.deleted, "true or false")
        return self.events(batch, batch, deleted, wire)

    def events(
        self, batch: pa.RecordBatch, columns: pa.RecordBatch, deleted: Any, wire: pa.Schema
    ) -> pa.RecordBatch:
        """Columns of the collection, with what says where the key goes, and in which order."""
        import pyarrow.compute as pc

        for name in self.required:
            is_null = columns.column(name).is_null()
            if name not in self.keys:
                is_null = pc.and_(is_null, pc.invert(deleted))
            if pc.any(is_null).as_py():
                raise DataError(
                    f"column {name!r} is null, and is not nullable; the row is "
                    f"{first_row(batch, is_null)}"
                )
        places: Any = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
        if self.sequence is not None:
            places = without_nulls(batch, self.sequence, "a place in an order").cast(pa.int64())
        arrays = [columns.column(name) for name in wire.names[:-2]]
        return pa.RecordBatch.from_arrays([*arrays, deleted, places], names=wire.names)


@dataclass(frozen=True)
class Debezium:
    """Each row is a message with `op`, and the record `before` and `after` it."""

    upserts: Upserts

    def check(self, given: StructType, schema: Schema, where: str) -> None:
        """`op`, `before`, `after`, and any others."""
        for name in ("op", "before", "after"):
            if name not in given.names:
                raise SchemaError(
                    f"{where} is given a DataFrame that lacks {name!r}: its columns are "
                    f"{', '.join(given.names)}, and should have op, before and after"
                )
        check_type(given, "op", ("string",), where)
        for name in ("before", "after"):
            record: Any = given[name].dataType
            if record.typeName() != "struct":
                raise SchemaError(
                    f"{where} is given column {name!r} of Spark's type {record.simpleString()}, "
                    "and it should be a struct of the columns of the collection"
                )
            check_columns(record, schema, f"{where}, column {name!r},", {})
        sequence = self.upserts.sequence
        if sequence is not None:
            if sequence not in given.names:
                raise SchemaError(
                    f"{where}: sequence={sequence!r} is no column of the DataFrame, which has "
                    f"{', '.join(given.names)}"
                )
            check_type(given, sequence, ORDERED, where)

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """All rows but those that are null, which follow deletions."""
        import pyarrow.compute as pc

        absent = {name: batch.column(name).is_null() for name in ("op", "before", "after")}
        is_tombstone = pc.and_(pc.and_(absent["op"], absent["before"]), absent["after"])
        if pc.any(is_tombstone).as_py():
            return self.changes(batch.filter(pc.invert(is_tombstone)), wire)
        op = batch.column("op")
        is_known = pc.is_in(op, value_set=pa.array(OPS, op.type))
        deleted = pc.equal(op, pa.scalar("d", op.type))
        for is_wrong, said in (
            (pc.invert(is_known), f"'op' should be one of {', '.join(OPS)}"),
            (pc.and_(is_known, pc.and_not(absent["after"], deleted)), "'after' is null"),
            (pc.and_(is_known, pc.and_(absent["before"], deleted)), "'before' is null"),
        ):
            if pc.any(is_wrong).as_py():
                raise DataError(f"{said}; the row is {first_row(batch, is_wrong)}")
        columns = [
            pc.if_else(deleted, *(pc.struct_field(batch.column(of), name) for of in _RECORDS))
            for name in wire.names[:-2]
        ]
        records = pa.RecordBatch.from_arrays(columns, names=wire.names[:-2])
        return self.upserts.events(batch, records, deleted, wire)


_RECORDS = ("before", "after")


def without_nulls(batch: pa.RecordBatch, name: str, wanted: str) -> Any:
    """A column; `DataError` if it has nulls."""
    column = batch.column(name)
    if column.null_count:
        raise DataError(
            f"column {name!r} is null, and should be {wanted}; the row is "
            f"{first_row(batch, column.is_null())}"
        )
    return column


def upsert_form_of(
    form: Any,
    where: str,
    keys: Sequence[str],
    required: Sequence[str],
    *,
    deleted: str | None,
    sequence: str | None,
) -> FeedForm:
    """The form of a name, with its options; `UsageError` if there is none, or they do not fit."""
    if form not in FORMS:
        raise UsageError(
            f"{where} is an input of upserts, and form={form!r} is none of those; there are "
            f"{', '.join(map(repr, FORMS))}"
        )
    if form == "debezium" and deleted is not None:
        raise UsageError(
            f"{where}: in form='debezium' 'op' says what is deleted; leave out deleted="
        )
    found = Upserts(keys, required, deleted, sequence)
    return Debezium(found) if form == "debezium" else found
