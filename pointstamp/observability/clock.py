"""What the moments of a log are: nanoseconds, or in a simulation the numbers of the events.

An event takes a look or two at the clock, which is most of what it costs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns

from pointstamp.metrics.tick_clock import now_ns


class LogClock:
    """The clock of one worker's log.

    Parameters
    ----------
    ticks : callable, optional
        Gives the moment, in place of the clock of this machine.

    >>> from itertools import count
    >>> clock = LogClock(count(7).__next__)
    >>> clock.now(), clock.now(), clock.unit, clock.offset
    (7, 8, 'ticks', 0)
    """

    __slots__ = ("_ticks", "last", "offset", "unit")

    def __init__(self, ticks: Callable[[], int] | None = None) -> None:
        self._ticks = ticks
        self.last = 0
        """The latest moment that was given."""
        self.unit = "ns" if ticks is None else "ticks"
        self.offset = time_ns() - self.now() if ticks is None else 0
        """What makes its moments comparable with those of other workers."""

    def now(self) -> int:
        """The moment."""
        self.last = now_ns() if self._ticks is None else self._ticks()
        return self.last

    def recent(self) -> int:
        """The moment, for what follows at once on something that has looked at the clock.

        That of the last look, which saves another; where the moments are numbers, the next one.
        """
        return self.last if self._ticks is None else self.now()
