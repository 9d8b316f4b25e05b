"""Consolidated rows, and what merging them in pieces has to give."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pointstamp.collections.spine_memory import SpineMemory, is_on_disk
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.spillable import WorkerMemory
from pointstamp.kernels.consolidation import consolidate, merge

updates = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([-1, 1])), max_size=60
).map(lambda rows: consolidate(np.array(rows, np.int64).reshape(-1, 3)))


def check_merge(left: Rows, right: Rows, limit: int) -> None:
    """Merged in pieces, of rows in memory and on disk, is merged at once."""
    expected = merge(left, right)
    with WorkerMemory(limit) as worker:
        memory = SpineMemory(worker)
        for one, other in ((left, right), (memory.keep(left), memory.keep(right))):
            merged = memory.merge(one, other)
            assert merged.tolist() == expected.tolist()
            assert merged.shape[1] == 3
            by_pieces = memory.begin(one, other)
            while not by_pieces.advance(5):
                assert by_pieces.n_fuel < len(left) + len(right) + 5
            assert by_pieces.rows.tolist() == expected.tolist()
        if limit == 1 and len(merged):
            assert is_on_disk(merged)
        memory.note([left, merged])
        assert worker.held_bytes == left.nbytes + (0 if is_on_disk(merged) else merged.nbytes)
        memory.note([])
        assert worker.held_bytes == 0
