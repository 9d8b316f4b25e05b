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

from pointstamp.checkpoint.descriptor_reserve import DescriptorReserve

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

    There may be `most` connections; by default what the limit of descriptors allows.
    """

    def __init__(self, port: int, most: int | None = None, idle_s: float = IDLE_S) -> None:
        limit = raise_descriptor_limit()
        self._port = port
        self._most = most or max(8, min(MAX_CONNECTIONS, (limit - RESERVED) // 2))
        self._idle_s = idle_s
        self._authenticated: set[Peer] = set()
        self._since: dict[Peer, float] = {}
        self._reserve = DescriptorReserve()  # without one there is no way to look, either
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pointstamp-guard", daemon=True)
        if _DESCRIPTORS.is_dir():
            self._thread.start()

    def admit(self, peer: str) -> None:
        """A client has made a call with the token: `ipv4:127.0.0.1:4711`, as gRPC says."""
        host, _, port = peer.partition(":")[2].rpartition(":")
        if port.isdigit():
            host = host.replace("%5B", "").replace("%5D", "").strip("[]")
            self._authenticated.add((host.removeprefix("::ffff:"), int(port)))

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._reserve.close()

    def disconnect(self) -> None:
        """Shut down all connections to the port: calls that are being answered fail."""
        if _DESCRIPTORS.is_dir():
            for peer, descriptor in self._connections().items():
                self._shut_down(peer, descriptor)

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            with contextlib.suppress(OSError), self._reserve.released():
                self.look()

    def look(self) -> int:
        """Shut down what has to go; how many connections there were."""
        known = set(self._authenticated)  # before the list, which may lack one that comes now
        found = self._connections()
        now = time.monotonic()
        self._since = {peer: self._since.get(peer, now) for peer in found}
        self._authenticated -= known - set(found)
        strangers = sorted(set(found) - self._authenticated, key=self._since.__getitem__)
        n_excess = len(found) - self._most
        for number, peer in enumerate(strangers):
            if number < n_excess or now - self._since[peer] > self._idle_s:
                self._shut_down(peer, found[peer])
        return len(found)

    def _shut_down(self, peer: Peer, descriptor: int) -> None:
        with contextlib.suppress(OSError), _duplicate(descriptor) as connection:
            # The descriptor may be another connection's meanwhile.
            if self._peer_of(connection) == peer:
                connection.shutdown(socket.SHUT_RDWR)

    def _connections(self) -> dict[Peer, int]:
        """The descriptors of the sockets that are connected to the port, by their other end."""
        found: dict[Peer, int] = {}
        for link in list(_DESCRIPTORS.iterdir()):
            # It may be closed meanwhile, or listen, or not be connected any more.
            with contextlib.suppress(OSError):
                if str(link.readlink()).startswith("socket:"):
                    with _duplicate(int(link.name)) as connection:
                        peer = self._peer_of(connection)
                        if peer is not None:
                            found[peer] = int(link.name)
        return found

    def _peer_of(self, connection: socket.socket) -> Peer | None:
        """The other end of a connection to the port; None for any other."""
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return None
        if connection.getsockname()[1] != self._port:
            return None
        host, port = connection.getpeername()[:2]
        return host.removeprefix("::ffff:"), port


def _duplicate(descriptor: int) -> socket.socket:
    """Another descriptor of the same socket, which stays that when the first is closed."""
    return socket.socket(fileno=os.dup(descriptor))
