"""What a worker reports its steps to, if to anything: the part of a log that is in their way."""

from __future__ import annotations


class StepObserver:
    """What is called in every step of a worker that has a log; see `Logger`.

    A class and not a protocol, so that compiled code calls it directly.
    """

    __slots__ = ()

    def now(self) -> int:
        """See `Logger`."""
        raise NotImplementedError

    def visited(self, scope: int, began: int) -> None:
        """See `Logger`."""
        raise NotImplementedError

    def progress_sent(self, scope: int, n_updates: int) -> None:
        """See `Logger`."""
        raise NotImplementedError

    def progress_received(self, scope: int, sender: int, n_updates: int) -> None:
        """See `Logger`."""
        raise NotImplementedError

    def tick(self) -> None:
        """See `Logger`."""
        raise NotImplementedError
