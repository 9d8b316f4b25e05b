"""A source of the files of a folder, on any file system; also one that more files come to.

Each file is a partition, so that files are read by as many workers as there are, and a file
by one. See `dataflow/connectors.py` for what a source is; nothing here knows a dataflow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pyarrow import fs

from pointstamp.errors import FileFormatError, PositionError, SourceError, UsageError
from pointstamp.formats.connector_arguments import (
    check_count,
    check_delimiter,
    check_encoding,
    check_seconds,
    place_of,
    schema_of,
)
from pointstamp.formats.file_sink import FileSink
from pointstamp.formats.folder_files import files_below, local_path, one_path
from pointstamp.formats.record_files import (
    UTF8,
    Positioned,
    RecordFile,
    filesystem_of,
    format_of,
)


class FileSource:
    r"""Reads a file, or all files in a folder and its subfolders; a `Source`.

    Files and folders whose names begin with `.` or `_` are left out. Symbolic links are followed,
    except one to a folder that the link itself is in. Files must not change once
    they are there: to be watched for, they are written under another name, such as one with a
    `.` before it, and renamed.

    Parameters
    ----------
    place : str or path
        Of this machine, or a URI such as `s3://bucket/folder`.
    format : str, optional
        "parquet", "arrow" (a file or a stream), "csv" (with a line of names), "tsv" or "json"
        (an object in each line). The default is what the end of each name says. Text may be
        compressed: `.gz`, `.zst`, `.bz2`.
    schema : pyarrow.Schema, text or StructType, optional
        Which columns to read, and of what types; a text is as of a `View`, such as
        "shop string, cents long?", with `?` behind the type of a column that may be null. Without
        it they are those that are there; of text, as the first block of each file has them.
    watch_s : float, optional
        Look for new files every so many seconds, and never end. A `FileSink` of the same program
        cannot write to such a folder or below it, but into one that is left out.
    filesystem : pyarrow.fs.FileSystem or fsspec file system, optional
        Then `place` is a path there.
    batch_rows, block_bytes : int
        How many rows of Parquet, or bytes of text, make a batch at most.
    encoding : str
        Of text, in Python's words: such as "latin-1" or "cp1252", in which ASCII is as it is.
    delimiter : str, optional
        Between the values of a line of CSV, such as ";"; the default is a comma, of TSV a tab.

    Raises
    ------
    SourceError
        While it runs, if there is no such place, or if a file cannot be read.
    PositionError
        If a file is shorter than it was when a part of it was read; if a file of text, which is
        not compressed, has another size than when it was read to its end.

    Notes
    -----
    Guarantees: each record of each file once, in the order of the file, from any position on.
    Files are read one after the other by each worker, in the order of their names. A position is
    a number of rows (Parquet), of batches (Arrow) or of bytes (text); to go on at one costs
    nothing but in compressed text, which is decompressed again. The names of files that are read
    are kept as long as the files are there.

    In columns of text of CSV, null is an empty field without quotes, as in Spark, DuckDB and
    Polars, and `""` is the empty text; in others also `""`, `NA` and `NULL`. Empty lines are
    skipped.

    A time with an offset, such as `2026-01-01T00:00:00+02:00`, is the same moment in UTC: of CSV
    with that zone. Of JSON, Arrow finds times without a zone; `schema=` can have
    `pa.timestamp("us", "UTC")` for them. For a column of `schema=` without a zone, a time with an
    offset is that of UTC in JSON, and refused in CSV; for one with a zone, a time without an
    offset is one of UTC in JSON, and refused in CSV. By `schema=` days and times of day are read of
    texts or numbers, also within lists and structs, and a map of a list such as
    `[{"key": "a", "value": 1}]`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pointstamp as ps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("shop,cents\nnorth,30\nsouth,10\n")
    ...     sales = FileSource(folder)
    ...     ps.testing.check_source(sales)
    ...     ps.testing.collect(lambda scope: scope.source(sales))
    [(0, ('north', 30)), (0, ('south', 10))]
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        format: str | None = None,
        schema: Any = None,
        watch_s: float | None = None,
        filesystem: Any = None,
        batch_rows: int = 65_536,
        block_bytes: int = 1 << 20,
        encoding: str = UTF8,
        delimiter: str | None = None,
    ) -> None:
        check_count("batch_rows", batch_rows)
        check_count("block_bytes", block_bytes)
        check_seconds("watch_s", watch_s)
        schema = schema_of(schema)
        check_encoding(encoding)
        check_delimiter(delimiter)
        if format is not None:
            format_of("", format)
            if delimiter is not None and format not in ("csv", "tsv"):
                raise UsageError(f"delimiter= is of CSV and TSV, and the format is {format!r}")
        self._place = place_of("place", place)
        self._filesystem, self._path = filesystem_of(self._place, filesystem)
        self._format = format
        self._schema, self._encoding, self._delimiter = schema, encoding, delimiter
        self._batch_rows, self._block_bytes = batch_rows, block_bytes
        if schema is None:
            self.schema_advice = (
                "without schema= the columns and types of a FileSource are those of each file: "
                "give it schema="
            )
        self.discover_s = watch_s
        self.at_once = 1
        self.ends_for_good = True
        self._ends: dict[str, tuple[int, int | None]] = {}
        """By file: its bytes, and the position at its end."""
        self._listed: dict[str, int] = {}
        """By file: its bytes when the files were listed last."""

    def partitions(self) -> Sequence[str]:
        """The files by their paths below the folder; of a single file, its name."""
        self._listed = self.sizes()
        return sorted(self._listed)

    def sizes(self) -> dict[str, int]:
        """How many bytes each of them has."""
        info = self._info()
        if info.type == fs.FileType.File:
            return {info.base_name: info.size or 0}
        root = len(info.path.rstrip("/")) + 1
        try:
            found = files_below(self._filesystem, self._path)
            return {each.path[root:]: each.size or 0 for each in found}
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be listed: {error}") from error
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{self._place}: has a file whose name is not UTF-8, {error.object!r}: rename it"
            ) from error

    def n_before(self, partition: str, position: int) -> int:
        """About how many bytes of a file come before a position.

        Of compressed text and of streams of Arrow, whose end is not known before it is read, it
        is none.
        """
        found = self._ends.get(partition)
        if found is None:
            found = self._ends[partition] = self._file(partition).size_and_end()
        n_bytes, end = found
        return n_bytes * position // end if end else 0

    def check_end(self, partition: str, position: int | None) -> None:
        """Raise if a file of text has another size than when it was read to its end.

        Of other files, and of text that is compressed, it takes reading to know.
        """
        n_bytes = self._listed.get(partition)
        end = self._file(partition).end_of(n_bytes) if n_bytes is not None else None
        if position is not None and end is not None and position != end:
            raise PositionError(
                f"{self._place}: {partition} was read to its end, which was at byte {position}, "
                f"and has {end} bytes now: files must not change once they are there. Give more "
                "records in a new file; one that is written while the folder is watched has a "
                "name that begins with '.' until it is complete"
            )

    def open(self, partition: str, position: int | None) -> Positioned:
        """The batches of a file after a position; see `Source`."""
        return self._file(partition).read(position)

    def would_read(self, sink: Any) -> bool:
        """Whether it looks for new files where a sink writes them; see `Source`."""
        if self.discover_s is None or not isinstance(sink, FileSink):
            return False
        both = (self._filesystem, sink.filesystem)
        if both[0] != both[1] and any(local_path(each, "/") is None for each in both):
            return False
        written = f"{sink.one_path()}/"
        below = written.removeprefix(f"{one_path(self._filesystem, self._path).rstrip('/')}/")
        if below == written:
            return False
        return not any(part.startswith((".", "_")) for part in below.split("/"))

    def _file(self, partition: str) -> RecordFile:
        is_file = self._info().type == fs.FileType.File
        path = self._path if is_file else f"{self._path.rstrip('/')}/{partition}"
        if is_file and partition != os.path.basename(self._path):  # noqa: PTH119  (of any file system)
            raise FileFormatError(f"{self._place}: is a file, and has no {partition!r} in it")
        return RecordFile(
            self._filesystem,
            path,
            format_of(path, self._format),
            self._schema,
            self._batch_rows,
            self._block_bytes,
            self._encoding,
            self._delimiter,
        )

    def _info(self) -> fs.FileInfo:
        try:
            info: fs.FileInfo = self._filesystem.get_file_info(self._path)
        except OSError as error:
            raise SourceError(f"{self._place}: cannot be looked at: {error}") from error
        if info.type == fs.FileType.NotFound:
            hint = "; a pattern is not read, a folder is" if "*" in str(self._place) else ""
            raise SourceError(f"{self._place}: there is no such file or folder{hint}")
        return info

    def __repr__(self) -> str:
        return f"FileSource({self._place!r})"
