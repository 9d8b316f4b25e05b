"""Numbers in order, and the distinct ones of them.

They are sorted by NumPy or by their digits, whichever is quicker on this processor. NumPy's
vectorised sort takes 4 to 10 ns for each where AVX-512 is quick (Intel's Xeon), and 30 to 60
where its compressing stores are slow (AMD's Zen 4). To sort by digits takes 5 to 15 there, and
up to 50 where memory is far away. Which it is, no list of processors says for long, so both sort
a few numbers when the first are to be sorted (a millisecond).

By digits (radix sort): of ten bits each and as many as the range of numbers asks for, by the
last digit first (Knuth, The Art of Computer Programming 3, 5.2.5). More than a million are first
dealt in place to parts by their first digit (McIlroy, Bostic and McIlroy, Engineering Radix
Sort, 1993), so the room beside them is 8 MiB at most.

What comes after it is one pass that compares neighbours (`np.unique` hashes or sorts far slower).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel

Ints = npt.NDArray[np.int64]


def sort_numbers(values: Ints) -> None:
    """Put `values`, int64[n], contiguous, in order, in place.

    >>> values = np.array([3, -1, 2])
    >>> sort_numbers(values)
    >>> values.tolist()
    [-1, 2, 3]
    """
    _quickest()(values)


@kernel("sort_loops")
def sort_by_digits(values: Ints) -> None:
    """`sort_numbers`, whatever the processor."""
    values.sort()


@functools.cache
def _quickest() -> Callable[[Ints], None]:
    """The sort that takes less on this processor, of as many numbers as lie in its cache."""
    spread = np.arange(4096, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    numbers = spread.view(np.int64)
    sorts: tuple[Callable[[Ints], None], ...] = np.ndarray.sort, sort_by_digits
    return min(sorts, key=lambda sort: _least_time(sort, numbers))


def _least_time(sort: Callable[[Ints], None], numbers: Ints) -> float:
    """Seconds that `sort` takes: the least of some, as others use the processor, too."""
    times = []
    for _ in range(4):
        values = numbers.copy()
        begin = time.perf_counter()
        sort(values)
        times.append(time.perf_counter() - begin)
    return min(times)


@kernel("sort_loops")
def distinct_sorted(keys: Ints) -> Ints:
    """The distinct of sorted `keys`."""
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def unique_sorted(keys: Ints) -> Ints:
    """The distinct `keys`, in order.

    Parameters
    ----------
    keys : int64[n], in any order

    Returns
    -------
    int64[m], strictly increasing.

    >>> unique_sorted(np.array([3, 1, 3, 2, 1])).tolist()
    [1, 2, 3]
    """
    ordered = np.array(keys, np.int64)
    sort_numbers(ordered)
    return distinct_sorted(ordered)
