"""The memory that the workers of one machine share: one file without a name, mapped by each.

What starts the workers makes the file (`create`) and hands its descriptor down;
it is nowhere in a file system, so that the last process to end, however it ends,
takes it along. Here is only where things lie in it:

    parked flags     a line of 64 bytes for each worker, with when it was woken last
    ring controls    two lines for each ordered pair of workers: what the writer
                     says (tail, starved), and what the reader says (head)
    rings            RING_BYTES for each ordered pair
    block states     one byte for each block of each worker
    arenas           ARENA_BYTES of each worker, for what it sends and is too large for a ring

Pages that are never touched take no memory, so the sizes are bounds and not costs.

What we rely on. An aligned word is read and written in one piece: a memoryview of
format "Q" copies eight bytes at once, as compiled code does. Stores of one process
are seen by the others in their order on x86; elsewhere `Fence.between` orders
them. Nowhere is a store ordered before a *later load* of another word without
`Fence.full`, and both sides of every "I am going to sleep" need that.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import threading

from pointstamp.compiled import build_info

LINE_WORDS = 8
"""Words in a line of the cache: what two processors write to lies in two."""

RING_BYTES = 1 << 18
"""A power of two, and small enough to stay in the cache."""

ARENA_BYTES = 1 << 26
N_BLOCKS = 1 << 10
"""How many blocks of one worker can be under way at a time."""

PAGE_BYTES = 4096

_TAIL, _STARVED, _HEAD = 0, 1, LINE_WORDS
_CONTROL_WORDS = 2 * LINE_WORDS


def create(workers: int) -> int | None:
    """A new file for `workers`, as a descriptor; None where the system has no such files."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        fd = os.memfd_create("pointstamp")
    except OSError:
        return None  # forbidden, as some sandboxes do
    n_bytes = _Layout(workers).n_bytes
    try:
        os.ftruncate(fd, n_bytes)
        # Whether so much can be mapped is found out here, where there is another way.
        mmap.mmap(fd, n_bytes).close()
    except (OSError, ValueError):
        os.close(fd)
        return None
    return fd


def nonce_byte(workers: int) -> int:
    """Where a nonce may lie in a new file: what is written there at first means nothing."""
    return _Layout(workers).arena_byte(0)


class Segment:
    """The shared memory, as one worker has it mapped.

    Parameters
    ----------
    fd : int
        Of a file made by `create`; stays open, and is not needed any more.
    workers : int
        The number that it was made for.
    """

    def __init__(self, fd: int, workers: int) -> None:
        self.layout = _Layout(workers)
        self.memory = mmap.mmap(fd, self.layout.n_bytes)
        self.words = memoryview(self.memory).cast("Q")
        self.fence = Fence()

    def close(self) -> None:
        """Let go of the mapping; batches that lie in it keep it as long as they are used."""
        with contextlib.suppress(BufferError):
            self.words.release()
            self.memory.close()


class _Layout:
    """Where things lie: `..._word` counts words, `..._byte` bytes, from the beginning."""

    def __init__(self, workers: int) -> None:
        pairs = workers * workers
        self._workers = workers
        self._controls = workers * LINE_WORDS
        self._rings = _whole_pages((self._controls + pairs * _CONTROL_WORDS) * 8)
        self._states = self._rings + pairs * RING_BYTES
        self._arenas = _whole_pages(self._states + workers * N_BLOCKS)
        self.n_bytes = self._arenas + workers * ARENA_BYTES

    def parked_word(self, worker: int) -> int:
        """Whether `worker` sleeps, and has to be woken."""
        return worker * LINE_WORDS

    def woken_word(self, worker: int) -> int:
        """When `worker` was woken last, in nanoseconds of the system's monotonic clock."""
        return worker * LINE_WORDS + 1

    def tail_word(self, source: int, target: int) -> int:
        """How many bytes `source` has put into its ring to `target`, ever."""
        return self._control(source, target) + _TAIL

    def starved_word(self, source: int, target: int) -> int:
        """Whether `source` waits for room in its ring to `target`."""
        return self._control(source, target) + _STARVED

    def head_word(self, source: int, target: int) -> int:
        """How many bytes `target` has taken out of that ring, ever."""
        return self._control(source, target) + _HEAD

    def ring_byte(self, source: int, target: int) -> int:
        """Where the ring from `source` to `target` begins."""
        return self._rings + (source * self._workers + target) * RING_BYTES

    def states_byte(self, worker: int) -> int:
        """Where the states of the blocks that `worker` sends begin."""
        return self._states + worker * N_BLOCKS

    def arena_byte(self, worker: int) -> int:
        """Where the blocks that `worker` sends lie."""
        return self._arenas + worker * ARENA_BYTES

    def _control(self, source: int, target: int) -> int:
        return self._controls + (source * self._workers + target) * _CONTROL_WORDS


def _whole_pages(n_bytes: int) -> int:
    return n_bytes + -n_bytes % PAGE_BYTES


_FENCES = build_info() == "compiled" and _HAS_FENCE  # type: ignore[name-defined]  # noqa: F821
"""Whether C has a fence here: `_HAS_FENCE` and `_fence_in_c` are names of the .pxd alone."""


class Fence:
    """Orders what this process writes and reads, as others see it.

    Compiled, it is an instruction. Python has none: but taking a lock is an atomic
    instruction, which is a fence on x86; on ARM the release of a lock and the taking of
    it, in this order, are. So we take and release a lock that nothing else wants, which
    costs 70 ns, and elsewhere than on x86 twice. It belongs to one thread, as a second
    one would wait for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_needed_between = platform.machine() not in ("x86_64", "AMD64", "i686")

    def full(self) -> None:
        """What was written before is seen before what is read after is read."""
        if _FENCES:
            _fence_in_c()  # type: ignore[name-defined]  # noqa: F821
        else:
            self._take_and_release()

    def _take_and_release(self) -> None:
        # By `with`, in which no signal's handler runs: one that raised between the two would
        # leave the lock taken, and the next call would wait for ever.
        with self._lock:
            pass
        if self.is_needed_between:
            with self._lock:
                pass

    def between(self) -> None:
        """The same where even the order of stores, or of loads, is not kept."""
        if self.is_needed_between:
            self.full()
