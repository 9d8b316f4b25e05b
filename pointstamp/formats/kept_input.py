"""Standard input kept in a file, for several processes to read."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pointstamp.errors import FileFormatError
from pointstamp.formats.owned_folder import owned_folder

_FOLDER, _NAME = "pointstamp-stdin-", "standard input"


@contextmanager
def at_hand(path: str) -> Iterator[str]:
    """A path that any process of this machine can read: standard input goes to a file."""
    if path != "-":
        yield path
        return
    folder = owned_folder(_FOLDER)
    try:
        kept = folder.path / _NAME
        try:
            with kept.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            raise FileFormatError(
                f"standard input: cannot be read, or not be kept in {folder.path}: {error.strerror}"
            ) from error
        yield str(kept)
    finally:
        folder.remove()


def called(path: Path) -> str:
    """What errors call a file: its path, but for one in which standard input is kept.

    >>> called(Path("edges.csv"))
    'edges.csv'
    """
    is_kept = path.name == _NAME and path.parent.name.startswith(_FOLDER)
    return _NAME if is_kept else str(path)
