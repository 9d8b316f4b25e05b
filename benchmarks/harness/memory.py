"""The most memory that this process and its descendants have had, each for itself."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pointstamp.metrics.peak_memory import peak_bytes


def peaks() -> list[int]:
    """Peak resident bytes of this process, then of each descendant that still runs."""
    return [peak_bytes(), *(peak for pid in descendants() if (peak := peak_of(pid)))]


def descendants(pid: int | None = None) -> list[int]:
    """The processes that one has started, or this one, and those that they have, while they run."""
    children = _children(os.getpid() if pid is None else pid)
    return [found for child in children for found in (child, *descendants(child))]


def _children(pid: int) -> list[int]:
    """Those of all threads: a JVM starts processes from any."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def peak_of(pid: int) -> int:
    """Peak resident bytes of a process, or 0 if it does not run."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
