"""Bounds the connections of a Flight server, so that descriptors are left for the checkpoint.

gRPC accepts every connection, asks for the token with the first call only, and has no limit.
So a thread looks every second at the sockets of this process that are connected to the
server's port, and shuts down those that have not made a call with the token: the oldest, where
there are too many, and all that are older than `IDLE_S`. A client that is shut out between
two calls connects again by itself.

Where the system does not list a process's descriptors (`/proc/self/fd`) nothing is bounded.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import time
from pathlib import Path

IDLE_S = 10.0
"""How long a connection may be without a call that presents the token."""

MAX_CONNECTIONS = 1024
"""Of all, those with the token too; fewer where the limit of descriptors is lower."""

RESERVED = 256
"""So many descriptors are for other things than connections."""

LOOK_S = 1.0
MAX_DESCRIPTORS = 65536

_DESCRIPTORS = Path("/proc/self/fd")

Peer = tuple[str, int]


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open descriptors towards the hard one; what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    found = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_DESCRIPTORS if found == resource.RLIM_INFINITY else found


class ConnectionGuard:
    """Shuts down connections to a port of this process that present no token.

    Parameters
    ----------
    port : int
        The server's.
    most : int, optional
        How many connections may be; by default what the limit of descriptors allows.
    """

    def __init__(self, port: int, most: int | None = None, idle_s: float = IDLE_S) -> None:
        limit = raise_descriptor_limit()
        self._port = port
        self._most = most or max(8, min(MAX_CONNECTIONS, (limit - RESERVED) // 2))
        self._idle_s = idle_s
        self._authenticated: set[Peer] = set()
        self._since: dict[Peer, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pointstamp-guard", daemon=True)
        if _DESCRIPTORS.is_dir():
            self._thread.start()

    def admit(self, peer: str) -> None:
        """A client has made a call with the token: `ipv4:127.0.0.1:4711`, as gRPC says."""
        host, _, port = peer.partition(":")[2].rpartition(":")
        if port.isdigit():
            self._authenticated.add(
                (host.strip("[]").replace("%5B", "").replace("%5D", ""), int(port))
            )

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self.look()

    def look(self) -> int:
        """Shut down what has to go; how many connections there were."""
        found = self._connections()
        now = time.monotonic()
        self._since = {peer: self._since.get(peer, now) for peer in found}
        self._authenticated &= set(found)
        strangers = sorted(set(found) - self._authenticated, key=self._since.__getitem__)
        n_excess = len(found) - self._most
        for number, peer in enumerate(strangers):
            if number < n_excess or now - self._since[peer] > self._idle_s:
                with contextlib.suppress(OSError):
                    found[peer].shutdown(socket.SHUT_RDWR)
        for connection in found.values():
            connection.close()
        return len(found)

    def _connections(self) -> dict[Peer, socket.socket]:
        """Duplicates of the sockets that are connected to the port, by their other end.

        A duplicate stays the same connection when the server closes its descriptor meanwhile.
        """
        found: dict[Peer, socket.socket] = {}
        for link in list(_DESCRIPTORS.iterdir()):
            try:
                if not str(link.readlink()).startswith("socket:"):
                    continue
                connection = socket.socket(fileno=os.dup(int(link.name)))
            except OSError:
                continue  # closed meanwhile, or not a socket any more
            try:
                is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
                if is_tcp and connection.getsockname()[1] == self._port:
                    host, port = connection.getpeername()[:2]
                    found[host.removeprefix("::ffff:"), port] = connection
                    continue
            except OSError:
                pass  # it listens, or is not connected any more
            connection.close()
        return found
