"""Two ends of a connection prove to each other that they know the same secret.

Both send a hello (magic, version, index, number of peers, how the sender wants
what is sent to it compressed, the number of its machine, a random nonce), and
then an HMAC-SHA256, keyed with the secret, of their role and of both hellos. So
neither sends the secret, a recorded proof fits no other connection (nonces), and
a proof sent back to where it came from does not fit its role. All messages have a
fixed length: before a peer has proved itself it can make us keep 99 bytes, and
nothing that it sends is interpreted beyond these fields, unpickled least of all.

What it does not do: the bytes that follow are neither encrypted nor signed. What
can change packets on the way can change what workers send each other, as with
Spark without `spark.network.crypto`.

`Handshake.receive` is pure: bytes in, bytes out. `Handshake.advance` does it over a
connection that does not block; how long to wait for the other end is its caller's.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointstamp.errors import (
    AuthenticationError,
    CommunicationError,
    PeerLostError,
    RendezvousError,
    UsageError,
    VersionError,
)

if TYPE_CHECKING:
    from pointstamp.communication.tls import Stream

MAGIC = b"\x93PtStamp"
VERSION = 3
MIN_SECRET_BYTES = 16

_HELLO = struct.Struct("<8sHIIB16s32s")
_N_PREAMBLE = 10  # magic and version, whose places never change
_N_PROOF = 32


def new_secret() -> bytes:
    """A secret for one computation, 32 random bytes."""
    return secrets.token_bytes(32)


@dataclass(frozen=True)
class Hello:
    """What an end says of itself before anything is proved."""

    index: int
    peers: int
    nonce: bytes
    wants: int = 0
    """The number of a codec by which to compress what is sent to it; 0 for none."""
    machine: bytes = bytes(16)
    """The number of the machine that it runs on."""
    version: int = VERSION

    def encode(self) -> bytes:
        """As it goes over the wire, 67 bytes."""
        return _HELLO.pack(
            MAGIC, self.version, self.index, self.peers, self.wants, self.machine, self.nonce
        )


class Handshake:
    """One end of the exchange; bytes that arrive go into `receive`.

    Parameters
    ----------
    secret : bytes
        At least 16 bytes; `new_secret` makes one.
    index, peers : int
        This worker's, which the other end learns.
    initiated : bool
        Whether this end made the connection; the two ends must differ in it.
    wants : int
        A number that the other end finds in `peer_wants`.
    machine : bytes
        16 bytes that the other end finds in `peer_machine`.
    end : int, optional
        What all indices are below, where others than the peers meet, too.

    Examples
    --------
    >>> secret = new_secret()
    >>> one = Handshake(secret, 1, 2, initiated=True)
    >>> zero = Handshake(secret, 0, 2, initiated=False)
    >>> proofs = one.receive(zero.greeting), zero.receive(one.greeting)
    >>> one.receive(proofs[1]), zero.receive(proofs[0])
    (b'', b'')
    >>> one.peer, zero.peer
    (0, 1)
    """

    def __init__(
        self,
        secret: bytes,
        index: int,
        peers: int,
        *,
        initiated: bool,
        wants: int = 0,
        machine: bytes = bytes(16),
        end: int | None = None,
    ) -> None:
        if len(secret) < MIN_SECRET_BYTES:
            raise UsageError(
                f"a secret has at least {MIN_SECRET_BYTES} bytes, not {len(secret)}; "
                f"authentication.new_secret() makes one"
            )
        self._secret = secret
        self._dialled = initiated
        self._own = Hello(index, peers, secrets.token_bytes(32), wants, machine)
        self._end = peers if end is None else end
        self._received = bytearray()
        self._other: Hello | None = None
        self.unsent = self.greeting
        """What `advance` has still to send."""
        self.claimed: int | None = None
        """The index that the other end says it has, once its hello is here."""
        self.peer: int | None = None
        """The index of the other end, once it has proved that it knows the secret."""
        self.peer_wants = 0
        """What the other end wants, once it has proved itself."""
        self.peer_machine = bytes(16)
        """The number of the machine of the other end, once it has proved itself."""

    @property
    def greeting(self) -> bytes:
        """What to send first, without waiting."""
        return self._own.encode()

    @property
    def n_missing(self) -> int:
        """How many more bytes this end needs; read no more than that."""
        if self.peer is not None:
            return 0
        whole = _HELLO.size + _N_PROOF if self._other is not None else _HELLO.size
        return whole - len(self._received)

    def receive(self, data: bytes) -> bytes:
        """Take in what arrived, at most `n_missing` bytes; what to send in return.

        Raises
        ------
        AuthenticationError
            When the other end is something else, or knows another secret. Its
            own proof was answered before, so both ends raise this.
        VersionError
            When it speaks another version; it got our version before.
        RendezvousError
            When it knows the secret, but counts another number of peers.
        """
        self._received += data
        if self._other is None:
            return self._read_hello()
        if len(self._received) == _HELLO.size + _N_PROOF:
            self._check_proof(self._other, bytes(self._received[_HELLO.size :]))
        return b""

    @property
    def is_done(self) -> bool:
        """Whether the other end has proved itself, and has from `advance` what it needs."""
        return self.peer is not None and not self.unsent

    def advance(self, stream: Stream) -> bool:
        """Read and send as far as the connection lets us; whether that is all.

        Not a byte more is read than the handshake: what follows belongs to the caller.

        Raises
        ------
        PeerLostError
            When the other end closes the connection.
        AuthenticationError, VersionError, RendezvousError
            As `receive`; what the other end should have of us to say the reason, too, is sent.
        """
        self._send(stream)
        try:
            self._read(stream)
        except CommunicationError:
            with contextlib.suppress(OSError):
                self._send(stream)
            raise
        self._send(stream)
        return self.is_done

    def _read(self, stream: Stream) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.n_missing:
                data = stream.recv(self.n_missing)
                if not data:
                    raise PeerLostError(
                        "the other end closed the connection before it proved itself"
                    )
                self.unsent += self.receive(data)

    def _send(self, stream: Stream) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[stream.send(self.unsent) :]

    def _read_hello(self) -> bytes:
        received = bytes(self._received)
        if not MAGIC.startswith(received[: len(MAGIC)]):
            raise AuthenticationError(
                f"another program is at the other end: it began with {received[: len(MAGIC)]!r}"
            )
        if len(received) >= _N_PREAMBLE:
            version = struct.unpack_from("<H", received, len(MAGIC))[0]
            if version != VERSION:
                raise VersionError(
                    f"the other end speaks version {version} of the protocol, and this one "
                    f"{VERSION}: install the same version of pointstamp on both"
                )
        if len(received) < _HELLO.size:
            return b""
        _, _, index, peers, wants, machine, nonce = _HELLO.unpack(received)
        self._other = Hello(index, peers, nonce, wants, machine)
        self.claimed = index
        return self._proof(self._other, initiated=self._dialled)

    def _check_proof(self, other: Hello, proof: bytes) -> None:
        if not hmac.compare_digest(proof, self._proof(other, initiated=not self._dialled)):
            named = f"worker {other.index}" if other.index < self._own.peers else "a relay"
            raise AuthenticationError(
                f"the other end, which says that it is {named}, does not know "
                f"the secret of this computation: give all workers the same one"
            )
        if other.peers != self._own.peers or not 0 <= other.index < self._end:
            raise RendezvousError(
                f"the other end is worker {other.index} of {other.peers}, "
                f"and this one is worker {self._own.index} of {self._own.peers}"
            )
        self.peer = other.index
        self.peer_wants = other.wants
        self.peer_machine = other.machine

    def _proof(self, other: Hello, *, initiated: bool) -> bytes:
        """The proof of the end that initiated, or of the one that answered."""
        hellos = (self._own, other) if self._dialled else (other, self._own)
        role = b"initiated" if initiated else b"answered"
        transcript = b"".join([role, *(hello.encode() for hello in hellos)])
        return hmac.digest(self._secret, transcript, "sha256")
