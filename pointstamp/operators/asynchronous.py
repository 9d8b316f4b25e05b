"""Operators whose code is `async def`: map, flat_map and map_batches.

Each record's coroutine runs in the worker's event loop, so many of them wait at the
same time, while the worker goes on. What one comes to is sent at the time of its
record; in which order, within a time, is up to the coroutines.

Rules
-----
1. Of each time that has something under way one capability is held per output, and
   dropped with the last of it.
2. At most `concurrency` coroutines are under way, of one operator, on one worker. What
   cannot begin yet stays in the operator's queue, where it counts as a batch in flight.
3. All that touches capabilities happens in the worker's thread. `event_loop` has the rest.
4. When the dataflow or the worker ends before they do, coroutines are cancelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.containers import kind_of
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.error_policy import OnError, check_on_error
from pointstamp.dataflow.event_loop import EventLoop, Flights, Landed, Outcomes
from pointstamp.dataflow.handles import Input, Output, Session
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.operator_error import blame
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError
from pointstamp.operators.errors_as_data import Failures
from pointstamp.operators.transform import PIPELINE, rows
from pointstamp.progress.operate import Interest

if TYPE_CHECKING:
    pass

CONCURRENCY = 64
"""How many coroutines of an operator are under way at a time, unless it is said."""


class _Form(NamedTuple):
    """Whether code is called with a record or with a batch."""

    take_apart: Callable[[Any, str], Sequence[Any]]
    """What of a batch it is called with, each by itself."""
    give: Callable[[Session, Any], None]
    """Sends what one call came to."""
    n_records: Callable[[Any], int]
    """How many records a call was for."""


def _give_batch(session: Session, batch: Any) -> None:
    if batch is not None:
        session.give_batch(batch)


BY_RECORD = _Form(rows, Session.give, lambda record: 1)
BY_RECORD_TO_MANY = _Form(rows, Session.give_many, lambda record: 1)
BY_BATCH = _Form(
    lambda batch, name: [batch], _give_batch, lambda batch: kind_of(batch).length(batch)
)


def map_(
    stream: StreamCore[Any],
    function: Callable[[Any], Any],
    on_error: OnError,
    concurrency: int | None,
    name: str = "Map",
) -> Any:
    """See `Stream.map`."""

    def call(record: Any) -> Awaitable[Any]:
        return _awaitable(function(record), function, name)

    return _operator(stream, name, call, BY_RECORD, on_error, concurrency)


def flat_map(
    stream: StreamCore[Any],
    function: Callable[[Any], Any],
    on_error: OnError,
    concurrency: int | None,
    name: str = "FlatMap",
) -> Any:
    """See `Stream.flat_map`."""

    async def call(record: Any) -> list[Any]:
        made = function(record)
        if isinstance(made, AsyncIterator):
            return [result async for result in made]
        return list(await _awaitable(made, function, name))

    return _operator(stream, name, call, BY_RECORD_TO_MANY, on_error, concurrency)


def map_batches(
    stream: StreamCore[Any],
    function: Callable[[Any], Any],
    on_error: OnError,
    concurrency: int | None,
    name: str = "MapBatches",
) -> Any:
    """See `Stream.map_batches`."""

    def call(batch: Any) -> Awaitable[Any]:
        return _awaitable(function(batch), function, name)

    return _operator(stream, name, call, BY_BATCH, on_error, concurrency)


def _awaitable(made: Any, function: Any, operator: str) -> Awaitable[Any]:
    if isinstance(made, Awaitable):
        return made
    raise TypeError(
        f"operator {operator!r} was given concurrency, so it needs an async def, or a function "
        f"that returns what can be awaited; {function!r} returned {type(made).__name__}"
    )


def _operator(
    stream: StreamCore[Any],
    name: str,
    call: Callable[[Any], Awaitable[Any]],
    form: _Form,
    on_error: OnError,
    concurrency: int | None,
) -> Any:
    """The stream of what the calls come to; for "route" also that of what they fail on."""
    check_on_error(on_error, name)
    n_most = _checked(CONCURRENCY if concurrency is None else concurrency, name)
    environment = stream.scope.environment
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, PIPELINE, Interest.NEVER)
    streams = [builder.new_output(initial=False) for _ in range(1 + (on_error == "route"))]

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        outcomes = Outcomes(environment.call, info.activate)
        failures = None if on_error == "raise" else Failures(name, environment, on_error)
        flights = Flights(call, outcomes)
        logic = _Await(name, environment, form, flights, outcomes, failures, n_most)
        environment.closers.callback(logic.cancel)
        return logic.run

    builder.build(make_logic)
    return streams[0] if len(streams) == 1 else tuple(streams)


def _checked(concurrency: Any, name: str) -> int:
    if type(concurrency) is int and concurrency >= 1:
        return concurrency
    raise BuildError(
        f"operator {name!r}: concurrency says how many coroutines may be under way, "
        f"1 or more, not {concurrency!r}"
    )


class _Held:
    """How much of a time is not done yet, and the right to send what comes of it."""

    __slots__ = ("capabilities", "n")

    def __init__(self, capabilities: list[Capability]) -> None:
        self.capabilities = capabilities
        self.n = 0


class _Waiting:
    """What was received and could not begin yet: the rest of one batch, at most."""

    __slots__ = ("_begin", "_records", "_time")

    def __init__(self) -> None:
        self._time: Any = None
        self._records: Sequence[Any] = ()
        self._begin = 0

    def put(self, time: Any, records: Sequence[Any]) -> None:
        """Take what came next, when all before it has gone."""
        self._time, self._records, self._begin = time, records, 0

    def take(self, n: int) -> tuple[Any, Sequence[Any]]:
        """(time, records), of these at most `n`; none are left when there are fewer."""
        begin, self._begin = self._begin, self._begin + n
        taken = self._records[begin : self._begin]
        if self._begin >= len(self._records):
            self._records, self._begin = (), 0
        return self._time, taken


class _Await:
    """The logic: begins coroutines for what has come, sends what others came to."""

    __slots__ = (
        "_environment",
        "_failures",
        "_flights",
        "_form",
        "_held",
        "_loop",
        "_n_flying",
        "_n_most",
        "_name",
        "_outcomes",
        "_waiting",
    )

    def __init__(
        self,
        name: str,
        environment: Environment,
        form: _Form,
        flights: Flights,
        outcomes: Outcomes,
        failures: Failures | None,
        n_most: int,
    ) -> None:
        self._name = name
        self._environment = environment
        self._form = form
        self._flights = flights
        self._outcomes = outcomes
        self._failures = failures
        self._n_most = n_most
        self._n_flying = 0
        self._loop: EventLoop | None = None
        self._waiting = _Waiting()
        self._held: dict[Any, _Held] = {}

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        for landed in self._outcomes.take():
            self._count(-1)
            self._send(landed, outputs)
        self._depart(inputs[0], len(outputs))

    def cancel(self) -> None:
        """End what is under way: nobody waits for it any more."""
        self._outcomes.close()
        if self._loop is not None:
            self._loop.call(self._flights.cancel)
        self._count(-self._n_flying)

    def _depart(self, input_: Input, n_outputs: int) -> None:
        departures: list[tuple[Any, Sequence[Any]]] = []
        while (room := self._n_most - self._n_flying) > 0:
            time, records = self._waiting.take(room)
            if records:
                departures.append((time, records))
                self._count(len(records))
            elif not self._receive(input_, n_outputs):
                break
        if departures:
            if self._loop is None:
                self._loop = self._environment.event_loop()
            self._loop.call(self._flights.start, departures)

    def _receive(self, input_: Input, n_outputs: int) -> bool:
        """Take the next batch in; False if none has come."""
        item = input_.next()
        if item is None:
            return False
        received, batch = item
        records = self._form.take_apart(batch, self._name)
        self._waiting.put(received.time, records)
        self._hold(received, n_outputs).n += len(records)
        return True

    def _hold(self, received: InputCapability, n_outputs: int) -> _Held:
        held = self._held.get(received.time)
        if held is None:
            held = _Held([received.retain(output) for output in range(n_outputs)])
            self._held[received.time] = held
        return held

    def _send(self, landed: Landed, outputs: list[Output]) -> None:
        held = self._held[landed.time]
        error = landed.error
        if error is None:
            self._form.give(outputs[0].session(held.capabilities[0]), landed.value)
        elif self._failures is not None and isinstance(error, Exception):
            self._fail(landed, error, outputs, held)
        else:
            raise_(error, self._name, landed.time)
        held.n -= 1
        if not held.n:
            del self._held[landed.time]
            for capability in held.capabilities:
                capability.drop()

    def _fail(self, landed: Landed, error: Exception, outputs: list[Output], held: _Held) -> None:
        assert self._failures is not None
        self._failures.note(landed.record, error, self._form.n_records(landed.record))
        if failed := self._failures.take():
            outputs[-1].session(held.capabilities[-1]).give_many(failed)

    def _count(self, n: int) -> None:
        self._n_flying += n
        self._environment.n_outside += n


def raise_(error: BaseException, operator: str, time: Any) -> None:
    """Raise, in the worker's thread, what user code raised in the loop's."""
    if isinstance(error, Exception):
        raise blame(error, operator, time) from error
    raise error
