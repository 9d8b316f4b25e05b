"""A record batch as the buffers that it consists of, so that nothing copies them to send it.

Arrow's own stream format writes a batch into one new buffer; for a large batch that
copy costs more than all else on the way to a peer on the same machine. Here the
buffers of its columns are named one by one, and of a slice of a batch only what
the slice covers, for a writer to take from where they are:

    header | for each column: validity (if it has nulls), offsets (of text), data

Columns of fixed width, text and binaries can be taken apart like that. Batches
with others (nested ones, dictionaries, views) travel in Arrow's format.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.containers.kind import Buffer
from pointstamp.containers.texts import is_large, is_text

# Any, since the stubs of pyarrow give each type of column a class of its own, without
# the buffers that are read here.
ArrowArray = Any


def is_flat(schema: pa.Schema) -> bool:
    """Whether batches of this schema can be taken apart."""
    kinds = schema.types
    return bool(kinds) and all(_is_fixed(kind) or is_text(kind) for kind in kinds)


def take_apart(batch: pa.RecordBatch) -> list[Buffer]:
    """A header, and the buffers of `batch`, whose schema `is_flat`; none is a copy.

    Except the offsets of text in a slice: they count from its beginning, so they
    are written anew. A slice begins at the last whole byte of validity.

    >>> batch = pa.record_batch({"a": list(range(100)), "s": ["x"] * 100})
    >>> [len(buffer) for buffer in take_apart(batch.slice(90, 10))[1:]]  # a, offsets, s
    [96, 52, 12]
    >>> put_together(take_apart(batch.slice(90, 10))) == batch.slice(90, 10)
    True
    """
    buffers: list[Buffer] = []
    columns = []
    for column in batch.columns:
        shift = column.offset % 8
        start, n_values = column.offset - shift, shift + len(column)
        if column.null_count:
            buffers.append(_bits(column.buffers()[0], start, n_values))
        part = _text if is_text(column.type) else _fixed
        buffers += part(column, start, n_values)
        columns.append((shift, column.null_count))
    header = (batch.schema.serialize().to_pybytes(), batch.num_rows, columns)
    return [pickle.dumps(header, protocol=5), *buffers]


def put_together(buffers: Sequence[Buffer]) -> pa.RecordBatch:
    """The batch that `take_apart` made `buffers` of; its columns are views of them.

    Raises `pa.ArrowInvalid` if the buffers are too short for what the header says.
    """
    described, n_records, columns = pickle.loads(buffers[0])
    schema = pa.ipc.read_schema(pa.py_buffer(described))
    rest = iter(buffers[1:])
    arrays = []
    for kind, (shift, null_count) in zip(schema.types, columns, strict=True):
        n_parts = 2 if is_text(kind) else 1
        validity = pa.py_buffer(next(rest)) if null_count else None
        parts = [pa.py_buffer(next(rest)) for _ in range(n_parts)]
        arrays.append(pa.Array.from_buffers(kind, n_records, [validity, *parts], null_count, shift))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    batch.validate()
    return batch


def _fixed(column: ArrowArray, start: int, n_values: int) -> list[Buffer]:
    width = column.type.bit_width
    return [_bits(column.buffers()[1], start * width, n_values * width)]


def _text(column: ArrowArray, start: int, n_values: int) -> list[Buffer]:
    """Offsets that begin with 0, and the bytes that they are of."""
    _, offsets, data = column.buffers()
    dtype = np.int64 if is_large(column.type) else np.int32
    if offsets is None or not n_values:
        return [bytes(np.dtype(dtype).itemsize), b""]
    bounds = np.frombuffer(offsets, dtype)[start : start + n_values + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    if first:
        bounds = bounds - first
    return [bounds.data.cast("B"), _bits(data, 8 * first, 8 * (last - first))]


def _bits(buffer: pa.Buffer | None, start: int, n_bits: int) -> Buffer:
    """The bytes that hold `n_bits` from bit `start`, the first of a byte."""
    if buffer is None or not n_bits:
        return b""
    return memoryview(buffer.slice(start // 8, -(-n_bits // 8))).cast("B")


def _is_fixed(kind: pa.DataType) -> bool:
    return (
        pa.types.is_primitive(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
