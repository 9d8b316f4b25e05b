"""Numbers in groups that lie close together on their line: k-means of one dimension, exactly.

In one dimension groups are stretches of the sorted values, so that the best ones are found: where
the last of them begins moves only to the right as values are added. Neither a seed nor a start
decides what comes out.

Source: A. Grønlund and others, "Fast exact k-means, k-medians and Bregman divergence clustering in
1D", 2017; of its algorithms the one that halves, all of a level at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DIGITS = 12
"""Values that differ by less than this share of the largest are one: sums round that much."""


def line_clusters(values: Floats, k: int) -> Ints:
    """The group of each value, int64[n]: at most k, numbered in the order of their values.

    The sum of the squares of the distances from the mean of the group is the least that there is.
    Values that are equal are in one group.

    values : float64[n], finite

    >>> line_clusters(np.array([0.1, 7.0, 0.2, 6.9, 3.0]), 3).tolist()
    [0, 2, 0, 2, 1]
    """
    if not len(values):
        return np.empty(0, np.int64)
    largest = float(np.abs(values).max()) or 1.0
    scaled: Floats = np.round(values / largest, _DIGITS).astype(np.float64, copy=False)
    distinct, group_of, counts = np.unique(scaled, return_inverse=True, return_counts=True)
    begins = _begins(distinct, counts, min(k, len(distinct)))
    of_distinct = np.zeros(len(distinct), np.int64)
    of_distinct[begins[1:]] = 1
    found: Ints = np.cumsum(of_distinct)[group_of]
    return found


def _begins(values: Floats, counts: Ints, k: int) -> list[int]:
    """Where each of the k groups begins, of sorted values that are there so many times."""
    stretches = _Stretches(values, counts)
    n = len(values)
    best = np.full(n + 1, np.inf)
    best[1:] = stretches.costs(np.zeros(n, np.int64), np.arange(1, n + 1))
    last: list[npt.NDArray[np.int32]] = []
    for _ in range(k - 1):
        best, begin = _with_one_more(best, stretches)
        last.append(begin)
    found = [n]
    for begin in reversed(last):
        found.append(int(begin[found[-1]]))
    return [0, *reversed(found[1:])]


class _Stretches:
    """What a stretch of the values costs as a group, from sums up to each of them."""

    def __init__(self, values: Floats, counts: Ints) -> None:
        # Around their mean, or squares of large values would hide small distances.
        centered = values - np.average(values, weights=counts)
        self.n = len(values)
        self._counts, self._sums, self._squares = (
            np.concatenate([[0.0], np.cumsum(counts * centered**power)]) for power in (0, 1, 2)
        )

    def costs(self, begins: Ints, ends: Ints) -> Floats:
        """Of the stretches from begins up to ends, which they do not have: float64[m]."""
        sums = self._sums[ends] - self._sums[begins]
        counts = self._counts[ends] - self._counts[begins]
        found: Floats = self._squares[ends] - self._squares[begins] - sums * sums / counts
        return found


def _with_one_more(before: Floats, stretches: _Stretches) -> tuple[Floats, npt.NDArray[np.int32]]:
    """The least costs of the first so many values with a group more, and where the last begins.

    before : float64[n + 1], the least costs without it
    """
    n = stretches.n
    best = np.full(n + 1, np.inf)
    begin = np.zeros(n + 1, np.int32)
    step = 1 << n.bit_length()
    while step := step // 2:
        ends = np.arange(step, n + 1, 2 * step)
        low = begin[ends - step].astype(np.int64)
        beyond = np.minimum(ends + step, n)
        high = np.where(ends + step <= n, begin[beyond], n - 1)
        sizes = np.maximum(np.minimum(high, ends - 1) - low, 0) + 1
        starts = np.cumsum(sizes) - sizes
        tried = np.arange(int(sizes.sum())) + np.repeat(low - starts, sizes)
        costs = before[tried] + stretches.costs(tried, np.repeat(ends, sizes))
        best[ends] = np.minimum.reduceat(costs, starts)
        least = np.flatnonzero(costs == np.repeat(best[ends], sizes))
        begin[ends] = tried[least[np.searchsorted(least, starts)]]
    return best, begin
