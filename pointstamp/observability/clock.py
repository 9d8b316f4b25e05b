# cython: boundscheck=False, initializedcheck=False, cdivision=True
"""What the moments of a log are: nanoseconds, or in a simulation the numbers of the events.

An event takes a look or two at the clock, which would be most of what it costs. So what is kept is
the reading, which where one can is that of the processor's counter (`metrics/tick_clock.py`), and
readings become moments a batch at a time. For that both clocks are looked at, the counter and the
system's; the moment of a reading lies between those of the looks before and after it, as far as the
reading does. So moments of several workers of a machine compare as those of the system's clock do,
however long the workers run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from time import time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.metrics.tick_clock import is_counter, look_at_both, ticks


def _since_1970() -> int:
    """By how much the clock of dates is ahead of `now_ns`, in nanoseconds.

    Messages between workers take a microsecond, and are not to arrive before they are sent: so not
    by one look, in the middle of which another process may have run.
    """
    ns, date = look_at_both(time_ns)
    return date - ns


class LogClock:
    """The clock of one worker's log.

    Parameters
    ----------
    ticks : callable, optional
        Gives the reading, which is the moment, too, in place of the clocks of this machine.

    >>> from itertools import count
    >>> clock = LogClock(count(7).__next__)
    >>> clock.now(), clock.now(), clock.unit, clock.moment()
    (7, 8, 'ticks', 9)
    """

    __slots__ = ("_is_counter", "_ns", "_offset", "_readings", "_ticks", "last", "unit")

    def __init__(self, ticks: Callable[[], int] | None = None) -> None:
        self._ticks = ticks
        self.last = 0
        """The latest reading that was given."""
        self.unit = "ns" if ticks is None else "ticks"
        self._is_counter = ticks is None and is_counter()
        self._offset = _since_1970() if ticks is None else 0
        """What makes its moments comparable with those of other workers."""
        self._readings: list[int] = []
        """When both clocks were looked at, by the counter."""
        self._ns: list[int] = []
        """And by the system's clock."""
        if self._is_counter:
            self._look()

    def now(self) -> int:
        """The reading."""
        self.last = ticks() if self._ticks is None else self._ticks()
        return self.last

    def recent(self) -> int:
        """The reading, for what follows at once on something that has looked at the clock.

        That of the last look, which saves another; where readings are numbers, the next one.
        """
        return self.last if self._ticks is None else self.now()

    def moment(self) -> int:
        """The moment: in nanoseconds since 1970, or the number."""
        return self.moment_of(self.now())

    def moment_of(self, reading: int) -> int:
        """The moment of one reading."""
        return int(self.moments(np.array([reading], np.int64))[0])

    def moments(self, readings: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The moments of readings, both [n], in a new array; of the same always the same."""
        if not self._is_counter:
            return readings + self._offset
        while len(self._readings) < 2 or self._readings[-1] < self.last:
            self._look()
        found = np.empty(len(readings), np.int64)
        self._fill(readings, found)
        return found

    def forget(self) -> None:
        """No moment is asked for any more of what was read before the last two looks."""
        del self._readings[:-2]
        del self._ns[:-2]

    def _look(self) -> None:
        ns, reading = look_at_both()
        self._readings.append(reading)
        self._ns.append(ns)

    def _fill(self, readings: Any, found: Any) -> None:
        """Write the moments of `readings : int64[n]` to `found : int64[n]`."""
        begin = end = base = 0
        ns_of_one = 0.0
        for place in range(len(readings)):
            reading = readings[place]
            if reading < begin or reading >= end:  # mostly it is between the same two looks
                first = bisect_right(self._readings, reading) - 1
                first = max(0, min(first, len(self._readings) - 2))
                begin, end = self._readings[first], self._readings[first + 1]
                base = self._ns[first] + self._offset
                ns_of_one = (self._ns[first + 1] - self._ns[first]) / (end - begin)
            passed = int((reading - begin) * ns_of_one)
            found[place] = base + passed
