"""ThrottleTime: what a step of a join may have under way, kept count of by time itself.

A batch of prefixes may propose far more than it came with. If every step went on
at its own throttle, the records between two steps would be as many as there are
matches. So steps take turns. Inside a join a time is (t, (n1, n2, ...)): a piece
that step i proposes is sent at its turn n_i, and the next turn is not begun
before what was sent `WINDOW` turns ago is done with by step i + 1, on all
workers. What knows that is progress tracking: a turn is a coordinate of time, and
what is under way at a turn, here, elsewhere or between, is what a frontier shows.

So what waits for a step is what `WINDOW` turns of each worker brought, whatever
the graph is like and however workers differ in speed. There is no deadlock: a
step waits for times that are less than its own in the order of tuples (the same
counters before its own, or smaller ones, and a smaller one of its own), and always
works on the least that it has; so the one that has the least of all can go on.

A worker that finds itself behind skips the turns that it has nothing for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import le
from typing import Any

from pointstamp.dataflow.handles import Frontier
from pointstamp.errors import TimestampError
from pointstamp.progress.timestamp import Stay, Timestamp

WINDOW = 4
"""Turns under way. With one, workers would wait for each other's slowest at every turn."""

_END = 1 << 62


@dataclass(frozen=True)
class ThrottleTime(Timestamp):
    """Times that are `n` counters, ordered in all of them at once.

    >>> ThrottleTime(2).less_equal((1, 5), (2, 5)), ThrottleTime(2).less_equal((1, 5), (2, 4))
    (True, False)
    """

    n: int

    natural = True

    @property
    def name(self) -> str:  # type: ignore[override]  # computed, not settable
        """How it was written."""
        return f"ThrottleTime({self.n})"

    @property
    def minimum(self) -> tuple[int, ...]:
        """All counters at 0."""
        return (0,) * self.n

    @property
    def identity(self) -> Stay:
        """The one summary: nothing inside a join leads back."""
        return Stay()

    def less_equal(self, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        """In every counter."""
        return all(map(le, a, b))

    def check(self, time: Any) -> tuple[int, ...]:
        """A tuple of `n` integers that are not negative."""
        if isinstance(time, tuple) and len(time) == self.n and all(x >= 0 for x in time):
            return time
        raise TimestampError(f"a time of type {self.name} has {self.n} counters; found {time!r}")

    def summary(self, value: Any) -> Stay:
        """The identity, however it is written."""
        if value in (0, Stay()):
            return Stay()
        raise TimestampError(f"the only summary for {self.name} is Stay(); found {value!r}")

    def __repr__(self) -> str:
        return self.name


Time = tuple[Any, tuple[int, ...]]


class Throttle:
    """The turns of one step at one worker.

    Parameters
    ----------
    step : int
        Which counter is this step's.
    last : bool
        Whether it is the last step, which has no counter and never waits.
    batch_records : int
        How many records a turn has, about.
    """

    def __init__(self, step: int, last: bool, batch_records: int) -> None:
        self.batch_records = batch_records
        self.most_waiting = 0
        """The most records that this worker has had in hand at this step."""
        self.wake: Callable[[], None] = lambda: None
        """To be called when what is under way has changed."""
        self._step = step
        self._last = last
        self._turn = 0
        self._under_way: list[Frontier] = []

    def watch(self, frontier: Frontier) -> None:
        """Take note of what is under way up to the end of the next step."""
        self._under_way.append(frontier)

    def now(self, time: Time) -> Time:
        """`time` at the present turn."""
        return time if self._last else self._at(time, self._turn)

    def may_send(self, time: Time) -> bool:
        """Whether a turn's records may be sent for prefixes of `time`."""
        if self._last or self._turn < WINDOW:
            return True
        done = self._at(time, self._turn - WINDOW, later=_END)
        return not any(frontier.less_equal(done) for frontier in self._under_way)

    def next_turn(self) -> None:
        """What was sent belongs to a turn that is over."""
        self._turn += 1

    def note_waiting(self, n_records: int) -> None:
        """So many records are in hand."""
        self.most_waiting = max(self.most_waiting, n_records)

    def catch_up(self) -> None:
        """Skip the turns that others have finished; to be called when nothing is in hand."""
        if self._last:
            return
        times = [time for frontier in self._under_way for time in frontier.elements]
        self._turn = max([self._turn, *(turns[self._step] for _, turns in times)])

    def _at(self, time: Time, turn: int, later: int = 0) -> Time:
        outer, turns = time
        n_later = len(turns) - self._step - 1
        return outer, (*turns[: self._step], turn, *(later,) * n_later)


def at_start(time: Time) -> Time:
    """The time at which what has the outer time of `time` enters a join."""
    outer, turns = time
    return outer, (0,) * len(turns)


def at_end(time: Time) -> Time:
    """A time after everything that happens inside a join at the outer time of `time`."""
    outer, turns = time
    return outer, (_END,) * len(turns)
