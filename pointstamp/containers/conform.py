"""A batch made to fit a schema that was promised: names, order and types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pointstamp.containers.registry import kind_of
from pointstamp.errors import ContainerError, SchemaError


def conform(
    batch: Any, schema: pa.Schema, what: str = "the results", whose: str = "the DataFrame"
) -> pa.RecordBatch:
    """`batch` with the columns and types of `schema`, without a copy where it has them.

    Columns go by name, so their order does not matter. Types are cast where no
    value changes by it: a dictionary to its values, int64 to int32 if all fit. Only
    floats are rounded, as Arrow does it: what is too large for a narrower one is infinite.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, or a container that can be made one
    schema : pyarrow.Schema
    what, whose : str
        How a message calls the batch, and what the schema belongs to.

    Raises
    ------
    ContainerError
        If `batch` has no columns.
    SchemaError
        If columns are missing or too many, or a value does not fit its type.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"b": [1], "a": ["x"]})
    >>> conform(batch, pa.schema([("a", pa.string()), ("b", pa.int32())])).to_pydict()
    {'a': ['x'], 'b': [1]}
    """
    columns = _columns(batch, what, whose)
    if columns.schema.equals(schema):
        return columns
    if sorted(columns.schema.names) != sorted(schema.names):
        raise SchemaError(
            f"{what} have columns {', '.join(columns.schema.names)}, and the schema of "
            f"{whose} has {', '.join(schema.names)}: give {what} these names, or run "
            f"with their schema"
        )
    in_order = columns.select(schema.names)
    try:
        try:
            return in_order.cast(schema)
        except pa.ArrowInvalid as refused:
            return _with_null_structs(in_order, schema, refused)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as cause:
        raise SchemaError(
            f"{what} do not fit the schema of {whose}: {cause}; expected:\n{schema}\n"
            f"found:\n{columns.schema}"
        ) from cause


def _columns(batch: Any, what: str, whose: str) -> pa.RecordBatch:
    kind = kind_of(batch)
    try:
        columns: pa.RecordBatch = kind.to_arrow(batch)
    except ContainerError as cause:
        raise ContainerError(
            f"{what} for {whose} should be columns (pyarrow.RecordBatch), and are "
            f"{kind.called()}: make columns of them with map_batches"
        ) from cause
    return columns


def _with_null_structs(
    columns: pa.RecordBatch, schema: pa.Schema, refused: pa.ArrowInvalid
) -> pa.RecordBatch:
    """The cast, with nulls below null structs; raises what Arrow did for any other null.

    To Arrow a null struct has a null in each field, and it refuses those in a field that
    is to have none, though nothing reads them.
    """
    found = []
    for field, column in zip(schema, columns.columns, strict=True):
        if column.null_count and not field.nullable:
            raise refused
        cast = column if column.type == field.type else column.cast(_nullable(field.type))
        found.append(_retyped(cast, field.type, refused))
    return pa.RecordBatch.from_arrays(found, schema=schema)


def _nullable(kind: Any) -> Any:
    """A type of which all fields may have nulls."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _nullable(one.type)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _nullable(kind.value_type)))
    return kind


def _retyped(values: Any, kind: Any, refused: pa.ArrowInvalid) -> Any:
    """Values of `_nullable(kind)` as of `kind`."""
    if values.type == kind:
        return values
    if pa.types.is_struct(kind):
        # Here a field has its own nulls and those of the struct; below, its own alone.
        for field, whole in zip(kind, values.flatten(), strict=True):
            if not field.nullable and whole.null_count > values.null_count:
                raise refused
        fields = [_retyped(values.field(i), one.type, refused) for i, one in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=values.is_null())
    if not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        raise refused
    offsets = pa.array(values.offsets.to_numpy())  # which begin anew where values are a slice
    mask = values.is_null()
    if pa.types.is_map(kind):
        keys = _retyped(values.keys, kind.key_type, refused)
        items = _retyped(values.items, kind.item_type, refused)
        made: Any = pa.MapArray  # the stubs know no type beside keys and items
        return made.from_arrays(offsets, keys, items, type=kind, mask=mask)
    below = _retyped(values.values, kind.value_type, refused)
    return pa.ListArray.from_arrays(offsets, below, type=kind, mask=mask)
