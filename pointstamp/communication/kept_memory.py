"""Has the process of a worker keep the memory that it frees, for what it allocates next.

GNU's C library gives the top of its heap back to the system as soon as that is free, and takes
large allocations from the system one by one. So a worker that frees the columns of an epoch when
it begins the next has the same pages taken away, mapped again and cleared for each epoch, which
takes longer than to split the columns for the workers: without, batches of a million integers are
exchanged a sixth quicker, and 76 batches of 65,536 edges that are kept meanwhile in less than half
of the time. What is kept of the top of the heap is bounded; what lies below something that is still
in use stays in any case. Other C libraries go about it in their own way.

A worker in a process of others, such as one of `execute` alone or one in a task of Spark, does not
change what the library does there, but has it learn what it would learn of the first large array.
Triangles of a graph of 65,000 edges are counted in two thirds of the time so.
"""

from __future__ import annotations

import functools
import os
import sys

KEPT_BYTES = 1 << 27
"""So much of the top of its heap a worker keeps."""

_APART_BYTES = 1 << 25
"""What is larger is still taken from the system by itself, and given back when it is freed."""

_PAD_BYTES = 1 << 20
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3

_SETTINGS = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
    "GLIBC_TUNABLES",
)


_LEARNED_BYTES = 1 << 24
"""Less than the 32 MiB beyond which it learns nothing: large arrays stay on large pages."""


@functools.cache
def learn_large_blocks() -> None:
    """Have the library learn of a large block, which is allocated and freed; none of it is written.

    For processes that are more than a worker: GNU's C library then takes blocks up to that size
    from its heap, and keeps up to twice as much of the top of it. It does so from the first array
    of that size on, whatever frees it, unless the environment or the program has set limits. Once
    in a process: a second block would be cleared, where what was freed meanwhile is kept.
    """
    bytes(_LEARNED_BYTES)


def keep_freed_memory() -> bool:
    """Keep up to `KEPT_BYTES` of what is freed; whether the C library does so.

    For processes that are a worker and nothing else: it is for all of a process, and for good.
    What the environment says of the same comes first.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _SETTINGS):
        return False
    import ctypes

    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - others take the numbers for something else
        mallopt = library.mallopt
    except (OSError, AttributeError):
        return False
    # Any of these ends that the library finds the limits itself, so all three are given.
    limits = (
        (_M_MMAP_THRESHOLD, _APART_BYTES),
        (_M_TRIM_THRESHOLD, KEPT_BYTES),
        (_M_TOP_PAD, _PAD_BYTES),
    )
    return all(mallopt(which, n_bytes) == 1 for which, n_bytes in limits)
