"""Random traffic on channels that are measured, against counts of what is in flight."""

from __future__ import annotations

from collections import deque
from random import Random
from types import SimpleNamespace
from typing import Any

from pointstamp.containers import kind_of
from pointstamp.dataflow.backpressure import Backpressure, InFlight

RECORD = b"0123456789"


def check_backpressure(seed: int) -> None:
    """Sources wait from when too much is in flight until half of that is, and on all workers.

    What is counted as in flight is what was sent and not acknowledged; what was taken is
    acknowledged when it is an eighth of the limit; when nothing is in flight nothing waits.
    """
    _Flow(seed).run()


class _Flow:
    """A channel from worker 0 to several, each of which takes when it likes."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.peers = self.rng.choice([1, 2, 3])
        self.size = float(kind_of([RECORD] * 100).n_bytes([RECORD] * 100)) / 100
        self.limit = int(self.size * self.rng.choice([1000, 4000]))
        self.said: list[bool] = []
        self.n_activated = 0
        self.n_waiting = 0
        self.sender = Backpressure(set(), self.said.append)
        self.out = InFlight(self.sender, self.limit, self.peers, self.unexpected)
        self.receivers = [
            InFlight(Backpressure(set(), self.said.append), self.limit, self.peers, notify)
            for notify in (self.acknowledging(peer) for peer in range(self.peers))
        ]
        self.queues: list[deque[Any]] = [deque() for _ in range(self.peers)]
        self.acknowledgements: list[deque[int]] = [deque() for _ in range(self.peers)]
        self.in_flight = [0] * self.peers
        self.unacknowledged = [0] * self.peers
        self.counted_ahead = [0] * self.peers
        self.is_over = [False] * self.peers

    def unexpected(self, sender: int, n_records: int) -> None:
        raise AssertionError("what was sent is not acknowledged by its sender")

    def acknowledging(self, peer: int) -> Any:
        def notify(sender: int, n_records: int) -> None:
            assert sender == 0
            assert n_records == self.unacknowledged[peer]
            self.unacknowledged[peer] = 0
            self.acknowledgements[peer].append(n_records)

        return notify

    def activate(self) -> None:
        self.n_activated += 1

    def run(self) -> None:
        for _ in range(300):
            peer = self.rng.randrange(self.peers)
            self.rng.choice([self.send, self.send, self.take, self.take, self.idle, self.hear])(
                peer
            )
            self.check(peer)
        for peer in range(self.peers):
            while self.queues[peer]:
                self.take(peer)
            while self.acknowledgements[peer]:
                self.hear(peer)
            self.check(peer)
        assert not self.sender.is_throttled
        assert self.n_activated == self.n_waiting

    def send(self, peer: int) -> None:
        batch = [RECORD] * self.rng.choice([1, 70, 200, 900])
        is_source = self.rng.random() < 0.7  # what is none goes on
        if is_source and self.sender.throttles(self.activate):
            self.n_waiting = self.n_activated + 1
            return  # it is asked for again when it may go on
        self.out.sent(peer, batch, len(batch))
        self.queues[peer].append(SimpleNamespace(batch=batch, sender=0))
        self.in_flight[peer] += len(batch)
        if self.in_flight[peer] * self.size > self.limit:
            self.is_over[peer] = True

    def take(self, peer: int) -> None:
        if not self.queues[peer]:
            return
        message = self.queues[peer].popleft()
        n_records = len(message.batch)
        if self.counted_ahead[peer]:
            self.counted_ahead[peer] -= n_records
        else:
            self.unacknowledged[peer] += n_records
        self.receivers[peer].taken(0, message.batch, n_records)

    def idle(self, peer: int) -> None:
        """The receiver has nothing to do, and leaves what is in its queue where it is."""
        waiting = list(self.queues[peer])
        n_new = sum(len(message.batch) for message in waiting) - self.counted_ahead[peer]
        self.unacknowledged[peer] += n_new
        self.counted_ahead[peer] += n_new
        self.receivers[peer].discount(waiting)

    def hear(self, peer: int) -> None:
        if not self.acknowledgements[peer]:
            return
        n_records = self.acknowledgements[peer].popleft()
        self.in_flight[peer] -= n_records
        self.out.acknowledged(peer, n_records)
        if self.in_flight[peer] * self.size <= self.limit / 2:
            self.is_over[peer] = False

    def check(self, peer: int) -> None:
        assert self.unacknowledged[peer] * self.size < self.limit / 8, "it is not acknowledged"
        assert self.sender.is_throttled == any(self.is_over)
        # What is said to the peers is what changed, once.
        assert self.said == [index % 2 == 0 for index in range(len(self.said))]
        assert bool(self.said and self.said[-1]) == self.sender.is_throttled
