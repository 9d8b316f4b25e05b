"""Forms of feeds: what the rows of a DataFrame say of a collection's changes.

A form is checked against the columns of a DataFrame before a job runs, and makes, in the tasks of
the job, batches of changes: the columns of the collection, and a diff.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pointstamp.collections.clock_input import ClockInput
from pointstamp.collections.inputs import AppendInput
from pointstamp.collections.schema import Schema, schema_of
from pointstamp.collections.upserts import CHANGE_TYPE, DIFFS_OF_CHANGES, UpsertInput
from pointstamp.errors import DataError, SchemaError, UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

INTEGERS = ("bigint", "int", "smallint", "tinyint")
FORMS = ("append", "cdf", "diff")
OF_COMMITS = "_commit_"
"""What the names of columns begin with that a change data feed has besides."""


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
        check_columns(given, schema, where, {})

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """All rows, with a diff of 1."""
        return with_diffs(batch, pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows), wire)


@dataclass(frozen=True)
class ChangeFeed:
    """Each row comes or goes, by `_change_type`, as in the change data feed of Delta."""

    def check(self, given: StructType, schema: Schema, where: str) -> None:
        """Other columns may be there if their names begin with `_commit_`."""
        check_columns(given, schema, where, {CHANGE_TYPE: ("string",)}, OF_COMMITS)

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """All rows, with a diff of 1 or -1."""
        import pyarrow.compute as pc

        given = batch.column(CHANGE_TYPE)
        kinds = list(DIFFS_OF_CHANGES)
        found = pc.index_in(given, value_set=pa.array(kinds, given.type))
        if found.null_count:
            row = first_row(batch, found.is_null())
            raise DataError(
                f"{CHANGE_TYPE!r} is {row[CHANGE_TYPE]!r}, and should be one of "
                f"{', '.join(kinds)}; the row is {row}"
            )
        diffs = pa.array(DIFFS_OF_CHANGES.values(), pa.int64()).take(found)
        return with_diffs(batch, diffs, wire)


@dataclass(frozen=True)
class Signed:
    """Each row comes as often as a column says, or goes where that is below 0."""

    diff: str

    def check(self, given: StructType, schema: Schema, where: str) -> None:
        """The column of diffs is of integers, and none of the collection."""
        if self.diff in schema.names:
            raise UsageError(
                f"{where}: diff={self.diff!r} is a column of the collection, {schema}; rename the "
                "column that has the diffs"
            )
        check_columns(given, schema, where, {self.diff: INTEGERS})

    def changes(self, batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
        """The rows whose diff is not 0."""
        import pyarrow.compute as pc

        diffs = batch.column(self.diff)
        if diffs.null_count:
            raise DataError(
                f"the diff, column {self.diff!r}, is null, and should be an integer; the row is "
                f"{first_row(batch, diffs.is_null())}"
            )
        made = with_diffs(batch, diffs.cast(pa.int64()), wire)
        return made.filter(pc.field(wire.names[-1]) != 0)


def form_of(form: Any, where: str, *, diff: str | None) -> FeedForm:
    """The form of a name, with its options; `UsageError` if there is none, or they do not fit."""
    if form in ("upserts", "debezium"):
        raise UsageError(
            f"{where}: form={form!r} is for an input of a service that is declared with its key, "
            f"as collections={{...: ps.UpsertInput(schema, key=...)}}"
        )
    if form not in FORMS:
        raise UsageError(f"{where}: form={form!r} is none; there are {', '.join(map(repr, FORMS))}")
    if (diff is not None) != (form == "diff"):
        raise UsageError(
            f'{where}: form="diff" needs diff=, the column that has the diffs, and no other form '
            f"has it; given are form={form!r} and diff={diff!r}"
        )
    if form == "diff":
        assert diff is not None
        return Signed(diff)
    return Append() if form == "append" else ChangeFeed()


def change_column(form: FeedForm) -> str | None:
    """The column that says what becomes of a row; None where each is added."""
    if isinstance(form, Signed):
        return form.diff
    return CHANGE_TYPE if isinstance(form, ChangeFeed) else None


def table_columns(form: FeedForm, given: StructType) -> StructType:
    """The columns of a collection, of those in which its changes are."""
    own = [field for field in given if field.name != change_column(form)]
    if isinstance(form, ChangeFeed):
        own = [field for field in own if not field.name.startswith(OF_COMMITS)]
    return type(given)(own)


def given_schemas(collections: Mapping[str, Any], inputs: Iterable[str]) -> dict[str, Schema]:
    """What `collections=` says; `UsageError` if it says nothing of an input."""
    for name, one in collections.items():
        if isinstance(one, AppendInput | ClockInput | UpsertInput):
            raise UsageError(
                f"collections= declares the input {name!r} as {one!r}, which views and services "
                "have: give its schema, and rows that come and go by a change data feed or with "
                "diffs"
            )
    given = {name: schema_of(schema) for name, schema in collections.items()}
    lacking = [name for name in inputs if name not in given]
    if lacking:
        raise UsageError(
            f"collections= has no schema of the input {lacking[0]!r}; it has "
            f"{', '.join(map(repr, given)) or 'none'}"
        )
    return given


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


def first_row(batch: pa.RecordBatch, of: Any) -> dict[str, Any]:
    """The first row for which that is true."""
    at = int(of.to_numpy(zero_copy_only=False).argmax())
    row: dict[str, Any] = batch.slice(at, 1).to_pylist()[0]
    return row


def check_columns(
    given: StructType,
    schema: Schema,
    where: str,
    besides: Mapping[str, Sequence[str]],
    ignored: str = "",
) -> None:
    """Raise `SchemaError` unless there are the columns of a collection, of the same types.

    besides : others that the form needs, with the types of Spark that they may have
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
    twice = [name for name in expected if given.names.count(name) > 1]
    if twice:
        raise SchemaError(
            f"{where} is given a DataFrame with two columns {twice[0]!r}: its columns are "
            f"{', '.join(given.names)}, and should be {', '.join(expected)}; select them"
        )
    for name, types in besides.items():
        check_type(given, name, types, where)
    for column in schema.columns:
        field = given[column.name]
        try:
            (is_of,) = schema_of(type(given)([field])).columns
        except SchemaError as cause:
            raise SchemaError(f"{where} is given a column {column.name!r}: {cause}") from cause
        if is_of.type != column.type:
            kind, wanted = field.dataType.simpleString(), column.type.name
            if kind == wanted == "timestamp":  # to Spark with a zone, and here without one
                kind, wanted = "timestamp (with a zone)", "timestamp (timestamp_ntz of Spark's)"
            raise SchemaError(
                f"{where} is given column {column.name!r} of Spark's type {kind}, and it should be "
                f"{wanted}: cast it, or say {is_of.type.name} in the schema of the input"
            )


def check_type(given: StructType, name: str, types: Sequence[str], where: str) -> None:
    """Raise `SchemaError` unless a column has one of some types of Spark."""
    kind = given[name].dataType.simpleString()
    if kind not in types:
        raise SchemaError(
            f"{where} is given column {name!r} of Spark's type {kind}, and it should be "
            f"{' or '.join(types)}: cast it"
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
