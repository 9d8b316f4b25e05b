"""What can be a vertex where graphs come from outside: integers from 0, or names.

What reads vertices checks them here, in the same words: files of text and
Parquet, and what Spark scans and hands over as record batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.errors import FileFormatError

RANGE = "vertices are integers from 0 to 2**63 - 1"
"""How errors say it."""

_GREATEST = (1 << 63) - 1


def as_vertices(column: Any, name: str, where: str, n_before: int) -> Any:
    """A column of vertices, as int64 or string; `n_before` rows came before it.

    Raises
    ------
    FileFormatError
        If it holds something else, with the row.

    >>> as_vertices(pa.array([1, 2], pa.uint8()), "src", "x.parquet", 0).type
    DataType(int64)
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_vertices(column.dictionary_decode(), name, where, n_before)
    if not _can_be_vertices(kind):
        raise FileFormatError(
            f"{where}: column {name!r} is of type {kind}; vertices are integers or text"
        )
    if column.null_count:
        row = n_before + pc.index(column.is_null(), True).as_py()
        raise FileFormatError(f"{where}: row {row}, column {name!r}: null where a vertex should be")
    if not pa.types.is_integer(kind):
        return column.cast(pa.string())
    _check_range(column, name, where, n_before)
    return column.cast(pa.int64())


def check_vertices(batch: Any, where: str) -> None:
    """Check that no integer of a batch is less than 0; nulls are refused by what reads on.

    Raises
    ------
    FileFormatError
        For the first column that has one, with the least. In which row it was is not
        known once Spark has distributed the rows.

    >>> check_vertices(pa.record_batch({"src": [3], "dst": [0]}), "the graph")
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        least = pc.min(column).as_py()
        if least is not None and least < 0:
            raise FileFormatError(f"{where}: column {name!r}: {least} is no vertex; {RANGE}")


def vertex_batches(vertices: npt.NDArray[np.int64], rows: int = 1 << 16) -> list[pa.RecordBatch]:
    """Record batches of at most `rows` of the vertices, int64[n], in a column `vertex`.

    >>> [batch.num_rows for batch in vertex_batches(np.arange(5), rows=3)]
    [3, 2]
    """
    table = pa.table({"vertex": vertices})
    return table.to_batches(max_chunksize=rows)


def _can_be_vertices(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def _check_range(column: Any, name: str, where: str, n_before: int) -> None:
    values = column.to_numpy()
    outside = (values < 0) | (values > _GREATEST)
    if outside.any():
        row = int(np.argmax(outside))
        raise FileFormatError(
            f"{where}: row {n_before + row}, column {name!r}: {values[row]} is no vertex; {RANGE}"
        )
