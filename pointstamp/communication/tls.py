"""TLS for every connection that a worker opens: certificates, and sockets that encrypt.

Both ends present a certificate and check that of the other against the same roots
(mutual TLS, version 1.3). Names are not compared with addresses: workers are reached by
whatever address their scheduler knows. Which worker is at the other end is proved by
the handshake of `authentication`, which runs inside of the encrypted connection.

`TlsStream` has of a socket what the loops of this package call, and raises what a
socket raises that does not block, so that they need not know which of the two they have.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from pointstamp.errors import UsageError

if TYPE_CHECKING:
    import ssl

    from pointstamp.communication.framing import Buffer

RECORD_BYTES = 1 << 14
"""The most that TLS encrypts in one piece."""


@dataclass(frozen=True)
class Certificates:
    """What the workers of a job need to encrypt: PEM, as bytes.

    Attributes
    ----------
    chain, key : bytes
        The certificate of the machines that workers run on, and its private key.
    roots : bytes
        By which the other end knows that certificate; it itself, if it has signed itself.

    Raises
    ------
    UsageError
        If one of them cannot be read, or the key is of another certificate or has a password.
    """

    chain: bytes
    key: bytes = field(repr=False)
    roots: bytes

    def __post_init__(self) -> None:
        context(self, initiated=True)  # or workers would wait for each other first


def context(certificates: Certificates, *, initiated: bool) -> ssl.SSLContext:
    """How one end encrypts: the one that made the connection, or the one that accepted it."""
    import ssl
    import tempfile

    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if initiated else ssl.PROTOCOL_TLS_SERVER)
    found.minimum_version = ssl.TLSVersion.TLSv1_3
    found.check_hostname = False  # see above
    found.verify_mode = ssl.CERT_REQUIRED
    try:
        found.load_verify_locations(cadata=certificates.roots.decode("ascii"))
    except (AttributeError, ValueError, ssl.SSLError) as cause:
        raise UsageError(
            f"the roots should be certificates in PEM, as bytes, and cannot be read: {cause}"
        ) from cause
    # The module reads keys from files only; this one is readable by us, and gone at once.
    with tempfile.NamedTemporaryFile() as file:
        try:
            file.write(certificates.key + b"\n" + certificates.chain)
            file.flush()
            found.load_cert_chain(file.name, password=_refuse_password)
        except (TypeError, ssl.SSLError) as cause:
            raise UsageError(
                "the key and the chain should be those of one certificate in PEM, as bytes, and "
                f"are not: {cause}"
            ) from cause
    return found


def _refuse_password() -> str:
    """Called in place of asking on the terminal, which workers have not."""
    raise UsageError("the key has a password; workers need one that has none")


class TlsStream:
    """An encrypted connection that does not block; made of a socket, which it owns then.

    The handshake of TLS happens inside of the first calls that send or receive.
    """

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        initiated = context.protocol.name == "PROTOCOL_TLS_CLIENT"
        self._socket = context.wrap_socket(
            connection,
            server_side=not initiated,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=True,
        )
        self._socket.setblocking(False)
        self.waits_to_read = False
        """Whether what was sent last was not taken because the other end has to say something."""

    def fileno(self) -> int:
        """The descriptor, for `poll`; -1 once it is closed."""
        return self._socket.fileno()

    def setblocking(self, flag: bool) -> None:
        """Nothing: it never blocks. Callers may say so as of any socket."""
        assert not flag

    def pending(self) -> int:
        """How many bytes are decrypted, and so not seen by `poll`."""
        return self._socket.pending()

    def recv_into(self, buffer: memoryview) -> int:
        """Read what is there; 0 at the end. Raises `BlockingIOError` if nothing is."""
        try:
            return self._socket.recv_into(buffer)
        except _unready():
            raise BlockingIOError from None

    def recv(self, n_bytes: int, flags: int = 0) -> bytes:
        """Read at most `n_bytes`; with `MSG_PEEK`, see whether encrypted ones are there."""
        if flags:
            # Of the connection below: the wrapper refuses flags, and only presence counts.
            return socket.socket.recv(self._socket, n_bytes, flags)
        try:
            return self._socket.recv(n_bytes)
        except _unready():
            raise BlockingIOError from None

    def send(self, data: Buffer) -> int:
        """Write as much of `data` as is taken. Raises `BlockingIOError` if nothing is."""
        self.waits_to_read = False
        try:
            return self._socket.send(data)
        except _unready() as reason:
            self.waits_to_read = type(reason).__name__ == "SSLWantReadError"
            raise BlockingIOError from None

    def sendmsg(self, pieces: Iterable[Buffer]) -> int:
        """Write some of `pieces`: small ones together, as each record of TLS costs."""
        some: list[Buffer] = []
        n_bytes = 0
        for piece in islice(pieces, 64):
            some.append(piece)
            n_bytes += len(piece)
            if n_bytes >= RECORD_BYTES:
                break
        return self.send(some[0] if len(some) == 1 else b"".join(some))

    def shutdown(self, how: int) -> None:
        """End the connection below, for the other end to see."""
        socket.socket.shutdown(self._socket, how)

    def setsockopt(self, level: int, name: int, value: int) -> None:
        """Of the connection below."""
        self._socket.setsockopt(level, name, value)

    def getsockopt(self, level: int, name: int) -> int:
        """Of the connection below."""
        return self._socket.getsockopt(level, name)

    def getsockname(self) -> object:
        """Of the connection below."""
        return self._socket.getsockname()

    def getpeername(self) -> object:
        """Of the connection below."""
        return self._socket.getpeername()

    def close(self) -> None:
        """Let go of the connection."""
        self._socket.close()


def _unready() -> tuple[type[OSError], ...]:
    """What the library raises where it would block; imported only where something is encrypted."""
    import ssl

    return ssl.SSLWantReadError, ssl.SSLWantWriteError


def is_of_tls(error: BaseException) -> bool:
    """Whether the two ends do not agree on how to encrypt, or on certificates."""
    import ssl

    return isinstance(error, ssl.SSLError)


def waits_for_room(stream: Stream) -> bool:
    """Whether a stream that took less than it was given takes more when its socket has room.

    In its handshake TLS takes nothing until the other end has answered; a loop that waited for
    room meanwhile, which there is, would not wait.
    """
    return not (isinstance(stream, TlsStream) and stream.waits_to_read)


Stream = socket.socket | TlsStream
"""A connection that does not block, encrypted or not."""
