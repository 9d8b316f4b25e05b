"""How much of a dataflow is in flight, and when that is enough.

A *meter* per channel counts, for each peer, what was sent and the peer has not taken;
receivers acknowledge from time to time. When it is more than a limit, the *flow* of
the dataflow is held back, on all workers: sources, which make new data, wait until it is
less than half of that. Nothing else waits, so what is in flight can always be worked
off, and a loop's own traffic is never in its own way.

What an operator leaves in its queue although its worker has nothing else to do counts as
taken: it waits for something that a source may still have to send. So a source that waits
always waits for something that is at work, and not for what waits for it.

Rules
-----
1. A meter's counts change in `sent`, `taken` and `acknowledged`, and nowhere else.
2. Little is sent: what was taken is acknowledged when it is an eighth of the limit, and
   being held back is sent when that changes. A computation of small messages sends neither.
3. Sizes are estimates where asking costs more than a short message does.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from pointstamp.containers import kind_of

N_WAITING = 64
"""Batches in a queue that are filled on this worker, from which sources wait."""

_SMALL = 64
_N_ESTIMATES = 32


class ThrottledTime:
    """For how long the sources of one dataflow were held back; metrics keep it beyond its end."""

    def __init__(self) -> None:
        self._passed = 0, 0
        """(nanoseconds that are over, since when they are held back again or 0): one value, as a
        scrape reads it while the worker goes on."""

    def note(self, is_throttled: bool) -> None:
        """Whether they are from now on: begin or end to count."""
        over, since = self._passed
        if is_throttled != bool(since):
            now = perf_counter_ns()
            self._passed = (over, now) if is_throttled else (over + now - since, 0)

    def until(self, now_ns: int) -> int:
        """How many nanoseconds in all until now, by `perf_counter_ns`."""
        over, since = self._passed
        return over + (now_ns - since if since else 0)


class Backpressure:
    """Whether the sources of one dataflow are held back, on one worker."""

    def __init__(self, discountable: set[Any], notify: Callable[[bool], None]) -> None:
        self.discountable = discountable
        """Queues whose rest counts as taken when the worker is idle."""
        self._notify = notify
        self._n_over = 0
        self._held_by: set[int] = set()
        self._waiting: list[Callable[[], None]] = []
        self.throttled_time = ThrottledTime()

    @property
    def is_throttled(self) -> bool:
        """Whether enough is in flight, here or from a peer."""
        return bool(self._n_over or self._held_by)

    def throttles(self, activate: Callable[[], None]) -> bool:
        """The same, for a source: if so, `activate` is called when it may go on."""
        if not self.is_throttled:
            return False
        if activate not in self._waiting:
            self._waiting.append(activate)
        return True

    def over(self) -> None:
        """One more channel is over its limit."""
        self._n_over += 1
        if self._n_over == 1:
            self.throttled_time.note(self.is_throttled)
            self._notify(True)

    def under(self) -> None:
        """One less is."""
        self._n_over -= 1
        if self._n_over == 0:
            self.throttled_time.note(self.is_throttled)
            self._notify(False)
            self._go_on()

    def hear(self, peer: int, is_over: bool) -> None:
        """A peer has said whether it is over its limit."""
        if is_over:
            self._held_by.add(peer)
            self.throttled_time.note(self.is_throttled)
        else:
            self._held_by.discard(peer)
            self.throttled_time.note(self.is_throttled)
            self._go_on()

    def _go_on(self) -> None:
        if not self.is_throttled:
            waiting, self._waiting = self._waiting, []
            for activate in waiting:
                activate()


class InFlight:
    """What is in flight on one channel: from this worker, and to it."""

    def __init__(
        self,
        backpressure: Backpressure,
        limit_bytes: int,
        peers: int,
        notify: Callable[[int, int], None],
    ) -> None:
        self._backpressure = backpressure
        self._limit_bytes = limit_bytes
        self._notify = notify
        self._records = [0] * peers
        self._bytes = [0.0] * peers
        self._is_over = [False] * peers
        self._taken = [0] * peers
        self._taken_bytes = [0.0] * peers
        self._ahead = [0] * peers
        """Records that were acknowledged as taken and still wait here."""
        self._record_bytes = 0.0
        self._n_small = 0

    def sent(self, peer: int, batch: Any, n_records: int) -> None:
        """A batch goes to `peer`."""
        self._records[peer] += n_records
        self._bytes[peer] += self._size(batch, n_records)
        if self._bytes[peer] > self._limit_bytes and not self._is_over[peer]:
            self._is_over[peer] = True
            self._backpressure.over()

    def acknowledged(self, peer: int, n_records: int) -> None:
        """`peer` has taken so many records of those that were sent to it."""
        if not self._records[peer]:
            return  # it was sent by a way that is not measured
        left = max(0, self._records[peer] - n_records)
        self._bytes[peer] *= left / self._records[peer]
        self._records[peer] = left
        if self._is_over[peer] and self._bytes[peer] <= self._limit_bytes / 2:
            self._is_over[peer] = False
            self._backpressure.under()

    def taken(self, sender: int, batch: Any, n_records: int) -> None:
        """The operator here has taken a batch that came from `sender`."""
        if self._ahead[sender]:
            self._ahead[sender] -= n_records
            return
        self._taken[sender] += n_records
        self._taken_bytes[sender] += self._size(batch, n_records)
        if self._taken_bytes[sender] >= self._limit_bytes / 8:
            self._acknowledge(sender)

    def discount(self, waiting: list[Any]) -> None:
        """The worker is idle: the messages that still wait count as taken."""
        ahead = self._ahead[:]
        for message in waiting:
            n_records = kind_of(message.batch).length(message.batch)
            if ahead[message.sender] > 0:
                ahead[message.sender] -= n_records
                continue
            self._ahead[message.sender] += n_records
            self._taken[message.sender] += n_records
            self._taken_bytes[message.sender] += self._size(message.batch, n_records)
        for sender, n_bytes in enumerate(self._taken_bytes):
            if n_bytes >= self._limit_bytes / 8:
                self._acknowledge(sender)

    def _acknowledge(self, sender: int) -> None:
        self._notify(sender, self._taken[sender])
        self._taken[sender], self._taken_bytes[sender] = 0, 0.0

    def _size(self, batch: Any, n_records: int) -> float:
        """About how many bytes; of short lists from those before, as asking takes long."""
        # Only rows have to be asked record by record; kinds of columns know their size.
        if type(batch) is not list or n_records >= _SMALL:
            return float(kind_of(batch).n_bytes(batch))
        if self._n_small % _N_ESTIMATES == 0:
            self._record_bytes = kind_of(batch).n_bytes(batch) / n_records
        self._n_small += 1
        return n_records * self._record_bytes
