"""A handshake over a socket that blocks, by a thread that has nothing else to do."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from pointstamp.communication.authentication import Handshake
from pointstamp.errors import PeerLostError

LOOK_S = 0.05
"""How often to see whether the connection is still wanted."""


def authenticate(
    connection: socket.socket,
    handshake: Handshake,
    until: float,
    is_wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Both ends know the secret, or this raises.

    Parameters
    ----------
    until : float
        When to give up, of the monotonic clock, in seconds.
    is_wanted : callable
        Asked now and then; False gives up.

    Raises
    ------
    PeerLostError
        If the other end goes, or is too slow.
    AuthenticationError, VersionError, RendezvousError
        See `Handshake.receive`.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(LOOK_S)
    connection.sendall(handshake.greeting)
    while handshake.peer is None:
        try:
            data = connection.recv(handshake.n_missing)
        except TimeoutError:
            if is_wanted() and time.monotonic() < until:
                continue
            raise PeerLostError("the other end did not prove itself in time") from None
        if not data:
            raise PeerLostError("the other end closed the connection before it proved itself")
        connection.sendall(handshake.receive(data))
