"""Changes of a collection as columns: those of its schema, and one more, of diffs.

So they are staged, logged and read like any batch, and a client in any language makes and
reads them. Texts are texts there: their numbers differ between processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.collections.changes import diff_column
from pointstamp.collections.schema import Schema
from pointstamp.containers.convert import numbers
from pointstamp.containers.updates import Rows, Updates
from pointstamp.errors import DataError
from pointstamp.kernels.consolidation import consolidate_all


def columns_of_changes(schema: Schema) -> pa.Schema:
    """The columns of a collection, and `diff`, with underscores if there is one of that name.

    >>> from pointstamp.collections.schema import schema_of
    >>> columns_of_changes(schema_of("a long, diff string?")).names
    ['a', 'diff', 'diff_']
    """
    columns: pa.Schema = schema.to_arrow(no_rows(schema)).schema
    return columns.append(pa.field(diff_column(schema), pa.int64(), False))


def to_columns(schema: Schema, rows: Rows) -> pa.RecordBatch:
    """Rows int64[n, w + 1] as a batch of those columns."""
    columns = schema.to_arrow(rows)
    diffs = pa.array(np.ascontiguousarray(rows[:, -1]))
    return pa.RecordBatch.from_arrays([*columns.columns, diffs], schema=columns_of_changes(schema))


def to_rows(schema: Schema, batch: pa.RecordBatch, where: str) -> Rows:
    """A batch of those columns as rows int64[n, w + 1].

    Raises
    ------
    DataError
        If a diff is null, or a value that may not be is.
    """
    diffs = batch.column(diff_column(schema))
    if diffs.null_count:
        raise DataError(f"{diffs.null_count} diffs for {where} are null; each is an integer")
    updates = schema.to_updates(batch.select(schema.names), 1, where)
    updates.rows[:, -1] = numbers(diffs)
    return updates.rows


def to_updates(schema: Schema, batch: pa.RecordBatch, where: str) -> Updates:
    """The same as a batch of updates."""
    return schema.updates(to_rows(schema, batch, where))


def check_nulls(batch: pa.RecordBatch, where: str) -> None:
    """Raise `DataError` if a column has nulls that says it has none."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise DataError(
                f"column {field.name!r} for {where} has {column.null_count} nulls, and is not "
                "nullable"
            )


def added_up(schema: Schema, batches: Iterable[pa.RecordBatch], where: str) -> Rows:
    """Batches of those columns as consolidated rows."""
    parts: list[Any] = [to_rows(schema, batch, where) for batch in batches]
    return consolidate_all(parts) if parts else no_rows(schema)


def no_rows(schema: Schema) -> Rows:
    """None of them."""
    return np.empty((0, schema.n_words + 1), np.int64)
