"""Parquet files that the workers of a run read themselves, without a pass through the JVM.

Spark reads a Parquet file a row at a time, writes Arrow for Python, and shuffles what is dealt to
the workers; Arrow reads the same columns some ten times as fast. On one machine, where the files of
a DataFrame are files of the workers too, what Spark would do is known from its plan: all columns
are plain ones of all files, and nothing is filtered, computed or added from folders' names. Then
each worker reads a share of the row groups, of about as many bytes as each other's. Of anything
else, and of types that Spark and Arrow may read otherwise (times, dates, decimals, what is nested),
Spark reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from pointstamp.errors import SourceError
from pointstamp.spark.arrow_schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_ROWS = 1 << 16

BATCH_BYTES = 64 << 20
"""Of longer records a batch has fewer, as several batches are in memory."""

MOST_FILES = 1000
"""Of more, the driver would read for long what is at their ends."""

UNEVEN = 1.25
"""How many times its share of the bytes a worker may read before records are dealt."""

_PLAN = re.compile(
    r"== Physical Plan ==\n"
    r"(?:(?:\*\(1\) )?Project \[(?P<kept>[^\n]*)\]\n *\+- )?"
    r"(?:(?:\*\(1\) )?ColumnarToRow\n *\+- )?"
    r"FileScan parquet \[[^\n]*\] Batched: (?:true|false), DataFilters: \[\], Format: Parquet, "
    r"Location: InMemoryFileIndex\(1 paths\)\[file:[^\n]*, PartitionFilters: \[\], "
    r"PushedFilters: \[\], ReadSchema: [^\n]*\s*"
)

_COLUMN = re.compile(r"\w+#\d+L?")

_PLAIN = {
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.bool_(), pa.string(), pa.binary()),
}

_WIDER = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
"""Types of columns that Spark reads as another one."""


@dataclass(frozen=True)
class RowGroup:
    """A part of a file.

    Attributes
    ----------
    file : str
    number : int
    n_bytes : int
    version : (int, int)
        How long the file was, in bytes, and when it changed, in ns, when it was listed.
    """

    file: str
    number: int
    n_bytes: int
    version: tuple[int, int]


@dataclass(frozen=True)
class ParquetScan:
    """What workers read of an input: these columns of these row groups, in this order."""

    schema: pa.Schema
    row_groups: Sequence[RowGroup]

    def batches(self, index: int, peers: int) -> Iterator[pa.RecordBatch]:
        """What worker `index` reads.

        Raises
        ------
        SourceError
            If a file has changed since it was listed, or cannot be read.
        """
        for file, groups in groupby(self._shares(peers)[index], attrgetter("file")):
            yield from self._read(file, list(groups))

    def is_uneven(self, peers: int) -> bool:
        """Whether a worker reads much more than others, as row groups are not cut."""
        shares = [sum(group.n_bytes for group in share) for share in self._shares(peers)]
        return max(shares) * peers > UNEVEN * sum(shares)

    def _shares(self, peers: int) -> list[list[RowGroup]]:
        """The row groups of each worker: in order, where the middle of each falls."""
        total = sum(group.n_bytes for group in self.row_groups)
        shares: list[list[RowGroup]] = [[] for _ in range(peers)]
        before = 0
        for group in self.row_groups:
            middle = 2 * before + group.n_bytes
            shares[min(middle * peers // (2 * total), peers - 1) if total else 0].append(group)
            before += group.n_bytes
        return shares

    def _read(self, path: str, groups: Sequence[RowGroup]) -> Iterator[pa.RecordBatch]:
        """Row groups of a file, which is opened once, as what is at its end is of all of them."""
        import pyarrow.parquet as pq

        names = self.schema.names
        try:
            if _version(path) != groups[0].version:
                raise SourceError(f"{path} has changed since the DataFrame was made: read it again")
            with pq.ParquetFile(path) as file:
                for group in groups:
                    n_rows = file.metadata.row_group(group.number).num_rows
                    fitting = BATCH_BYTES * n_rows // max(group.n_bytes, 1)
                    for batch in file.iter_batches(
                        min(BATCH_ROWS, max(fitting, 1)), [group.number], names, use_threads=False
                    ):
                        yield batch.select(names).cast(self.schema)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{path} cannot be read: {error}") from error


def parquet_scan(frame: DataFrame, plan: str) -> ParquetScan | None:
    """What workers can read themselves of a new DataFrame whose `plan` is as Spark explains it.

    One that was planned while Spark kept its records would name no files.
    """
    if not is_plain_scan(plan):
        return None
    schema = arrow_schema_of(frame.schema, "a table")
    names = schema.names
    if not names or len({*names}) < len(names) or not {*schema.types} <= _PLAIN:
        return None
    if any(field.dataType.simpleString() not in _NAMES for field in frame.schema):
        return None
    files = sorted(frame.inputFiles())
    paths = [path for path in map(_local_path, files) if path is not None]
    if len(paths) < len(files) or len(paths) > MOST_FILES or _are_in_columns(paths, names):
        return None
    paths = [path for path in paths if _has_data(path)]
    if not paths or not _are_all_read(paths):
        return None
    row_groups: list[RowGroup] = []
    for path in paths:
        found = _row_groups(path, schema)
        if found is None:
            return None
        row_groups += found
    return ParquetScan(_nullable(schema), tuple(row_groups))


_NAMES = {
    *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary")
}
"""Types of Spark; text that is compared otherwise has a longer name."""


def is_plain_scan(plan: str) -> bool:
    r"""Whether a plan does nothing but scan columns of the files of one folder, or one file.

    >>> scan = "FileScan parquet [a#0,b#1L] Batched: true, DataFilters: [], Format: Parquet, " \
    ...     "Location: InMemoryFileIndex(1 paths)[file:/x], PartitionFilters: [], " \
    ...     "PushedFilters: [], ReadSchema: struct<a:int,b:bigint>"
    >>> plan = "== Physical Plan ==\n*(1) ColumnarToRow\n+- " + scan + "\n\n"
    >>> is_plain_scan(plan), is_plain_scan(plan.replace("PushedFilters: []", "PushedFilters: [a]"))
    (True, False)
    """
    found = _PLAN.fullmatch(plan)
    if found is None:
        return False
    kept = found["kept"]
    return kept is None or all(map(_COLUMN.fullmatch, kept.split(", ")))


def _local_path(url: str) -> str | None:
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" and not parts.netloc else None


def _are_in_columns(paths: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a folder's name says what is in a column, which Spark then believes."""
    folders = {folder for path in paths for folder in Path(path).parts[:-1]}
    keys = {unquote(folder.partition("=")[0]).lower() for folder in folders if "=" in folder}
    return not keys.isdisjoint(name.lower() for name in names)


def _has_data(path: str) -> bool:
    """Whether Spark takes a file that it lists for one of data, and not of what is in others."""
    name = Path(path).name
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)


def _are_all_read(paths: Sequence[str]) -> bool:
    """Whether these files, of all that Spark lists, are the ones that it reads.

    Where folders are partitions it reads nothing that is beside them.
    """
    folders = {Path(path).parent for path in paths}
    try:
        if any(map(_has_partitions, folders)):
            return False
    except OSError:
        return False  # it is gone, which Spark says
    if len(folders) == 1:
        return True
    above = os.path.commonpath(folders)
    below = [folder.relative_to(above).parts for folder in folders]
    return all(parts and all("=" in part for part in parts) for parts in below)


def _has_partitions(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return any("=" in entry.name and entry.is_dir() for entry in entries)


def _version(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns


def _row_groups(path: str, schema: pa.Schema) -> list[RowGroup] | None:
    """Those of a file; None if it has not these columns, of these types."""
    import pyarrow.parquet as pq

    try:
        version = _version(path)
        with pq.ParquetFile(path) as file:
            of_file, about = file.schema_arrow, file.metadata
    except (OSError, pa.ArrowException):
        return None  # Spark says what is wrong with it
    lower = [name.lower() for name in of_file.names]
    for field in schema:
        if field.name not in of_file.names or lower.count(field.name.lower()) > 1:
            return None
        kind = of_file.field(field.name).type
        if _WIDER.get(kind, kind) != field.type:
            return None
    return [
        RowGroup(path, number, about.row_group(number).total_byte_size, version)
        for number in range(about.num_row_groups)
        if about.row_group(number).num_rows
    ]


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in schema])
