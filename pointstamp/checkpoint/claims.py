"""A claim of a checkpoint: one program at a time commits to it.

Two programs that commit to one checkpoint each go on with what the other has not: records are lost
and doubled, and nothing fails. What can be done about that differs.

- In a folder of this machine, or of a disk that it has mounted, a lock of the system's: the second
  program is refused. The process that starts the workers has it, and each worker shares it, as
  workers may live on for a moment when that process is killed: what they still commit
  is there before the next program looks. The lock goes with the processes, however they end.
- In an object store there are no locks, and nothing says whether a program still lives. So the
  second one is let in, and the first one is refused at its next snapshot: a term (`terms.py`) says
  which one came last.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from pointstamp.checkpoint.objects import LocalObjects, Objects
from pointstamp.checkpoint.terms import Terms
from pointstamp.errors import CheckpointError, CheckpointInUseError

LOCK_FILE = "lock"

PATIENCE_S = 3.0
"""How long to wait for the workers of a program that was killed to end."""

_TICK_S = 0.05


class CheckpointClaim(Protocol):
    """That a program may commit to a checkpoint; it travels to the workers."""

    def shared(self) -> contextlib.AbstractContextManager[None]:
        """Hold it, in a worker, for as long as that may commit."""

    def check(self) -> None:
        """Raise `CheckpointInUseError` if another program has it since.

        And `CheckpointError` if the folder is gone, in which what is written now would lie alone.
        """


@contextlib.contextmanager
def claimed(objects: Objects) -> Iterator[CheckpointClaim]:
    """Claim a checkpoint for this program, before anything of it is read.

    Raises
    ------
    CheckpointInUseError
        If another program of this machine has it.
    CheckpointError
        If that cannot be written.
    """
    if not isinstance(objects, LocalObjects):
        terms = Terms(objects)
        terms.claim(takes_over=True)
        yield StoreClaim(terms)
        return
    with locked(objects) as claim:
        assert claim is not None  # as it is a folder
        yield claim


@contextlib.contextmanager
def locked(objects: Objects) -> Iterator[CheckpointClaim | None]:
    """Claim a folder as `claimed` does; None for an object store, where nothing happens.

    For a program whose commits claim terms by themselves, those to the log of inputs.
    """
    if not isinstance(objects, LocalObjects):
        yield None
        return
    with _locked(objects.root):
        yield LocalClaim(objects.root)


@dataclass(frozen=True)
class LocalClaim:
    """By a lock of a file in the folder."""

    folder: Path

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """See `CheckpointClaim`."""
        with _opened(self.folder, may_only_read=True) as file:
            _lock(file, fcntl.LOCK_SH, self.folder, 0.0)
            yield

    def check(self) -> None:
        """See `CheckpointClaim`: no other program can take it."""
        # Folders are made anew for what is written to them, and the file of the lock is not.
        try:
            (self.folder / LOCK_FILE).stat()
        except OSError as error:
            raise CheckpointError(
                f"{self.folder}: its file {LOCK_FILE!r}, which was there when this program began, "
                f"cannot be found: {error.strerror}; if the folder was removed or moved away, what "
                "it had is not there for a restart: put it back as it was, or begin anew"
            ) from error


@dataclass(frozen=True)
class StoreClaim:
    """By the last term."""

    terms: Terms

    def shared(self) -> contextlib.AbstractContextManager[None]:
        """See `CheckpointClaim`."""
        return contextlib.nullcontext()

    def check(self) -> None:
        """See `CheckpointClaim`."""
        self.terms.check()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Have the lock, shared with workers that ask for it, and with no other program."""
    with _opened(folder) as file:
        _lock(file, fcntl.LOCK_EX, folder, PATIENCE_S)
        file.seek(0)
        file.truncate()
        file.write(f"{_this_process()}\n")
        file.flush()
        # Another program may come between the two; then this one is refused.
        _lock(file, fcntl.LOCK_SH, folder, 0.0)
        yield


def _this_process() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextlib.contextmanager
def _opened(folder: Path, *, may_only_read: bool = False) -> Iterator[IO[str]]:
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("a+")
        except PermissionError:
            if not may_only_read:
                raise
            file = path.open()  # workers may run as another user than the program
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be locked: {error.strerror}") from error
    with file:
        try:
            yield file
        finally:
            # A process that was forked from this one meanwhile has the lock, too.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _lock(file: IO[Any], kind: int, folder: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                break
            time.sleep(_TICK_S)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                return  # a file system without locks
            raise CheckpointError(f"{folder}: cannot be locked: {error.strerror}") from error
    file.seek(0)
    holder = file.read().strip() or "another process"
    if holder == _this_process():
        raise CheckpointInUseError(
            f"{folder}: this program commits to this checkpoint already ({holder}): only one "
            "service or run may at a time; end the first, or give each a checkpoint of its own"
        )
    raise CheckpointInUseError(
        f"{folder}: another program commits to this checkpoint ({holder}): only one may at a "
        "time; wait for it, end it, or give each a checkpoint of its own"
    )
