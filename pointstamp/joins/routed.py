"""A pact for prefixes that say which worker they are for.

A prefix goes to where the lists are that extend it; where those are, the tactics
know and a hash does not: a list may be at its vertex's worker, or at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pointstamp.communication.communicator import Channel
from pointstamp.containers import Arrays, kind_of
from pointstamp.dataflow.channels import Pusher, Queue, Wake
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.pact import Pipeline
from pointstamp.joins.candidates import PrefixesWithCandidates
from pointstamp.progress.change_batch import ChangeBatch

ROUTE = "route"


@dataclass(frozen=True)
class Routed:
    """Each record goes to the worker whose number is in its column `route`.

    A batch that stays as a whole, as most do where every worker knows all lists, is
    passed on as it is.
    """

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A channel between all workers, or a queue where there is one."""
        if environment.peers == 1:
            return Pipeline().connect(environment, wake, consumed)
        channel = environment.channel(wake)
        queue = environment.queue(wake, consumed, channel)
        return _ByNumber(queue, channel, environment.index, environment.peers), queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The name."""
        return "routed"


class _ByNumber(Pusher):
    """Sends each record to the worker that it names."""

    __slots__ = ("_channel", "_index", "_peers", "_queue")

    def __init__(self, queue: Queue, channel: Channel, index: int, peers: int) -> None:
        self._queue = queue
        self._channel = channel
        self._index = index
        self._peers = peers

    def push(self, time: Any, batch: Arrays | PrefixesWithCandidates) -> None:
        """Split `batch`, unless all of it stays."""
        workers = batch[ROUTE]
        if (workers == self._index).all():
            self._queue.push(time, batch)
            return
        kind = kind_of(batch)
        # A number below `peers` is its own remainder, so it does for a hash.
        parts = kind.split(batch, workers.astype(np.uint64), self._peers)
        for peer, part in enumerate(parts):
            if kind.length(part):
                if peer == self._index:
                    self._queue.push(time, part)
                else:
                    self._channel.send(peer, time, part)
