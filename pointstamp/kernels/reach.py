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

from pointstamp.kernels.jit import kernel
from pointstamp.kernels.lists import Ints, Numbers, positions
from pointstamp.kernels.worklist import after, enqueue, fill

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def _expand_plain(
    begins: Ints, ends: Ints, others: Numbers, fresh: Numbers, levels: Ints, level: int
) -> Numbers:
    heads = others[positions(begins[fresh], ends[fresh])]
    found = np.unique(heads[levels[heads] < 0])
    levels[found] = level
    return found.astype(np.int32)


@kernel(plain=_expand_plain)
def expand(
    begins: Ints, ends: Ints, others: Numbers, fresh: Numbers, levels: Ints, level: int
) -> Numbers:
    """Give `level` to the heads of `fresh` that have none yet (-1); which they are.

    begins, ends : int64[p] · others : int32[m] · fresh : int32[k], places
    levels : int64[n], changed
    returns int32, rows, each once, in no particular order. Twin `_expand_plain`.
    """
    found = np.empty(len(levels), np.int32)
    n_found = 0
    for i in range(len(fresh)):
        for j in range(begins[fresh[i]], ends[fresh[i]]):
            head = others[j]
            if levels[head] < 0:
                levels[head] = level
                found[n_found] = head
                n_found += 1
    return found[:n_found].copy()


def _spread_least_plain(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    labels: Ints,
    is_open: Bools,
    fresh: Numbers,
    queue: Numbers,
    queued: Bools,
) -> Numbers:
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


@kernel(plain=_spread_least_plain)
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
    returns int32, the rows whose labels are lower now, sorted. Twin `_spread_least_plain`.
    """
    is_changed = np.zeros(len(labels), np.bool_)
    first, last = 0, fill(queue, queued, fresh)
    while first != last:
        place = queue[first]
        first = after(first, len(queue))
        queued[place] = False
        label = labels[place]
        for j in range(begins[place], ends[place]):
            head = others[j]
            if label < labels[head] and is_open[head]:
                labels[head] = label
                is_changed[head] = True
                last = enqueue(queue, queued, last, head)
    return np.flatnonzero(is_changed).astype(np.int32)


def _reach_alike_plain(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    labels: Ints,
    reached: Bools,
    fresh: Numbers,
) -> Numbers:
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


@kernel(plain=_reach_alike_plain)
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
    returns int32, the rows that are newly reached, sorted. Twin `_reach_alike_plain`.
    """
    stack = np.empty(len(labels) + len(fresh), np.int32)
    found = np.empty(len(labels), np.int32)
    n_found = 0
    n_stacked = len(fresh)
    stack[:n_stacked] = fresh
    while n_stacked > 0:
        n_stacked -= 1
        place = stack[n_stacked]
        for j in range(begins[place], ends[place]):
            head = others[j]
            if not reached[head] and labels[head] == labels[place]:
                reached[head] = True
                found[n_found] = head
                n_found += 1
                stack[n_stacked] = head
                n_stacked += 1
    return np.sort(found[:n_found])


# The shortest way: a heap of places by distance, in which each place knows its position,
# so that there is room for one entry each and no entry is out of date.


def _shorten_plain(
    begins: Ints,
    ends: Ints,
    others: Numbers,
    weights: Floats,
    distances: Floats,
    fresh: Numbers,
    heap: Numbers,
    position: Numbers,
) -> Numbers:
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


@kernel(plain=_shorten_plain)
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
    returns int32, the rows with shorter distances, sorted. Twin `_shorten_plain`.
    """
    is_changed = np.zeros(len(distances), np.bool_)
    size = 0
    for i in range(len(fresh)):
        _rise(heap, position, distances, fresh[i], size)
        size += 1
    while size > 0:
        place = heap[0]
        position[place] = -1
        size -= 1
        if size > 0:
            _sink(heap, position, distances, heap[size], size)
        for j in range(begins[place], ends[place]):
            head = others[j]
            distance = distances[place] + weights[j]
            if distance < distances[head]:
                distances[head] = distance
                is_changed[head] = True
                at = position[head]
                if at < 0:
                    at = size
                    size += 1
                _rise(heap, position, distances, head, at)
    return np.flatnonzero(is_changed).astype(np.int32)


@kernel
def _rise(heap: Numbers, position: Numbers, distances: Floats, place: int, at: int) -> None:
    """Put `place` at `at`, or as far above as its distance goes."""
    while at > 0:
        above = (at - 1) >> 1
        if distances[heap[above]] <= distances[place]:
            break
        heap[at] = heap[above]
        position[heap[at]] = at
        at = above
    heap[at] = place
    position[place] = at


@kernel
def _sink(heap: Numbers, position: Numbers, distances: Floats, place: int, size: int) -> None:
    """Put `place` at the top, or as far below as its distance goes."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and distances[heap[below + 1]] < distances[heap[below]]:
            below += 1
        if distances[place] <= distances[heap[below]]:
            break
        heap[at] = heap[below]
        position[heap[at]] = at
        at = below
    heap[at] = place
    position[place] = at
