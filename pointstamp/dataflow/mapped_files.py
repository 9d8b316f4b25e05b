"""Arrays in files of one worker, read through memory: what is kept, and does not fit.

An array is written piece by piece into a file without a name, and is then a read-only view of
that file. The disk is given back when nothing refers to the array any more, however the worker
ends. What is read of it is counted by the system as the worker's memory until it is needed
otherwise; so that this stays near the limit, `trim` lets it go now and then, which costs a look
into the system's cache where it is read again.

Knows nothing of what the numbers mean, nor of when an array does not fit.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.dataflow.spill_files import MapWriter, SpillFiles

Words = npt.NDArray[np.int64]

_STATM = Path("/proc/self/statm")

READS = 16
"""After so many reads it is looked at how much is in memory."""


class MappedFiles:
    """The arrays of one worker that are on disk.

    Parameters
    ----------
    files : SpillFiles
        What writes them; errors are its.
    most_bytes : int
        About how much of what was read may stay in memory.

    Examples
    --------
    >>> mapped = MappedFiles(SpillFiles(), 1 << 20)
    >>> rows = mapped.array([np.array([[1, 2]]), np.array([[3, 4], [5, 6]])], 2)
    >>> rows.tolist(), rows.flags.writeable, mapped.n_bytes
    ([[1, 2], [3, 4], [5, 6]], False, 48)
    >>> del rows
    >>> mapped.n_bytes
    0
    """

    def __init__(self, files: SpillFiles, most_bytes: int) -> None:
        self._files = files
        self._most_bytes = most_bytes
        self._n_reads = 0
        self._others: int | None = None
        """What of files was in memory before: the program itself."""

    @property
    def n_bytes(self) -> int:
        """What lies on disk now."""
        return self._files.mapped_bytes

    def array(self, pieces: Iterable[Words], width: int) -> Words:
        """Rows int64[n, width] that were given in pieces; it cannot be written to.

        Raises
        ------
        SpillError
            If the disk is full, or the directory cannot be used.
        """
        writer = self.writer(width)
        try:
            for piece in pieces:
                writer.write(piece)
            return writer.array()
        finally:
            writer.close()

    def writer(self, width: int) -> ArrayWriter:
        """The same of pieces as they come: rows int64[n, width]."""
        if self._others is None:
            self._others = _resident()
        return ArrayWriter(self._files.writer(), width)

    def trim(self) -> None:
        """Called before arrays are read: let go what was read, if it is much."""
        self._n_reads += 1
        if self._n_reads < READS or not self._files.maps:
            return
        self._n_reads = 0
        resident = _resident()
        if resident is None or resident - (self._others or 0) > self._most_bytes:
            self.let_go()

    def let_go(self) -> None:
        """Have nothing of what was read in this process; it is read from the files again."""
        for found in list(self._files.maps):
            if hasattr(found, "madvise"):  # not on each system
                found.madvise(mmap.MADV_DONTNEED)


class ArrayWriter:
    """An array that is written into a file piece by piece; see `MappedFiles.array`."""

    def __init__(self, writer: MapWriter, width: int) -> None:
        self._writer = writer
        self._width = width

    def write(self, piece: Words) -> None:
        """Write rows behind those that were written; they may change afterwards."""
        if len(piece):
            self._writer.write(_bytes(piece))

    def array(self) -> Words:
        """All rows. The last thing to be asked for."""
        found = self._writer.mapped()
        if found is None:
            return np.empty((0, self._width), np.int64)
        return np.frombuffer(found, np.int64).reshape(-1, self._width)

    def close(self) -> None:
        """See `MapWriter.close`."""
        self._writer.close()


def _bytes(piece: Words) -> memoryview:
    data: Any = np.ascontiguousarray(piece)
    return memoryview(data).cast("B")


def _resident() -> int | None:
    """How many bytes of files are in this process's memory; None where the system has no number."""
    if not _STATM.exists():
        return None
    return int(_STATM.read_text().split()[2]) * mmap.PAGESIZE
