"""Files of records, read from a position in them: Parquet, Arrow, CSV and lines of JSON.

A position is how far a file was read: rows of Parquet, batches of Arrow, bytes of text (of what a
compressed file holds). So nothing of what comes before has to be parsed again. Text is read in
blocks that end with a line; columns and types are those of the first block, or of a schema.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq
from pyarrow import fs

from pointstamp.errors import (
    ColumnError,
    FileFormatError,
    PositionError,
    SchemaError,
    UsageError,
)
from pointstamp.formats.csv_lines import BOM, csv_lines
from pointstamp.formats.csv_nulls import csv_table
from pointstamp.formats.json_types import parsed_as, parsed_with_nan

FORMATS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
NAMES = ("parquet", "arrow", "csv", "tsv", "json")
UTF8 = "utf-8"
_MAGIC = b"ARROW1"
_BEGINNINGS = {"parquet": (b"PAR1", b"PARE"), "arrow": (_MAGIC, b"\xff\xff\xff\xff")}
"""Of files that are not text; a stream of Arrow has no magic, but a mark before each message."""
_NO_RECORDS = pa.RecordBatch.from_arrays([], schema=pa.schema([]))
_MAX_DEPTH = 1000
"""Of JSON. Arrow's parser calls itself for each level: ten times as many end the process."""
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NULL_LINE = re.compile(rb"\n(null)\s*?(?:\n|\Z)")

Positioned = Iterator[tuple[pa.RecordBatch, int]]
"""Batches, each with the position after it."""


@dataclass(frozen=True)
class RecordFile:
    """A file of records, and how to read it.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
    path : str
    format : str
        One of `NAMES`.
    schema : pyarrow.Schema, optional
        Which columns to read, and of what types; without it, those that are there.
    batch_rows : int
        How many rows of Parquet make a batch at most.
    block_bytes : int
        How many bytes of text are read at a time, at most; a longer line is read as a whole.
    encoding : str
        Of text: one that has the characters of ASCII as their bytes.
    separator : str, optional
        Of the values of a line of CSV or TSV; without it that of the format.
    """

    filesystem: fs.FileSystem
    path: str
    format: str
    schema: pa.Schema | None = None
    batch_rows: int = 65_536
    block_bytes: int = 1 << 20
    encoding: str = UTF8
    separator: str | None = None

    def read(self, position: int | None) -> Positioned:
        """What comes after `position`; None is the beginning.

        Raises
        ------
        PositionError
            If the file ends before it.
        FileFormatError
            If it is not what it should be, or cannot be read.
        SchemaError, ColumnError
            If it does not have the columns of the schema.
        """
        if position is not None and (type(position) is not int or position < 0):
            raise PositionError(
                f"{self.path}: a position is an integer of at least 0; found {position!r}"
            )
        read = {"parquet": self._parquet, "arrow": self._arrow, "json": self._json}.get(
            self.format, self._csv
        )
        try:
            for batch, after in read(position or 0):
                yield self._chosen(batch) if batch.num_rows else batch, after
        except FileNotFoundError as error:
            raise FileFormatError(f"{self.path}: there is no such file") from error
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"{self.path}: {self._why(error)}") from error

    def size_and_end(self) -> tuple[int, int | None]:
        """How many bytes the file has, and the position at its end; None if that takes reading.

        Raises
        ------
        FileFormatError
            If it is not what it should be, or cannot be read.
        """
        try:
            with self.filesystem.open_input_file(self.path) as raw:
                n_bytes = int(raw.size())
                end: int | None = n_bytes
                if self.format == "parquet":
                    with pq.ParquetFile(raw) as file:
                        end = file.metadata.num_rows
                elif self.format == "arrow":
                    is_file = raw.read(len(_MAGIC)) == _MAGIC
                    end = pa.ipc.open_file(raw).num_record_batches if is_file else None
                else:
                    end = self.end_of(n_bytes)
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"{self.path}: {self._why(error)}") from error
        return n_bytes, end

    def end_of(self, n_bytes: int) -> int | None:
        """The position at the end of a file of so many bytes; None if that takes reading."""
        is_text = self.format not in ("parquet", "arrow")
        return n_bytes if is_text and not self.path.endswith(tuple(COMPRESSIONS)) else None

    def _why(self, error: Exception) -> str:
        """What an error says, behind what is there instead of a file of this format."""
        said = str(error).splitlines()[0]
        usual = _BEGINNINGS.get(self.format)
        if usual is None:
            return said
        try:
            with self.filesystem.open_input_file(self.path) as raw:
                start = raw.read(len(_MAGIC))
        except (pa.ArrowException, OSError):
            return said
        if not start or start.startswith(usual):
            return said
        name = self.format.capitalize()
        return f"a file of {name} was expected, and it begins with {start!r}, as none does: {said}"

    def _parquet(self, position: int) -> Positioned:
        with (
            self.filesystem.open_input_file(self.path) as raw,
            pq.ParquetFile(raw) as file,
        ):
            metadata = file.metadata
            self._check_there(position, metadata.num_rows, "rows")
            end = 0
            for group in range(metadata.num_row_groups):
                begin, end = end, end + metadata.row_group(group).num_rows
                if end <= position:
                    continue
                after = begin
                for batch in file.iter_batches(self.batch_rows, row_groups=[group]):
                    before, after = after, after + batch.num_rows
                    if after > position:
                        yield batch.slice(max(0, position - before)), after

    def _arrow(self, position: int) -> Positioned:
        with self.filesystem.open_input_file(self.path) as raw:
            is_file = raw.read(len(_MAGIC)) == _MAGIC
            raw.seek(0)
            if is_file:
                with pa.ipc.open_file(raw) as file:
                    self._check_there(position, file.num_record_batches, "batches")
                    for number in range(position, file.num_record_batches):
                        yield file.get_batch(number), number + 1
                return
            after = 0
            with pa.ipc.open_stream(raw) as stream:
                for after, batch in enumerate(stream, 1):
                    if after > position:
                        yield batch, after
            self._check_there(position, after, "batches")

    def _csv(self, position: int) -> Positioned:
        delimiter = self.delimiter

        def table(data: bytes, names: list[str] | None, schema: pa.Schema | None) -> pa.Table:
            size = len(data) + len(BOM) + 1
            how = pacsv.ReadOptions(use_threads=False, block_size=size, column_names=names)
            types = {} if schema is None else {field.name: field.type for field in schema}
            if names is not None and data.startswith(BOM):
                # Here it is of the first value, and Arrow skips one.
                data = BOM + data
            return csv_table(data, delimiter, how, types)

        with self._bytes() as text:
            first = text.peek()
            if not first.removeprefix(BOM).strip(b"\r\n"):
                yield self._blank(text, position)
                return
            header = csv_lines(first, delimiter).first_end()
            # A first record that is longer than a block has the types, as any other would.
            n_bytes = self.block_bytes
            while not first[header:].strip(b"\r\n") and not text.is_all(first):
                n_bytes *= 2
                first = text.peek(n_bytes)
            top, rest = self._utf8(first[:header], 0), self._utf8(first[header:], header)
            line = top.removeprefix(BOM).strip(b"\r\n")
            try:  # a line without an end, of which a file may consist, would be empty to Arrow
                names = table(line + b"\n", None, None).column_names
            except UnicodeDecodeError:
                raise self._other_encoding("the line of names", top, 0) from None
            found = table(rest, names, None).schema if rest.strip(b"\r\n") else None
            schema = self._typed(names, found)
            if found is not None and self.schema is None:
                self._check_utf8(found, rest, header)
            text.skip(max(position, header))
            yield from self._blocks(text, lambda data: table(data, names, schema))

    def _blank(self, text: _TextBlocks, position: int) -> tuple[pa.RecordBatch, int]:
        """No records, of a file whose first block is of empty lines; raises if it has more."""
        n_bytes = len(text.next())
        if text.next():
            raise FileFormatError(
                f"{self.path}: begins with {n_bytes} bytes of empty lines; a line with "
                f"{'an object' if self.format == 'json' else 'names of columns'} was expected"
            )
        self._check_there(position, n_bytes, "bytes")
        return _NO_RECORDS, n_bytes

    @property
    def delimiter(self) -> str:
        """Of the values of a line of CSV."""
        return self.separator or ("\t" if self.format == "tsv" else ",")

    def _json(self, position: int) -> Positioned:
        def table(data: bytes, schema: pa.Schema | None) -> pa.Table:
            # A column that a schema does not have is as good as one that is not asked for.
            unexpected: Literal["infer", "ignore", "error"]
            unexpected = "infer" if schema is None else "ignore" if self.schema else "error"
            text: Any = pa.BufferReader(data)  # whose threads call no Python
            return pajson.read_json(
                text,
                pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
                pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
            )

        def typed(data: bytes, schema: pa.Schema | None) -> pa.Table:
            """The table; a day, or a time of day, is a text in JSON, or a number."""
            if schema is None:
                return table(data, schema)
            return parsed_as(schema, lambda of: table(data, of))

        def parsed(data: bytes, schema: pa.Schema | None) -> pa.Table:
            if self.schema is not None:
                return parsed_with_nan(data, typed, schema)
            return parsed_with_nan(data, lambda some, _: typed(some, schema), None)

        with self._bytes() as text:
            first = text.peek()
            if not first.removeprefix(BOM).strip():
                yield self._blank(text, position)
                return
            if first.removeprefix(BOM).lstrip()[:1] == b"[":
                raise FileFormatError(
                    f"{self.path}: is an array of JSON; it is to have an object in each line, as "
                    "`jq -c '.[]'` makes them of it"
                )
            self._check_objects(first, 0)
            if self.schema is None:
                schema = parsed(self._utf8(first, 0), None).schema
            else:  # of a null where there is to be none Arrow says neither where nor what it is
                schema = pa.schema([field.with_nullable(True) for field in self.schema])
            text.skip(position)
            yield from self._blocks(text, lambda data: parsed(data, schema))

    def _blocks(self, text: _TextBlocks, table: Callable[[bytes], pa.Table]) -> Positioned:
        yield _NO_RECORDS, text.position  # behind the names, of which a file may consist
        while block := text.next():
            begin = text.position - len(block)
            # Of JSON also with spaces; of CSV those are values, and tabs may be between values.
            blank = None if self.format == "json" else b"\r\n"
            if not (block if begin else block.removeprefix(BOM)).strip(blank):
                yield _NO_RECORDS, text.position
                continue
            if self.format == "json":
                self._check_objects(block, begin)
            try:
                found = table(self._utf8(block, begin))
            except pa.ArrowException as error:
                if "invalid UTF8" in str(error):
                    raise self._other_encoding("text", block, begin) from error
                raise FileFormatError(
                    f"{self.path}, bytes {begin} to {text.position}: "
                    f"{str(error).splitlines()[0]}"
                    + ("" if self.schema else "; if types differ within a file, give schema=")
                ) from error
            if self.schema is None:
                self._check_utf8(found.schema, block, begin)
            for batch in found.combine_chunks().to_batches():
                yield batch, text.position  # one chunk is one batch

    def _check_objects(self, block: bytes, begin: int) -> None:
        """Raise if a line is null, or the first one is no object, of which Arrow would crash."""
        text = block.removeprefix(BOM)
        at = len(block) - len(text.lstrip())
        if block.startswith(b"{", at):
            null = _NULL_LINE.search(block)
            if null is None:
                return self._check_depth(block, begin)
            at = null.start(1)
        found = block[at : at + 80].splitlines()[0]
        raise FileFormatError(
            f"{self.path}: an object was expected in each line; found {found.decode('latin-1')!r} "
            f"at byte {begin + at}"
        )

    def _check_depth(self, block: bytes, begin: int) -> None:
        """Raise if a line is nested more deeply than Arrow can parse."""
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        edges = np.concatenate([[0], ends + 1, [len(block)]])
        for line in np.flatnonzero(np.diff(edges) > _MAX_DEPTH).tolist():
            text = block[edges[line] : edges[line + 1]]
            if text.count(b"[") + text.count(b"{") > _MAX_DEPTH:  # some may be in texts
                signs = np.frombuffer(_TEXT.sub(b"", text), np.uint8)
                is_open = (signs == ord("[")) | (signs == ord("{"))
                is_closed = (signs == ord("]")) | (signs == ord("}"))
                depth = int((np.cumsum(is_open) - np.cumsum(is_closed)).max(initial=0))
                if depth > _MAX_DEPTH:
                    raise FileFormatError(
                        f"{self.path}: the line at byte {begin + int(edges[line])} is nested "
                        f"{depth} deep; {_MAX_DEPTH} levels can be read"
                    )

    def _utf8(self, text: bytes, begin: int) -> bytes:
        """What is at the byte `begin` of the file, of which Arrow reads UTF-8 alone."""
        is_utf8 = self.encoding == UTF8
        if is_utf8 and self.format != "json":  # of CSV Arrow looks at it itself
            return text
        try:
            decoded = text.decode(self.encoding)
            return text if is_utf8 else decoded.encode()
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"{self.path}: byte {begin + error.start} is {text[error.start]:#04x}, which is "
                f"not {self.encoding}; give the encoding="
            ) from error

    def _check_utf8(self, found: pa.Schema, text: bytes, begin: int) -> None:
        """Raise if a column is of bytes, as which Arrow reads what is no UTF-8."""
        for field in found:
            if pa.types.is_binary(field.type):
                raise self._other_encoding(f"column {field.name!r}", text, begin)

    def _other_encoding(self, what: str, text: bytes, begin: int) -> FileFormatError:
        """The error of text that is not UTF-8."""
        where = ""
        try:
            text.decode()
        except UnicodeDecodeError as error:
            where = f" (byte {begin + error.start} is {text[error.start]:#04x})"
        return FileFormatError(
            f"{self.path}: {what} is not UTF-8{where}; give the encoding=, such as 'latin-1', or "
            "of bytes that are no text a schema= that has them as binary"
        )

    def _typed(self, names: list[str], found: pa.Schema | None) -> pa.Schema | None:
        """The types of the columns of a file of CSV: those that are given, or were found."""
        if self.schema is None:
            return found
        self._check_columns(names)
        return self.schema

    def _check_columns(self, names: list[str]) -> None:
        assert self.schema is not None
        there = Counter(names)
        missing = [name for name in self.schema.names if name not in there]
        if missing:
            raise ColumnError(f"{self.path}: has no columns {missing}; it has {names}")
        several = [name for name in self.schema.names if there[name] > 1]
        if several:
            raise ColumnError(f"{self.path}: has several columns {several}; it has {names}")

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.schema is None:
            return batch
        self._check_columns(batch.schema.names)
        for field in self.schema:
            if not field.nullable and batch.column(field.name).null_count:
                raise SchemaError(
                    f"{self.path}: column {field.name!r} has a null, and the schema says that it "
                    "has none"
                )
        if batch.schema == self.schema:
            return batch
        try:
            columns = [batch.column(field.name).cast(field.type) for field in self.schema]
        except pa.ArrowException as error:
            raise SchemaError(f"{self.path}: {str(error).splitlines()[0]}") from error
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[_TextBlocks]:
        compression = next(
            (kind for end, kind in COMPRESSIONS.items() if self.path.endswith(end)), None
        )
        if compression is None:
            with self.filesystem.open_input_file(self.path) as file:
                yield _TextBlocks(self, file, is_seekable=True)
        else:
            with self.filesystem.open_input_stream(self.path, compression=compression) as stream:
                yield _TextBlocks(self, stream, is_seekable=False)

    def _check_there(self, position: int, end: int, what: str) -> None:
        if position > end:
            raise PositionError(
                f"{self.path}: it was read up to {position} {what}, and has {end} now: files must "
                "not be cut short or replaced by others of the same name"
            )


class _TextBlocks:
    """The bytes of a file of text, in blocks that end with a line."""

    def __init__(self, file: RecordFile, stream: Any, *, is_seekable: bool) -> None:
        self._file = file
        self._stream = stream
        self._is_seekable = is_seekable
        self._rest = b""
        self._has_ended = False
        self.position = 0
        """Of what comes next."""

    def peek(self, n_bytes: int = 0) -> bytes:
        """The first block, which comes again; or the lines of its first `n_bytes`."""
        block = self._cut(n_bytes)
        self._rest = block + self._rest
        return block

    def is_all(self, block: bytes) -> bool:
        """Whether nothing comes after a block that `peek` gave."""
        return self._has_ended and len(block) == len(self._rest)

    def next(self) -> bytes:
        """The next block; empty at the end."""
        block = self._cut()
        self.position += len(block)
        return block

    def skip(self, position: int) -> None:
        """Go on with what comes after `position`."""
        n_here = len(self._rest)
        if position <= n_here:
            self._rest = self._rest[position:]
        elif self._is_seekable:
            self._file._check_there(position, self._stream.size(), "bytes")
            self._stream.seek(position)
            self._rest, self._has_ended = b"", False
        else:
            self._rest = b""
            while n_here < position:
                found = self._stream.read(min(self._file.block_bytes, position - n_here))
                if not found:
                    self._file._check_there(position, n_here, "bytes")
                n_here += len(found)
        self.position = position

    def _cut(self, n_bytes: int = 0) -> bytes:
        """The whole lines of the next block, or a longer line; at the end, what is left."""
        n_bytes, data = n_bytes or self._file.block_bytes, self._rest
        while True:
            if len(data) < n_bytes and not self._has_ended:
                more = self._stream.read(n_bytes - len(data))
                self._has_ended = not more
                data += more
                continue
            is_rest = self._has_ended and len(data) <= n_bytes
            end = self._end_of(data[:n_bytes], is_rest=is_rest)
            if end or is_rest:
                break
            n_bytes *= 2
        self._rest = data[end:]
        return data[:end]

    def _end_of(self, data: bytes, *, is_rest: bool) -> int:
        """Behind the last line of `data` that is whole; 0 if none is."""
        lines = None
        if self._file.format != "json":
            lines = csv_lines(data, self._file.delimiter, is_first=not self.position)
        if is_rest:
            if lines is not None:
                lines.check_closed(self._file.path, self.position)
            return len(data)
        return data.rfind(b"\n") + 1 if lines is None else lines.last_end()


def format_of(path: str, given: str | None = None) -> str:
    """The format of a file, by its name or as it is given.

    Raises
    ------
    FileFormatError
        If neither says it.

    >>> format_of("a/b.csv.gz"), format_of("b", "json")
    ('csv', 'json')
    """
    if given is not None:
        if given not in NAMES:
            raise FileFormatError(f"format={given!r} is none of {', '.join(NAMES)}")
        return given
    name = path
    for end in COMPRESSIONS:
        name = name.removesuffix(end)
    found = FORMATS.get(name[name.rfind(".") :] if "." in name else "")
    if found is None:
        raise FileFormatError(
            f"{path}: a file of records ends with {', '.join(FORMATS)}, and .gz, .zst or .bz2 "
            "behind it for text; or say which it is with format="
        )
    return found


def filesystem_of(place: str, filesystem: Any = None) -> tuple[fs.FileSystem, str]:
    """The file system of a place, and the path there.

    Parameters
    ----------
    place : str
        A path, or a URI such as `s3://bucket/folder`.
    filesystem : pyarrow.fs.FileSystem or fsspec file system, optional
        Then `place` is a path there.

    Raises
    ------
    UsageError
        If Arrow knows no such place, or `filesystem` is none.
    """
    if filesystem is None:
        if "://" not in place:
            # By one name, as its files are: those of "a//" would begin with a slash.
            return fs.LocalFileSystem(), place.rstrip("/") or place
        try:
            return fs.FileSystem.from_uri(place)
        except (pa.ArrowException, OSError) as error:
            raise UsageError(f"{place!r}: Arrow finds no file system there: {error}") from error
    if not isinstance(filesystem, fs.FileSystem):
        if not callable(getattr(filesystem, "open", None)):
            raise UsageError(f"filesystem is one of pyarrow.fs, or of fsspec; found {filesystem!r}")
        # As it names what is in there: from the root, and without its protocol.
        place = getattr(filesystem, "_strip_protocol", str)(place)
        handler: Any = fs.FSSpecHandler  # of which the stubs believe that it is abstract
        filesystem = fs.PyFileSystem(handler(filesystem))
    return filesystem, place
