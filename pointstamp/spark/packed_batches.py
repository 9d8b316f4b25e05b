"""Packed batches: Arrow batches as rows of one binary column, as which they cross a shuffle.

A dataflow may read several DataFrames, and Spark gives a stage one. So the
batches of each input are packed into rows (worker, number of the input, bytes),
all inputs are put together, and one shuffle brings the rows to the workers. The
results leave as packed batches too. A packed batch holds about 1 MiB, so Spark's cost per row
is paid per batch, and no record is ever a Python object or a row of the JVM.

Nothing here knows PySpark, or what the batches are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from pointstamp.containers.builder import Builder
from pointstamp.containers.columns import ColumnsKind

SCHEMA = "worker int, input int, payload binary"
"""What Spark knows of the rows."""

_FIELDS: list[pa.Field[Any]] = [
    pa.field("worker", pa.int32()),
    pa.field("input", pa.int32()),
    pa.field("payload", pa.binary()),
]
_ARROW = pa.schema(_FIELDS)
_KIND = ColumnsKind()


class PackedBatch(NamedTuple):
    """A batch, and where it belongs."""

    worker: int
    input: int
    batch: pa.RecordBatch


def pack(packed: PackedBatch) -> pa.RecordBatch:
    """A packed as one row; the payload is not copied once it is encoded.

    >>> batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3]})
    >>> [unpacked] = unpack([pack(PackedBatch(1, 0, batch))])
    >>> unpacked.worker, unpacked.input, unpacked.batch.equals(batch)
    (1, 0, True)
    """
    (payload,) = (pa.py_buffer(part) for part in _KIND.encode(packed.batch))
    offsets = pa.array([0, payload.size], pa.int32()).buffers()[1]
    column = pa.BinaryArray.from_buffers(pa.binary(), 1, [None, offsets, payload])
    numbers = [pa.array([number], pa.int32()) for number in packed[:2]]
    return pa.RecordBatch.from_arrays([*numbers, column], schema=_ARROW)


def unpack(rows: Iterable[pa.RecordBatch]) -> Iterator[PackedBatch]:
    """The packed batches in rows, whose batches are views of them."""
    for row in rows:
        for worker, input, payload in zip(*row.columns, strict=True):
            batch = _KIND.decode([payload.as_buffer()])
            yield PackedBatch(worker.as_py(), input.as_py(), batch)


def distribute(
    batches: Iterable[pa.RecordBatch], input: int, first: int, workers: int
) -> Iterator[pa.RecordBatch]:
    """Pack `batches` for the workers in turn, beginning with worker `first % workers`.

    Small batches are put together and large ones cut, to the preferred size of a
    container. The same batches are always dealt alike, so that a task that Spark
    runs twice gives the same rows. All fields may be null in what is dealt.
    """
    for n, batch in enumerate(_arriving(batches), start=first):
        yield pack(PackedBatch(n % workers, input, batch))


def of_input(batches: Iterable[pa.RecordBatch], worker: int, input: int) -> Iterator[PackedBatch]:
    """The same of one input, for the worker that has them already."""
    return (PackedBatch(worker, input, batch) for batch in _arriving(batches))


def _arriving(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return resized(map(_may_be_null, batches))


def resized(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The records of `batches`, in batches of the preferred size."""
    ready: list[Any] = []
    builder = Builder(ready.append)
    for batch in batches:
        builder.give_batch(batch)
        yield from ready
        ready.clear()
    builder.flush()
    yield from ready


# Spark knows of some columns that they have no nulls, of `range` for one, and two
# DataFrames often differ in nothing else. Operators have no use for the promise, and
# streams that differ in it could not be concatenated, nor their batches with those
# that an operator makes, in which any field may be null. So it ends here, where
# batches come in; a comparison that overlooks it would only move the failure to where
# Arrow puts batches together. What the result promises, its own schema says. Metadata
# of fields stays: Arrow's comparison overlooks it, and some types of Spark need it.


def _may_be_null(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same columns, not copied, without the promise that there are no nulls.

    >>> batch = pa.RecordBatch.from_pydict(
    ...     {"n": [1]}, schema=pa.schema([pa.field("n", pa.int64(), nullable=False)])
    ... )
    >>> _may_be_null(batch).schema.field("n").nullable
    True
    """
    schema = pa.schema([_nullable(field) for field in batch.schema])
    return batch if schema.equals(batch.schema) else batch.cast(schema)


def _nullable(field: pa.Field[Any]) -> pa.Field[Any]:
    return field.with_type(_with_nullable_fields(field.type)).with_nullable(True)


# Any, since the stubs of pyarrow have a class for each type, and no `map_` of fields.
def _with_nullable_fields(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(field) for field in kind])
    if pa.types.is_map(kind):  # whose keys are never null
        key: Any = kind.key_field.with_type(_with_nullable_fields(kind.key_type))
        item: Any = _nullable(kind.item_field)
        return pa.map_(key, item)
    if pa.types.is_large_list(kind):
        return pa.large_list(_nullable(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_field))
    return kind
