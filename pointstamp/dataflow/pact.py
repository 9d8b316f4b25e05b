"""Pacts: how the batches of a stream reach the next operator's workers.

A pact is given an environment and a queue, never a worker. With one worker every
pact is a pipeline, and costs what a pipeline costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pointstamp.containers import kind_of
from pointstamp.containers.kind import Key
from pointstamp.dataflow.channels import (
    BroadcastPusher,
    ExchangePusher,
    Pusher,
    Queue,
    RoutePusher,
    Wake,
)
from pointstamp.dataflow.environment import Environment
from pointstamp.progress.change_batch import ChangeBatch

_UNCHECKED = object()


class Pact(Protocol):
    """Connects a stream to an operator's input."""

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """The two ends of a new channel."""

    def copies(self, peers: int) -> int:
        """How many records arrive, over all workers, for each one sent."""

    def describe(self) -> str:
        """The pact in a word, the same on all workers."""


@dataclass(frozen=True)
class Pipeline:
    """Batches stay on the worker that made them."""

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A queue is both ends."""
        queue = environment.queue(wake, consumed)
        return queue, queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The name."""
        return "pipeline"


class KeyCheckingPusher(Pusher):
    """Hands batches to the queue of the one worker, if they have the columns of the key.

    What would be an error with several workers is one with one. The key of one record is
    hashed, of each kind of batch once.
    """

    __slots__ = ("_checked", "_key", "_queue")

    def __init__(self, queue: Queue, key: Key) -> None:
        self._queue = queue
        self._key = key
        self._checked: Any = _UNCHECKED

    def push(self, time: Any, batch: Any) -> None:
        """Take a batch from this worker."""
        kind = kind_of(batch)
        schema = (kind.name, kind.schema(batch))
        if schema != self._checked:
            kind.hashes(kind.slice(batch, 0, 1), self._key)
            self._checked = schema
        self._queue.push(time, batch)


@dataclass(frozen=True)
class Exchange:
    """Records of equal key go to the same worker.

    Parameters
    ----------
    key : callable, str, sequence of str, or None
        On rows a function of the record (None: the record itself); on columns the
        name of a column, or of several, or a function from the batch to an array
        of keys. Hashes are the same on every machine and Python version.
    """

    key: Key = None

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A channel between all workers, or a queue where there is one."""
        if environment.peers == 1:
            pusher, queue = Pipeline().connect(environment, wake, consumed)
            names_columns = self.key is not None and not callable(self.key)
            return KeyCheckingPusher(queue, self.key) if names_columns else pusher, queue
        channel = environment.channel(wake)
        queue = environment.queue(wake, consumed, channel)
        pusher = ExchangePusher(queue, channel, self.key, environment.index, environment.peers)
        return pusher, queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The key where it has a name."""
        return "exchange" if callable(self.key) else f"exchange by {self.key!r}"


@dataclass(frozen=True)
class Broadcast:
    """Every batch goes to every worker."""

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A channel between all workers, or a queue where there is one."""
        if environment.peers == 1:
            return Pipeline().connect(environment, wake, consumed)
        channel = environment.channel(wake)
        queue = environment.queue(wake, consumed, channel)
        return BroadcastPusher(queue, channel, environment.index, environment.peers), queue

    def copies(self, peers: int) -> int:
        """One for each worker."""
        return peers

    def describe(self) -> str:
        """The name."""
        return "broadcast"


@dataclass(frozen=True)
class Distribute:
    """Every batch goes whole to a worker that a function names.

    Parameters
    ----------
    route : callable
        `route(time, batch)` gives the index of a worker, 0 up to the number of workers.
        It runs where the batch is sent, and an index that is not there raises `RouteError`.
    """

    route: Callable[[Any, Any], int]

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A channel between all workers; one worker asks for the index all the same."""
        channel = environment.channel(wake) if environment.peers > 1 else None
        queue = environment.queue(wake, consumed, channel)
        return RoutePusher(queue, channel, self.route, environment.index, environment.peers), queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The name."""
        return "distribute"
