"""Batches whose buffers are anywhere in memory."""

from __future__ import annotations

import pyarrow as pa

from pointstamp.formats.aligned_batches import aligned
from tests.formats.misaligned import is_aligned, misaligned


def test_batches_anywhere_in_memory_are_copied_to_where_arrow_wants_them() -> None:
    values = [1, None, 3]
    batch = pa.record_batch(
        {"n": values, "text": ["a", None, "bcd"], "kind": pa.array("aab").dictionary_encode()}
    )
    assert aligned(batch) is batch
    moved = misaligned(batch)
    assert not is_aligned(moved)
    assert is_aligned(aligned(moved))
    assert aligned(moved).equals(batch)
