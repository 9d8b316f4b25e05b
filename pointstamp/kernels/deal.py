"""Columns dealt to a few workers: each record's worker in a byte, and its values next to theirs.

`partition` says where records go by a permutation: eight bytes for each record, read again
with every column, and hashes that are written before. Of large batches, which no cache holds,
memory is what that takes. Here it is one byte; hashes of a key of one column of integers stay
in the processor; and each column is read and written once, in order.

Source: the counting sort of any textbook; stable, which exchanges rely on.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.kernels.forms import kernel
from pointstamp.kernels.hashing import Hashes, contiguous, hash_words, int_words

MAX_DEALT = 64
"""How many workers a batch is dealt to; beyond, places of writing would not stay in a cache."""

SPARE = 4
"""The places after the values of each worker, into which a loop may write what is not its own."""

Dealing = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@kernel("hash_loops")
def peers_of_hashes(hashes: Hashes, peers: int) -> Dealing:
    """The worker of each record by its hash, and how many records come before each worker's.

    hashes : uint64[n] · returns uint8[n] and int64[peers + 1] · peers : at most `MAX_DEALT`
    """
    near = (hashes % np.uint64(peers)).astype(np.uint8)
    starts = np.zeros(peers + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=peers), out=starts[1:])
    return near, starts


@kernel("hash_loops")
def peers_of_words(words: Hashes, peers: int) -> Dealing:
    """`peers_of_hashes` of `hash_words(words)`, which are nowhere kept."""
    return peers_of_hashes.plain(hash_words.plain(words), peers)  # type: ignore[attr-defined, no-any-return]


@kernel("hash_loops")
def deal_words(
    values: npt.NDArray[Any], near: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """The values of each worker, and `SPARE` places after them in which there is anything.

    values : unsigned integers[n] · near, starts : as of `peers_of_hashes`
    returns the same dtype[n + SPARE * peers], where those of worker p begin at
    `starts[p] + SPARE * p`
    """
    peers = len(starts) - 1
    found = np.empty(len(values) + SPARE * peers, values.dtype)
    for peer in range(peers):
        spare = SPARE * peer
        found[starts[peer] + spare : starts[peer + 1] + spare] = values[near == peer]
    return found


def peers_of_ints(values: npt.NDArray[Any], peers: int) -> Dealing:
    """The worker of each of n integers, by its stable hash: uint8[n], int64[peers + 1].

    >>> near, starts = peers_of_ints(np.arange(5), 2)
    >>> near.tolist(), starts.tolist()
    ([1, 1, 0, 1, 0], [0, 2, 5])
    """
    return peers_of_words(int_words(values), peers)


def deal(values: npt.NDArray[Any], dealing: Dealing) -> list[npt.NDArray[Any]]:
    """The values of each worker, in their order.

    Parameters
    ----------
    values : [n] of any dtype
    dealing : the worker of each, uint8[n], and how many come before each worker's, as of
        `peers_of_ints`; not checked

    >>> [part.tolist() for part in deal(np.arange(5.0), peers_of_ints(np.arange(5), 2))]
    [[2.0, 4.0], [0.0, 1.0, 3.0]]
    """
    near, starts = dealing
    width = values.dtype.itemsize
    if values.dtype.hasobject or width not in (1, 2, 4, 8):
        return [values[near == peer] for peer in range(len(starts) - 1)]
    words = contiguous(values).view(np.dtype(f"u{width}"))
    found = deal_words(words, near, starts).view(values.dtype)
    spans = enumerate(itertools.pairwise(starts.tolist()))
    return [found[start + SPARE * peer : stop + SPARE * peer] for peer, (start, stop) in spans]
