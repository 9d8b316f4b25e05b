"""The machine and the versions that figures belong to; no names of hosts or people."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.harness import rust

PACKAGES = (
    "pointstamp", "numpy", "numba", "pyarrow", "scipy", "polars", "duckdb", "networkit",
    "bytewax", "pathway", "pyspark",
)  # fmt: skip
"""Whose versions are written down, where they are installed."""


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """The version of each package that is installed."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {**found, **rust.versions()}


def others_share(seconds: float) -> float:
    """How much of the processors other programs take, from 0 to 1, while this one waits.

    Nothing where the system does not say.
    """
    before = _ticks(_STAT)
    time.sleep(seconds)
    after = _ticks(_STAT)
    if before is None or after is None or after[1] == before[1]:
        return 0.0
    return 1 - (after[0] - before[0]) / (after[1] - before[1])


_STAT = Path("/proc/stat")


def _ticks(stat: Path) -> tuple[int, int] | None:
    """Since the start of the machine: (idle, all), of all processors."""
    if not stat.exists():
        return None
    ticks = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def mode() -> str:
    """Whether the core runs compiled or interpreted, as the package says of itself."""
    from pointstamp import build_info

    return told_mode(build_info())


def told_mode(info: str) -> str:
    """The mode that `build_info()` tells: its first word; the rest says why.

    >>> told_mode("compiled"), told_mode("interpreted: its files are not compiled")
    ('compiled', 'interpreted')
    """
    return info.split()[0].rstrip(":")


def _processor() -> str:
    source = Path("/proc/cpuinfo")
    if source.exists():
        for line in source.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or sys.platform
