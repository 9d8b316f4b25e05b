"""The machine and the versions that figures belong to; no names of hosts or people."""

from __future__ import annotations

import os
import platform
import sys
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
