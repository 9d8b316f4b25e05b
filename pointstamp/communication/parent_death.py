"""Ends a process when the one that started it is gone, even in the middle of C code.

The end of the control connection says that the parent is gone, but a thread that reads
it needs the interpreter, which a long call of a library may hold. Linux kills a process
by itself when its parent dies, if it asks for that.
"""

from __future__ import annotations

import os
import signal
import sys

ORPHANED_STATUS = 70
"""With what a process exits whose parent is gone; nothing reads it."""

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Be killed when process `parent`, which started this one, ends; where Linux runs.

    The thread of the parent that started this process must live as long as the parent:
    its end is what the system watches.
    """
    if sys.platform != "linux":
        return
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return  # a C library without it; the control connection is watched anyway
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # It may have died before we asked, and then nothing would come any more.
    if os.getppid() != parent:
        os._exit(ORPHANED_STATUS)
