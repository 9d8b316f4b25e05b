"""How much slower than alone this machine is now, for limits in seconds."""

from __future__ import annotations

import time

WORK_S = 0.05


def slowdown() -> float:
    """How many times longer than its processor time some work takes now; at least 1.

    A limit by the clock is a promise for a machine that does nothing else. Times this, measured
    right after what the limit is for, it holds where other programs take turns with ours.
    """
    began, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < WORK_S:
        sum(range(1000))
    return max(1.0, (time.monotonic() - began) / WORK_S)
