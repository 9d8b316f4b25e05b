"""How the workers of one machine tell each other the ports at which they listen.

Spark's `allGather` does the same between any machines, and takes a second whatever
is said: each task sleeps that long before it looks for the answer. A second is what
a million records cost, so where all tasks run on one machine they ask worker 0
instead, over a Unix socket, in about a millisecond.

The name of the socket follows from the secret of the job and the number of the
stage, and exists nowhere in the file system (an abstract name, which Linux has):
nothing is left behind by whoever is killed. Who belongs to another user is not
listened to. A user's own processes are believed; that they know the secret is
proved when the workers connect to the ports.

A stage that is run again uses the name again. A worker 0 of the run before may still
hold it for a moment, so binding it is tried until it works; should that worker even
answer, then its port is dead, the connection fails and with it that run of the stage.
"""

from __future__ import annotations

import hmac
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TypeVar

from pointstamp.errors import RendezvousError

Result = TypeVar("Result")

TIMEOUT_S = 120.0
"""How long peers may take to start; a peer that fails instead has Spark end us sooner."""

RETRY_S = 0.002

_REPORT = struct.Struct("<II")  # index, port
_CREDENTIALS = struct.Struct("3i")  # process, user, group: struct ucred


def is_possible() -> bool:
    """Whether this system has what it takes."""
    return sys.platform == "linux"


def gather_ports(
    index: int, port: int, peers: int, secret: bytes, stage: int, timeout_s: float = TIMEOUT_S
) -> list[int]:
    """The ports of all workers, by index, of which this is number `index`.

    Raises
    ------
    RendezvousError
        When not all turned up in `timeout_s`.
    """
    if peers == 1:
        return [port]
    digest = hmac.digest(secret, b"ports of stage %d of %d" % (stage, peers), "sha256")
    name = "\0pointstamp-" + digest.hex()[:48]
    until = time.monotonic() + timeout_s
    if index == 0:
        return _collect(name, port, peers, until)
    return _report(name, index, port, peers, until)


def _collect(name: str, port: int, peers: int, until: float) -> list[int]:
    """Worker 0: hear all others, then answer all."""
    ports = {0: port}
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as open_until_answered:
        _again(lambda: listener.bind(name), until, "has its name taken by another run")
        listener.listen(peers)
        answers: dict[int, socket.socket] = {}
        while len(ports) < peers:
            try:
                listener.settimeout(_left(until))
                connection = open_until_answered.enter_context(listener.accept()[0])
                if not _is_ours(connection):
                    connection.close()
                    continue
                connection.settimeout(_left(until))
                index, its_port = _REPORT.unpack(_read(connection, _REPORT.size))
            except TimeoutError:
                missing = sorted(set(range(peers)) - ports.keys())
                raise RendezvousError(
                    f"worker 0 waited in vain for worker {', '.join(map(str, missing))} to say "
                    f"where it listens; the log of its task says what keeps it"
                ) from None
            except ConnectionError:
                continue  # a worker that was ended; if it was only slow, it calls again
            ports[index], answers[index] = its_port, connection
        everything = struct.pack(f"<{peers}I", *(ports[peer] for peer in range(peers)))
        for connection in answers.values():
            with suppress(OSError):  # it was ended meanwhile, as its absence will show
                connection.sendall(everything)
    return [ports[peer] for peer in range(peers)]


def _report(name: str, index: int, port: int, peers: int, until: float) -> list[int]:
    """Any other worker: tell worker 0, and hear of all."""
    answer = struct.Struct(f"<{peers}I")

    def ask() -> list[int]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_left(until))
            connection.connect(name)
            if not _is_ours(connection):
                raise ConnectionError("its name is used by another user")
            connection.sendall(_REPORT.pack(index, port))
            return list(answer.unpack(_read(connection, answer.size)))

    return _again(ask, until, f"(asked by worker {index}) does not say where the workers listen")


def _again(act: Callable[[], Result], until: float, trouble: str) -> Result:
    """Do it until it works: worker 0 may not be there yet, or be one that is on its way out."""
    while True:
        try:
            return act()
        except OSError as error:
            if time.monotonic() + RETRY_S >= until:
                raise RendezvousError(
                    f"worker 0 {trouble}: {error}; the log of its task says what keeps it"
                ) from error
        time.sleep(RETRY_S)


def _left(until: float) -> float:
    return max(RETRY_S, until - time.monotonic())


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the other end has gone")
        data += more
    return data


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end is a process of the same user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(found)[1]
    return user == os.geteuid()
