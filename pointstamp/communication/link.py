"""What carries a worker's messages to one peer and back, in whatever way.

`MeshCommunicator` has a link for each peer and knows no more of it than this.
Laws: messages and words arrive in the order in which they were given, each once;
nothing here waits; what the carrier does not take yet is kept, and `write` tries
again. A link has a socket in any case, because the system closes it when its
process dies, which is how the other side learns of that.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from pointstamp.communication.failure import Notice
from pointstamp.communication.framing import Buffer, FrameKind
from pointstamp.communication.tls import Stream
from pointstamp.errors import FileFormatError


class Shutdown:
    """What the two sides of a link have said about its end."""

    __slots__ = ("got_goodbye", "got_received", "has_changed", "is_answered", "notice")

    def __init__(self) -> None:
        self.got_goodbye = False
        self.got_received = False
        self.is_answered = False
        """Whether RECEIVED was said to the peer's GOODBYE."""
        self.notice: Notice | None = None
        """Why the peer fails, if it does."""
        self.has_changed = False
        """Whether `take` was called since this was last set to False."""

    def take(self, kind: FrameKind, body: Buffer) -> None:
        """Note what the peer said."""
        self.has_changed = True
        if kind is FrameKind.GOODBYE:
            self.got_goodbye = True
        elif kind is FrameKind.RECEIVED:
            self.got_received = True
        elif kind is FrameKind.ABORT:
            self.notice = Notice(*pickle.loads(body))
        else:
            raise FileFormatError(f"a frame of kind {kind.name}, which workers do not exchange")


class Unsent(NamedTuple):
    """A message, or a frame, that waits for room."""

    kind: int
    channel: int
    buffers: list[Buffer]
    n_bytes: int


class Link(Protocol):
    """The connection to one peer; what arrives goes into the worker's mailbox."""

    peer: int
    connection: Stream
    fd: int
    waits_for_socket: bool
    """Whether room in the socket is what a blocked link waits for."""
    shutdown: Shutdown
    is_blocked: bool
    """Whether the carrier took less than it was given: `write` has to be called again."""
    is_broken: bool
    """Whether the peer is gone: nothing is sent any more."""
    discards_input: bool
    """Whether messages are thrown away, since nothing will pull them."""
    n_unsent: int
    """How many bytes the carrier has not taken yet."""
    n_sent_bytes: int
    """How many bytes all messages had that `send` was given, as they are carried."""

    def send(self, channel: int, tag: Any, batch: Any) -> None:
        """Take a message; it goes out with the next `write` at the latest."""

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Have each `Unsent` wait in a queue of `make()`; see `Communicator.hold_unsent_in`."""

    def say(self, kind: FrameKind, body: bytes = b"") -> None:
        """Take a word about ending; it goes out behind all messages."""

    def relay(
        self, kind: int, channel: int, source: int, target: int, buffers: list[Buffer]
    ) -> None:
        """Take what `source` says to `target`, which the peer is or passes it on to."""

    def write(self) -> None:
        """Hand over what the carrier takes."""

    def hear(self) -> str | None:
        """Take in what has come, now that the socket has something; how it ended, if it did."""

    def close(self) -> None:
        """Let go of everything."""


def is_done(link: Link) -> bool:
    """Whether both sides know that the other has all it was sent."""
    return link.shutdown.got_goodbye and link.shutdown.got_received and not link.n_unsent


def end_writing(link: Link) -> None:
    """Show the peer that no more comes."""
    try:
        link.connection.shutdown(socket.SHUT_WR)
    except OSError:
        link.is_broken = True  # it is gone
