"""Batches whose buffers are anywhere in memory, as those of small Flight messages are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def misaligned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """An equal batch, of which no buffer is at a multiple of 8."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = np.frombuffer(sink.getvalue(), np.uint8)
    memory = np.zeros(len(data) + 16, np.uint8)
    start = -memory.ctypes.data % 8 + 3
    memory[start : start + len(data)] = data
    with pa.ipc.open_stream(pa.py_buffer(memory[start : start + len(data)])) as reader:
        return reader.read_next_batch()


def is_aligned(batch: pa.RecordBatch) -> bool:
    """Whether all buffers are at multiples of 8."""
    buffers = [buffer for column in batch.columns for buffer in column.buffers()]
    return all(buffer is None or buffer.address % 8 == 0 for buffer in buffers)
