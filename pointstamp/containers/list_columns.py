"""Columns of lists, taken apart: a record for each item."""

from __future__ import annotations

from typing import Any

from pointstamp.containers.gather import column_of, is_columns
from pointstamp.containers.registry import kind_of
from pointstamp.errors import ContainerError, SchemaError


def flattened(batch: Any, column: str, operator: str) -> Any:
    """A record batch with an item in place of each list of a column.

    Raises
    ------
    ColumnError
        If there is no such column.
    ContainerError, SchemaError
        If it is no record batch, or the column has no lists.
    """
    lists = column_of(batch, column, operator)
    if not is_columns(batch):
        raise ContainerError(
            f"{operator} takes lists of record batches apart, and was given batches of "
            f"{kind_of(batch).name}: send Arrow record batches"
        )
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = lists.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (is_list or pa.types.is_fixed_size_list(kind)):
        raise SchemaError(f"{operator} needs lists in the column {column!r}, not {kind}")
    if lists.null_count:
        batch = batch.filter(lists.is_valid())
        lists = batch.column(batch.schema.names.index(column))
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    columns = [items if name == column else batch.column(i).take(parents)
               for i, name in enumerate(batch.schema.names)]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
