"""How much of a spine is in memory: large batches go to disk where there is no more room.

Batches that are read through memory from a file are read by the same loops. Where one comes of a
merge it is written as it is merged, piece by piece, and never in memory as a whole. Small ones
stay: those are merged often, and of a geometric series they are little.
"""

from __future__ import annotations

from collections.abc import Iterator

from pointstamp.collections.batch_merges import BatchMerge
from pointstamp.containers.updates import Rows
from pointstamp.dataflow.mapped_files import MappedFiles
from pointstamp.dataflow.spillable import WorkerMemory
from pointstamp.kernels.consolidation import merge, piece_of_two

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

    def note(self, batches: list[Rows], more_bytes: int = 0) -> None:
        """Count these batches, and what merges take, in place of those of the last call."""
        n_bytes = sum(rows.nbytes for rows in batches if not is_on_disk(rows)) + more_bytes
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
        merge_ = DiskMerge(left, right, self._memory.mapped, self._n_rows(left))
        merge_.advance(len(left) + len(right))
        return merge_.rows

    def begin(self, left: Rows, right: Rows) -> BatchMerge | DiskMerge:
        """The same by pieces."""
        if self._has_room(left.nbytes + right.nbytes):
            return BatchMerge(left, right)
        return DiskMerge(left, right, self._memory.mapped, self._n_rows(left))

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


class DiskMerge:
    """A merge under way, as `BatchMerge`, of which what there is so far is on disk.

    Parameters
    ----------
    n_rows : int
        A piece is of so many rows, however little fuel comes at a time.
    """

    nbytes = 0
    """What it takes in memory."""

    def __init__(self, left: Rows, right: Rows, mapped: MappedFiles, n_rows: int) -> None:
        self._left, self._right = left, right
        self._mapped = mapped
        self._n_rows = n_rows
        self._n_left = self._n_right = 0
        """So many rows were read of either."""
        self._writer = mapped.writer(left.shape[1])
        self.rows: Rows = left[:0]
        """Those of both, when it is complete."""
        self.is_complete = False
        self.n_fuel = 0

    @property
    def n_read(self) -> int:
        """How many rows it has read."""
        return self._n_left + self._n_right

    def advance(self, fuel: int) -> bool:
        """Read so many more rows at most, with what was left over before; whether it is over."""
        if self.is_complete:
            return True
        self.n_fuel += fuel
        left, right, n_all = self._left, self._right, len(self._left) + len(self._right)
        while self.n_read < n_all:
            # A piece has a row more at most, as both may have its last record.
            most = min(self._n_rows, n_all - self.n_read)
            if self.n_fuel - self.n_read < most:
                return False
            i, j = piece_of_two(left, self._n_left, right, self._n_right, most, left.shape[1] - 1)
            self._writer.write(merge(left[self._n_left : i], right[self._n_right : j]))
            self._n_left, self._n_right = i, j
            if is_on_disk(left) or is_on_disk(right):
                self._mapped.trim()
        self.rows = self._writer.array()
        self._writer.close()
        self.is_complete = True
        return True


def is_on_disk(rows: Rows) -> bool:
    """Whether rows of a spine are read from a file: what loops make may be written to."""
    return not rows.flags.writeable
