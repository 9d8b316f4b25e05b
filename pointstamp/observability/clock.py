"""What the moments of a log are: nanoseconds, or in a simulation the numbers of the events.

An event takes a look or two at the clock, which is most of what it costs. Compiled, that is a
call of C, without an object for the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns, time_ns

from pointstamp.compiled import build_info


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

    __slots__ = ("_is_compiled", "_ticks", "last", "offset", "unit")

    def __init__(self, ticks: Callable[[], int] | None = None) -> None:
        self._ticks = ticks
        self._is_compiled = build_info() == "compiled"
        self.last = 0
        """The latest moment that was given."""
        self.unit = "ns" if ticks is None else "ticks"
        self.offset = time_ns() - self.now() if ticks is None else 0
        """What makes its moments comparable with those of other workers."""

    def now(self) -> int:
        """The moment."""
        if self._ticks is not None:
            self.last = self._ticks()
        elif self._is_compiled:
            # What `perf_counter_ns` calls. A name of the .pxd alone, as Cython has no function
            # that is another one where it is not compiled.
            self.last = _perf_counter_in_c()  # type: ignore[name-defined]  # noqa: F821
        else:
            self.last = perf_counter_ns()
        return self.last

    def recent(self) -> int:
        """The moment, for what follows at once on something that has looked at the clock.

        That of the last look, which saves another; where the moments are numbers, the next one.
        """
        return self.last if self._ticks is None else self.now()
