"""The relay of a machine: a process of its own, which passes on what its workers send others.

It computes nothing, so nothing that a worker does holds it up: a thread of a worker would wait
for the interpreter wherever an operator is in C code that does not let go of it.

The first worker of a machine starts it, with its own listening socket, so that other
machines reach it at that worker's address, and over a pair of sockets that only the two have gives
it what it needs to meet the others, the secret among that: no argument and no
file has it. From then on the relay is one of those that meet, see `tcp`.

- `connect` returns where the relays have met, too: each says so to its workers, or why not.
- It ends when all workers have said goodbye, or when one fails or is lost, which it passes on.

What it does is in `relay`; here is what its workers have to do with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import cloudpickle  # type: ignore[import-untyped, unused-ignore]  # it has no annotations

from pointstamp.communication.interpreters import start_interpreter
from pointstamp.communication.segment_sharing import receive_all, send_all
from pointstamp.communication.tls import Certificates, Stream
from pointstamp.errors import (
    PointstampError,
    RendezvousError,
)

END_S = 5.0
"""How long the first worker waits for its relay, when all have said goodbye."""

LATE_S = 5.0
"""How long a relay that has not met the others waits for late workers, to let them know."""

VERDICT_S = 20.0
"""How long a worker waits, when the time to meet is over, for what the relay has to say of it; on a
busy machine the relay comes to it late. A relay that ends is not waited for.
"""

N_MESSAGE = struct.Struct("<Q")
"""How long a message is, before it."""


@dataclass(frozen=True)
class RelayTask:
    """What a relay needs to know: of the worker that starts it, and as `tcp.connect`.

    Attributes
    ----------
    until : float
        When the time to meet is over, by the system's monotonic clock.
    """

    index: int
    addresses: list[tuple[str, int]]
    secret: bytes = field(repr=False)
    timeout_s: float
    until: float
    compression: str | None
    machine: bytes
    certificates: Certificates | None


class RelayProcess:
    """The relay, as the worker has it that starts it, and that waits for its end.

    Parameters
    ----------
    task : RelayTask
    listener : socket
        At which the relay is called; the worker's own end of it is closed by its owner.

    Raises
    ------
    RendezvousError
        When the system starts no process.
    """

    def __init__(self, task: RelayTask, listener: socket.socket) -> None:
        self.stream, theirs = socket.socketpair()
        """Has something to be read when the relay could not meet the others; see `error`."""
        program = (
            f"from pointstamp.communication.relay import main\n"
            f"main({theirs.fileno()}, {listener.fileno()}, {os.getpid()})"
        )
        with theirs, contextlib.ExitStack() as on_error:
            on_error.callback(self.stream.close)
            try:
                self.process = start_interpreter(program, [theirs.fileno(), listener.fileno()])
            except OSError as error:
                raise RendezvousError(
                    f"worker {task.index} cannot start the relay of its machine: {error}"
                ) from error
            on_error.pop_all()
        self._send(pickle.dumps(task))

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Have it keep what waits in queues of `make()`, of a copy of what that is a method of."""
        self._send(cloudpickle.dumps(make))

    def error(self) -> PointstampError:
        """Why it could not meet the others."""
        said = received(self.stream)
        if said is not None:
            found: PointstampError = pickle.loads(said)
            return found
        status = self.process.wait()
        return RendezvousError(
            f"the relay of this machine, process {self.process.pid}, ended with status {status} "
            "before all had met"
        )

    def end(self) -> None:
        """Wait for its end, which is due; kill it if it does not come."""
        waiting = select.poll()
        waiting.register(self.stream, select.POLLIN)
        if waiting.poll(END_S * 1e3):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S)
        self.kill()

    def kill(self) -> None:
        """End it, if it has not."""
        self.process.kill()
        self.process.wait()
        self.stream.close()

    def _send(self, data: bytes) -> None:
        # An error: it has ended, which is seen where it is waited for.
        with contextlib.suppress(OSError):
            self.stream.sendall(N_MESSAGE.pack(len(data)) + data)


def received(stream: socket.socket) -> bytes | None:
    """The next message; None at the end."""
    try:
        head = _exactly(stream, N_MESSAGE.size)
        return head and _exactly(stream, N_MESSAGE.unpack(head)[0])
    except OSError:
        return None


def _exactly(stream: socket.socket, n_bytes: int) -> bytes | None:
    data = b""
    while len(data) < n_bytes:
        more = stream.recv(n_bytes - len(data))
        if not more:
            return None
        data += more
    return data


# What a relay says to the workers of its machine.


def send_verdict(streams: Iterable[Stream], error: PointstampError | None) -> None:
    """Let workers know that their relay has met the others, or why it has not."""
    until = time.monotonic() + VERDICT_S
    said = b"" if error is None else pickle.dumps(error)
    for stream in streams:
        # An error: the worker is gone, which is seen where it is read from.
        with contextlib.suppress(OSError, TimeoutError):
            send_all(stream, N_MESSAGE.pack(len(said)) + said, until)


def await_verdict(stream: Stream, name: str, until: float) -> None:
    """Wait until the relay of this name has met the others; raises why it has not."""
    try:
        n_bytes = N_MESSAGE.unpack(receive_all(stream, N_MESSAGE.size, until))[0]
        said = receive_all(stream, n_bytes, until)
    except TimeoutError:
        raise RendezvousError(f"{name} has not met those of other machines in time") from None
    except OSError as error:
        raise RendezvousError(f"{name} ended before it had met those of other machines") from error
    if said:
        raise pickle.loads(said)
