"""Pacts: how the batches of a stream reach the next operator's workers.

A pact is given an environment and a queue, never a worker. With one worker every
pact is a pipeline, and costs what a pipeline costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pointstamp.containers.expressions import is_expression
from pointstamp.containers.keys import check_key
from pointstamp.containers.kind import Key
from pointstamp.dataflow.channels import (
    BroadcastPusher,
    DistributePusher,
    ExchangePusher,
    KeyCheckingPusher,
    Pusher,
    Queue,
    RoutePusher,
    Wake,
)
from pointstamp.dataflow.environment import Environment
from pointstamp.errors import BuildError
from pointstamp.progress.change_batch import ChangeBatch


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
    """Keeps batches on the worker that produced them."""

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


@dataclass(frozen=True)
class Exchange:
    """Sends records of equal key to the same worker; or each record to a given worker.

    Parameters
    ----------
    key : callable, str, sequence of str, or None
        On rows a function of the record (None: the record itself); on columns the
        name of a column, or of several, or a function from the batch to an array
        of keys. Hashes are the same on every machine and Python version.
    to : callable, str or pyarrow.compute.Expression, optional
        Instead of a key, the number of the worker: of rows what a function of the record
        gives; of columns the name of a column of integers, an expression, or a function
        from the batch to an array of integers. As in timely dataflow the number is taken
        modulo the number of workers. One that is no integer or negative is a `RouteError`.

    Raises
    ------
    BuildError
        If both are given, or one of them is none of these.
    """

    key: Key = None
    to: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.to is None:
            if not is_expression(self.key):
                check_key(self.key, "Exchange")
            return
        if self.key is not None:
            raise BuildError(
                f"exchange takes a key, which is hashed, or to, the number of a worker, and was "
                f"given the key {self.key!r} and to={self.to!r}"
            )
        if not (callable(self.to) or isinstance(self.to, str) or is_expression(self.to)):
            raise BuildError(
                f"exchange cannot send records to {self.to!r}: give a function of a record, the "
                "name of a column of integers, or an expression"
            )

    def connect(
        self, environment: Environment, wake: Wake, consumed: ChangeBatch
    ) -> tuple[Pusher, Queue]:
        """A channel between all workers; with one worker a queue, or a look at the numbers."""
        if environment.peers == 1 and self.to is None:
            pusher, queue = Pipeline().connect(environment, wake, consumed)
            names_columns = self.key is not None and not callable(self.key)
            return KeyCheckingPusher(queue, self.key) if names_columns else pusher, queue
        channel = environment.channel(wake) if environment.peers > 1 else None
        queue = environment.queue(wake, consumed, channel)
        make, by = (ExchangePusher, self.key) if self.to is None else (RoutePusher, self.to)
        return make(queue, channel, by, environment.index, environment.peers), queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The key, or the route, where it has a name."""
        by, what = (self.key, "by") if self.to is None else (self.to, "to")
        if not callable(by):
            return f"exchange {what} {str(by) if is_expression(by) else repr(by)}"
        return "exchange" if self.to is None else "exchange to"


@dataclass(frozen=True)
class Broadcast:
    """Sends every batch to every worker."""

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
    """Sends every batch, whole, to the worker that a function returns.

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
        return DistributePusher(
            queue, channel, self.route, environment.index, environment.peers
        ), queue

    def copies(self, peers: int) -> int:
        """One."""
        return 1

    def describe(self) -> str:
        """The name."""
        return "distribute"
