"""A queue of places to look at, each in it once: for loops that go on until none is left.

A ring in an array with one slot more than there are places, so that a full queue is
distinguished from an empty one, and a flag for each place that is in it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.jit import kernel
from pointstamp.kernels.lists import Numbers

Bools = npt.NDArray[np.bool_]


@kernel
def fill(queue: Numbers, queued: Bools, places: Numbers) -> int:
    """Put distinct places into an empty queue whose first is at 0; where the next one goes."""
    for i in range(len(places)):
        queue[i] = places[i]
        queued[places[i]] = True
    return len(places)


@kernel
def after(at: int, room: int) -> int:
    """The slot after `at`, of `room` in a ring."""
    return at + 1 if at + 1 < room else 0


@kernel
def enqueue(queue: Numbers, queued: Bools, last: int, place: int) -> int:
    """Put a place at the end unless it is in the queue; where the next one goes."""
    if queued[place]:
        return last
    queued[place] = True
    queue[last] = place
    return after(last, len(queue))
