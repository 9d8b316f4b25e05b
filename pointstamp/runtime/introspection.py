"""How another process asks the workers of this one what they wait for.

A process that has workers keeps a file in memory, without a name in any folder, whose
label says that it answers and which program it is of. What may read the memory of
the process (its user, or root) finds it among the open files of the process,
writes a question into it, sends the signal, and reads the answer from there. Nothing
is left behind, however anybody ends. Linux has such files; elsewhere the answer to the
signal goes to standard error.

A question is `?nonce deadline`, an answer `!nonce text` with a zero at the end, so that
half an answer is not taken for a whole one. A question whose asker gave up is void.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LABEL = "pointstamp-workers-of-"
"""Then the process that started the program, and the one whose workers they are: a child that
has inherited the file does not answer."""

PATIENCE_S = 5.0
"""How long an asker waits by default."""

LOOK_S = 0.01


class Responder:
    """The file in memory of a process that answers."""

    def __init__(self, program: int) -> None:
        self._fd = (
            os.memfd_create(f"{LABEL}{program}-in-{os.getpid()}")
            if hasattr(os, "memfd_create")
            else -1
        )

    def pending_question(self) -> str | None:
        """The nonce of a question that waits for its answer, if there is one."""
        if self._fd < 0:
            return None
        said = os.pread(self._fd, 200, 0).decode(errors="replace")
        nonce, _, deadline = said.removeprefix("?").partition(" ")
        is_open = said.startswith("?") and time.monotonic() < float(deadline)
        return nonce if is_open else None

    def answer(self, nonce: str, text: str) -> None:
        """Answer it."""
        data = f"!{nonce} {text}\0".encode(errors="replace")
        os.ftruncate(self._fd, 0)
        offset = 0
        while offset < len(data):
            offset += os.pwrite(self._fd, data[offset:], offset)

    def close(self) -> None:
        """Answer no more."""
        if self._fd >= 0:
            os.close(self._fd)


@dataclass(frozen=True)
class RespondingProcess:
    """A process that answers, as another one sees it."""

    pid: int
    program: int
    path: Path
    """Of its file in memory."""


def find_responders(pid: int) -> list[RespondingProcess]:
    """The processes with workers of the program that `pid` is part of.

    It is part of one if it answers itself, or if it has started processes that answer and
    say that they are of its program. What merely runs below it (a shell has started it) is
    another program: see `find_below`.
    """
    programs = {process.program for process in _responding(pid)}
    if any(process.program == pid for process in find_below(pid)):
        programs.add(pid)
    found = [process for program in programs for process in find_below(program)]
    unique = {process.pid: process for process in found if process.program in programs}
    return [unique[each] for each in sorted(unique)]


def find_below(pid: int) -> list[RespondingProcess]:
    """All processes that answer, of a process and those that it started, of whatever program."""
    return [process for each in (pid, *_descendants(pid)) for process in _responding(each)]


def ask(found: list[RespondingProcess], patience_s: float = PATIENCE_S) -> dict[int, str | None]:
    """What each process answers; None if it does not.

    Raises
    ------
    PermissionError
        If they are another user's.
    """
    until = time.monotonic() + patience_s
    answers: dict[int, str | None] = {process.pid: None for process in found}
    with contextlib.ExitStack() as stack:
        asked = {}
        for process in found:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fd = stack.enter_context(_opened(process.path))
                fcntl.flock(fd, fcntl.LOCK_EX)  # one asker at a time
                asked[process.pid] = fd, _put(process.pid, fd, until)
        while asked and time.monotonic() < until:
            for pid, (fd, nonce) in list(asked.items()):
                answer = _answer(fd, nonce)
                if answer is not None:
                    answers[pid] = answer
                    del asked[pid]
            time.sleep(LOOK_S if asked else 0)
    return answers


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR)
    try:
        yield fd
    finally:
        os.close(fd)


def _put(pid: int, fd: int, until: float) -> str:
    nonce = os.urandom(8).hex()
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"?{nonce} {until}".encode(), 0)
    os.kill(pid, signal.SIGUSR1)
    return nonce


def _answer(fd: int, nonce: str) -> str | None:
    size = os.fstat(fd).st_size
    said = os.pread(fd, size, 0).decode(errors="replace")
    start = f"!{nonce} "
    return said[len(start) : -1] if said.startswith(start) and said.endswith("\0") else None


def _responding(pid: int) -> Iterator[RespondingProcess]:
    try:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                _, labelled, rest = str(path.readlink()).partition(LABEL)
                program, _, own = rest.partition("-in-")
                if labelled and own.split()[0] == str(pid):
                    yield RespondingProcess(pid, int(program), path)
    except (FileNotFoundError, PermissionError):
        return  # it has ended, or is another user's


def _descendants(pid: int) -> Iterator[int]:
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from _descendants(child)
    except OSError:
        return
