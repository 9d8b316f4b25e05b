"""A column in another order: what exchanging does to each column of a batch.

Values are moved as words of 1, 2, 4 or 8 bytes, whatever they mean. NumPy looks at
every index whether it is in range, and whether it counts from the end; indices that
`partition` made need no look.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous

Places: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
"""Places in a column, in either width."""


@kernel("hash_loops")
def gather_words(values: npt.NDArray[Any], order: Places) -> npt.NDArray[Any]:
    """`gather`, of unsigned integers."""
    found: npt.NDArray[Any] = values[order]
    return found


@kernel("hash_loops")
def gather_texts(
    bounds: npt.NDArray[Any], data: npt.NDArray[np.uint8], order: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Texts in another order: where each begins now and the last one ends, and their bytes.

    Parameters
    ----------
    bounds : int32[n + 1] or int64[n + 1]
        Where each text begins in `data`, and the last one ends.
    data : uint8[s]
    order : int64[m], each at least 0 and below n; this is not checked

    Returns
    -------
    (ends, texts) : of the dtype of `bounds`, [m + 1], from 0; uint8[t]
        What they take together has to be within that dtype.

    >>> data = np.frombuffer(b"onetwothree", np.uint8)
    >>> ends, texts = gather_texts(np.array([0, 3, 6, 11]), data, np.array([2, 0]))
    >>> ends.tolist(), bytes(texts)
    ([0, 5, 8], b'threeone')
    """
    ends = np.zeros(len(order) + 1, bounds.dtype)
    np.cumsum(np.diff(bounds)[order], out=ends[1:])
    texts = [data[bounds[i] : bounds[i + 1]] for i in order]
    return ends, np.concatenate(texts) if texts else np.empty(0, np.uint8)


def gather(values: npt.NDArray[Any], order: Places) -> npt.NDArray[Any]:
    """`values[order]`.

    Parameters
    ----------
    values : [n] of any dtype
    order : int32[m] or int64[m], each at least 0 and below n; this is not checked

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
