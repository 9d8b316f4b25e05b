"""The bytes of a captured stream: Arrow IPC streams, one after the other.

A column stream's batches are the batches of an Arrow IPC stream, as they are; what any
Arrow tool reads of it is the data. What belongs to each batch, its time, and changes of
the frontier (with a batch of no records) are the batch's custom metadata; the version,
the kind of container and whose part it is are in the schema's. Batches of other kinds
are the buffers that the kind makes of them, each a record of one binary column; rows
are a pickle.

An Arrow IPC stream has one schema. So what comes before the first batch is a stream of
its own, without columns; and so it goes on if the schema should change.

    one stream: schema {pointstamp: version, kind, part, times} | batch {time} | batch
                {progress} | ... | end
    the bytes:  stream  stream ...

The capture is complete when the changes add up to an empty frontier and the stream that
says so has its end. Anything less is cut off, wherever it was cut.

Integers and tuples of integers are written as JSON, so that others can read them; times
of other types as a pickle. As with any pickle: read what you wrote, or trust.
"""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from pointstamp.containers.columns import ColumnsKind
from pointstamp.containers.kind import Buffer, Kind
from pointstamp.containers.registry import kind_named, kind_of
from pointstamp.containers.rows import dump
from pointstamp.errors import (
    ContainerError,
    FileFormatError,
    TimestampError,
    TruncatedError,
)
from pointstamp.formats.events import CapturedPart, Event, Messages, Progress, net

VERSION = 1

_VERSION, _KIND, _PART, _TIMES = (
    f"pointstamp.{name}".encode() for name in ("events", "kind", "part", "times")
)
_TIME, _PROGRESS = b"pointstamp.time", b"pointstamp.progress"
_NONE = "none"
"""The kind of a stream that has no batches yet."""

_BEGIN = b"\xff\xff\xff\xff"
"""How every message of Arrow IPC begins."""

_BUFFERS = pa.schema([("buffer", pa.large_binary())])
_NO_COLUMNS = pa.schema([])
_NO_RECORDS = pa.RecordBatch.from_arrays([], schema=_NO_COLUMNS)


class EventStreamWriter:
    """Writes events as bytes.

    Parameters
    ----------
    file : binary file, open for writing; stays open
    part : CapturedPart
        Whose events.
    """

    def __init__(self, file: Any, part: CapturedPart) -> None:
        self._file = file
        self._part = part
        self._stream: Any = None
        self._nothing: Any = None
        self._layout: tuple[str, Any] | None = None
        self._n_open = 1

    @property
    def is_complete(self) -> bool:
        """Whether the end was written."""
        return self._n_open == 0

    def write(self, event: Event) -> None:
        """Write one event; the last one, with what ends the bytes.

        Raises
        ------
        SerializationError
            If a record, or a time, cannot be pickled.
        """
        if isinstance(event, Progress):
            changes = [[_plain(time), change] for time, change in event.changes]
            if self._stream is None:
                self._nothing = _NO_RECORDS
                self._stream = self._begin(_NONE, _NO_COLUMNS)
            self._stream.write_batch(self._nothing, {_PROGRESS: json.dumps(changes).encode()})
        else:
            kind = kind_of(event.batch)
            batch = _as_columns(kind, event.batch)
            if self._layout != (kind.name, batch.schema):
                self._end()
                self._stream = self._begin(kind.name, batch.schema)
            # With the dictionaries of the batch, which are those that the stream has now.
            self._nothing = batch.slice(0, 0)
            self._stream.write_batch(batch, {_TIME: json.dumps(_plain(event.time)).encode()})
        self._n_open += net(event)
        if self.is_complete:
            self._end()

    def _begin(self, kind: str, schema: Any) -> Any:
        self._layout = (kind, schema)
        ours = {
            _VERSION: str(VERSION),
            _KIND: kind,
            _PART: f"{self._part.worker}/{self._part.peers}",
            _TIMES: self._part.times,
        }
        described = schema.with_metadata({**(schema.metadata or {}), **ours})
        return pa.ipc.new_stream(self._file, described)

    def _end(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class EventStreamReader:
    """Reads events from bytes.

    Parameters
    ----------
    file : binary file, open for reading
    name : str
        What it is called in messages.
    times : str or None
        The name of the type that its times should be of; None: any.

    Attributes
    ----------
    part : CapturedPart or None
        Whose events these are, once the first was read.
    n_events : int
        How many were read.
    """

    def __init__(self, file: Any, name: str, times: str | None = None) -> None:
        self._source = _Counting(file)
        self._name = name
        self._times = times
        self._stream: Any = None
        self._kind = _NONE
        self._schema: Any = None
        self._n_open = 1
        self._whole = 0
        self.part: CapturedPart | None = None
        self.n_events = 0

    def read(self) -> Event | None:
        """The next event, or None at the end of what is complete.

        Raises
        ------
        TruncatedError
            If the bytes end before the capture does; says where.
        FileFormatError
            If they are something else, or damaged.
        """
        while True:
            if self._stream is None:
                if self._n_open == 0:
                    return None
                self._begin()
            with self._blamed():
                try:
                    batch, metadata = self._stream.read_next_batch_with_custom_metadata()
                except StopIteration:
                    batch = metadata = None
            if batch is not None:
                return self._event(batch, metadata)
            if self._source.is_short:
                raise self._truncated()
            self._stream = None

    def expect_end(self) -> None:
        """Raise `FileFormatError` if more bytes follow; to be called after the last event."""
        if self._source.read(1):
            raise FileFormatError(
                f"{self._name}: more bytes come after the end of the capture, at byte {self._whole}"
            )

    def _begin(self) -> None:
        self._whole = self._source.n_bytes
        self._check_begin()
        with self._blamed():
            self._stream = pa.ipc.open_stream(pa.PythonFile(cast("Any", self._source), mode="r"))
        schema = self._stream.schema
        about = dict(schema.metadata or {})
        version = about.pop(_VERSION, None)
        if version is None:
            raise FileFormatError(f"{self._name}: an Arrow stream, but no capture of a stream")
        if version != str(VERSION).encode():
            raise FileFormatError(
                f"{self._name}: a capture of version {version.decode()}, and this is "
                f"pointstamp with version {VERSION}: replay it with the release that wrote it"
            )
        self._kind = about.pop(_KIND).decode()
        index, peers = about.pop(_PART).decode().split("/")
        self.part = CapturedPart(int(index), int(peers), about.pop(_TIMES).decode())
        self._schema = schema.with_metadata(about or None)
        if self._times not in (None, self.part.times):
            raise TimestampError(
                f"{self._name}: was captured with times of {self.part.times}, and is replayed in a "
                f"scope with times of {self._times}"
            )

    def _check_begin(self) -> None:
        head = self._source.peek(len(_BEGIN))
        if not _BEGIN.startswith(head):
            raise FileFormatError(
                f"{self._name}: no capture of a stream: {head!r} comes where an Arrow IPC stream "
                f"should begin, at byte {self._whole}"
            )

    def _event(self, batch: Any, metadata: Mapping[bytes, bytes]) -> Event:
        self._whole = self._source.n_bytes
        with self._blamed():
            event = self._decoded(batch, metadata)
        self._n_open += net(event)
        self.n_events += 1
        return event

    def _decoded(self, batch: Any, metadata: Mapping[bytes, bytes]) -> Event:
        if _PROGRESS in metadata:
            changes = json.loads(metadata[_PROGRESS])
            return Progress([(_time(time), int(change)) for time, change in changes])
        time = _time(json.loads(metadata[_TIME]))
        if self._kind == ColumnsKind.name:
            return Messages(time, batch.replace_schema_metadata(self._schema.metadata))
        # Copies, each in a place of its own: numbers must begin at a multiple of their size.
        buffers: Sequence[Buffer] = batch.column(0).to_pylist()
        return Messages(time, kind_named(self._kind).decode(buffers))

    @contextlib.contextmanager
    def _blamed(self) -> Any:
        """Say of what fails in Arrow and pickle which bytes it was."""
        try:
            yield
        except (FileFormatError, ContainerError, ConnectionError, TimeoutError):
            raise
        except Exception as error:  # foreign bytes may fail in any way inside pickle and Arrow
            if self._source.is_short:
                raise self._truncated() from error
            what = str(error) or repr(error)
            raise FileFormatError(
                f"{self._name}: no capture, or a damaged one, after byte {self._whole} (event "
                f"{self.n_events}): {what}"
            ) from error

    def _truncated(self) -> TruncatedError:
        return TruncatedError(
            f"{self._name}: cut off at byte {self._source.n_bytes}, before the end of the capture; "
            f"{self.n_events} whole events end at byte {self._whole}"
        )


class _Counting:
    """A file that is read only, and counts."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._ahead = b""
        self.n_bytes = 0
        self.is_short = False
        """Whether it ended before what was asked for."""

    def peek(self, n_bytes: int) -> bytes:
        """What `read` will begin with."""
        self._ahead = self._ahead or self._file.read(n_bytes)
        return self._ahead

    def read(self, n_bytes: int) -> bytes:
        """So many bytes, or what is left."""
        ahead, self._ahead = self._ahead[:n_bytes], self._ahead[n_bytes:]
        data: bytes = (
            ahead + self._file.read(n_bytes - len(ahead)) if ahead else self._file.read(n_bytes)
        )
        self.n_bytes += len(data)
        self.is_short = len(data) < n_bytes
        return data

    def close(self) -> None:
        """Nothing: its opener closes it."""


def _as_columns(kind: Kind[Any], batch: Any) -> Any:
    if kind.name == ColumnsKind.name:
        return batch
    buffers = [bytes(buffer) for buffer in kind.encode(batch)]
    return pa.RecordBatch.from_arrays([pa.array(buffers, pa.large_binary())], schema=_BUFFERS)


def _plain(time: Any) -> Any:
    """`time` for JSON: integers and tuples of such as they are, others as {"pickle": text}."""
    if type(time) is int:
        return time
    if type(time) is tuple:
        return [_plain(part) for part in time]
    return {"pickle": base64.b64encode(dump(time)).decode()}


def _time(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(map(_time, plain))
    if isinstance(plain, dict):
        return pickle.loads(base64.b64decode(plain["pickle"]))
    return plain
