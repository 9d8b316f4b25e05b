"""Bins: the parts that keyed state is stored in, the same for any number of workers.

A key's bin is its stable hash modulo 256, and its worker that hash modulo the number of
workers, as for an exchange. So which bins can hold a worker's keys follows from the two
numbers: with 4 workers every fourth bin holds keys of worker 0, and no others; with 3,
each bin holds keys of all.
"""

from __future__ import annotations

from math import gcd

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.hashing import Hashes

N_BINS = 256
"""It is written into every snapshot: another number needs another version."""


def bins_of(hashes: Hashes) -> npt.NDArray[np.uint8]:
    """The bin of each key, from its stable hash, uint8[n].

    >>> bins_of(np.array([5, 256, 511], np.uint64)).tolist()
    [5, 0, 255]
    """
    return (hashes % np.uint64(N_BINS)).astype(np.uint8)


def bins_for(index: int, peers: int) -> range:
    """The bins in which keys of worker `index` of `peers` can be.

    >>> bins_for(3, 64)
    range(3, 256, 64)
    >>> bins_for(1, 6)
    range(1, 256, 2)
    >>> bins_for(1, 3)
    range(0, 256)
    """
    step = gcd(N_BINS, peers)
    return range(index % step, N_BINS, step)


def is_for(hashes: Hashes, index: int, peers: int) -> npt.NDArray[np.bool_]:
    """Which keys an exchange gives to worker `index` of `peers`, bool[n].

    >>> is_for(np.array([5, 256, 511], np.uint64), 1, 3).tolist()
    [False, True, True]
    """
    ours: npt.NDArray[np.bool_] = hashes % np.uint64(peers) == np.uint64(index)
    return ours
