"""Batches that came by Arrow Flight, as Arrow's kernels take them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_ALIGNED_BYTES = 8
"""What Arrow's kernels want addresses to be multiples of; its IPC writes buffers so."""


def aligned(batch: Any) -> Any:
    """A `pyarrow.RecordBatch` whose buffers Arrow's kernels take without a warning.

    Small messages of Arrow Flight are anywhere in memory. What is aligned is not copied.
    """
    buffers = (buffer for column in batch.columns for buffer in column.buffers())
    if all(buffer is None or buffer.address % _ALIGNED_BYTES == 0 for buffer in buffers):
        return batch
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return reader.read_next_batch()
