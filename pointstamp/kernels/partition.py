"""Which records go to which worker, as one permutation of a batch.

No sort, and one gather per column afterwards. For few workers there is a pass for
each, which writes every record's number and goes on to the next place only if it is
the worker's: without a branch, and three times as fast as counting and scattering,
where each step waits for the last one's count to be stored. For many workers one
pass counts and one scatters.

Source: the counting sort of any textbook; stable, which exchanges rely on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import contiguous
from pointstamp.kernels.jit import kernel

_FEW = 4
"""Up to how many workers a pass for each is quicker."""

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

Order = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _partition_plain(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    destinations = hashes % np.uint64(peers)
    order = np.argsort(destinations, kind="stable")
    starts = np.zeros(peers + 1, np.int64)
    np.cumsum(np.bincount(destinations.astype(np.int64), minlength=peers), out=starts[1:])
    return order, starts


@kernel(plain=_partition_plain)
def _partition(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    n = len(hashes)
    destinations = np.empty(n, np.int32)
    if peers & (peers - 1) == 0:
        mask = np.uint64(peers - 1)
        for i in range(n):
            destinations[i] = np.int32(hashes[i] & mask)
    else:
        inverse = 1.0 / peers
        for i in range(n):
            high = _remainder(np.int64(hashes[i] >> _HALF), peers, inverse)
            low = np.int64(hashes[i] & _LOW)
            destinations[i] = np.int32(_remainder((high << 32) | low, peers, inverse))
    starts = np.zeros(peers + 1, np.int64)
    order = np.empty(n + 1, np.int64)  # where nothing is to be written, it is written beyond
    if peers <= _FEW:
        at = 0
        for peer in range(peers):
            for i in range(n):
                order[at] = i
                at += destinations[i] == peer
            starts[peer + 1] = at
        return order[:n], starts
    for i in range(n):
        starts[destinations[i] + 1] += 1
    for peer in range(peers):
        starts[peer + 1] += starts[peer]
    places = starts[:-1].copy()
    for i in range(n):
        to = destinations[i]
        order[places[to]] = i
        places[to] += 1
    return order[:n], starts


@kernel
def _remainder(value: np.int64, peers: int, inverse: float) -> np.int64:
    """`value % peers` for values below 2^52: a product is vectorised, a division is not."""
    rest = value - np.int64(value * inverse) * peers
    rest = rest + peers if rest < 0 else rest
    return rest - peers if rest >= peers else rest


def partition(hashes: npt.NDArray[np.uint64], peers: int) -> Order:
    """The records of each of `peers` workers, by `hash % peers`, in their order.

    Parameters
    ----------
    hashes : uint64[n]
    peers : at least 1, at most 2^20

    Returns
    -------
    (order, starts) : int64[n], int64[peers + 1]
        Worker p gets records `order[starts[p]:starts[p + 1]]`. Twin `_partition_plain`.

    >>> order, starts = partition(np.array([3, 4, 5, 6], np.uint64), 2)
    >>> order.tolist(), starts.tolist()
    ([1, 3, 0, 2], [0, 2, 4])
    """
    return _partition(contiguous(hashes), peers)
