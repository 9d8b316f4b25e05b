"""What `--version` prints; imports next to nothing, so that it answers at once."""

from __future__ import annotations

from pointstamp import __version__
from pointstamp.compiled import build_info


def print_version() -> None:
    """Say which this is, and whether its core is compiled."""
    print(f"pointstamp {__version__} ({build_info()})", flush=True)
