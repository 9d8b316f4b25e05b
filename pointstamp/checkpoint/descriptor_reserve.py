"""File descriptors that are kept, for when all others are in use.

A process that serves strangers may run out of descriptors by what they open. What must go on
then, as a commit, gives up some that it has kept, opens its file, and takes them back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from pointstamp.errors import CheckpointError

Result = TypeVar("Result")

N_KEPT = 8

PATIENCE_S = 5.0
"""How long to try, where others take the descriptors that are released."""

RETRY_S = 0.05


class DescriptorReserve:
    """Keeps descriptors until it is closed, for `with_reserve` to release for a while.

    >>> reserve = DescriptorReserve(2)
    >>> with_reserve(lambda: "done")
    'done'
    >>> reserve.close()
    """

    def __init__(self, n: int = N_KEPT) -> None:
        self._n = n
        self._kept: list[int] = []
        self._lock = threading.RLock()
        self._keep()
        _open.append(self)

    def close(self) -> None:
        """Release all for good."""
        with contextlib.suppress(ValueError):
            _open.remove(self)
        self._release()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Have them free for a while."""
        with self._lock:
            self._release()
            try:
                yield
            finally:
                if self in _open:
                    self._keep()

    def _keep(self) -> None:
        """Take as many as are lacking, if there are so many."""
        with self._lock, contextlib.suppress(OSError):
            while len(self._kept) < self._n:
                self._kept.append(os.open(os.devnull, os.O_RDONLY))

    def _release(self) -> None:
        with self._lock:
            while self._kept:
                os.close(self._kept.pop())


_open: list[DescriptorReserve] = []
"""Those of this process."""


def with_reserve(function: Callable[[], Result]) -> Result:
    """What `function` gives, which is called again where no descriptor is left.

    Then with those free that a reserve of this process has kept, if there is one.
    """
    try:
        return function()
    except CheckpointError as error:
        if not _open or not _is_exhausted(error):
            raise
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with contextlib.ExitStack() as stack:
                for reserve in _open:
                    stack.enter_context(reserve.released())
                return function()
        except CheckpointError as error:
            if not _is_exhausted(error) or time.monotonic() > until:
                raise
        time.sleep(RETRY_S)


def _is_exhausted(error: CheckpointError) -> bool:
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE)
