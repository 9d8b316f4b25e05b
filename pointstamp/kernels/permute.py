"""A column in another order: what exchanging does to each column of a batch.

Values are moved as words of 1, 2, 4 or 8 bytes, whatever they mean. NumPy looks at
every index whether it is in range, and whether it counts from the end; indices that
`partition` made need no look.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous


@kernel("hash_loops")
def gather_words(values: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """`gather`, of unsigned integers."""
    found: npt.NDArray[Any] = values[order]
    return found


def gather(values: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """`values[order]`.

    Parameters
    ----------
    values : [n] of any dtype
    order : int64[m], each at least 0 and below n; this is not checked

    Returns
    -------
    [m] of the same dtype.

    >>> gather(np.array([1.5, 2.5, 3.5]), np.array([2, 0]))
    array([3.5, 1.5])
    """
    width = values.dtype.itemsize
    if values.dtype.hasobject or width not in (1, 2, 4, 8):
        found: npt.NDArray[Any] = values[order]
        return found
    words = contiguous(values).view(np.dtype(f"u{width}"))
    return gather_words(words, contiguous(order)).view(values.dtype)
