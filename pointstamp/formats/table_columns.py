"""What a table of a database is given, as columns that its driver takes.

A record may be without columns that the table fills. Records with other columns than those before
are another batch, which is inserted by another statement: their order stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

import pyarrow as pa

from pointstamp.containers.registry import kind_of
from pointstamp.errors import SinkError
from pointstamp.formats.sink_columns import column_of, columns_of, values_of


class TableColumns:
    """The columns of a table, and what of them batches and records have.

    Parameters
    ----------
    sink : str
        How a message calls the sink.
    schema : pyarrow.Schema
        Of the table, as the driver gives it.
    filled : mapping of str to bool
        Columns that records may be without, and whether those are null then.
    has_types : bool
        Whether values are cast to the types of the schema; SQLite takes values of any type.
    """

    def __init__(
        self, sink: str, schema: pa.Schema, filled: Mapping[str, bool], has_types: bool
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._filled = filled
        self._has_types = has_types
        self._names = frozenset(schema.names)
        self._nulls = frozenset(name for name, is_null in filled.items() if is_null)

    def of(self, batch: Any) -> list[pa.RecordBatch]:
        """A batch of any container with columns, or of records, as batches for the table.

        Raises
        ------
        SinkError
            If it does not fit, or has not what the table cannot fill.
        """
        found = [self._columns(part, schema) for part, schema in self._parts(batch)]
        if not self._has_types:
            # Here, as what is refused when the snapshot counts is so each time a program begins.
            for field in (field for columns in found for field in columns.schema):
                if _sqlite_refuses(field.type):
                    raise SinkError(
                        f"{self._sink}: column {field.name!r} is of type {field.type}, which the "
                        "driver of SQLite does not take: make it a number or a text before"
                    )
        return found

    def _parts(self, batch: Any) -> Iterator[tuple[Any, pa.Schema]]:
        """What has the same columns, and the part of the schema that it has."""
        kind = kind_of(batch)
        if kind.has_columns:
            columns = kind.names(batch)
            yield batch, self._part(columns, columns, "")
            return
        for names, alike in groupby(kind.records(batch), self._names_of):
            records = list(alike)
            given = list(records[0]) if isinstance(records[0], dict) else names
            part = self._part(names, given, f" in {records[0]!r}")
            yield [_completed(record, part.names) for record in records], part

    def _names_of(self, record: Any) -> frozenset[str]:
        """The columns of a record; without names it has them all.

        What is null where it is absent is there as well: so records that have it, and others, are
        one batch.
        """
        if not isinstance(record, dict) or record.keys() == self._names:
            return self._names
        return self._nulls.union(record) if record else frozenset()

    def _part(self, names: Collection[str], found: Collection[str], where: str) -> pa.Schema:
        """The columns of the table that are named; raises where it takes no such records."""
        of_table = self._schema.names
        absent = [name for name in of_table if name not in names and name not in self._filled]
        is_known = names and len(set(names)) == len(names) and self._names.issuperset(names)
        if absent or not is_known:
            needed = [name for name in of_table if name not in self._filled]
            raise SinkError(
                f"{self._sink}: the table has the columns {of_table}, of which {needed} are "
                f"needed; found {sorted(found, key=str)}{where}"
            )
        return pa.schema([field for field in self._schema if field.name in names])

    def _columns(self, batch: Any, schema: pa.Schema) -> pa.RecordBatch:
        numerics = [field.name for field in schema if _is_numeric(field.type)]
        if numerics:
            return self._with_decimals(batch, schema, numerics)
        if self._has_types:
            return columns_of(batch, schema, self._sink)
        names = schema.names
        if not kind_of(batch).has_columns:
            values = values_of(batch, names, self._sink)
            arrays = [column_of(values[name], name, self._sink) for name in names]
            return pa.RecordBatch.from_arrays(arrays, names)
        return columns_of(batch, None, self._sink).select(names)

    def _with_decimals(self, batch: Any, schema: pa.Schema, numerics: list[str]) -> pa.RecordBatch:
        """The columns of a table in which decimals are of the types that come.

        numerics : columns that have decimals of any size, for which Arrow has no type
        """
        if kind_of(batch).has_columns:
            batch = self._without_texts(columns_of(batch, None, self._sink), numerics)
            types = {field.name: field.type for field in batch.schema}
        else:
            values = values_of(batch, schema.names, self._sink)
            types = {name: self._type_of(name, values[name]) for name in numerics}
        for name in numerics:
            kind = types.get(name, pa.null())
            if not (pa.types.is_decimal(kind) or pa.types.is_integer(kind)):
                if not pa.types.is_null(kind):
                    raise SinkError(
                        f"{self._sink}: column {name!r} is NUMERIC, and takes decimals and "
                        f"integers; found {kind}"
                    )
                kind = pa.int64()
            schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
        return columns_of(batch, schema, self._sink)

    def _without_texts(self, batch: pa.RecordBatch, numerics: list[str]) -> pa.RecordBatch:
        """The batch with decimals where it has NUMERIC as the driver reads it, which is texts."""
        for name in numerics:
            place = batch.schema.get_field_index(name)
            if place >= 0 and _is_numeric(batch.schema.field(place).type):
                texts: Any = batch.column(place)
                values = [
                    None if text is None else Decimal(text) for text in texts.storage.to_pylist()
                ]
                numbers = pa.array(values, self._type_of(name, values))
                batch = batch.set_column(place, name, numbers)
        return batch

    def _type_of(self, name: str, values: list[Any]) -> pa.DataType:
        """That of records, of which some may be decimals and others integers."""
        try:
            # Arrow makes no decimals of integers beside them.
            found: pa.DataType = pa.array(
                [Decimal(v) if type(v) is int else v for v in values]
            ).type
            return found
        except (pa.ArrowException, TypeError) as error:
            raise SinkError(
                f"{self._sink}: column {name!r} is NUMERIC, and takes decimals and integers: "
                f"{str(error).splitlines()[0]}"
            ) from error


def _completed(record: Any, names: list[str]) -> Any:
    """A record with None where it has not a column."""
    if not isinstance(record, dict) or len(record) == len(names):
        return record
    return {name: record.get(name) for name in names}


def _is_numeric(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.OpaqueType) and kind.type_name == "numeric"


def _sqlite_refuses(kind: pa.DataType) -> bool:
    """Whether the driver of SQLite takes no column of a type.

    >>> _sqlite_refuses(pa.decimal128(5, 2)), _sqlite_refuses(pa.timestamp("us"))
    (True, False)
    """
    of = pa.types
    if of.is_dictionary(kind):
        return not (of.is_string(kind.value_type) or of.is_large_string(kind.value_type))
    return bool(
        of.is_decimal(kind)
        or of.is_time(kind)
        or of.is_duration(kind)
        or of.is_date64(kind)
        or of.is_nested(kind)
    )
