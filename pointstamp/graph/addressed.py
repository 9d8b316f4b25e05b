"""A pact for batches whose records say which worker they are for.

Exchanging by key hashes every key and gathers every column. Where the sender has
put the records for a worker side by side, as one that combines before it sends
does anyway, cutting the batch is enough: its parts are views.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from pointstamp.communication.communicator import Channel
from pointstamp.containers import Arrays, kind_of
from pointstamp.dataflow.channels import Pusher, Queue, Wake
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.pact import Pipeline
from pointstamp.progress.change_batch import ChangeBatch

TO = "to"


@dataclass(frozen=True)
class Addressed:
    """Each record goes to the worker whose number is in its column `to`.

    Of `Arrays` only. Costs a message for each run of records with one address.
    """

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A channel between all workers, or a queue where there is one."""
        if environment.peers == 1:
            return Pipeline().connect(environment, wake, consumed)
        channel = environment.channel(wake)
        queue = environment.queue(wake, consumed, channel)
        return _Runs(queue, channel, environment.index), queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The name."""
        return "addressed"


class _Runs(Pusher):
    """Sends each run of records with one address to that worker."""

    __slots__ = ("_channel", "_index", "_queue")

    def __init__(self, queue: Queue, channel: Channel, index: int) -> None:
        self._queue = queue
        self._channel = channel
        self._index = index

    def push(self, time: object, batch: Arrays) -> None:
        """Cut `batch` where the address changes."""
        to = batch[TO]
        cuts = np.flatnonzero(to[1:] != to[:-1]) + 1
        for start, stop in itertools.pairwise([0, *cuts.tolist(), len(batch)]):
            part = kind_of(batch).slice(batch, start, stop)
            peer = int(to[start])
            if peer == self._index:
                self._queue.push(time, part)
            else:
                self._channel.send(peer, time, part)
