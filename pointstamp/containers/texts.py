"""Arrow columns of text or binaries as what they consist of: bounds, and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]

MOST_BYTES = np.iinfo(np.int32).max
"""What the texts of a column take together, where bounds have 32 bits."""


def is_text(kind: pa.DataType) -> bool:
    """Whether its values lie one after the other in one buffer.

    >>> is_text(pa.binary()), is_text(pa.string_view())
    (True, False)
    """
    return pa.types.is_string(kind) or pa.types.is_binary(kind) or is_large(kind)


def is_large(kind: pa.DataType) -> bool:
    """Whether its bounds have 64 bits."""
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def text_parts(column: Any) -> tuple[npt.NDArray[Any], Bytes]:
    """Where each of n texts begins and the last one ends, int32 or int64[n + 1]; and the bytes.

    column : pyarrow.Array of a type that `is_text` · neither is a copy

    >>> bounds, data = text_parts(pa.array(["ab", "", "c"]).slice(1))
    >>> bounds.tolist(), bytes(data)
    ([2, 2, 3], b'abc')
    """
    dtype = np.int64 if is_large(column.type) else np.int32
    _, offsets, data = column.buffers()
    if offsets is None or not len(column):
        return np.zeros(1, dtype), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, dtype)[column.offset : column.offset + len(column) + 1]
    return bounds, np.frombuffer(data or b"", np.uint8)


def text_array(kind: pa.DataType, bounds: npt.NDArray[Any], data: Bytes) -> Any:
    """The column of that type which `text_parts` takes apart; its bounds are from 0.

    >>> text_array(pa.string(), np.array([0, 2, 3]), np.frombuffer(b"abc", np.uint8)).to_pylist()
    ['ab', 'c']
    """
    ends: Any = bounds.astype(np.int64 if is_large(kind) else np.int32, copy=False)
    texts: Any = data
    parts = [None, pa.py_buffer(ends), pa.py_buffer(texts)]
    return pa.Array.from_buffers(kind, len(bounds) - 1, parts)
