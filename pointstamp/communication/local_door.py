"""A door of a control server for other processes of the same user on the same machine.

It has a name in no folder (an abstract address of Linux), which the process's number is
part of. Both ends ask the system which process and which user the other one is, and refuse any
other user: what travels is pickled. Another process cannot pass for this one, as the system
says which process listens. Where the system has no such addresses there is no door.

It is there for `pointstamp explain` and `watch`: nothing else is taken that comes by it.
"""

from __future__ import annotations

import _socket
import contextlib
import itertools
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # It takes 6 ms to import, and a program on one worker has no other use for it.
    import socket

PREFIX = "pointstamp-control-"
"""Then the process, and which of its servers."""

_CREDENTIALS = struct.Struct("3i")
_numbers = itertools.count()


class LocalDoor:
    """Listens for processes of the same user; made by `open_door`."""

    def __init__(self) -> None:
        self.socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            self.socket.bind(f"\0{PREFIX}{os.getpid()}-{next(_numbers)}")
            self.socket.listen(8)
            self.socket.setblocking(False)
        except OSError:
            self.socket.close()
            raise

    def accept(self) -> socket.socket | None:
        """The next connection of this user; None if there is none."""
        import socket

        while True:
            try:
                descriptor, _ = self.socket._accept()  # type: ignore[attr-defined]  # not in its stubs
            except OSError:
                return None
            accepted = socket.socket(fileno=descriptor)
            _, user = credentials(accepted)
            if user == os.geteuid():
                accepted.setblocking(False)
                return accepted
            accepted.close()

    def close(self) -> None:
        """Let no more in."""
        self.socket.close()


def open_door() -> LocalDoor | None:
    """A door of this process; None where the system has none."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):  # no descriptor left, or another user has taken the name
        return LocalDoor()
    return None


def has_door(process: int) -> bool:
    """Whether there is a door of a process; it may be that it does not open."""
    return any(_addresses(process))


def enter(process: int, timeout_s: float) -> socket.socket | None:
    """A connection to a process's control server; None if it has none for us."""
    import socket

    for address in _addresses(process):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout_s)
        with contextlib.suppress(OSError):
            connection.connect(address)
            if credentials(connection) == (process, os.geteuid()):
                return connection
        connection.close()
    return None


def credentials(connection: _socket.socket) -> tuple[int, int]:
    """The process and the user at the other end, as the system has them."""
    found = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return process, user


def _addresses(process: int) -> Iterator[str]:
    """The addresses that are named as those of a process; the system lists them."""
    try:
        lines = Path(f"/proc/{process}/net/unix").read_text().splitlines()
    except OSError:
        return  # it has ended, or is another user's
    start = f"@{PREFIX}{process}-"
    found = {line.rpartition(" ")[2] for line in lines if line.rpartition(" ")[2].startswith(start)}
    yield from sorted(f"\0{name[1:]}" for name in found)
