"""How much of a spine is in memory: large batches go to disk where there is no more room.

Batches that are read through memory from a file are read by the same loops. Where one comes of a
merge it is written as it is merged, piece by piece, and never in memory as a whole. Small ones
stay: those are merged often, and of a geometric series they are little.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from pointstamp.containers.updates import Rows
from pointstamp.dataflow.spillable import WorkerMemory
from pointstamp.kernels.consolidation import merge

STATE_PART = 2
"""What is kept may take one part in so many of the limit; the rest is for what waits."""

SMALL_PART = 64
"""A batch of less than one part in so many of the limit stays in memory."""


class SpineMemory:
    """Says of the batches of one spine which are in memory, and counts those.

    Parameters
    ----------
    memory : WorkerMemory
        Of the worker.

    Examples
    --------
    >>> import numpy as np
    >>> memory = SpineMemory(WorkerMemory(1 << 10))
    >>> rows = memory.keep(np.ones((40, 2), np.int64))
    >>> is_on_disk(rows), is_on_disk(memory.keep(np.ones((1, 2), np.int64)))
    (True, False)
    """

    __slots__ = ("_held_bytes", "_memory", "_most_bytes", "_small_bytes")

    def __init__(self, memory: WorkerMemory) -> None:
        self._memory = memory
        self._held_bytes = 0
        self._most_bytes = memory.limit_bytes // STATE_PART
        self._small_bytes = memory.limit_bytes // SMALL_PART

    def __del__(self) -> None:
        self._memory.release(self._held_bytes)

    def note(self, batches: list[Rows]) -> None:
        """Count these batches in place of those of the last call."""
        n_bytes = sum(rows.nbytes for rows in batches if not is_on_disk(rows))
        if n_bytes > self._held_bytes:
            self._memory.hold(n_bytes - self._held_bytes)
        elif n_bytes < self._held_bytes:
            self._memory.release(self._held_bytes - n_bytes)
        self._held_bytes = n_bytes

    def keep(self, rows: Rows) -> Rows:
        """The same rows, on disk where there is no room for them."""
        if self._has_room(rows.nbytes):
            return rows
        pieces = (rows[i:j] for i, j in self._steps(rows))
        return self._memory.mapped.array(pieces, rows.shape[1])

    def merge(self, left: Rows, right: Rows) -> Rows:
        """Make one of two consolidated int64[n, w + 1], on disk where there is no room for it."""
        if self._has_room(left.nbytes + right.nbytes):
            return merge(left, right)
        return self._memory.mapped.array(self._merged(left, right), left.shape[1])

    def trim(self) -> None:
        """See `MappedFiles.trim`."""
        self._memory.mapped.trim()

    def _has_room(self, n_bytes: int) -> bool:
        is_small = n_bytes < self._small_bytes
        return is_small or self._memory.held_bytes + n_bytes <= self._most_bytes

    def _n_rows(self, rows: Rows) -> int:
        """How many rows are a piece."""
        return max(1, self._small_bytes // (8 * int(rows.shape[1])))

    def _steps(self, rows: Rows) -> Iterator[tuple[int, int]]:
        n = self._n_rows(rows)
        for begin in range(0, len(rows), n):
            yield begin, min(begin + n, len(rows))

    def _merged(self, left: Rows, right: Rows) -> Iterator[Rows]:
        """The merged rows in pieces, each of what is not behind a record."""
        n = self._n_rows(left)
        i = j = 0
        while i < len(left) or j < len(right):
            parts = left[i : i + n], right[j : j + n]
            last = min(_record(part[-1]) for part in parts if len(part))
            n_left, n_right = (bisect_right(part, last, key=_record) for part in parts)
            yield merge(parts[0][:n_left], parts[1][:n_right])
            i, j = i + n_left, j + n_right
            if is_on_disk(left) or is_on_disk(right):
                self._memory.mapped.trim()


def is_on_disk(rows: Rows) -> bool:
    """Whether rows of a spine are read from a file: what loops make may be written to."""
    return not rows.flags.writeable


def _record(row: Rows) -> tuple[int, ...]:
    return tuple(row[:-1].tolist())
