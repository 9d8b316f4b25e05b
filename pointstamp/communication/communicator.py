"""A worker's only contact with the others: its index, the number of peers, channels.

Nothing here knows of progress, operators or time: a message is a small tag and a
container. A communicator belongs to one worker and is used from that worker's
thread alone, except `unpark`, which any thread may call.

One whose workers run on several machines may say which run on the same, by a list `machines`
with a number for each worker; where there is none, all do. One whose workers take turns in one
thread says by `is_suspended` that its worker waits in `receive` for its turn, and that nothing was
taken in yet; where there is none, other threads may run, and nothing else. One that encodes what
it carries says by `n_sent_bytes` how many bytes of messages that were until it is closed, those of
progress among them; where there is none, no bytes are made of messages.

Laws, which `pointstamp.testing.check_communicator` tests:

- The k-th call of `channel()` on each worker makes the two ends of one channel.
  Workers need not call at the same moment: messages for a channel that this
  worker has not made yet are kept for it.
- Per channel and sender, messages arrive in the order of sending, each once;
  between channels and senders any order is possible.
- `send` never blocks and never calls back; a message to oneself arrives too.
- `park` returns at once if there is something to receive, and after `unpark`.
- What is sent to a channel end that is closed is thrown away by the worker that closed
  it, and is no error; the memory in which it came goes back to the sender.
- After `close`, what was sent before has reached the peers, or an error is
  raised; `close` returns when all peers have closed too.
- After `close` or `abort`, both do nothing.
- When a peer fails or dies, `receive`, `park` and `close` raise
  `PeerFailedError` or `PeerLostError` within a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Message(NamedTuple):
    """What a channel delivers."""

    sender: int
    """Index of the worker that sent it."""
    tag: Any
    """A small picklable value: a time, the number of a scope."""
    batch: Any
    """A container of a registered kind."""


class Channel(Protocol):
    """One worker's end of a channel between all workers."""

    id: int
    """Number of the channel, the same on every worker, counted from 0."""

    def send(self, peer: int, tag: Any, batch: Any) -> None:
        """Send `batch` to worker `peer` (which may be this one)."""

    def pull(self) -> Message | None:
        """The next message that arrived, or None."""

    def close(self) -> None:
        """Throw away what has arrived here, and what will; peers may go on sending."""

    def waiting(self) -> list[Message]:
        """The messages that arrived and were not pulled, which stay; for observers."""

    def hold_in(self, queue: Any) -> None:
        """Have what arrives, and has, wait in `queue`, which has what is used of a `deque`.

        Messages that it has put on disk are shown to observers with stand-ins as batches.
        """


class Communicator(Protocol):
    """A worker's place among its peers."""

    index: int
    peers: int
    is_urgent: bool
    """Whether what is sent should leave at once, rather than with the next `flush`: set by a worker
    whose steps are long. Of no account where it does so in any case."""

    def channel(self) -> Channel:
        """Make this worker's end of the next channel."""

    def receive(self) -> list[int]:
        """Take in what has arrived, without waiting.

        Returns the ids of the channels that got messages since the last call,
        each once, in order.
        """

    def flush(self) -> None:
        """Hand what `send` has buffered to the carrier, as far as it takes it."""

    def park(self, timeout_s: float | None = None) -> None:
        """Wait, using no processor, for something to receive or an `unpark`."""

    def unpark(self) -> None:
        """End a `park`, this one or the next; callable from any thread."""

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Have what a carrier has no room for wait in a queue of `make()`, instead of a `deque`.

        For a worker that is to keep within some memory. Carriers that keep nothing for a
        worker do nothing.
        """

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """(channel, batch) of what is on its way as an object of this process.

        So it is between threads, and where it came for a channel that was not made yet. It is what
        all workers of this process have sent to each other, as one of them may not have begun; the
        ends of channels that it waits at are not looked at, nor what is encoded on its way. Other
        threads may ask while no worker sends or takes in.
        """

    def close(self) -> None:
        """Say goodbye, wait for the peers to do so, and let go of everything."""

    def abort(self, cause: BaseException | None = None) -> None:
        """Notify the peers that this worker fails, and let go of everything."""
