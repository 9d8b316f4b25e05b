"""What a worker is to do after a while: its clock, and no other's.

Operators ask for it through `info.activate_after`. A worker that parks does so no
longer than until the first of these is due. Nothing below this layer knows a clock.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Collection
from typing import Any

from pointstamp.errors import UsageError

MAX_WAIT_S = 3_600.0
"""What the system is asked to wait at most: it counts milliseconds in 32 bits."""


class Timers:
    """Functions to be called at a time, soonest first.

    >>> now = 0.0
    >>> timers = Timers(lambda: now)
    >>> timers.after(2, lambda: print("late"))
    >>> timers.after(1, lambda: print("early"))
    >>> timers.wait_s(None)
    1.0
    >>> now = 1.5
    >>> timers.ring()
    early
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        """Seconds since some moment."""
        self.waiting: list[tuple[float, int, Callable[[], None]]] = []
        """(when, which one it was, what); the same list for good, so that it can be kept."""
        self._n_made = 0

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Have `call` called after `seconds`."""
        if not 0 <= seconds < math.inf:
            raise UsageError(
                f"nothing can be done after {seconds} seconds: give a finite number, 0 or more"
            )
        heapq.heappush(self.waiting, (self.clock() + seconds, self._n_made, call))
        self._n_made += 1

    def now(self) -> float:
        """What the clock says."""
        return self.clock()

    def ring(self) -> None:
        """Call what is due."""
        now = self.clock()
        while self.waiting and self.waiting[0][0] <= now:
            heapq.heappop(self.waiting)[2]()

    def wait_s(self, at_most_s: float | None) -> float | None:
        """How long to wait: until the first is due, or as long as `at_most_s` if that is less."""
        if not self.waiting:
            return at_most_s
        until_s = min(MAX_WAIT_S, max(0.0, self.waiting[0][0] - self.clock()))
        return until_s if at_most_s is None else min(until_s, at_most_s)

    def forget(self, subgraphs: Collection[Any]) -> None:
        """Take out the activations of operators of these scopes."""
        self.waiting[:] = [
            entry for entry in self.waiting if getattr(entry[2], "subgraph", None) not in subgraphs
        ]
        heapq.heapify(self.waiting)
