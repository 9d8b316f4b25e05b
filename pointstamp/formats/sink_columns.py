"""What a sink is given, as columns: batches of any container with columns, or records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pointstamp.containers.conform import conform
from pointstamp.containers.registry import kind_of
from pointstamp.errors import ContainerError, DataError, SinkError
from pointstamp.formats.kept_values import changed_value


def columns_of(batch: Any, schema: pa.Schema | None, sink: str) -> pa.RecordBatch:
    """A batch with the columns and types of a schema, if there is one.

    Parameters
    ----------
    batch : container
        With columns; or of dictionaries, or tuples in the order of the schema's columns.
    sink : str
        How a message calls the sink.

    Raises
    ------
    SinkError
        If it does not fit, or has no columns where there is no schema.

    >>> schema = pa.schema([("a", pa.int32()), ("b", pa.string())])
    >>> columns_of([(1, "x"), {"b": "y", "a": 2}], schema, "mine").to_pylist()
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}]
    """
    if not kind_of(batch).has_columns:
        if schema is None:
            raise SinkError(
                f"{sink}: is given records such as {batch[0]!r}, which say nothing of "
                "columns: give schema=, or make them record batches before"
            )
        values = values_of(batch, schema.names, sink)
        columns = [column_of(values[f.name], f.name, sink, f.type) for f in schema]
        for field, column in zip(schema, columns, strict=True):
            if column.null_count and not field.nullable:
                raise SinkError(f"{sink}: column {field.name!r} has a null, and is to have none")
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    try:
        if schema is None:
            found: pa.RecordBatch = kind_of(batch).to_arrow(batch)
            return found
        return conform(batch, schema, "the batches", sink)
    except (DataError, ContainerError, TypeError) as error:
        raise SinkError(f"{sink}: {error}") from error


def column_of(values: list[Any], name: str, sink: str, kind: Any = None) -> Any:
    """The values as a column of a type, or of the one that they have; `SinkError` if none is."""
    what = f"column {name!r}" if kind is None else f"column {name!r} is of {kind}"
    try:
        column = pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SinkError(f"{sink}: {what}: {str(error).splitlines()[0]}") from error
    changed = changed_value(values, column.type, is_given=kind is not None)
    if changed is not None:
        raise SinkError(
            f"{sink}: {what}: {changed!r} would be another value as {column.type}: "
            "give values of one type, rounded if that is meant"
        )
    return column


def values_of(records: Any, names: Sequence[str], sink: str) -> dict[str, list[Any]]:
    """By column, the values of records: dictionaries, or tuples in the order of the columns."""
    rows: list[Sequence[Any]] = []
    for record in kind_of(records).records(records):
        if isinstance(record, dict) and record.keys() == set(names):
            rows.append([record[name] for name in names])
        elif isinstance(record, (tuple, list)) and len(record) == len(names):
            rows.append(record)
        else:
            raise SinkError(f"{sink}: a record has the columns {list(names)}; found {record!r}")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
