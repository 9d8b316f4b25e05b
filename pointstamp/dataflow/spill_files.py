"""The files of one worker for what does not fit into its memory: written once, read once.

What spills gives bytes and gets a place, by which they are read; when they are freed, so is
the disk. What lies there is found in no folder: the files have no names where the
system has such files, so that nothing is left over however the worker ends, killed too.

Theory of operation. Places follow each other in *segments*, each a file. A segment is
closed when all that lies in it is freed and it takes no more; the one that does is emptied.
Another is begun when that is full: after `SEGMENT_BYTES`, or after an eighth of all that is
on disk, so that few files are open, and little is kept for the sake of its neighbours.

Bytes are read into memory of their own. Maps of the file would spare that copy, but what is
mapped counts as the worker's memory all the same, and would keep the disk from being freed. Only
what is kept, and read again and again, is mapped: in a file of its own (`mapped_files`).

Knows nothing of what the bytes mean, nor of when to spill. Any thread may call.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from weakref import WeakSet

from pointstamp.communication.framing import unset_bytes
from pointstamp.containers.kind import Buffer
from pointstamp.errors import SpillError

SEGMENT_BYTES = 64 << 20
"""A segment takes this at least, unless nothing more comes."""

_PIECES = 512
"""So many buffers go into one call of the system, which takes 1024 on Linux."""


class _Segment:
    """A file, how long it is, and what of it is in use."""

    def __init__(self, fd: int, most_bytes: int) -> None:
        # And no file object, which would warn where it is collected.
        self.fd = fd
        self.most_bytes = most_bytes
        self.n_bytes = 0
        self.n_used = 0

    def __del__(self) -> None:
        # A worker that fails leaves to its links what they still have to send.
        self.close()

    def close(self) -> None:
        """Let the file go; again does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class SpilledBytes(NamedTuple):
    """Where bytes lie."""

    segment: _Segment
    start: int
    n_bytes: int


class SpillFiles:
    """What lies on disk for one worker.

    Parameters
    ----------
    directory : str, optional
        Where; the default is that of `tempfile`.

    Raises
    ------
    SpillError
        By all methods, when the disk is full, or the directory cannot be used.

    Examples
    --------
    >>> files = SpillFiles()
    >>> place = files.write([b"seven", b"77"])
    >>> bytes(files.read(place, 5, 2)), files.n_bytes
    (b'77', 7)
    >>> files.free(place)
    >>> files.n_bytes, files.n_written, files.n_read
    (0, 7, 2)
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = tempfile.gettempdir() if directory is None else directory
        self.n_bytes = 0
        """What lies there and is not freed."""
        self.n_written = 0
        self.n_read = 0
        self.maps: WeakSet[mmap.mmap] = WeakSet()
        """What `mapped` gave, and something refers to."""
        self._segments: set[_Segment] = set()
        self._current: _Segment | None = None
        self._lock = threading.Lock()

    @property
    def mapped_bytes(self) -> int:
        """How much is mapped."""
        return sum(map(len, list(self.maps)))

    @property
    def n_files(self) -> int:
        """How many files are open."""
        return len(self._segments)

    def write(self, buffers: Sequence[Buffer]) -> SpilledBytes:
        """Write these bytes; the buffers may change afterwards."""
        with self._lock:
            segment = self._writable()
            start = segment.n_bytes
            n_bytes = sum(memoryview(buffer).nbytes for buffer in buffers)
            try:
                _write(segment.fd, buffers, start)
            except OSError as error:
                raise self.failed(error, f"{n_bytes} bytes cannot be written") from error
            segment.n_bytes += n_bytes
            segment.n_used += 1
            self.n_bytes += n_bytes
            self.n_written += n_bytes
            return SpilledBytes(segment, start, n_bytes)

    def mapped(self, pieces: Iterable[Buffer]) -> mmap.mmap | None:
        """These bytes in a file of their own, mapped to be read; None if there are none.

        Without a name, as the others, and gone with the last reference. Pieces are asked for one
        by one, and may change afterwards.
        """
        writer = self.writer()
        try:
            for piece in pieces:
                writer.write(piece)
            return writer.mapped()
        finally:
            writer.close()

    def writer(self) -> MapWriter:
        """Writes pieces, as they come, into a file of their own, which is mapped in the end."""
        return MapWriter(self, self._new_file())

    def read(self, place: SpilledBytes, start: int, n_bytes: int) -> memoryview:
        """`n_bytes` of a place from `start` on, in memory of their own."""
        memory = unset_bytes(n_bytes)
        try:
            _read(place.segment.fd, memory, place.start + start)
        except OSError as error:
            raise self.failed(error, f"{n_bytes} bytes cannot be read") from error
        with self._lock:
            self.n_read += n_bytes
        return memory

    def free(self, place: SpilledBytes) -> None:
        """Give up what lies at a place; not twice."""
        with self._lock:
            segment = place.segment
            segment.n_used -= 1
            self.n_bytes -= place.n_bytes
            if segment.n_used or segment not in self._segments:
                return
            if segment is self._current:
                os.ftruncate(segment.fd, 0)
                segment.n_bytes = 0
            else:
                self._close(segment)

    def close(self) -> None:
        """Give up everything."""
        with self._lock:
            for segment in list(self._segments):
                self._close(segment)

    def _writable(self) -> _Segment:
        """The segment that takes more."""
        segment = self._current
        if segment is None or segment.n_bytes >= segment.most_bytes:
            fd = self._new_file()
            segment = self._current = _Segment(fd, max(SEGMENT_BYTES, self.n_bytes // 8))
            self._segments.add(segment)
        return segment

    def _new_file(self) -> int:
        try:
            with tempfile.TemporaryFile(
                prefix="pointstamp-spill-", dir=self.directory, buffering=0
            ) as file:
                return os.dup(file.fileno())
        except OSError as error:
            raise self.failed(error, "no file can be made") from error

    def _close(self, segment: _Segment) -> None:
        self._segments.discard(segment)
        if segment is self._current:
            self._current = None
        segment.close()

    def count_written(self, n_bytes: int) -> None:
        """So many bytes more were written."""
        with self._lock:
            self.n_written += n_bytes

    def failed(self, error: Exception, what: str) -> SpillError:
        """What to raise where the system has refused something."""
        where = f"in the spill directory {self.directory!r}"
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return SpillError(
                f"{what} {where}, which is full ({error.strerror}); "
                f"{self.n_bytes + self.mapped_bytes} bytes of this worker lie there: make room, "
                "give a spill_directory= on a larger disk, raise memory_limit=, or have more "
                "workers"
            )
        return SpillError(
            f"{what} {where}: {error}; give a spill_directory= that each worker can write to"
        )


class MapWriter:
    """A file that is written piece by piece, and then mapped; see `SpillFiles.mapped`."""

    def __init__(self, files: SpillFiles, fd: int) -> None:
        self._files = files
        self._fd = fd
        self._n_bytes = 0

    def __del__(self) -> None:
        # What gives up what it writes has no more to do than to let go of it.
        self.close()

    def write(self, piece: Buffer) -> None:
        """Write bytes behind those that were written; they may change afterwards."""
        try:
            _write(self._fd, [piece], self._n_bytes)
        except OSError as error:
            raise self._files.failed(
                error, f"{self._n_bytes} bytes and more cannot be written"
            ) from error
        self._n_bytes += memoryview(piece).nbytes

    def mapped(self) -> mmap.mmap | None:
        """All that was written; None if that is nothing. The last thing to be asked for."""
        try:
            if not self._n_bytes:
                return None
            found = mmap.mmap(self._fd, self._n_bytes, access=mmap.ACCESS_READ)
        except OSError as error:
            raise self._files.failed(error, f"{self._n_bytes} bytes cannot be mapped") from error
        self._files.maps.add(found)
        return found

    def close(self) -> None:
        """Let the file go, which what is mapped keeps; again does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            self._files.count_written(self._n_bytes)


def _write(fd: int, buffers: Sequence[Buffer], start: int) -> None:
    """Write all of `buffers` from `start` on, in as many calls as the system needs."""
    rest = [memoryview(buffer).cast("B") for buffer in buffers if memoryview(buffer).nbytes]
    at = 0
    while at < len(rest):
        n_written = os.pwritev(fd, rest[at : at + _PIECES], start)
        start += n_written
        while at < len(rest) and n_written >= len(rest[at]):
            n_written -= len(rest[at])
            at += 1
        if n_written:
            rest[at] = rest[at][n_written:]


def _read(fd: int, memory: memoryview, start: int) -> None:
    """Fill `memory` with what lies from `start` on."""
    n_read = 0
    while n_read < len(memory):
        n_more = os.preadv(fd, [memory[n_read:]], start + n_read)
        if not n_more:
            raise OSError(errno.EIO, f"the file ends after {start + n_read} bytes")
        n_read += n_more
