"""The most memory that this process and its descendants have had, each for itself."""

from __future__ import annotations

import os
from pathlib import Path

from pointstamp.cli.memory import peak_bytes


def peaks() -> list[int]:
    """Peak resident bytes of this process, then of each descendant that still runs."""
    return [peak_bytes(), *(peak for pid in _descendants(os.getpid()) if (peak := _peak(pid)))]


def _descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (child, *_descendants(child))]


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
