"""Files of record batches that are written as they come, and readable at any moment.

Each is an Arrow IPC stream. A batch is on its way to the disk when `write` returns, so
what was written before a process died is there; at the end stands a mark that says that
there is no more. Reading stops at the last batch that is whole, and says if the mark is
missing. Whether the writer is still at it is known by a lock on the file, which the system
takes from a process that has died.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.errors import FileFormatError

Column = npt.NDArray[Any] | list[str]
"""Numbers or bools, [n]; or n texts."""

_CONTINUES = b"\xff\xff\xff\xff"
_END = _CONTINUES + bytes(4)

_BUFFER_BYTES = 2**18
"""Of a file: the columns of a batch are written in one go, and not each in some of its own."""


def schema_of(columns: Mapping[str, str]) -> Any:
    """The Arrow schema of columns by name, each of a type such as "int64", "bool", "string"."""
    alias: Any = pa.type_for_alias  # whose stubs want each alias as a literal
    return pa.schema([(name, alias(kind)) for name, kind in columns.items()])


def batch_of(schema: Any, columns: Sequence[Any]) -> Any:
    """The record batch of these columns, numbers without a copy; each may be an array of Arrow's.

    >>> schema = schema_of({"a": "int64", "b": "bool", "c": "string"})
    >>> columns = [np.array([1, 2]), np.array([True, False]), ["x", "yz"]]
    >>> batch_of(schema, columns).to_pylist()
    [{'a': 1, 'b': True, 'c': 'x'}, {'a': 2, 'b': False, 'c': 'yz'}]
    """
    return pa.RecordBatch.from_arrays([_arrow(column) for column in columns], schema=schema)


def table_of(kinds: Mapping[str, str], parts: Sequence[Sequence[Any]]) -> Any:
    """Parts of some columns, one after the other, as a table.

    >>> table_of({"a": "int64"}, [[np.array([1])], [np.array([2])]]).to_pydict()
    {'a': [1, 2]}
    """
    schema = schema_of(kinds)
    return pa.Table.from_batches([batch_of(schema, part) for part in parts], schema)


def to_stream(table: Any) -> bytes:
    """A table as an Arrow IPC stream.

    >>> from_stream(to_stream(table_of({"a": "int64"}, [[np.array([1, 2])]]))).to_pydict()
    {'a': [1, 2]}
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_stream(data: bytes) -> Any:
    """The table that an Arrow IPC stream has; `pyarrow.ArrowInvalid`, a `ValueError`, if none."""
    return pa.ipc.open_stream(data).read_all()


def texts_side_by_side(ends: npt.NDArray[np.int32], characters: npt.NDArray[np.uint8]) -> Any:
    """Texts that are written already, as a column for `batch_of`, which shares their memory.

    Parameters
    ----------
    ends : int32[n + 1]
        Where each ends, after a 0.
    characters : uint8[m], m >= ends[n]
        Of all of them, in UTF-8.

    >>> texts_side_by_side(np.array([0, 2, 3], np.int32), np.frombuffer(b"427..", np.uint8))
    <pyarrow.lib.StringArray object at ...>
    [
      "42",
      "7"
    ]
    """
    data: Any = (ends, characters[: ends[-1]])  # whose buffers the stubs do not see
    buffers = [None, *map(pa.py_buffer, data)]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


def _arrow(column: Any) -> Any:
    if isinstance(column, pa.Array):
        return column
    # As buffers and not by `pa.array`, which would import pandas; see `convert`.
    if isinstance(column, list):
        # Names of files may have surrogates, which UTF-8 has not: of them their escapes.
        texts = [text.encode(errors="backslashreplace") for text in column]
        ends = np.zeros(len(texts) + 1, np.int32)
        np.cumsum([len(text) for text in texts], out=ends[1:])
        data: Any = ends  # whose buffer the stubs do not see
        buffers = [None, pa.py_buffer(data), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(pa.string(), len(texts), buffers)
    if column.dtype == np.bool_:
        bits: Any = np.packbits(column, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(column), [None, pa.py_buffer(bits)])
    return arrow_array(column)


class StreamFile:
    """A file that batches of one schema are appended to; `close` says that it is whole.

    Parameters
    ----------
    metadata : mapping of str to str
        What `read_stream` gives back with the batches.

    Raises
    ------
    FileFormatError
        If it cannot be written.
    """

    def __init__(self, path: Path, schema: Any, metadata: Mapping[str, str]) -> None:
        self._path = path
        try:
            self._lock = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        except OSError as error:
            raise self._unwritten(error) from error
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        try:
            self._sink: Any = pa.output_stream(str(path), buffer_size=_BUFFER_BYTES)
        except OSError as error:
            os.close(self._lock)
            raise self._unwritten(error) from error
        self._writer: Any = pa.ipc.new_stream(self._sink, schema.with_metadata(dict(metadata)))

    def write(self, batch: Any) -> None:
        """Append a batch."""
        try:
            self._writer.write_batch(batch)
            self._sink.flush()
        except OSError as error:
            raise self._unwritten(error) from error

    def close(self) -> None:
        """Complete the file. Closing twice is closing once."""
        if self._sink.closed:
            return
        try:
            try:
                self._writer.close()
            finally:
                self._sink.close()  # which writes what is left in its buffer
        except OSError as error:
            raise self._unwritten(error) from error
        finally:
            os.close(self._lock)

    def _unwritten(self, error: OSError) -> FileFormatError:
        return FileFormatError(f"{self._path}: cannot be written: {error.strerror or error}")


@dataclass(frozen=True)
class Streamed:
    """What was read of a file of batches."""

    metadata: dict[str, str] = field(default_factory=dict)
    batches: list[Any] = field(default_factory=list)
    is_whole: bool = False
    """Whether the end mark was there."""
    is_being_written: bool = False
    """Whether its writer was still there, and not yet at the end."""

    def column(self, name: str) -> Column:
        """A column of all batches."""
        parts = [_plain(batch.column(name)) for batch in self.batches]
        if parts and isinstance(parts[0], list):
            return [text for part in parts for text in part]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


def read_stream(path: Path) -> Streamed:
    """What is there of a file that a `StreamFile` wrote, up to the last batch that is whole.

    Raises
    ------
    FileFormatError
        If it is not such a file, cannot be read, or is damaged.
    """
    is_written = is_being_written(path)  # before what is read, or it might end in between
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not data.startswith(_CONTINUES[: len(data)]):
        raise FileFormatError(f"{path}: this is no Arrow stream; it begins with {data[:8]!r}")
    try:
        reader = pa.ipc.open_stream(data)
        _ = reader.schema.names  # texts, if they are not damaged
    except (pa.ArrowInvalid, OSError):
        return Streamed(is_being_written=is_written)  # not even its schema is whole
    except (pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: its schema is damaged: {error}") from error
    metadata = {
        k.decode("utf-8", "replace"): v.decode("utf-8", "replace")
        for k, v in (reader.schema.metadata or {}).items()
    }
    batches: list[Any] = []
    try:
        while True:
            batches.append(_checked(reader.read_next_batch(), path, len(batches)))
    except StopIteration:
        is_whole = data.endswith(_END)
    except (pa.ArrowInvalid, OSError):
        is_whole = False
    return Streamed(metadata, batches, is_whole, is_written and not is_whole)


def _checked(batch: Any, path: Path, number: int) -> Any:
    """A batch whose columns may be looked at: Arrow looks beyond the ends of damaged ones."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise FileFormatError(f"{path}: batch {number} is damaged: {error}") from error
    return batch


def is_being_written(path: Path) -> bool:
    """Whether something has that file to write to; also where that cannot be found out."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _plain(column: Any) -> Column:
    if pa.types.is_string(column.type):
        texts: list[str] = column.to_pylist()
        return texts
    if pa.types.is_boolean(column.type):
        return np.array(column.to_pylist(), np.bool_)
    return numbers(column)
