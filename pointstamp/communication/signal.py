"""A wake-up call that may come inside of anything, even of itself.

`threading.Event.set` takes a lock: called by a finalizer that interrupts another
call of it in the same thread, it waits for itself. `SimpleQueue.put` is reentrant.
"""

from __future__ import annotations

import contextlib
import queue


class Signal:
    """What `threading.Event` does, safe in finalizers."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        """Whether it was set since it was last cleared."""
        return not self._queue.empty()

    def set(self) -> None:
        """End a `wait`, this one or the next."""
        if self._queue.empty():
            self._queue.put(None)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until it is set."""
        with contextlib.suppress(queue.Empty):
            self._queue.put(self._queue.get(timeout=timeout_s))

    def clear(self) -> None:
        """Forget what was set."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
