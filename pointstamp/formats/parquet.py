"""Record batches put together: as one table, or as one Parquet file, whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pointstamp.formats.atomic_file import replacing


def integer_schema(columns: Sequence[str]) -> pa.Schema:
    """The schema of int64 columns of these names."""
    return pa.schema([(name, pa.int64()) for name in columns])


def table_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    """A table of batches of int64 columns; without batches, an empty one.

    >>> table_of([pa.RecordBatch.from_pydict({"a": [1]})], ["a"]).num_rows
    1
    """
    return pa.Table.from_batches(list(batches), integer_schema(columns))


class PartFile:
    """A Parquet file of int64 columns, written a batch at a time."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._writer = pq.ParquetWriter(path, integer_schema(columns), compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()


def batches_of(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """The batches of several Parquet files, one after the other."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches()


def write_parquet(
    path: str | os.PathLike[str],
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[str],
    names: Sequence[str] | None = None,
) -> int:
    """Write batches of int64 columns as one Parquet file, whole or not at all.

    Parameters
    ----------
    names : sequence of str, optional
        What the integers stand for, by position: the file then has these names in
        place of the integers.

    Returns
    -------
    int
        The number of records.

    Raises
    ------
    FileFormatError
        If the file cannot be written. What was there before stays.
    """
    schema = integer_schema(columns)
    if names is not None:
        schema = pa.schema([(name, pa.string()) for name in columns])
        batches = _named(batches, schema, pa.array(names, pa.string()))
    n_records = 0
    with replacing(path) as temporary, _writer(temporary, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            n_records += batch.num_rows
    return n_records


@contextlib.contextmanager
def _writer(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        yield writer


def _named(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, names: Any
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [names.take(column) for column in batch.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
