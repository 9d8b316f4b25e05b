"""The distinct items of int64 keys, sorted.

Sorting is NumPy's, which is vectorised; what comes after it is one pass that
compares neighbours (`np.unique` hashes or sorts far slower).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.jit import kernel

Ints = npt.NDArray[np.int64]


def _distinct_plain(keys: Ints) -> Ints:
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


@kernel(plain=_distinct_plain)
def _distinct(keys: Ints) -> Ints:
    found = np.empty(len(keys), np.int64)
    n_found = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1]:
            found[n_found] = keys[i]
            n_found += 1
    return found[:n_found].copy()


def unique_sorted(keys: Ints) -> Ints:
    """The distinct `keys`, in order.

    Parameters
    ----------
    keys : int64[n], in any order

    Returns
    -------
    int64[m], strictly increasing. Twin `_distinct_plain`.

    >>> unique_sorted(np.array([3, 1, 3, 2, 1])).tolist()
    [1, 2, 3]
    """
    return _distinct(contiguous(np.sort(keys)))
