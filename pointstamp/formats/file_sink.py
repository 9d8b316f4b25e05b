"""A sink that writes files into a folder: each is seen when its epoch counts, and is whole then.

What is written goes to a file in `.staged`, a folder beside those that are seen. It is completed
and synced when the epoch is, and renamed when it is committed. A rename is done once or not at
all, so that any process may do it again. In an object store, which has none, it is a copy, seen
when it is whole, and then a deletion.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow import fs

from pointstamp.errors import CheckpointWarning, FileFormatError, SinkError
from pointstamp.formats.connector_arguments import place_of, schema_of
from pointstamp.formats.folder_files import one_path
from pointstamp.formats.json_types import json_schema, without_nan
from pointstamp.formats.record_files import filesystem_of
from pointstamp.formats.sink_claims import claim, release
from pointstamp.formats.sink_columns import columns_of

STAGED = ".staged"
ENDS = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "json": "jsonl"}

Token = dict[str, str]
"""What is prepared: the name in `.staged`, and the one that it gets."""


class FileSink:
    """Writes one file per worker and epoch with records; a `TransactionalSink`.

    Files are `part-<epoch>-<worker>.<end>`, in the folder. Those that are not committed are in
    its folder `.staged`, which readers of such folders leave out.

    Parameters
    ----------
    folder : str or path
        Of this machine, or a URI such as `s3://bucket/folder`; it is made if it is not there. It
        is that of one dataflow's sink.
    format : str
        "parquet", "arrow", "csv" or "json" (an object in each line).
    schema : pyarrow.Schema, text or StructType, optional
        Columns and types of the files, as a `FileSource` takes them, needed where records are
        dictionaries or tuples. Without it, those of the first batch of each file.
    filesystem : pyarrow.fs.FileSystem or fsspec file system, optional
        Then `folder` is a path there.

    Raises
    ------
    SinkError
        If the folder has files of an earlier run and the program begins anew; if a batch does not
        fit the schema; if a file cannot be written; for a null in CSV of one column.

    Notes
    -----
    Guarantees: with a checkpoint exactly once, however often the program is killed: a file is
    there, whole, when its epoch counts, and is not written again. Without one an epoch's files
    are there when the epoch is complete. On this machine files are synced before they count.

    In JSON a day, a time and a decimal are texts, and a map is a list of objects such as
    `[{"key": "a", "value": 1}]`; NaN and infinities are `"NaN"`, `"Infinity"` and `"-Infinity"`, as
    Spark writes them. A `FileSource` reads all of them back by `schema=`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> import pointstamp as ps
    >>> schema = pa.schema([("word", pa.string()), ("n", pa.int64())])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     def main(worker):
    ...         with worker.dataflow() as scope:
    ...             words = scope.to_stream([("a", 1), ("b", 2)])
    ...             words.sink(FileSink(folder, format="csv", schema=schema))
    ...     _ = ps.execute(main)
    ...     [file] = pathlib.Path(folder).glob("part-*")
    ...     print(file.name, file.read_text().split())
    part-00000000000000000000-00000.csv ['"word","n"', '"a",1', '"b",2']
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        format: str = "parquet",
        schema: Any = None,
        filesystem: Any = None,
    ) -> None:
        if format not in ENDS:
            raise FileFormatError(f"format={format!r} is none of {', '.join(ENDS)}")
        schema = schema_of(schema)
        self._place = place_of("folder", folder)
        self.filesystem, self._path = filesystem_of(self._place, filesystem)
        self.format = format
        self.schema = schema

    def open(self, context: Any) -> FileSinkWriter:
        """The writer of a worker; see `Sink`."""
        if context.is_new:
            self._check_empty()
        with self._refusing("make the folder"):
            self.filesystem.create_dir(self.at(STAGED), recursive=True)
        writer = FileSinkWriter(self, context.index, context.run)
        claim(
            writer,
            context,
            ("files", self.one_path()),
            f"{self._place}: two sinks of this run write to this folder: give each its own",
        )
        return writer

    def commit(self, tokens: Sequence[Token]) -> None:
        """Rename what is prepared; see `TransactionalSink`."""
        for token in tokens:
            staged, final = self.at(STAGED, token["staged"]), self.at(token["file"])
            with self._refusing(f"commit {token['file']}"):
                if self._is_there(staged):
                    self.filesystem.move(staged, final)
                elif not self._is_there(final):
                    warnings.warn(
                        f"{self._place}: {token['file']} is neither prepared nor there; it was "
                        "committed before and taken away, or is lost",
                        CheckpointWarning,
                        stacklevel=2,
                    )
        with self._refusing("sync the folder"):
            self.sync(self._path)

    def abort(self, run: str) -> None:
        """Remove what other runs have staged; see `TransactionalSink`."""
        with self._refusing("remove what is not committed"):
            for info in self._listed(self.at(STAGED)):
                if info.type == fs.FileType.File and not info.base_name.startswith(run):
                    self.filesystem.delete_file(info.path)

    def one_path(self) -> str:
        """The folder by a name that is the same however it is given."""
        return one_path(self.filesystem, self._path)

    def at(self, *parts: str) -> str:
        """A path below the folder."""
        return "/".join([self._path.rstrip("/"), *parts])

    def sync(self, path: str) -> None:
        """Have a file or folder of this machine outlast its end."""
        if isinstance(self.filesystem, fs.LocalFileSystem):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _check_empty(self) -> None:
        with self._refusing("list the folder"):
            found = sorted(info.base_name for info in self._listed(self._path))
        parts = [name for name in found if name.startswith("part-")]
        if parts:
            raise SinkError(
                f"{self._place}: has {len(parts)} files of an earlier run, such as {parts[0]}, and "
                "the program begins from the start: begin with the checkpoint of that run, or "
                "write to another folder"
            )

    def _listed(self, folder: str) -> list[Any]:
        try:
            selector = fs.FileSelector(folder, allow_not_found=True)
            return list(self.filesystem.get_file_info(selector))
        except FileNotFoundError:
            # Arrow looks a second time whether it is there: another worker made it in between.
            return []

    def _is_there(self, path: str) -> bool:
        is_file: bool = self.filesystem.get_file_info(path).type == fs.FileType.File
        return is_file

    def _refusing(self, what: str) -> contextlib.AbstractContextManager[None]:
        return _refusing(f"{self._place}: cannot {what}")

    def __repr__(self) -> str:
        return f"FileSink({self._place!r}, format={self.format!r})"


class FileSinkWriter:
    """What one worker writes with: one file at a time."""

    def __init__(self, sink: FileSink, index: int, run: str) -> None:
        self._sink = sink
        self._index = index
        self._run = run
        self._n_files = 0
        self._schema: pa.Schema | None = None
        self._name = ""
        self._raw: Any = None
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        """Take a batch, of any container with columns, or of records for the schema."""
        schema = self._schema or self._sink.schema
        columns = columns_of(batch, schema, repr(self._sink))
        if self._sink.format == "csv" and columns.num_columns == 1 and columns.column(0).null_count:
            raise SinkError(
                f"{self._sink}: a null in a CSV file of one column would be an empty line, which "
                "readers skip: write another format, or a column beside it"
            )
        if self._writer is None:
            self._begin(columns.schema)
        with _refusing(f"{self._sink}: cannot write"):
            self._writer.write(columns)

    def prepare(self, epoch: int) -> Token | None:
        """Complete the file; see `TransactionalWriter`."""
        if self._writer is None:
            return None
        with _refusing(f"{self._sink}: cannot complete the file of epoch {epoch}"):
            self._writer.close()
            self._raw.close()
            self._sink.sync(self._sink.at(STAGED, self._name))
            self._sink.sync(self._sink.at(STAGED))
        self._writer = self._schema = None
        end = ENDS[self._sink.format]
        return {"staged": self._name, "file": f"part-{epoch:020}-{self._index:05}.{end}"}

    def close(self) -> None:
        """Give up a file that is not complete."""
        release(self)
        if self._writer is not None:
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()
            with contextlib.suppress(OSError):
                self._raw.close()
                self._sink.filesystem.delete_file(self._sink.at(STAGED, self._name))
            self._writer = None

    def _begin(self, schema: pa.Schema) -> None:
        self._n_files += 1
        self._name = f"{self._run}-{self._index:05}-{self._n_files:08}"
        self._schema = schema
        with _refusing(f"{self._sink}: cannot begin a file"):
            self._raw = self._sink.filesystem.open_output_stream(self._sink.at(STAGED, self._name))
            self._writer = _WRITERS[self._sink.format](self._raw, schema)


class _JsonLines:
    """Writes an object in each line."""

    def __init__(self, raw: Any, schema: pa.Schema) -> None:
        if len(set(schema.names)) < len(schema.names):
            raise pa.ArrowInvalid(
                f"an object has one value by each name, and the columns are {schema.names}: "
                "rename them before"
            )
        self._raw = raw

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the records."""
        # Python's times have no nanoseconds, and its pairs, of a map, would be lists.
        batch = batch.cast(json_schema(batch.schema))
        lines = [_json_line(record) for record in batch.to_pylist()]
        self._raw.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Nothing more comes."""


def _json_line(record: dict[str, Any]) -> str:
    try:
        return json.dumps(record, default=_as_json, allow_nan=False)
    except ValueError:
        return json.dumps(without_nan(record), default=_as_json)


def _as_json(value: Any) -> str:
    """A value of a type that JSON has not, as a text.

    >>> from decimal import Decimal
    >>> _as_json(Decimal("1.20"))
    '1.20'
    """
    if isinstance(value, datetime.datetime):
        return _time_text(value)
    if isinstance(value, bytes):
        raise pa.ArrowInvalid(
            f"JSON has no bytes; found {value!r:.80}: make a text of them before, such as by "
            "base64, or write another format"
        )
    if isinstance(value, datetime.timedelta):
        raise pa.ArrowInvalid(
            f"JSON has no durations; found {str(value)!r}: make an integer of them before, or "
            "write another format"
        )
    return str(value)


def _time_text(value: datetime.datetime) -> str:
    """A time as Arrow reads it, of a unit that is fine enough for it.

    >>> _time_text(datetime.datetime(2026, 1, 2, 3, 4, 5, 600_000))
    '2026-01-02 03:04:05.600'
    """
    offset = value.utcoffset()
    if offset is not None and offset.seconds % 60:  # of local time before there were zones
        value = value.astimezone(datetime.UTC)
    # Of milliseconds Arrow reads three digits; pandas' times have nanoseconds as well.
    if value.microsecond and not value.microsecond % 1000 and not getattr(value, "nanosecond", 0):
        return value.isoformat(" ", "milliseconds")
    return str(value)


_WRITERS: dict[str, Callable[[Any, pa.Schema], Any]] = {
    "parquet": lambda raw, schema: pq.ParquetWriter(raw, schema, compression="zstd"),
    "arrow": pa.ipc.new_file,
    "csv": pacsv.CSVWriter,
    "json": _JsonLines,
}


@contextlib.contextmanager
def _refusing(what: str) -> Any:
    """Raise what goes wrong as a `SinkError`."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SinkError(f"{what}: {str(error).splitlines()[0]}") from error
