"""The processes of this machine, as the system lists them: for tests of those we start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")

SERVERS: set[int] = set()
"""Those that fork for this process or have forked it: no part of what is tested."""


@dataclass(frozen=True)
class OsProcess:
    """What the system says of a process.

    Attributes
    ----------
    pid, parent, group, session : int
        Its number, and those of the process, group and session that it belongs to.
    name : str
        As `ps` has it.
    """

    pid: int
    name: str
    is_running: bool
    """False for one that has ended and is not waited for."""
    parent: int
    group: int
    session: int

    def read(self, file: str) -> bytes:
        """One more of the system's files about it; nothing if it has ended, or is another's."""
        try:
            return (_PROC / str(self.pid) / file).read_bytes()
        except OSError:
            return b""

    @property
    def command(self) -> list[str]:
        """How it was called."""
        words = self.read("cmdline").decode(errors="replace").rstrip("\0")
        return words.split("\0") if words else []


def process(pid: int) -> OsProcess | None:
    """The process of a number, running or not waited for; None if there is none."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    name, _, rest = stat.partition("(")[2].rpartition(")")
    state, parent, group, session = rest.split()[:4]
    return OsProcess(pid, name, state not in "ZX", int(parent), int(group), int(session))


def processes() -> Iterator[OsProcess]:
    """All that are there; one that ends meanwhile is left out."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (found := process(int(entry.name))) is not None:
            yield found


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it until it is waited for."""
    found = process(pid)
    return found is not None and found.is_running


def children(pid: int | str = "self") -> list[OsProcess]:
    """What a process has started and not waited for, in order; quicker than to look at all.

    But for those that fork interpreters for tests.
    """
    numbers: list[int] = []
    threads = f"{_PROC}/{pid}/task"  # as a text: it is done for every test
    try:
        entries = os.listdir(threads)  # noqa: PTH208
    except OSError:
        entries = []
    for entry in entries:
        try:
            with open(f"{threads}/{entry}/children") as listed:  # noqa: PTH123
                numbers += map(int, listed.read().split())
        except OSError:
            continue  # the thread has ended meanwhile
    return [
        found for number in sorted({*numbers} - SERVERS) if (found := process(number)) is not None
    ]


def running_children(pid: int | str = "self") -> list[OsProcess]:
    """Those of `children` that have not ended."""
    return [child for child in children(pid) if child.is_running]


def of_group(group: int) -> list[OsProcess]:
    """The running processes of a group."""
    return [found for found in processes() if found.is_running and found.group == group]


def of_session(session: int) -> list[OsProcess]:
    """The running processes of a session, in whatever group."""
    return [found for found in processes() if found.is_running and found.session == session]
