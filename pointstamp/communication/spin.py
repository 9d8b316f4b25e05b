"""How long to look before sleeping: a worker that waits learns whether it pays.

Two workers that answer each other at once are quicker if neither is put to sleep
meanwhile, which costs some 50 us; workers that wait for slow things, or share a
core, should not burn it.
"""

from __future__ import annotations

import os

SPIN_S = 50e-6
"""How long to look again and again before sleeping: about what being woken costs."""

MAX_SKIPPED_SPINS = 63


class Spin:
    """Whether to look again and again before sleeping; learned from whether it paid.

    Each spin in vain doubles the number of parks that go without, and one that
    pays forgives all. With more workers than processors none spins: the peer
    that is waited for may need this one. That sleeps turn out short is no reason to
    spin: they are short, too, where two workers share a processor because others
    have taken the rest, and there a spin holds up what it waits for.
    """

    def __init__(self, peers: int) -> None:
        self._is_allowed = 1 < peers <= n_processors()
        self._to_skip = 0
        self._penalty = 0

    def is_due(self) -> bool:
        """Whether this park should spin."""
        if self._to_skip:
            self._to_skip -= 1
            return False
        return self._is_allowed

    def learn(self, *, paid: bool) -> None:
        """Take in whether what was waited for came while spinning."""
        self._penalty = 0 if paid else min(2 * self._penalty + 1, MAX_SKIPPED_SPINS)
        self._to_skip = self._penalty


def n_processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
