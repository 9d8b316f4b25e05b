"""How long to look before sleeping: a worker that waits learns what that is worth here.

Two workers that answer each other at once are quicker if neither is put to sleep
meanwhile, as to be woken takes longer than most answers. Workers that wait for slow things,
or on a machine that has other work, should not take its processors.

Theory of operation. To look for as long as a sleep would cost, and to sleep then, is never
worse than twice the best. So a *spin* lasts as long as a few wake-ups, whose cost is
measured whenever one happens: a peer that wakes another writes down when. It has to be
more than one: where two workers wait for each other and one is put to sleep, the other waits
for a wake-up and a step, and would be put to sleep by that in its turn, and so on for ever.

Looking is given up in two cases.

- *Long waits*: after one many times longer than a spin the next begin with a sleep, until one
  turns out short. So slow answers are waited for asleep, and no phase of slow answers
  lasts longer than it: the first that is quick again ends it, though it was slept through.
- *Crowded*: between two looks the processor is handed to whatever else wants it, and it
  came back late. What waits has other work beside it then, and only a sleep is out of its
  way; so a number of waits begin with one, twice as many each time that it is so, and
  half as many when it is not. What wants the processor and hands it back soon is a peer
  that waits, too: more workers than processors do spin.
"""

from __future__ import annotations

import os
from time import monotonic

from pointstamp.compiled import build_info

WAKE_UP_S = 50e-6
"""What being woken costs, until it was measured."""

LEAST_WAKE_UP_S, MOST_WAKE_UP_S = 20e-6, 100e-6
"""Between these it is believed: a machine that is busy wakes late, and that is no reason to look
longer."""

WAKE_UPS_PER_SPIN = 3
LONG_SPINS = 8
"""A wait of so many spins is long."""

LATE_S = 300e-6
"""What has the processor for longer than this does not only look for an answer."""

MAX_SKIPPED = 1023

_IS_COMPILED = build_info() == "compiled"


def now_s() -> float:
    """As `time.monotonic`, without an object where it is called by what is compiled."""
    if _IS_COMPILED:
        return _monotonic_in_c()  # type: ignore[name-defined,no-any-return]  # noqa: F821
    return monotonic()


class Spin:
    """Whether, and how long, to look again and again before sleeping.

    Parameters
    ----------
    peers : int
        How many workers there are, this one included; one alone waits for no answer.
    """

    def __init__(self, peers: int) -> None:
        self.is_allowed = peers > 1
        # With more workers than processors each has to wait for its turn besides.
        self._n_turns = -(-peers // n_processors())
        self._wake_up_s = WAKE_UP_S
        self._is_soon = True
        self._was_handed_over = False
        self._penalty = 0
        self._to_skip = 0
        self.seconds = 0.0
        """How long a spin lasts at most."""
        self._set_length()

    def is_due(self) -> bool:
        """Whether this wait should begin with a spin."""
        if self._to_skip:
            self._to_skip -= 1
            return False
        self._was_handed_over = False
        return self.is_allowed and self._is_soon

    def hand_over(self) -> bool:
        """Let others have the processor; whether it was back soon, so that looking may go on."""
        before = monotonic()
        _hand_over()
        if monotonic() - before < LATE_S * self._n_turns:
            if not self._was_handed_over:
                self._was_handed_over = True
                self._penalty //= 2
            return True
        self._penalty = min(2 * self._penalty + 1, MAX_SKIPPED)
        self._to_skip = self._penalty
        return False

    def slept(self, seconds: float) -> None:
        """Take in how long a wait was that ended in a sleep."""
        if seconds <= self.seconds:
            self._is_soon = True
        elif seconds > LONG_SPINS * self.seconds:
            self._is_soon = False

    def woken(self, seconds: float) -> None:
        """Take in how long it took to be woken."""
        seconds = min(max(seconds, LEAST_WAKE_UP_S), MOST_WAKE_UP_S)
        self._wake_up_s += (seconds - self._wake_up_s) / 8
        self._set_length()

    def _set_length(self) -> None:
        self.seconds = self._n_turns * WAKE_UPS_PER_SPIN * self._wake_up_s


def n_processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stay() -> None:
    """Where the processor cannot be handed over."""


_hand_over = getattr(os, "sched_yield", _stay)
