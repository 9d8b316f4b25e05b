"""A column in another order: what exchanging does to each column of a batch.

Values are moved as words of 1, 2, 4 or 8 bytes, whatever they mean. NumPy looks at
every index whether it is in range, and whether it counts from the end; indices that
`partition` made need no look.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.jit import kernel


def _gather_plain(values: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = values[order]
    return found


@kernel(plain=_gather_plain)
def _gather(values: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    found = np.empty(len(order), values.dtype)
    for i in range(len(order)):
        found[i] = values[order[i]]
    return found


def gather(values: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """`values[order]`.

    Parameters
    ----------
    values : [n] of any dtype
    order : int64[m], each at least 0 and below n; this is not checked

    Returns
    -------
    [m] of the same dtype. Twin `_gather_plain`.

    >>> gather(np.array([1.5, 2.5, 3.5]), np.array([2, 0]))
    array([3.5, 1.5])
    """
    width = values.dtype.itemsize
    if values.dtype.hasobject or width not in (1, 2, 4, 8):
        return _gather_plain(values, order)
    words = contiguous(values).view(np.dtype(f"u{width}"))
    return _gather(words, contiguous(order)).view(values.dtype)
