"""Columns of lists, taken apart: a record for each item."""

from __future__ import annotations

from typing import Any

from pointstamp.containers.registry import kind_of
from pointstamp.errors import SchemaError


def flattened(batch: Any, column: str, operator: str) -> Any:
    """The records, as an Arrow record batch, with an item in place of each list of a column.

    Raises
    ------
    ColumnError
        If there is no such column.
    ContainerError, SchemaError
        If it has no columns, or the column has no lists.
    """
    kind = kind_of(batch)
    kind.column(batch, column, operator)  # which says so if there is none
    batch = kind.to_arrow(batch)
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = batch.column(batch.schema.names.index(column))
    is_list = pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)
    if not (is_list or pa.types.is_fixed_size_list(lists.type)):
        raise SchemaError(f"{operator} needs lists in the column {column!r}, not {lists.type}")
    if lists.null_count:
        batch = batch.filter(lists.is_valid())
        lists = batch.column(batch.schema.names.index(column))
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    columns = [items if name == column else batch.column(i).take(parents)
               for i, name in enumerate(batch.schema.names)]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
