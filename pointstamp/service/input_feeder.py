"""One input on one worker: what is decided and not sent yet, and the handle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from pointstamp.operators.sources import InputHandle


class InputFeeder:
    """Feeds an input as fast as the dataflow takes it, in the order of the decisions."""

    def __init__(self, handle: InputHandle) -> None:
        self._handle = handle
        # Each is called until it has nothing more to do, which it says by None.
        self._waiting: deque[Callable[[], bool | None]] = deque()

    @property
    def time(self) -> int | None:
        """The epoch that the input is at; None when it is closed."""
        return None if self._handle.is_closed else int(self._handle.time)

    def admit(self, epoch: int, batches: Iterable[pa.RecordBatch], until: int | None) -> None:
        """Send `batches` at `epoch`, then go on to `until`, or close; `feed` does it.

        They are asked for one by one, so that what is read from files is not in memory at once.
        """
        handle = self._handle
        self._waiting.append(partial(handle.advance_to, epoch))
        self._waiting.append(partial(self._send, iter(batches)))
        self._waiting.append(handle.close if until is None else partial(handle.advance_to, until))

    def feed(self) -> None:
        """Send what the dataflow has room for; the rest waits for the next call."""
        while self._waiting and not self._handle.is_throttled:
            if not self._waiting[0]():
                self._waiting.popleft()

    def _send(self, batches: Iterator[pa.RecordBatch]) -> bool | None:
        for batch in batches:
            self._handle.send_batch(batch)
            return True
        return None
