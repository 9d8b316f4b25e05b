"""The most memory that this process has had at a time."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """Peak resident memory of this process, in bytes.

    On Linux from `VmHWM`: what `getrusage` says includes the process that this one
    was forked from, before it became another program.

    >>> peak_bytes() > 1_000_000
    True
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
