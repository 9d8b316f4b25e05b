"""Addresses of this machine at which workers listen, and what is set on their connections."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from pointstamp.communication.tls import Stream
from pointstamp.errors import RendezvousError

Address = tuple[str, int]
"""A host name or IP address, and a port."""

KEEP_ALIVE_S = 30
"""After about so long a machine is noticed that vanished without ending its connections."""


class Listener(contextlib.AbstractContextManager["Listener"]):
    """A bound socket at which the peers of a worker can call; made by `listen`."""

    def __init__(self, bound: socket.socket, host: str) -> None:
        self.socket = bound
        self.address: Address = (host, bound.getsockname()[1])
        """The host it was asked to listen at, and the port it has."""

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def listen(host: str = "127.0.0.1", port: int = 0) -> Listener:
    """Listen at `host`, an address of this machine; port 0 takes a free one.

    Raises
    ------
    RendezvousError
        When this machine cannot listen there.

    Examples
    --------
    >>> with listen() as listener:
    ...     listener.address[0]
    '127.0.0.1'
    """
    try:
        bound = _bind(host, port)
    except OSError as error:
        raise RendezvousError(
            f"cannot listen at {host}, port {port}: {error}; it must be an address of this "
            "machine, and the port must be free"
        ) from error
    return Listener(bound, host)


def _bind(host: str, port: int) -> socket.socket:
    """Listen at the first address of `host` at which it is possible."""
    errors: list[OSError] = []
    for family, kind, protocol, _, where in resolve(host, port, socket.AI_PASSIVE):
        bound = None
        try:
            bound = socket.socket(family, kind, protocol)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(where)
            bound.listen(128)
        except OSError as error:
            errors.append(error)
            if bound is not None:
                bound.close()
        else:
            bound.setblocking(False)
            return bound
    raise errors[0]


def resolve(host: str, port: int, flags: int = 0) -> list[tuple[Any, ...]]:
    """The addresses of a host, for `socket.socket` and `connect`."""
    return socket.getaddrinfo(host or None, port, socket.AF_UNSPEC, socket.SOCK_STREAM, 0, flags)


def tune(connection: Stream) -> None:
    """Send small frames at once; notice a machine that is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEP_ALIVE_S // 3),
        ("TCP_KEEPINTVL", KEEP_ALIVE_S // 6),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", KEEP_ALIVE_S * 1000),
    ):
        if hasattr(socket, name):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
