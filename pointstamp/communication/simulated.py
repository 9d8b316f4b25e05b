"""A network in one thread, in which nothing arrives until the schedule says so.

`SimulatedNetwork` gives a communicator to each of several workers that take turns
in one thread. What they send waits in a queue per sender, receiver and channel,
messages to oneself included, and what drives the simulation decides which
queue moves next: all orders that the laws of a communicator allow can happen, and
any of them can be had again. Nothing here waits: a worker that would (in `park`
and `close`) calls `on_park`, by which the driver gets its turn.

By default messages are passed by reference; with `serialize` each goes through the
codec, so that a simulation also covers the encoding.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from pointstamp.communication.communicator import Message
from pointstamp.communication.failure import Notice, notice
from pointstamp.communication.mailbox import ChannelEnd, Mailbox
from pointstamp.communication.signal import Signal
from pointstamp.communication.waiting_links import Link, WaitingLinks
from pointstamp.containers.codec import decode, encode
from pointstamp.errors import InternalError, UsageError

OnPark = Callable[[int, float | None], None]
"""`on_park(index, timeout_s)`: worker `index` waits; return to have it look again."""

SLOWNESS = (1, 1, 1, 20, 500)
"""How much slower than others a link may be, for `deliver_any`.

Uniformly random deliveries find few bugs: what breaks things is a link that lags
far behind while others go on.
"""


class SimulatedNetwork:
    """The links between simulated workers, and what waits on them.

    Parameters
    ----------
    workers : int
        How many there are.
    rng : random.Random
        What `deliver_any` draws from; the same seed gives the same run.
    on_park : callable, optional
        Called when a worker waits; without it, waiting is an error.
    serialize : bool
        Whether messages are encoded and decoded on their way.
    weigh : callable, optional
        The weight of a link, by which a driver draws from `links`.

    Attributes
    ----------
    links : WaitingLinks
        Those on which messages wait, but not those to workers that have crashed.
    unparked : set of int
        Workers that were woken, which their driver may forget.

    Examples
    --------
    >>> network = SimulatedNetwork(2, random.Random(7))
    >>> zero, one = network.communicator(0), network.communicator(1)
    >>> zero.channel().send(1, "tag", ["a"])
    >>> channel = one.channel()
    >>> one.receive(), network.pending()
    ([], [(0, 1, 0, 1)])
    >>> network.deliver(0, 1, 0)
    >>> one.receive(), channel.pull()
    ([0], Message(sender=0, tag='tag', batch=['a']))
    """

    def __init__(
        self,
        workers: int,
        rng: random.Random,
        *,
        on_park: OnPark | None = None,
        serialize: bool = False,
        weigh: Callable[[Link], int] | None = None,
    ) -> None:
        self.workers = workers
        self.on_park = on_park
        self._rng = rng
        self._serialize = serialize
        self._waiting: dict[Link, deque[Any]] = {}
        self._weights = () if weigh is None else (weigh,)
        self._sorted: WaitingLinks | None = None
        self.unparked: set[int] = set()
        self._slowness: dict[Link, int] = {}
        self._mailboxes = [Mailbox() for _ in range(workers)]
        self._closed: set[int] = set()
        self._notices: list[Notice] = []
        self._woken = Signal()
        self._communicators = [SimulatedCommunicator(self, index) for index in range(workers)]

    def communicator(self, index: int) -> SimulatedCommunicator:
        """The communicator of worker `index`, the same one each time."""
        return self._communicators[index]

    @property
    def links(self) -> WaitingLinks:
        """The links on which messages wait, sorted; kept so from when they are first asked for."""
        if self._sorted is None:
            self._sorted = WaitingLinks(self.workers, self._waiting, *self._weights)
            for link in self._waiting:
                self._sorted.add(link)
        return self._sorted

    def pending(self) -> list[tuple[int, int, int, int]]:
        """(sender, receiver, channel, how many) of each link on which messages wait."""
        return [(*link, len(waiting)) for link, waiting in sorted(self._waiting.items())]

    def deliver(self, sender: int, receiver: int, channel: int, count: int = 1) -> None:
        """Let the first `count` messages of a link arrive."""
        link = (sender, receiver, channel)
        waiting = self._waiting.get(link, deque())
        if len(waiting) < count:
            raise UsageError(
                f"{count} messages cannot be delivered from worker {sender} to {receiver} on "
                f"channel {channel}: {len(waiting)} wait there; waiting are {self.pending()}"
            )
        for _ in range(count):
            self._arrive(link, waiting.popleft())
        if not waiting and link in self._waiting:
            del self._waiting[link]
            if self._sorted is not None:
                self._sorted.remove(link)

    def deliver_any(self) -> bool:
        """Deliver one message of a link drawn at random; False if none waits.

        Each link is given a slowness when it is first seen, see `SLOWNESS`.
        """
        links = sorted(self._waiting)
        if not links:
            return False
        for link in links:
            if link not in self._slowness:
                self._slowness[link] = self._rng.choice(SLOWNESS)
        weights = [1 / self._slowness[link] for link in links]
        self.deliver(*self._rng.choices(links, weights)[0])
        return True

    def crash(self, index: int) -> None:
        """Let worker `index` die: what it sent and has not arrived is lost, and peers notice."""
        self._notices.append(Notice(index, True, f"worker {index} was lost: it crashed"))
        links = self.links
        for link in [link for link in self._waiting if link[0] == index]:
            del self._waiting[link]
            links.remove(link)
        links.hide_to(index)

    def wait_for_wake(self) -> None:
        """Wait for another thread to wake a worker; it may be one that has gone on meanwhile."""
        self._woken.wait()
        self._woken.clear()

    def _arrive(self, link: Link, sent: Any) -> None:
        sender, receiver, channel = link
        tag, batch = decode(sent) if self._serialize else sent
        self._mailboxes[receiver].put(channel, Message(sender, tag, batch))

    def _objects(self) -> list[tuple[int, Any]]:
        """(channel, batch) of what waits on links, or came for channels that are not made yet."""
        found = [each for mailbox in self._mailboxes for each in mailbox.early()]
        if not self._serialize:
            for (_, _, channel), waiting in self._waiting.items():
                found += [(channel, batch) for _, batch in waiting]
        return found

    def _send(self, link: Link, tag: Any, batch: Any) -> None:
        sent = [bytes(piece) for piece in encode(batch, tag)] if self._serialize else (tag, batch)
        waiting = self._waiting.get(link)
        if waiting is None:
            self._waiting[link] = deque([sent])
            if self._sorted is not None:
                self._sorted.add(link)
        else:
            waiting.append(sent)

    def _wait(self, index: int, timeout_s: float | None) -> None:
        if self.on_park is None:
            raise InternalError(
                f"simulated worker {index} waits, and the simulation has no on_park to go on with"
            )
        self.on_park(index, timeout_s)

    def _can_close(self, index: int) -> bool:
        """Whether everyone has closed, and all that `index` sent or should get has arrived."""
        return len(self._closed) == self.workers and not self.links.n_of[index]


class SimulatedCommunicator:
    """A simulated worker's place among its peers; see `SimulatedNetwork`."""

    def __init__(self, network: SimulatedNetwork, index: int) -> None:
        self.index = index
        self.peers = network.workers
        self.is_urgent = False
        self._network = network
        self._mailbox = network._mailboxes[index]
        self._is_woken = False
        self._is_done = False

    def channel(self) -> ChannelEnd:
        """Make this worker's end of the next channel."""
        return self._mailbox.make(self.peers, self._carry)

    def _carry(self, channel: int, peer: int, tag: Any, batch: Any) -> None:
        self._network._send((self.index, peer, channel), tag, batch)

    def receive(self) -> list[int]:
        """The channels to which something was delivered since the last call."""
        if self._network._notices:
            self._raise_notice()
        return self._mailbox.touched_channels()

    def flush(self) -> None:
        """Nothing to do: what is sent waits on its link."""

    def park(self, timeout_s: float | None = None) -> None:
        """Give the driver its turn, once, unless there is something to receive."""
        if not (self._mailbox.has_touched() or self._is_woken or self._network._notices):
            self._network._wait(self.index, timeout_s)
        self._is_woken = False
        if self._network._notices:
            self._raise_notice()

    def hold_unsent_in(self, make: Callable[[], Any]) -> None:
        """Nothing to do: what is sent has been carried."""

    def unpark(self) -> None:
        """Make the next `park` return at once."""
        self._is_woken = True
        self._network.unparked.add(self.index)
        self._network._woken.set()

    def objects_under_way(self) -> list[tuple[int, Any]]:
        """See `Communicator.objects_under_way`."""
        return self._network._objects()

    def close(self) -> None:
        """Give the driver its turn until everyone has closed and everything has arrived."""
        if self._is_done:
            return
        self._network._closed.add(self.index)
        while not self._network._can_close(self.index):
            if self._network._notices:
                self._raise_notice()
            self._network._wait(self.index, None)
        self._is_done = True

    def abort(self, cause: BaseException | None = None) -> None:
        """Make every other worker stop at its next call."""
        if self._is_done:
            return
        self._is_done = True
        self._network._notices.append(notice(self.index, cause))

    def _raise_notice(self) -> NoReturn:
        """Raise the first notice; later ones are its consequences."""
        raise self._network._notices[0].as_error()
