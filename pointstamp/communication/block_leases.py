"""Blocks of a peer's arena, leased to what reads the batches that lie in them.

A batch of columns refers to the memory in which it arrived, for as long as it,
or a part of it, is alive. `lease` gives a memoryview of a block and returns the
block when the last view of that is gone. A program may keep what it was sent for
good, though, and the sender must not run out of memory for that: with its share
of half the arena leased, what comes is copied, and its block returned at once.

The end of a view is noticed wherever it happens, in any thread and inside of a
collection of garbage; there it is only noted down. Blocks are returned by the
worker's thread, in `return_unused`.

Knows NumPy, so it is imported with the first block and not with the first message.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np

from pointstamp.communication.arena import RETURNED
from pointstamp.communication.framing import unset_bytes
from pointstamp.communication.segment import ARENA_BYTES, N_BLOCKS, Segment


class _Lease(weakref.ref[Any]):
    """Watches the one array that all views of a block refer to."""

    __slots__ = ("n_bytes", "number")
    number: int
    n_bytes: int


class BlockLeases:
    """The blocks of worker `source` that one of its `peers` has."""

    def __init__(self, segment: Segment, source: int, peers: int) -> None:
        self._memory = segment.memory
        self._fence = segment.fence
        self._states = segment.layout.states_byte(source)
        # Half of what there is, shared by the peers that may borrow of it.
        self._max_bytes = ARENA_BYTES // 2 // max(1, peers - 1)
        self._max_leases = N_BLOCKS // 2 // max(1, peers - 1)
        self._leases: dict[int, _Lease] = {}
        self._ended: deque[_Lease] = deque()
        self.n_leased_bytes = 0

    def lease(self, number: int, start: int, n_bytes: int) -> memoryview:
        """The `n_bytes` of a block, from `start`; the block goes back when they are not used."""
        self.return_unused()
        array = np.frombuffer(self._memory, np.uint8, n_bytes, start)
        if len(self._leases) >= self._max_leases or self.n_leased_bytes + n_bytes > self._max_bytes:
            return self._copied(number, array)
        array.flags.writeable = False
        lease = _Lease(array, self._ended.append)
        lease.number, lease.n_bytes = number, n_bytes
        self._leases[id(lease)] = lease
        self.n_leased_bytes += n_bytes
        return array.data

    def return_unused(self) -> None:
        """Return the blocks that are not used any more."""
        while self._ended:
            lease = self._ended.popleft()
            del self._leases[id(lease)]
            self.n_leased_bytes -= lease.n_bytes
            self._return(lease.number)

    def _copied(self, number: int, array: np.ndarray[Any, Any]) -> memoryview:
        own = unset_bytes(len(array))
        own[:] = array.data
        self._return(number)
        return own

    def _return(self, number: int) -> None:
        self._fence.between()
        self._memory[self._states + number] = RETURNED
