"""Ports of this machine at which nothing listens, for what is to listen there a while later.

The system gives ports of its ephemeral range to all that asks for any, as tests of other processes
do all the time: one of those that was free is another's a moment later. These are below that range.
"""

from __future__ import annotations

import random
import socket

PORTS = range(12_000, 32_000)

_rolled = random.SystemRandom()  # others seed theirs, and would all find the same
_given: set[int] = set()


def free_port(host: str = "127.0.0.1") -> int:
    """A port at which nothing listens, another one each time."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = _rolled.choice(PORTS)
        if port in _given:
            continue
        with socket.socket(family) as tried:
            try:
                tried.bind((host, port))
            except OSError:
                continue  # it is taken
        _given.add(port)
        return port
