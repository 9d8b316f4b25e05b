"""Records on their way through a pipe to another program, and back: lines, or Arrow.

A program that is asked for one time after the other has to say where its answers to
one end: it is sent a *mark* after the last record of a time, and sends the mark back
after its last answer. So a framing knows three things: how batches are written, how a
mark is, and how both are read.

*Lines*: a record is a line, and a mark is a line that is no record's.

*Arrow*: an Arrow IPC stream, and a mark is a batch without records whose custom metadata
has the key `pointstamp` with the mark as its value.

Nothing here knows what is at the other end, or of time. Arrow is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Protocol

from pointstamp.containers.registry import kind_of
from pointstamp.errors import ContainerError, DataError

MARK_KEY = "pointstamp"
"""The key of the custom metadata that makes a batch a mark."""

CHUNK_BYTES = 1 << 16
"""How much of a pipe is read at once: what a pipe holds."""


class Writer(Protocol):
    """Writes to one pipe, from one thread."""

    def write(self, batch: Any) -> None:
        """Write the records of a batch that `Framing.check` has passed."""

    def mark(self) -> None:
        """Write a mark; never the first."""

    def close(self) -> None:
        """End what was written; the pipe is closed by its owner."""


class Framing(Protocol):
    """How records and marks go through a pipe."""

    def check(self, batch: Any, name: str) -> Any:
        """`batch` as `Writer.write` takes it, or an error in the name of the operator `name`."""

    def writer(self, pipe: IO[bytes]) -> Writer:
        """For a pipe to the other program."""

    def read(self, pipe: Any) -> Iterator[Any]:
        """What comes from the other program, until it ends: batches, and None for each mark.

        `pipe` is a `BufferedReader`: what can be read at once comes without waiting for more.
        """


class Lines:
    r"""One record per line; lines end with a newline, the last one perhaps not.

    Parameters
    ----------
    text : bool
        Records are `str`, in UTF-8 on the pipe; else `bytes`.
    mark : str, optional
        The line that is a mark.

    Examples
    --------
    >>> import io
    >>> list(Lines(mark="--").read(io.BufferedReader(io.BytesIO(b"a\nb\n--\nc"))))
    [['a', 'b'], None, ['c']]
    """

    def __init__(self, *, text: bool = True, mark: str | None = None) -> None:
        self._kind: Any = str if text else bytes
        self._newline: Any = "\n" if text else b"\n"
        self._mark: Any = mark if text or mark is None else mark.encode()
        self._mark_line = None if mark is None else mark.encode()
        if mark is not None and "\n" in mark:
            raise DataError(f"a mark is one line; {mark!r} has a newline in it")

    def check(self, batch: Any, name: str) -> Any:
        """The records, none of which has a newline in it, or is the mark."""
        if type(batch) is not list:
            raise ContainerError(
                f"{name} writes records as lines, and this stream carries "
                f"{kind_of(batch).called()}: give form='arrow', or make rows of them"
            )
        for record in batch:
            self._check_record(record, name)
        return batch

    def writer(self, pipe: IO[bytes]) -> _LineWriter:
        """Joins the records of a batch."""
        return _LineWriter(pipe, self._newline, self._mark_line)

    def read(self, pipe: Any) -> Iterator[Any]:
        """The complete lines of each piece that has come."""
        pieces: list[bytes] = []  # of a line that goes on
        while piece := pipe.read1(CHUNK_BYTES):
            pieces.append(piece)
            if b"\n" in piece:
                *lines, last = b"".join(pieces).split(b"\n")
                pieces = [last]
                yield from self._batches(lines)
        if rest := b"".join(pieces):
            yield from self._batches([rest])

    def _check_record(self, record: Any, name: str) -> None:
        if self._kind is not type(record):
            raise ContainerError(
                f"{name} writes records as lines of {self._kind.__name__}, and was given "
                f"{record!r} ({type(record).__name__}): map the records to lines first"
            )
        if self._newline in record:
            raise DataError(
                f"{name} writes one line per record, and the record {record!r} has a newline in "
                "it: it would arrive as two"
            )
        if record == self._mark:
            raise DataError(
                f"{name} ends each time with the line {self._mark!r}, which is also a record: "
                "choose another marker"
            )

    def _batches(self, lines: list[bytes]) -> Iterator[Any]:
        """Runs of records, and None for the marks between them."""
        records: list[Any] = []
        for line in lines:
            if line == self._mark_line:
                if records:
                    yield records
                yield None
                records = []
            else:
                records.append(line if self._kind is bytes else _text(line))
        if records:
            yield records


class _LineWriter:
    """Writes lines."""

    def __init__(self, pipe: IO[bytes], newline: Any, mark: bytes | None) -> None:
        self._pipe = pipe
        self._newline = newline
        self._mark = mark

    def write(self, batch: Any) -> None:
        """All records in one piece."""
        lines = self._newline.join(batch) + self._newline
        self._pipe.write(lines if isinstance(lines, bytes) else lines.encode())
        self._pipe.flush()

    def mark(self) -> None:
        """The line that is the mark."""
        assert self._mark is not None
        self._pipe.write(self._mark + b"\n")
        self._pipe.flush()

    def close(self) -> None:
        """Nothing to add."""


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the line {line!r} is not UTF-8: give form='bytes'") from error


class ArrowStream:
    """One Arrow IPC stream each way.

    Parameters
    ----------
    mark : str, optional
        The value under `MARK_KEY` in the custom metadata of a batch that is a mark.
    """

    def __init__(self, *, mark: str | None = None) -> None:
        self._mark = mark

    def check(self, batch: Any, name: str) -> Any:
        """Arrow record batches as they are, NumPy columns as such."""
        kind = kind_of(batch)
        if not kind.has_columns:
            raise ContainerError(
                f"{name} writes Arrow record batches, and this stream carries rows: give "
                "form='text' or form='bytes', or make columns of them"
            )
        return kind.to_arrow(batch)

    def writer(self, pipe: IO[bytes]) -> _ArrowWriter:
        """Begins a stream with the first batch."""
        return _ArrowWriter(pipe, self._mark)

    def read(self, pipe: Any) -> Iterator[Any]:
        """The batches of the stream; a program that wrote nothing answered nothing."""
        import pyarrow as pa

        if not pipe.peek(1):
            return
        mark = None if self._mark is None else self._mark.encode()
        try:
            with pa.ipc.open_stream(pipe) as reader:
                while True:
                    batch, metadata = _next_batch(reader)
                    is_mark = mark is not None and (metadata or {}).get(MARK_KEY.encode()) == mark
                    if batch is None:
                        return
                    if not is_mark or batch.num_rows:
                        yield batch
                    if is_mark:
                        yield None
        except pa.ArrowInvalid as error:
            raise DataError(f"what came is not an Arrow IPC stream: {error}") from error


def _next_batch(reader: Any) -> tuple[Any, Any]:
    """The next batch with its custom metadata; (None, None) at the end."""
    try:
        batch, metadata = reader.read_next_batch_with_custom_metadata()
    except StopIteration:
        return None, None
    return batch, metadata


class _ArrowWriter:
    """Writes an Arrow IPC stream."""

    def __init__(self, pipe: Any, mark: str | None) -> None:
        self._pipe = pipe
        self._mark = mark
        self._writer: Any = None
        self._schema: Any = None

    def write(self, batch: Any) -> None:
        """Begin the stream, the first time, and add a batch."""
        import pyarrow as pa

        if self._writer is None:
            self._schema = batch.schema
            self._writer = pa.ipc.new_stream(self._pipe, self._schema)
        self._writer.write_batch(batch)
        self._pipe.flush()

    def mark(self) -> None:
        """A batch of the same schema without records."""
        import pyarrow as pa

        empty = pa.RecordBatch.from_arrays(
            [pa.nulls(0, field.type) for field in self._schema], schema=self._schema
        )
        self._writer.write_batch(empty, custom_metadata={MARK_KEY: self._mark})
        self._pipe.flush()

    def close(self) -> None:
        """Write the end of the stream."""
        if self._writer is not None:
            self._writer.close()
            self._pipe.flush()
