"""Plain loops compiled by Numba: one thread, nothing around it. The bar for our kernels.

Each takes two columns of edges, as ours does, and builds what it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Ints = Any


@njit(cache=True)
def rows_of(sources: Ints, targets: Ints, n: int) -> tuple[Ints, Ints]:
    """Compressed rows: where each begins, and the targets of all."""
    starts = np.zeros(n + 1, np.int64)
    for source in sources:
        starts[source + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    at = starts[:-1].copy()
    others = np.empty(len(sources), np.int32)
    for i in range(len(sources)):
        others[at[sources[i]]] = targets[i]
        at[sources[i]] += 1
    return starts, others


@njit(cache=True)
def pagerank(sources: Ints, targets: Ints, n: int, rounds: int, damping: float) -> Ints:
    """Ranks after some rounds; the rank of vertices without out-edges is dropped."""
    starts, others = rows_of(targets, sources, n)
    degrees = np.zeros(n, np.int64)
    for source in sources:
        degrees[source] += 1
    ranks = np.full(n, 1.0 / n)
    passed = np.empty(n)
    for _ in range(rounds):
        for i in range(n):
            passed[i] = ranks[i] / degrees[i] if degrees[i] else 0.0
        for i in range(n):
            total = 0.0
            for j in range(starts[i], starts[i + 1]):
                total += passed[others[j]]
            ranks[i] = (1.0 - damping) / n + damping * total
    return ranks


@njit(cache=True)
def levels(sources: Ints, targets: Ints, n: int, start: int) -> Ints:
    """The level of each vertex in an undirected graph; -1 where nothing leads."""
    starts, others = rows_of(
        np.concatenate((sources, targets)), np.concatenate((targets, sources)), n
    )
    found = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    found[start] = 0
    queue[0] = start
    first, last = 0, 1
    while first < last:
        vertex = queue[first]
        first += 1
        for j in range(starts[vertex], starts[vertex + 1]):
            other = others[j]
            if found[other] < 0:
                found[other] = found[vertex] + 1
                queue[last] = other
                last += 1
    return found


@njit(cache=True)
def _turned(sources: Ints, targets: Ints, n: int) -> tuple[Ints, Ints]:
    """Each edge from its end of lower degree."""
    degrees = np.zeros(n, np.int64)
    for i in range(len(sources)):
        degrees[sources[i]] += 1
        degrees[targets[i]] += 1
    low, high = np.empty_like(sources), np.empty_like(targets)
    for i in range(len(sources)):
        a, b = sources[i], targets[i]
        if degrees[b] < degrees[a] or (degrees[b] == degrees[a] and b < a):
            a, b = b, a
        low[i], high[i] = a, b
    return low, high


@njit(cache=True)
def count_triangles(sources: Ints, targets: Ints, n: int) -> int:
    """Triangles of an undirected graph: edges turned to the higher degree, rows merged."""
    low, high = _turned(sources, targets, n)
    starts, others = rows_of(low, high, n)
    for i in range(n):
        others[starts[i] : starts[i + 1]].sort()
    return _common(starts, others, low, high)


@njit(cache=True)
def count_directed(sources: Ints, targets: Ints, n: int) -> int:
    """(a)->(b), (b)->(c), (a)->(c): for each a -> b, what both lead to."""
    starts, others = rows_of(sources, targets, n)
    for i in range(n):
        others[starts[i] : starts[i + 1]].sort()
    return _common(starts, others, sources, targets)


@njit(cache=True)
def _common(starts: Ints, others: Ints, a: Ints, b: Ints) -> int:
    """The sum over pairs (a, b) of how many are in both rows, which are sorted."""
    total = 0
    for k in range(len(a)):
        i, i_end = starts[a[k]], starts[a[k] + 1]
        j, j_end = starts[b[k]], starts[b[k] + 1]
        while i < i_end and j < j_end:
            x, y = others[i], others[j]
            total += x == y
            i += x <= y
            j += y <= x
    return total


@njit(cache=True)
def count_triangles_by_marks(sources: Ints, targets: Ints, n: int) -> int:
    """The same without sorting: neighbours of one end are marked, those of the other looked up."""
    low, high = _turned(sources, targets, n)
    return count_directed_by_marks(low, high, n)


@njit(cache=True)
def count_directed_by_marks(sources: Ints, targets: Ints, n: int) -> int:
    """(a)->(b), (b)->(c), (a)->(c): what a leads to is marked, once for all b."""
    starts, others = rows_of(sources, targets, n)
    is_marked = np.zeros(n, np.uint8)
    total = 0
    for a in range(n):
        row = others[starts[a] : starts[a + 1]]
        for b in row:
            is_marked[b] = 1
        for b in row:
            for j in range(starts[b], starts[b + 1]):
                total += is_marked[others[j]]
        for b in row:
            is_marked[b] = 0
    return total
