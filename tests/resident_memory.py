"""How much memory processes have, as the system counts it: for tests of limits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


class PeakGrowth:
    """By how many bytes each of some processes has ever grown since this was made.

    What was in use before, and its peak then, does not count (`proc(5)`: `clear_refs`).
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._before: dict[int, int] = {}
        for pid in pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
            self._before[pid] = _bytes_of(pid, "VmRSS")

    def of(self, pid: int) -> int:
        """Of one of them."""
        return _bytes_of(pid, "VmHWM") - self._before[pid]


def _bytes_of(pid: int, what: str) -> int:
    found = re.search(
        rf"^{what}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    assert found is not None
    return int(found[1]) * 1024
