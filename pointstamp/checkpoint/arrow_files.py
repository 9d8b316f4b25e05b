"""Record batches as the bytes of one object, and back.

Arrow's file format has its batches listed at the end, so that one of many is read without
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from pointstamp.checkpoint.checksummed import checksum
from pointstamp.checkpoint.objects import Objects
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


def encoded(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Buffer, int]:
    """The bytes of `batches`, which may be none, and how many records they have.

    Raises
    ------
    pyarrow.ArrowInvalid
        If their schemas differ.
    """
    sink = pa.BufferOutputStream()
    remaining = iter(_of_one_dictionary(batches))
    first = next(remaining, None)
    schema = pa.schema([]) if first is None else first.schema
    n_records = 0
    with pa.ipc.new_file(sink, schema) as writer:
        while first is not None:
            writer.write_batch(first)
            n_records += first.num_rows
            first = next(remaining, None)
    return sink.getvalue(), n_records


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


def put(objects: Objects, name: str, data: pa.Buffer) -> Stored:
    """Write the object, and say what it is."""
    objects.put(name, [memoryview(data)])
    return stored(name, data)


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
