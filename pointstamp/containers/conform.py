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
    try:
        return columns.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as cause:
        raise SchemaError(
            f"{what} do not fit the schema of {whose}: {cause}; expected:\n{schema}\n"
            f"found:\n{columns.schema}"
        ) from cause


def _columns(batch: Any, what: str, whose: str) -> pa.RecordBatch:
    try:
        columns: pa.RecordBatch = kind_of(batch).to_arrow(batch)
    except ContainerError as cause:
        raise ContainerError(
            f"{what} for {whose} should be columns (pyarrow.RecordBatch), and are "
            f"{type(batch).__name__}: make columns of them with map_batches"
        ) from cause
    return columns
