"""What is reached from some places along edges: one step, the shortest way, the least label.

All push: from a place that has changed to the rows that its edges lead to. The
last two go on until nothing changes here, since work on one worker costs less than
a round; what has changed is then new to the others.

A kernel keeps its working memory (`queue`, `heap`, ...) with its caller, because a
round may touch few places and must not pay for all.
"""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.lists import Ints, Numbers, positions

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@kernel("graph_loops")
def expand(
    begins: Ints, ends: Ints, others: Numbers, fresh: Numbers, levels: Ints, level: int
) -> Numbers:
    """Give `level` to the heads of `fresh` that have none yet (-1); which they are.

    begins, ends : int64[p] · others : int32[m] · fresh : int32[k], places
    levels : int64[n], changed
    returns int32, rows, each once, in no particular order.
    """
    heads = others[positions(begins[fresh], ends[fresh])]
    found = np.unique(heads[levels[heads] < 0])
    levels[found] = level
    return found.astype(np.int32)


@kernel("graph_loops")
def spread_least(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    labels: Ints,
    is_open: Bools,
    fresh: Numbers,
    queue: Numbers,
    queued: Bools,
) -> Numbers:
    """Lower the labels of open heads to those of their tails until none is too high here.

    begins, ends : int64[p] · others : int32[m]
    labels : int64[p], changed for rows · is_open : bool[>= n], rows that may change
    fresh : int32[k], distinct places whose labels are lower than they were
    queue : int32[p + 1], any content · queued : bool[p], all false, and so again afterwards
    returns int32, the rows whose labels are lower now, sorted.
    """
    waiting = deque(fresh.tolist())
    changed = set()
    while waiting:
        place = waiting.popleft()
        for head in others[begins[place] : ends[place]].tolist():
            if is_open[head] and labels[place] < labels[head]:
                labels[head] = labels[place]
                changed.add(head)
                waiting.append(head)
    return np.array(sorted(changed), np.int32)


@kernel("graph_loops")
def reach_alike(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    labels: Ints,
    reached: Bools,
    fresh: Numbers,
) -> Numbers:
    """Reach what can be reached from `fresh` through rows of the same label.

    begins, ends : int64[p] · others : int32[m] · labels : int64[p]
    reached : bool[p], changed for rows · fresh : int32[k], places
    returns int32, the rows that are newly reached, sorted.
    """
    waiting = deque(fresh.tolist())
    found = []
    while waiting:
        place = waiting.popleft()
        for head in others[begins[place] : ends[place]].tolist():
            if not reached[head] and labels[head] == labels[place]:
                reached[head] = True
                found.append(head)
                waiting.append(head)
    return np.array(sorted(found), np.int32)


# The shortest way: a heap of places by distance, in which each place knows its position,
# so that there is room for one entry each and no entry is out of date.


@kernel("graph_loops")
def shorten(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    weights: Floats,
    distances: Floats,
    fresh: Numbers,
    heap: Numbers,
    position: Numbers,
) -> Numbers:
    """Shorten distances until no edge here leads to a row on a shorter way; Dijkstra's algorithm.

    begins, ends : int64[p] · others : int32[m] · weights : float64[m], 0 or more
    distances : float64[p], changed for rows
    fresh : int32[k], distinct places whose distances are shorter than they were
    heap : int32[p], any content · position : int32[p], all -1, and so again afterwards
    returns int32, the rows with shorter distances, sorted.
    """
    waiting = [(distances[place], place) for place in fresh.tolist()]
    heapq.heapify(waiting)
    changed = set()
    while waiting:
        distance, place = heapq.heappop(waiting)
        if distance > distances[place]:
            continue
        for j in range(begins[place], ends[place]):
            head = int(others[j])
            if distance + weights[j] < distances[head]:
                distances[head] = distance + weights[j]
                changed.add(head)
                heapq.heappush(waiting, (distances[head], head))
    return np.array(sorted(changed), np.int32)
