"""Changes of a collection as rows of a change data feed, with the columns of Delta's.

A diff of n is n rows, inserted or deleted. A collection has no key, so a feed of it has no
updates: what is another row now is a deletion and an insertion.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.collections.changes import diff_column
from pointstamp.collections.schema import Schema
from pointstamp.collections.upserts import CHANGE_TYPE, TIMESTAMP, VERSION
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.errors import DataError, SchemaError
from pointstamp.service.changes_columns import no_rows

FEED_TIME = pa.timestamp("us", tz="UTC")
"""The type of `_commit_timestamp`."""


@cache
def _kinds() -> pa.Array[Any]:
    """Not made with the module: Arrow imports pandas for it, which takes half a second."""
    return pa.array(["insert", "delete"])


def feed_schema(schema: Schema, output: str) -> pa.Schema:
    """The columns of the feed of an output.

    Raises
    ------
    SchemaError
        If the output has a column that is called as one of a feed.
    """
    return with_columns_of_epochs(
        schema,
        CHANGE_TYPE,
        pa.string(),
        f"output {output!r}",
        "its change data feed has for itself",
    )


def with_columns_of_epochs(
    schema: Schema, name: str, kind: pa.DataType, where: str, whose: str
) -> pa.Schema:
    """The columns of a collection, one more, and the epoch and its time.

    where, whose : for the error

    Raises
    ------
    SchemaError
        If the collection has a column of one of these names.
    """
    columns: pa.Schema = schema.to_arrow(no_rows(schema)).schema
    for added, of_kind in ((name, kind), (VERSION, pa.int64()), (TIMESTAMP, FEED_TIME)):
        if added in schema.names:
            raise SchemaError(f"{where} has the column {added!r}, which {whose}: rename it")
        columns = columns.append(pa.field(added, of_kind, nullable=False))
    return columns


def epoch_columns(epoch: int, time: dt.datetime, n: int) -> list[pa.Array[Any]]:
    """The columns of an epoch and its time, of so many rows."""
    return [pa.repeat(pa.scalar(epoch, pa.int64()), n), pa.repeat(pa.scalar(time, FEED_TIME), n)]


def feed_rows(
    schema: Schema, changes: pa.RecordBatch, epoch: int, time: dt.datetime, output: str
) -> Iterator[pa.RecordBatch]:
    """The rows of the feed for changes of an epoch, which was committed at a time.

    changes : columns of changes, of any number of rows

    >>> from pointstamp.collections.schema import schema_of
    >>> changes = pa.RecordBatch.from_pydict({"a": [7, 8], "diff": [2, -1]})
    >>> when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    >>> [feed] = feed_rows(schema_of("a long"), changes, 3, when, "result")
    >>> feed["a"].to_pylist(), feed["_change_type"].to_pylist(), feed["_commit_version"].to_pylist()
    ([7, 7, 8], ['insert', 'insert', 'delete'], [3, 3, 3])
    """
    into = feed_schema(schema, output)
    diffs = numbers(changes.column(diff_column(schema)))
    for of in _repeated(np.abs(diffs)):
        rows = changes.select(schema.names).take(arrow_array(of))
        kinds = _kinds().take(arrow_array((diffs[of] < 0).astype(np.int8)))
        columns = [*rows.columns, kinds, *epoch_columns(epoch, time, len(of))]
        yield pa.RecordBatch.from_arrays(columns, schema=into)


def copies(schema: Schema, rows: pa.RecordBatch, output: str) -> Iterator[pa.RecordBatch]:
    """Each row as often as its diff says, without that.

    Raises
    ------
    DataError
        If a row is there fewer than no times.
    """
    counts = numbers(rows.column(diff_column(schema)))
    records = rows.select(schema.names)
    below = np.flatnonzero(counts < 0)
    if len(below):
        row = tuple(records.slice(int(below[0]), 1).to_pylist()[0].values())
        raise DataError(
            f"output {output!r} has the row {row!r} fewer than no times: more copies of what it "
            "comes of were deleted than there were"
        )
    return (records.take(arrow_array(of)) for of in _repeated(counts))


def _repeated(counts: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """The places of counts, each as often as it says, so many at a time as a batch should have."""
    ends = np.cumsum(counts)
    n_rows = int(ends[-1]) if len(ends) else 0
    for start in range(0, n_rows, PREFERRED_RECORDS):
        places = np.arange(start, min(start + PREFERRED_RECORDS, n_rows))
        yield np.searchsorted(ends, places, side="right")
