"""The one seam where data touches progress: records are counted here.

What an operator sends passes a `Tee`, which counts it as produced and hands it
to every stream's pusher; what an operator takes comes out of a `Queue`, which
counts it as consumed. Nothing else counts records. A count is of records, not of
batches, so channels are free to split and to merge.

Pushers, from simple to far: `Queue` (to an operator of this worker), `ExchangePusher` (by
key over all workers), `RoutePusher` (each record to the worker that it names),
`DistributePusher` (each batch to one worker), `BroadcastPusher` (to all workers),
`Ingress` and `Egress` (across the border of a scope, where times are translated).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any

from pointstamp.communication.communicator import Channel, Message
from pointstamp.communication.mailbox import end_of
from pointstamp.containers.builder import PREFERRED_RECORDS
from pointstamp.containers.expressions import is_expression
from pointstamp.containers.registry import batch_schema, kind_of, n_records
from pointstamp.containers.splitting import place, split_by_worker
from pointstamp.dataflow.backpressure import N_WAITING, Backpressure, InFlight
from pointstamp.dataflow.operator_error import operator_error
from pointstamp.errors import SchemaError
from pointstamp.progress.activation import Activation, activation_of
from pointstamp.progress.change_batch import ChangeBatch
from pointstamp.progress.timestamp import SAME, Refinement

Wake = Callable[[], None]
Fail = Callable[[BaseException], None]


BUDGET = 65_536
"""What an operator may take from one input in one activation, before others have their turn:
records, where a batch counts as `BATCH_COST` records more. The last batch is taken whole."""

BATCH_COST = 64

MERGED_RECORDS = 1024
"""Up to so many records the lists that go round a loop at one time are put together."""

MOST_PUT_OFF = 1024
"""Of so many batches that wait none is put off to a later round."""

LARGE_RECORDS = 4 * PREFERRED_RECORDS
"""Batches of more are exchanged in pieces."""

# Compiled, numbers of C.
_N_WAITING, _BATCH_COST, _LARGE_RECORDS = N_WAITING, BATCH_COST, LARGE_RECORDS

_ROWS = kind_of([])

_NONE_WAITING: Any = ()
"""In place of the `deque` of a queue in which no two batches have waited: it is of 760 bytes."""

_NONE_PUT_OFF: list[Any] = []
"""Stays empty, and is that of all queues."""


def _another(batch: Any) -> Any:
    """The same records for another reader, as a list of its own where they are rows."""
    # One that an operator changes would be of another length, or have other records, where the
    # next operator takes and counts it.
    return batch[:] if type(batch) is list else batch


def _length(batch: Any) -> int:
    """How many records; for lists, which most small batches are, without a call."""
    return len(batch) if type(batch) is list else n_records(batch)


def _merged(batches: list[Any]) -> list[Any]:
    """One list of several short ones; others as they are."""
    if len(batches) == 1 or type(batches[0]) is not list:
        return batches
    merged = list(chain.from_iterable(batches))
    return [merged] if len(merged) <= MERGED_RECORDS else batches


class Pusher:
    """Where batches go; a class and not a protocol, so that compiled code calls it directly."""

    __slots__ = ()

    def push(self, time: Any, batch: Any) -> None:
        """Send `batch` (not empty) at `time`."""
        raise NotImplementedError

    def measure(self, in_flight: InFlight) -> None:
        """Have what goes to other workers counted by `meter`."""


class Tee:
    """An operator's output: counts what is sent, and copies it to all streams."""

    __slots__ = ("_fail", "_kind", "_schema", "n_sent", "name", "produced", "pushers")

    def __init__(
        self, name: str, produced: ChangeBatch | None = None, fail: Fail = lambda error: None
    ) -> None:
        self.name = name
        self.produced = produced
        """None where the count is taken on the other side of a scope's border."""
        self.pushers: list[Pusher] = []
        self.n_sent = 0
        """Records so far, for what looks at a worker from outside."""
        self._fail = fail
        self._kind: Any = None
        self._schema: Any = None

    def push(self, time: Any, batch: Any) -> None:
        """Count `batch` at `time` and pass it on; nothing happens if it is empty."""
        # The same answer as the look-up gives, without it: once for each message.
        kind = _ROWS if type(batch) is list else kind_of(batch)
        n = _length(batch)
        if not n:
            return
        if kind is not self._kind or self._schema is not None:
            schema = batch_schema(kind, batch)
            # What is the same object need not be compared, name by name and type by type.
            if kind is not self._kind or schema is not self._schema:
                self._check(kind, schema)
        self.n_sent += n
        if self.produced is not None:
            self.produced.update(time, n)
        n_left = len(self.pushers)
        try:
            for pusher in self.pushers:
                n_left -= 1
                pusher.push(time, _another(batch) if n_left else batch)
        except BaseException as error:
            # It was counted and not all got it: what catches this cannot go on.
            self._fail(error)
            raise

    def _check(self, kind: Any, schema: Any) -> None:
        """A stream keeps one kind of container, and one schema."""
        if self._kind is None:
            self._kind, self._schema = kind, schema
        elif kind is not self._kind:
            raise SchemaError(
                f"the output of operator {self.name!r} carries {self._kind.called()}; it was given "
                f"{kind.called()}: one stream, one kind of container"
            )
        elif schema != self._schema:
            raise SchemaError(
                f"the output of operator {self.name!r} carries batches with\n{self._schema}\n"
                f"it was given one with\n{schema}"
            )


class Queue(Pusher):
    """The end of a stream: batches wait here until the operator takes them."""

    __slots__ = (
        "_activation",
        "_aligner",
        "_backpressure",
        "_budget",
        "_channel",
        "_end",
        "_in_flight",
        "_is_above_watermark",
        "_is_in_memory",
        "_later",
        "_left",
        "_local",
        "_next",
        "consumed",
        "last_time",
        "n_taken",
        "reader",
    )

    def __init__(self, wake: Wake, consumed: ChangeBatch, channel: Channel | None = None) -> None:
        self._next: tuple[Any, Any] | None = None
        """What came to an empty queue, and so comes out before all of `_local`."""
        self._is_in_memory = True
        self._local: Any = _NONE_WAITING  # or a deque of (time, batch); or what `hold_in` was given
        self._later: list[tuple[Any, Any]] = _NONE_PUT_OFF
        """What `put_off_later_rounds` took out of `_local`."""
        self._activation = activation_of(wake)
        self._channel = channel
        self._end = end_of(channel)
        self.consumed = consumed
        self.last_time: Any = None
        """For error messages: of what was taken last in this activation."""
        self.reader = ""
        """For error messages: the operator that reads it, whose key or route it is."""
        self.n_taken = 0
        """Records so far, for what looks at a worker from outside."""
        self._budget = self._left = BUDGET
        self._backpressure: Backpressure | None = None
        self._in_flight: InFlight | None = None
        self._is_above_watermark = False
        self._aligner: Any = None

    def hold_in(self, local: Any) -> None:
        """Have batches of this worker wait in a `SpillableQueue`."""
        self._local = local
        self._is_in_memory = False

    def guard(self, aligner: Any) -> None:
        """Have batches wait here as long as an `AlignedInput` does not admit them."""
        self._aligner = aligner

    def bound(
        self, budget: int, backpressure: Backpressure | None, in_flight: InFlight | None
    ) -> None:
        """Set what an activation may take, and what is notified of what waits here."""
        self._budget = self._left = budget
        self._backpressure = backpressure
        self._in_flight = in_flight

    @property
    def channel(self) -> Channel | None:
        """Where batches of other workers come from, if from anywhere."""
        return self._channel

    def renew(self) -> bool:
        """The activation has ended; whether it had to because it had taken enough."""
        was_cut = self._left <= 0
        self._left = self._budget
        return was_cut

    def discount(self) -> None:
        """The worker is idle: what left something here waits for something else."""
        if self._is_above_watermark:
            self._fall_below()
        if self._in_flight is not None and self._channel is not None:
            waiting = self._channel.waiting()
            if waiting:
                self._in_flight.discount(waiting)

    def _rise_above(self) -> None:
        assert self._backpressure is not None
        self._is_above_watermark = True
        self._backpressure.discountable.add(self)
        self._backpressure.over()

    def _fall_below(self) -> None:
        assert self._backpressure is not None
        self._is_above_watermark = False
        self._backpressure.under()

    def push(self, time: Any, batch: Any) -> None:
        """Take a batch from this worker."""
        if self._next is None and self._is_in_memory and not self._local:
            self._next = (time, batch)
        else:
            self._need_local()
            self._local.append((time, batch))
            if (
                not self._is_above_watermark
                and self._backpressure is not None
                and len(self._local) > _N_WAITING
            ):
                self._rise_above()
        self._activation.ask()

    def waiting(self) -> list[tuple[Any, int]]:
        """(time, number of records) of each batch that waits here."""
        self._keep_next()
        found = [(time, _length(batch)) for time, batch in [*self._local, *self._later]]
        if self._channel is not None:
            found += [(m.tag, _length(m.batch)) for m in self._channel.waiting()]
        if self._aligner is not None:
            found += [(time, _length(batch)) for time, batch in self._aligner.all()]
        return found

    def held(self) -> list[Any]:
        """The batches that wait here; of those that are on disk something that stands for them."""
        self._keep_next()
        found = [batch for _, batch in [*self._local, *self._later]]
        if self._channel is not None:
            found += [message.batch for message in self._channel.waiting()]
        if self._aligner is not None:
            found += [batch for _, batch in self._aligner.all()]
        return found

    def pull(self) -> tuple[Any, Any] | None:
        """The next (time, batch), counted as consumed, or None: also when it is enough for now."""
        return self.take() if self._aligner is None else self._pull_admitted()

    def _pull_admitted(self) -> tuple[Any, Any] | None:
        """The same, past those that have to wait, which are not consumed yet."""
        if self._left <= 0:
            return None
        item = self._aligner.ready()
        if item is not None:
            self._count(item, 1)
            self.last_time = item[0]
            ready: tuple[Any, Any] = item
            return ready
        before = self.last_time
        while (taken := self.take()) is not None and not self._aligner.admits(taken):
            self._count(taken, -1)
            self.last_time = before
        return taken

    def _count(self, item: tuple[Any, Any], sign: int) -> None:
        n_records = _length(item[1])
        self._left -= sign * (n_records + _BATCH_COST)
        self.n_taken += sign * n_records
        self.consumed.update(item[0], sign * n_records)

    def take(self) -> tuple[Any, Any] | None:
        """As `pull`, whether it may come now or not."""
        if self._left <= 0:
            return None
        if self._next is not None:
            item: tuple[Any, Any] = self._next
            self._next = None
            n_records = _length(item[1])
        elif self._local:
            item = self._local.popleft()
            n_records = _length(item[1])
            if self._is_above_watermark and len(self._local) + len(self._later) <= _N_WAITING // 2:
                self._fall_below()
        elif (message := self._pull_channel()) is not None:
            item = (message.tag, message.batch)
            n_records = _length(item[1])
            if self._in_flight is not None:
                self._in_flight.taken(message.sender, item[1], n_records)
        else:
            return None
        self._left -= n_records + _BATCH_COST
        self.n_taken += n_records
        self.consumed.update(item[0], n_records)
        self.last_time = item[0]
        return item

    def _pull_channel(self) -> Message | None:
        if self._end is not None:
            return self._end.pull()
        return None if self._channel is None else self._channel.pull()

    def _keep_next(self) -> None:
        """Put what came first with the others, for what looks at all of them."""
        if self._next is not None:
            self._need_local()
            self._local.appendleft(self._next)
            self._next = None

    def _need_local(self) -> None:
        """Have a `deque` for what waits behind something."""
        if self._local is _NONE_WAITING:
            self._local = deque()

    def put_off_later_rounds(self) -> bool:
        """Have this activation take, of times (outer, round), the least round of each outer one.

        Returns whether something is put off to the next activation. Short lists of one time are
        put together: an exchange splits what goes round a loop again and again, and in
        the end each record would be a batch of its own.
        """
        if not self._later and len(self._local) + (self._next is not None) < 2:
            return False
        self._need_local()
        self._keep_next()
        if type(self._local) is not deque and not self._local.is_small:
            # What is put off is in memory, and what is on disk cannot be looked through.
            self._local.set_aside([])
            self._local.extendleft(reversed(self._later))
            self._later = []
            return False
        waiting = [*self._later, *self._local]
        if len(waiting) > MOST_PUT_OFF:
            # To look through all of them for each round would cost more than it saves.
            self._later = []
            self._local.clear()
            self._local.extend(waiting)
            if type(self._local) is not deque:
                self._local.set_aside([])
            return False
        least: dict[Any, Any] = {}
        for (outer, round), _ in waiting:
            least[outer] = min(round, least.get(outer, round))
        self._later = []
        self._local.clear()
        batches_at: dict[Any, list[Any]] = {}
        for item in waiting:
            outer, round = item[0]
            if round == least[outer]:
                batches_at.setdefault(item[0], []).append(item[1])
            else:
                self._later.append(item)
        for time, batches in batches_at.items():
            for batch in _merged(batches):
                self._local.append((time, batch))
        if type(self._local) is not deque:
            self._local.set_aside(self._later)
        return bool(self._later)

    def abandon(self) -> None:
        """Throw away what waits here, and what comes: the dataflow was dropped."""
        self._next = None
        self._later = _NONE_PUT_OFF
        if self._is_in_memory:
            self._local = _NONE_WAITING
        else:
            self._local.clear()
            self._local.set_aside([])
        self._channel = self._end = None
        if self._aligner is not None:
            self._aligner.clear()


class KeyCheckingPusher(Pusher):
    """Hands batches to the queue of the one worker, if they have the columns of the key.

    What would be an error with several workers is one with one. Only names are looked at, and
    no key is hashed unless that is to raise: hashing brings a compiler into the process.
    """

    __slots__ = ("_checked", "_columns", "_key", "_queue")

    def __init__(self, queue: Queue, key: Any) -> None:
        self._queue = queue
        self._key = key
        self._columns: list[str] = []
        if not is_expression(key):
            self._columns = [key] if isinstance(key, str) else list(key)
        self._checked: Any = None
        """The schema of the last batch; None of what has none, which is looked at each time."""

    def push(self, time: Any, batch: Any) -> None:
        """Queue a batch of this worker."""
        kind = kind_of(batch)
        schema = batch_schema(kind, batch)
        if schema is None or (schema is not self._checked and schema != self._checked):
            try:
                self._check(kind, batch)
            except Exception as error:
                # It runs in the operator before, which has nothing to do with it.
                raise operator_error(error, self._queue.reader, time) from error
            self._checked = schema
        self._queue.push(time, batch)

    def _check(self, kind: Any, batch: Any) -> None:
        names = kind.names(batch)
        n_of_each = {names.count(name) for name in self._columns}  # empty of expressions
        if n_of_each != {1}:
            kind.hashes(kind.slice(batch, 0, 1), self._key)


class RemotePusher(Pusher):
    """What may send to other workers: hands a batch to one of them, or to the queue of this one."""

    __slots__ = ("_channel", "_end", "_in_flight", "_index", "_peers", "_queue")

    def __init__(self, queue: Queue, channel: Channel | None, index: int, peers: int) -> None:
        self._queue = queue
        self._channel = channel
        self._end = end_of(channel)
        self._index = index
        self._peers = peers
        self._in_flight: InFlight | None = None

    def measure(self, in_flight: InFlight) -> None:
        """Have what goes to other workers counted by `meter`."""
        self._in_flight = in_flight

    def hand(self, peer: int, time: Any, batch: Any, n_records: int) -> None:
        """Send a batch of so many records to one worker."""
        if peer == self._index or self._channel is None:
            self._queue.push(time, batch)
            return
        if self._in_flight is not None:
            self._in_flight.sent(peer, batch, n_records)
        if self._end is None:
            self._channel.send(peer, time, batch)
        else:
            self._end.send(peer, time, batch)


class ExchangePusher(RemotePusher):
    """Splits each batch by the hash of a key, and sends every worker its part."""

    __slots__ = ("_by",)

    def __init__(self, queue: Queue, channel: Channel | None, by: Any, index: int, peers: int):
        super().__init__(queue, channel, index, peers)
        self._by = by
        """The key; of a subclass, what else says where a record goes."""

    def push(self, time: Any, batch: Any) -> None:
        """Split `batch` and send every worker its part."""
        kind = kind_of(batch)
        n = _length(batch)
        if n > _LARGE_RECORDS:
            # In pieces, between which the receivers may turn to something else.
            for start in range(0, n, PREFERRED_RECORDS):
                stop = min(start + PREFERRED_RECORDS, n)
                self.push(time, kind.slice(batch, start, stop))
            return
        try:
            parts = self.split(kind, batch)
        except Exception as error:
            # It runs in the operator before, which has nothing to do with it.
            raise operator_error(error, self._queue.reader, time) from error
        for peer, part in enumerate(parts):
            n = _length(part)
            if n:
                self.hand(peer, time, part, n)

    def split(self, kind: Any, batch: Any) -> list[Any]:
        """The records for each worker."""
        parts: list[Any] = kind.exchange(batch, self._by, self._peers)
        return parts


class RoutePusher(ExchangePusher):
    """Sends each record to the worker whose number a function or a column gives for it."""

    __slots__ = ()

    def split(self, kind: Any, batch: Any) -> list[Any]:
        """The records for each worker; views of `batch` where they lie side by side."""
        return split_by_worker(batch, self._by, self._peers, "exchange")


class BroadcastPusher(RemotePusher):
    """Sends every batch to every worker."""

    __slots__ = ()

    def push(self, time: Any, batch: Any) -> None:
        """Send `batch` to all, this worker included."""
        n_records = _length(batch)
        for peer in range(self._peers):
            # Threads, and this worker, get what is given here.
            own = batch if peer == self._peers - 1 else _another(batch)
            self.hand(peer, time, own, n_records)


class DistributePusher(RemotePusher):
    """Sends each batch, as it is, to the worker that a function of its time and it names."""

    __slots__ = ("_route",)

    def __init__(
        self,
        queue: Queue,
        channel: Channel | None,
        route: Callable[[Any, Any], int],
        index: int,
        peers: int,
    ) -> None:
        super().__init__(queue, channel, index, peers)
        self._route = route

    def push(self, time: Any, batch: Any) -> None:
        """Send `batch` to one worker, which there must be."""
        n_records = _length(batch)
        what = f"distribute: a batch of {n_records} records at {time}"
        try:
            peer = place(self._route(time, batch), self._peers, what)
        except Exception as error:
            raise operator_error(error, self._queue.reader, time) from error
        self.hand(peer, time, batch, n_records)


class Ingress(Pusher):
    """Carries a stream into a scope: consumed outside and produced inside at once.

    The counts of both are one entry in `entered`, which the scope reports.
    """

    __slots__ = ("_activation", "_entered", "_inner", "_refinement")

    def __init__(
        self, inner: Tee, refinement: Refinement, entered: ChangeBatch, activation: Activation
    ) -> None:
        self._inner = inner
        self._refinement = _unless_same(refinement)
        self._entered = entered
        self._activation = activation

    def push(self, time: Any, batch: Any) -> None:
        """Pass `batch` on at the time inside."""
        if self._refinement is not None:
            time = self._refinement.to_inner(time)
        self._entered.update(time, _length(batch))
        self._activation.ask()
        self._inner.push(time, batch)


class Egress(Pusher):
    """Carries a stream out of a scope, which reports it as produced by itself."""

    __slots__ = ("_outer", "_refinement")

    def __init__(self, outer: Tee, refinement: Refinement) -> None:
        self._outer = outer
        self._refinement = _unless_same(refinement)

    def push(self, time: Any, batch: Any) -> None:
        """Pass `batch` on at the time outside."""
        if self._refinement is not None:
            time = self._refinement.to_outer(time)
        self._outer.push(time, batch)


def _unless_same(refinement: Refinement) -> Refinement | None:
    """None of a region's, in which times stay as they are: they need not be translated."""
    return None if refinement is SAME else refinement
