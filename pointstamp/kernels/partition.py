"""Which records go to which worker, as one permutation of a batch.

No sort, and one gather per column afterwards. For few workers there is a pass for
each, which writes every record's number and goes on to the next place only if it is
the worker's: without a branch, and three times as fast as counting and scattering,
where each step waits for the last one's count to be stored. For many workers one
pass counts and one scatters.

Source: the counting sort of any textbook; stable, which exchanges rely on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import contiguous

Order = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@kernel("hash_loops")
def order_by_peer(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    """`partition`, of hashes that are contiguous."""
    destinations = hashes % np.uint64(peers)
    order = np.argsort(destinations, kind="stable")
    starts = np.zeros(peers + 1, np.int64)
    np.cumsum(np.bincount(destinations.astype(np.int64), minlength=peers), out=starts[1:])
    return order, starts


@kernel("small_loops")
def split_small(
    batch: Any,
    imported: Callable[[int, Any], Any],
    kinds: npt.NDArray[np.uint8],
    widths: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.int32],
    peers: int,
) -> list[Any] | None:
    """A small Arrow record batch as one for each of `peers` workers; None if there are nulls.

    imported : what makes a batch of the struct at an address, and a schema
    kinds, widths : uint8[columns], what values are and how many bytes each has
    keys : int32[k], the numbers of the columns whose hash is the key's, k > 0

    It saves the objects that NumPy needs, so the twin leaves all to `partition`.
    """
    return None


def partition(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    """The records of each of `peers` workers, by `hash % peers`, in their order.

    Parameters
    ----------
    hashes : uint64[n]
    peers : at least 1, at most 2^20

    Returns
    -------
    (order, starts) : int64[n], int64[peers + 1]
        Worker p gets records `order[starts[p]:starts[p + 1]]`.

    >>> order, starts = partition(np.array([3, 4, 5, 6], np.uint64), 2)
    >>> order.tolist(), starts.tolist()
    ([1, 3, 0, 2], [0, 2, 4])
    """
    return order_by_peer(contiguous(hashes), peers)
