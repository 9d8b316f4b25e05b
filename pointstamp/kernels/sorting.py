"""The distinct items of int64 keys, sorted.

Sorting is NumPy's, which is vectorised; what comes after it is one pass that
compares neighbours (`np.unique` hashes or sorts far slower).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous

Ints = npt.NDArray[np.int64]


@kernel("table_loops")
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
    return distinct_sorted(contiguous(np.sort(keys)))
