"""Which records go to which worker, as one permutation of a batch.

One pass counts, one scatters: no sort, and one gather per column afterwards.

Source: the counting sort of any textbook; stable, which exchanges rely on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import settled
from pointstamp.kernels.jit import kernel

Order = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _partition_plain(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    destinations = hashes % np.uint64(peers)
    order = np.argsort(destinations, kind="stable")
    starts = np.zeros(peers + 1, np.int64)
    np.cumsum(np.bincount(destinations.astype(np.int64), minlength=peers), out=starts[1:])
    return order, starts


@kernel(plain=_partition_plain)
def _partition(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    divisor = np.uint64(peers)
    destinations = np.empty(len(hashes), np.int32)
    starts = np.zeros(peers + 1, np.int64)
    for i in range(len(hashes)):
        to = np.int32(hashes[i] % divisor)
        destinations[i] = to
        starts[to + 1] += 1
    for peer in range(peers):
        starts[peer + 1] += starts[peer]
    places = starts[:-1].copy()
    order = np.empty(len(hashes), np.int64)
    for i in range(len(hashes)):
        to = destinations[i]
        order[places[to]] = i
        places[to] += 1
    return order, starts


def partition(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    """The records of each of `peers` workers, by `hash % peers`, in their order.

    Parameters
    ----------
    hashes : uint64[n]
    peers : at least 1

    Returns
    -------
    (order, starts) : int64[n], int64[peers + 1]
        Worker p gets records `order[starts[p]:starts[p + 1]]`. Twin `_partition_plain`.

    >>> order, starts = partition(np.array([3, 4, 5, 6], np.uint64), 2)
    >>> order.tolist(), starts.tolist()
    ([1, 3, 0, 2], [0, 2, 4])
    """
    return _partition(settled(hashes), peers)
