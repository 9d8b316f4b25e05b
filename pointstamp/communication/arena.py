"""A worker's shared memory for large messages, written once and read in place.

The sender takes a block, writes a message into it and passes its number on; the
receiver marks the block as returned when it has no use for it any more. Only the
sender decides which block lies where, so that nothing here needs a lock: a state
is one byte, which the sender sets and the receiver clears.

The free block at the lowest place that is large enough is taken, so that memory
that is in the caches, and was touched before, is used again first.
"""

from __future__ import annotations

import bisect
from collections import deque
from typing import NamedTuple

from pointstamp.communication.segment import (
    ARENA_BYTES,
    N_BLOCKS,
    PAGE_BYTES,
    Fence,
    Segment,
)

N_LOOKS = 16
"""How many blocks `take` looks at, whether they are returned, if it need not look at all."""

BUSY = 1
RETURNED = 0


class Block(NamedTuple):
    """A piece of an arena."""

    number: int
    start: int
    """Where it begins in the memory of all."""
    n_bytes: int


class Arena:
    """The blocks of one sender.

    Invariant: what is free and what is out are disjoint, and together everything;
    free pieces that touch are one.
    """

    def __init__(self, segment: Segment, worker: int) -> None:
        self._memory = segment.memory
        self._fence: Fence = segment.fence
        self._states = segment.layout.states_byte(worker)
        first = segment.layout.arena_byte(worker)
        self._starts = [first]
        self._ends = [first + ARENA_BYTES]
        self._numbers = list(range(N_BLOCKS))
        self._out: deque[Block] = deque()

    @property
    def n_out(self) -> int:
        """How many blocks were not seen to be returned."""
        return len(self._out)

    def take(self, n_bytes: int) -> Block | None:
        """A block of `n_bytes`, in whole pages; None if there is none at the moment."""
        n_whole = n_bytes + -n_bytes % PAGE_BYTES
        self._collect(N_LOOKS)
        block = self._take_free(n_whole)
        if block is None and self._out:
            self._collect(len(self._out))
            block = self._take_free(n_whole)
        return block

    def _take_free(self, n_bytes: int) -> Block | None:
        if not self._numbers:
            return None
        for place in range(len(self._starts)):
            start = self._starts[place]
            if self._ends[place] - start >= n_bytes:
                self._starts[place] = start + n_bytes
                if self._starts[place] == self._ends[place]:
                    del self._starts[place], self._ends[place]
                block = Block(self._numbers.pop(), start, n_bytes)
                self._memory[self._states + block.number] = BUSY
                self._out.append(block)
                return block
        return None

    def _collect(self, n_looks: int) -> None:
        """Free those of the next `n_looks` blocks that were returned."""
        for _ in range(min(n_looks, len(self._out))):
            block = self._out.popleft()
            if self._memory[self._states + block.number] == RETURNED:
                self._free(block)
            else:
                self._out.append(block)
        self._fence.between()

    def _free(self, block: Block) -> None:
        self._numbers.append(block.number)
        start, end = block.start, block.start + block.n_bytes
        place = bisect.bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] == end:
            end = self._ends[place]
            del self._starts[place], self._ends[place]
        if place and self._ends[place - 1] == start:
            self._ends[place - 1] = end
        else:
            self._starts.insert(place, start)
            self._ends.insert(place, end)
