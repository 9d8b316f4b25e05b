"""Folders for temporary files that go with their process, also with one that is killed.

A process that ends by itself removes its folder. What is killed cannot: so each folder has a file
that its process has locked, and before another is made, those of the same prefix whose lock is free
are removed. The system frees it however a process ends, and it is the same in all containers that
share the disk, where numbers of processes are not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

LOCK = ".lock"
"""The file that is locked, in the folder."""


@dataclass(frozen=True)
class OwnedFolder:
    """A folder of this process, until `remove`, the end of its block or of the process."""

    path: Path
    _file: int
    """The locked file; processes that are forked off have the lock, too."""
    _process: int

    def remove(self) -> None:
        """Remove it with what is in it; in a process that was forked off, nothing happens."""
        if os.getpid() == self._process:
            shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(OSError):  # again
                os.close(self._file)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def owned_folder(prefix: str) -> OwnedFolder:
    """A new folder for temporary files of this process; those of dead ones are removed before.

    Parameters
    ----------
    prefix : str
        Of its name, and of the names of the folders that are its like.

    >>> with owned_folder("pointstamp-example-") as path:
    ...     path.is_dir(), path.name.startswith("pointstamp-example-")
    (True, True)
    >>> path.exists()
    False
    """
    for found in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove_if_abandoned(found)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks, where none is removed
            fcntl.flock(file, fcntl.LOCK_EX)
        if _is_still(path / LOCK, file):
            return OwnedFolder(path, file, os.getpid())
        os.close(file)  # another process has found it before it was locked


def _is_still(path: Path, file: int) -> bool:
    """Whether an open file is the one that is there."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except OSError:
        return False


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder of ours if no process has its lock; one without the file is left alone."""
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return
        file = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return  # it is not there any more, or about to be made
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass  # its process lives
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(file)
