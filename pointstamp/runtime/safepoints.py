"""Safepoints: where workers that are threads of one process hold still for a moment together.

A sweep of texts begins at a moment when nothing runs in any worker (`containers/text_sweep.py`).
Of its own thread a worker knows that between two steps. Of another one it is known at a *safepoint*
only, since a program may build or give rows between steps: while the worker is parked, or waits
here, in a *rendezvous*.

Rules
-----
1. A worker holds its safepoint's lock while it is at work, and gives it up at a safepoint. What
   takes the lock meanwhile, and never waits for it, has the worker hold still until it gives it
   back; that takes no longer than a look at what the worker has.
2. A rendezvous is over after a short time, whether the others came or not. So a worker that is in
   its program's code, has ended or waits for something else delays a sweep, and no worker.
3. Those in vain take a sixteenth of a worker's time at most, as far as it begins them. It joins
   one that another worker has just begun in any case, so that many are there at the same time.

Source: "safepoint" is the word of virtual machines for where their threads stop for a collector
of garbage; there they wait for the last one, however long it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock
from time import monotonic

LEAST_S = 0.002
"""A worker waits so long for the others, or a `SHARE`-th of what it took since it last might have
waited, as it has kept others from meeting for as long; but no longer than `MOST_S`."""

MOST_S = 0.1

SHARE = 16

N_ATTEMPTS = 4
"""So many times it looks at those that it waits for, if none comes."""


class Rendezvous:
    """Where the workers of a process wait for each other.

    Attributes
    ----------
    n_missed : int
        How many times a worker was found at work.
    begun_s : float
        When a worker last began to wait for others.
    """

    def __init__(self) -> None:
        self.n_missed = 0
        self.begun_s = float("-inf")
        self._changed = Condition(Lock())
        self._n_changes = 0

    def notify(self) -> int:
        """Have those that wait look again; the number of this change."""
        with self._changed:
            self._n_changes += 1
            self._changed.notify_all()
            return self._n_changes

    def wait(self, seen: int, seconds: float) -> int:
        """Wait for a change after one that was seen, for a while; the number of the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_changes != seen, seconds)
            return self._n_changes


RENDEZVOUS = Rendezvous()
"""That of this process."""


class Safepoint:
    """Whether a worker is at a safepoint; it is at work at first.

    >>> safepoint = Safepoint()
    >>> safepoint.hold()
    False
    >>> safepoint.enter()
    >>> safepoint.hold()
    True
    >>> safepoint.release()
    >>> safepoint.leave()
    """

    __slots__ = ("_lock", "_looked_s", "_next_s", "_rendezvous")

    def __init__(self, rendezvous: Rendezvous = RENDEZVOUS) -> None:
        self._rendezvous = rendezvous
        self._lock = Lock()
        self._lock.acquire()
        self._looked_s: float | None = None
        self._next_s = float("-inf")
        """Before that this worker begins to wait for no others."""

    # The worker's thread.

    def enter(self) -> None:
        """Nothing of the worker runs from here on, until `leave`."""
        self._lock.release()

    def leave(self) -> None:
        """Be at work again, as soon as nothing holds the worker."""
        try:
            self._lock.acquire()
        except BaseException:
            # A handler of signals has raised. What that leads to is not to run meanwhile, either.
            self._lock.acquire()
            raise

    def meet(self, attempt: Callable[[], bool]) -> bool:
        """Wait for other workers at a safepoint, if it is time for that; whether an attempt did it.

        `attempt` is what can be done when all are there, such as to begin a sweep. It is called
        when this worker is at its safepoint, when another one has come since, and a few times
        beside, as one that parks does not say so. The worker that comes last does it, and all go
        on.
        """
        seconds = self._patience_s(monotonic())
        if not seconds:
            return False
        self.enter()
        try:
            return self._meet(attempt, seconds)
        finally:
            self.leave()

    def has_met(self) -> None:
        """What was waited for has been done, or is not to be done any more."""
        self._looked_s, self._next_s = None, float("-inf")

    def _meet(self, attempt: Callable[[], bool], seconds: float) -> bool:
        began_s = now_s = monotonic()
        seen = self._rendezvous.notify()
        while not attempt():
            if now_s >= began_s + seconds:
                self._next_s = now_s + (SHARE - 1) * (now_s - began_s)
                self._looked_s = now_s
                return False
            seen = self._rendezvous.wait(seen, seconds / N_ATTEMPTS)
            now_s = monotonic()
        self._rendezvous.notify()
        self.has_met()
        return True

    def _patience_s(self, now_s: float) -> float:
        """How long to wait now; 0 for not at all."""
        took_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        if now_s >= self._next_s:
            self._rendezvous.begun_s = now_s
            return min(max(took_s / SHARE, LEAST_S), MOST_S)
        return LEAST_S if now_s < self._rendezvous.begun_s + LEAST_S else 0.0

    # Other threads.

    def hold(self) -> bool:
        """Have the worker hold still until `release`, if it is at a safepoint; whether it is."""
        if self._lock.acquire(blocking=False):
            return True
        self._rendezvous.n_missed += 1
        return False

    def release(self) -> None:
        """Let the worker go on."""
        self._lock.release()
