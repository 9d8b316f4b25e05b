"""Standard input kept in a file, for several processes to read."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pointstamp.errors import FileFormatError


@contextmanager
def at_hand(path: str) -> Iterator[str]:
    """A path that any process of this machine can read: standard input goes to a file."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="pointstamp-stdin-") as folder:
        kept = Path(folder, "standard input")
        try:
            with kept.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise FileFormatError(
                f"standard input: cannot be read, or not be kept in {folder}: {error.strerror}"
            ) from error
        yield str(kept)
