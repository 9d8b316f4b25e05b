"""Connections for threads that have nothing else to do than to wait for them.

The connection itself does not block, encrypted or not (see `tls`): so one thread can read
while another one writes, which a socket of the `ssl` module does not allow, and both see at
once that a third one has shut it down.
"""

from __future__ import annotations

import io
import select
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pointstamp.communication.authentication import Handshake
from pointstamp.communication.tls import Stream
from pointstamp.errors import PeerLostError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

LOOK_S = 0.05
"""How often one that waits for a connection, or for its proof, looks whether it is still wanted."""

FILE_BYTES = 1 << 16
"""How much a file of a connection collects before it is written, and reads ahead."""


def authenticate(
    stream: Stream,
    handshake: Handshake,
    until: float,
    is_wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Both ends know the secret, or this raises.

    Parameters
    ----------
    stream : Stream
        Does not block.
    until : float
        When to give up, of the monotonic clock, in seconds.
    is_wanted : callable
        Asked now and then; False gives up.

    Raises
    ------
    PeerLostError
        If the other end goes, or is too slow.
    AuthenticationError, VersionError, RendezvousError
        See `Handshake.advance`.
    """
    while not handshake.advance(stream):
        if not is_wanted() or time.monotonic() > until:
            raise PeerLostError("the other end did not prove itself in time")
        _wait(stream, select.POLLIN, LOOK_S)


class BlockingStream:
    """A connection whose calls wait; one thread may read while another one writes.

    Parameters
    ----------
    stream : Stream
        Connected, and this object's from now on.
    """

    def __init__(self, stream: Stream) -> None:
        stream.setblocking(False)
        self._stream = stream
        self._turn = threading.Lock()

    def recv_into(self, buffer: memoryview) -> int:
        """Read at least one byte; 0 at the end."""
        while True:
            with self._turn:
                try:
                    return self._stream.recv_into(buffer)
                except BlockingIOError:
                    pass
            _wait(self._stream, select.POLLIN)

    def recv(self, n_bytes: int) -> bytes:
        """Read at least one byte, and at most `n_bytes`; none at the end."""
        found = bytearray(n_bytes)
        return bytes(found[: self.recv_into(memoryview(found))])

    def send_all(self, data: ReadableBuffer) -> None:
        """Write all of `data`."""
        left = memoryview(data).cast("B")
        while left:
            with self._turn:
                try:
                    left = left[self._stream.send(left) :]
                    continue
                except BlockingIOError:
                    pass
            _wait(self._stream, select.POLLOUT)

    def setsockopt(self, level: int, name: int, value: int) -> None:
        """Of the connection."""
        self._stream.setsockopt(level, name, value)

    def shutdown(self, how: int) -> None:
        """End it for the other end and for all threads that wait here."""
        self._stream.shutdown(how)

    def close(self) -> None:
        """Let go of the connection, which no thread waits for any more."""
        self._stream.close()

    def reader(self) -> io.BufferedReader:
        """A file that reads from it; closing that does not close it."""
        return io.BufferedReader(_File(self), FILE_BYTES)

    def writer(self) -> io.BufferedWriter:
        """A file that writes to it; closing that does not close it."""
        return io.BufferedWriter(_File(self), FILE_BYTES)


class _File(io.RawIOBase):
    """A connection as a file of Python."""

    def __init__(self, stream: BlockingStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._stream.recv_into(memoryview(buffer).cast("B"))

    def write(self, data: ReadableBuffer) -> int:
        self._stream.send_all(data)
        return memoryview(data).nbytes


def _wait(stream: Stream, events: int, timeout_s: float | None = None) -> None:
    """Wait until the connection can be read or written, or has ended."""
    poll = select.poll()
    poll.register(stream, events)
    poll.poll(None if timeout_s is None else timeout_s * 1e3)
