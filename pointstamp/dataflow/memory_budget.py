"""How much a worker may keep in memory of what waits, and what is kept of the rest.

What waits is what has come and is not taken: in channels, in stashes until its time is
complete, and, in a service, until its epoch is. One budget counts all of it, for one worker.
What does not fit goes to the worker's files (`spill_files`), and comes back when it is
taken. Of what operators keep, arrangements of collections are counted (`collections.spine_memory`);
tables of their own, and what they have taken, are not.

Rules
-----
1. `held_bytes` changes in `fits`, `hold` and `release`, and nowhere else.
2. `peak_bytes` is at most `limit_bytes` and one container: `hold` is for one that has to be
   in memory for a moment, and for small batches that are kept; anything else asks whether it
   `fits`.
3. Progress is not counted and does not spill: a message on disk is outstanding like any
   other.

Any thread may call: in a service, what is sent is kept by threads of its server.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections import deque
from typing import Any, Protocol

from pointstamp.containers.registry import kind_of
from pointstamp.dataflow.spill_files import SpillFiles
from pointstamp.errors import SpillError

LIST_PART, QUEUE_PART = 5, 6
"""Of the budget's eighths: what may be taken by what waits longest, and by the first in line.

The rest is for putting small messages together that are to be written.
"""

BLOCK_BYTES = 1 << 20
"""Small messages are written together, up to this size, or less with a small budget."""


class Clearable(Protocol):
    """What holds something."""

    def clear(self) -> None:
        """Give all of it up."""


class MemoryBudget:
    """What one worker holds, and the files for what it cannot hold.

    Parameters
    ----------
    limit_bytes : int
        How much it may hold.
    directory : str, optional
        For the files; the default is that of `tempfile`.

    Raises
    ------
    SpillError
        If there can be no files in the directory.

    Examples
    --------
    >>> budget = MemoryBudget(800)
    >>> budget.fits(500), budget.fits(500), budget.held_bytes
    (True, False, 500)
    >>> budget.release(500)
    >>> budget.fits(500, eighths=4), budget.fits(400, eighths=4)
    (False, True)
    """

    def __init__(self, limit_bytes: int, directory: str | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.block_bytes = min(BLOCK_BYTES, limit_bytes // 16)
        self.held_bytes = 0
        """What is counted now."""
        self.peak_bytes = 0
        """The most that it ever was."""
        self.files = SpillFiles(_checked(directory))
        self._lock = threading.Lock()
        self._ended: deque[Clearable] = deque()

    @property
    def spilled_bytes(self) -> int:
        """All that was ever written to disk."""
        return self.files.n_written

    def fits(self, n_bytes: int, eighths: int = 8) -> bool:
        """Count `n_bytes` if no more than so many eighths of the limit are held with them."""
        self.collect()
        with self._lock:
            held = self.held_bytes + n_bytes
            if held > self.limit_bytes * eighths // 8:
                return False
            self.held_bytes = held
            self.peak_bytes = max(self.peak_bytes, held)
            return True

    def hold(self, n_bytes: int) -> None:
        """Count `n_bytes`, which are there whether they fit or not."""
        with self._lock:
            self.held_bytes += n_bytes
            self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def release(self, n_bytes: int) -> None:
        """Count `n_bytes` less."""
        with self._lock:
            self.held_bytes -= n_bytes

    def end(self, parts: Clearable) -> None:
        """Give up the parts of a list soon: it is being collected, inside of anything."""
        self._ended.append(parts)

    def collect(self) -> None:
        """Give up those parts now."""
        # Two threads may be here: what one finds, the other may have taken.
        with contextlib.suppress(IndexError):
            while self._ended:
                self._ended.popleft().clear()

    def close(self) -> None:
        """Give up what is on disk; nothing of it can be read any more."""
        self._ended.clear()
        self.files.close()


def bytes_in(batch: Any) -> int:
    """About how many bytes a container takes: the one place that says so.

    Columns know it; of rows some are looked at, one level deep (`RowsKind.n_bytes`), and of a
    few they are taken as they are. A container that holds nothing counts as well.
    """
    return 64 + int(kind_of(batch).n_bytes(batch))


def _checked(directory: str | None) -> str:
    found = tempfile.gettempdir() if directory is None else directory
    if not os.access(found, os.W_OK | os.X_OK) or not os.path.isdir(found):  # noqa: PTH112
        raise SpillError(
            f"spill_directory {found!r} is no directory that can be written to on this machine; "
            "make it there, or give another one"
        )
    return found
