"""Record batches as the bytes of one object, and back.

Arrow's file format has its batches listed at the end, so that one of many is read without
the others.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from pointstamp.checkpoint.checksummed import Checksum, checksum
from pointstamp.checkpoint.objects import Objects
from pointstamp.containers import Buffer
from pointstamp.errors import CorruptCheckpointError, TruncatedCheckpointError


@dataclass(frozen=True)
class Stored:
    """An object, and what it has to be."""

    name: str
    n_bytes: int
    checksum: str

    def to_json(self) -> dict[str, Any]:
        """For a record."""
        return asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> Stored:
        """Of a record."""
        return Stored(str(record["name"]), int(record["n_bytes"]), str(record["checksum"]))


class EncodedBatches:
    """The bytes of a file of batches, made as they are asked for, again each time.

    So of batches that are read from elsewhere one is in memory at a time, unless they have
    dictionaries. What was made in the last pass is known behind it.

    Raises `pyarrow.ArrowInvalid` while they are made, if the schemas of the batches differ.

    >>> batches = EncodedBatches([pa.RecordBatch.from_pydict({"n": [1, 2]})])
    >>> len(b"".join(batches)) == batches.n_bytes, batches.n_rows
    (True, 2)
    """

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._batches = batches
        self.n_rows = 0
        self.n_bytes = 0
        self.checksum = ""

    def __iter__(self) -> Iterator[Buffer]:
        rows = n_bytes = 0
        digest = Checksum()
        for part, n in self._parts():
            rows += n
            n_bytes += memoryview(part).nbytes
            digest.update(part)
            yield part
        self.n_rows, self.n_bytes, self.checksum = rows, n_bytes, digest.text()

    def stored(self, name: str) -> Stored:
        """What an object is that the last pass was written to."""
        return Stored(name, self.n_bytes, self.checksum)

    def _parts(self) -> Iterator[tuple[Buffer, int]]:
        """What is written, with how many rows begin with it."""
        written = _PythonFile()
        remaining = iter(_of_one_dictionary(self._batches))
        first = next(remaining, None)
        schema = pa.schema([]) if first is None else first.schema
        with pa.ipc.new_file(written, schema) as writer:
            while first is not None:
                writer.write_batch(first)
                yield from written.taken(first.num_rows)
                first = next(remaining, None)
        yield from written.taken(0)


class _PythonFile(io.RawIOBase):
    """What Arrow writes, until it is taken."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Keep it."""
        self._parts.append(data)
        return memoryview(data).nbytes

    def taken(self, n_rows: int) -> Iterator[tuple[Buffer, int]]:
        """What there is now, the first part with that number of rows."""
        parts, self._parts = self._parts, []
        for part in parts:
            yield part, n_rows
            n_rows = 0


def _of_one_dictionary(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """The same records; a file has one dictionary for a column, which batches need not have."""
    given = iter(batches)
    first = next(given, None)
    if first is None:
        return []
    if not any(map(_has_dictionary, first.schema.types)):
        return chain([first], given)
    return pa.Table.from_batches([first, *given]).unify_dictionaries().to_batches()


def _has_dictionary(type: pa.DataType) -> bool:
    inner = (type.field(number).type for number in range(type.num_fields))
    return pa.types.is_dictionary(type) or any(map(_has_dictionary, inner))


def put(objects: Objects, name: str, batches: EncodedBatches) -> Stored:
    """Write the object, and say what it is."""
    objects.put(name, batches)
    return batches.stored(name)


def stored(name: str, data: pa.Buffer) -> Stored:
    """What an object of these bytes is."""
    return Stored(name, data.size, checksum([memoryview(data)]))


def checked(objects: Objects, what: Stored) -> pa.Buffer:
    """The bytes of an object, after a look that they are what was written.

    Raises
    ------
    TruncatedCheckpointError
        If it is gone, or of another length.
    CorruptCheckpointError
        If its checksum differs.
    """
    check_size(objects, what)
    data = objects.get(what.name)
    if checksum([memoryview(data)]) != what.checksum:
        raise CorruptCheckpointError(
            f"{objects}/{what.name}: its {what.n_bytes} bytes are not those that were written"
        )
    return data


def check_size(objects: Objects, what: Stored) -> None:
    """Look that an object is there, and of the right length; see `checked`."""
    size = objects.size(what.name)
    if size != what.n_bytes:
        found = "is not there" if size is None else f"has {size} bytes"
        raise TruncatedCheckpointError(
            f"{objects}/{what.name}: {found}, and {what.n_bytes} were written"
        )


def decoded(
    data: pa.Buffer, place: str, numbers: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches of a file, or some of them by number; columns are views of `data`."""
    try:
        with pa.ipc.open_file(data) as reader:
            wanted = range(reader.num_record_batches) if numbers is None else numbers
            for number in wanted:
                yield reader.get_batch(number)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptCheckpointError(f"{place}: is no Arrow file: {error}") from error
