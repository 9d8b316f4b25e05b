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
from typing import Any, NamedTuple

from pointstamp.containers.registry import n_records
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.environment import Environment
from pointstamp.dataflow.error_policy import ErrorPolicy, streams
from pointstamp.dataflow.event_loop import Completed, CoroutineTasks, EventLoop, Outcomes
from pointstamp.dataflow.handles import Input, Output, Session
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.operator_error import raise_outside
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError
from pointstamp.operators.transform import PIPELINE, rows
from pointstamp.operators.user_code import check_iterable
from pointstamp.progress.operate import Interest

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
    iterates: bool = False
    """Whether an asynchronous iterator is collected, and other results are iterables."""


def _give_batch(session: Session, batch: Any) -> None:
    if batch is not None:
        session.give_batch(batch)


BY_RECORD = _Form(rows, Session.give, lambda record: 1)
BY_RECORD_TO_MANY = _Form(rows, Session.give_many, lambda record: 1, iterates=True)
BY_BATCH = _Form(lambda batch, name: [batch], _give_batch, n_records)


def transform(
    stream: StreamCore[Any],
    name: str,
    function: Callable[[Any], Any],
    form: _Form,
    policy: ErrorPolicy,
    concurrency: int | None,
) -> Any:
    """The stream of what the calls come to; for "route" also that of what they fail on."""
    n_most = _checked(CONCURRENCY if concurrency is None else concurrency, name)
    environment = stream.scope.environment
    builder = OperatorBuilder(stream.scope, name)
    builder.new_input(stream, PIPELINE, Interest.NEVER)
    results = builder.new_output(initial=False)
    failed = policy.new_output(builder)

    def call(record: Any) -> Awaitable[Any]:
        made = function(record)
        if form.iterates:
            return _collected(made, function, record, name)
        return _awaitable(made, function, name)

    def make_logic(capabilities: list[Capability], info: OperatorInfo) -> Callable[..., None]:
        outcomes = Outcomes(environment.call, info.activate)
        tasks = CoroutineTasks(call, outcomes)
        logic = _Await(name, environment, form, tasks, outcomes, policy, n_most)
        environment.closers.callback(logic.cancel)
        return logic.run

    builder.build(make_logic)
    return streams(results, *failed)


async def _collected(made: Any, function: Any, record: Any, operator: str) -> list[Any]:
    if isinstance(made, AsyncIterator):
        return [result async for result in made]
    found = await _awaitable(made, function, operator)
    try:
        return list(found)
    except TypeError:
        check_iterable(found, function, record)
        raise


def _awaitable(made: Any, function: Any, operator: str) -> Awaitable[Any]:
    if isinstance(made, Awaitable):
        return made
    raise TypeError(
        f"operator {operator!r} was given concurrency, so it needs an async def, or a function "
        f"that returns what can be awaited; {function!r} returned {type(made).__name__}"
    )


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
        "_form",
        "_held",
        "_loop",
        "_n_most",
        "_n_tasks",
        "_name",
        "_outcomes",
        "_policy",
        "_tasks",
        "_waiting",
    )

    def __init__(
        self,
        name: str,
        environment: Environment,
        form: _Form,
        tasks: CoroutineTasks,
        outcomes: Outcomes,
        policy: ErrorPolicy,
        n_most: int,
    ) -> None:
        self._name = name
        self._environment = environment
        self._form = form
        self._tasks = tasks
        self._outcomes = outcomes
        self._policy = policy
        self._n_most = n_most
        self._n_tasks = 0
        self._loop: EventLoop | None = None
        self._waiting = _Waiting()
        self._held: dict[Any, _Held] = {}

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        for completed in self._outcomes.take():
            self._count(-1)
            self._send(completed, outputs)
        self._start(inputs[0], len(outputs))

    def cancel(self) -> None:
        """End what is under way: no operator waits for it any more."""
        self._outcomes.close()
        if self._loop is not None:
            self._loop.call(self._tasks.cancel)
        self._count(-self._n_tasks)

    def _start(self, input_: Input, n_outputs: int) -> None:
        started: list[tuple[Any, Sequence[Any]]] = []
        while (room := self._n_most - self._n_tasks) > 0:
            time, records = self._waiting.take(room)
            if records:
                started.append((time, records))
                self._count(len(records))
            elif not self._receive(input_, n_outputs):
                break
        if started:
            if self._loop is None:
                self._loop = self._environment.event_loop()
            self._loop.call(self._tasks.start, started)

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

    def _send(self, completed: Completed, outputs: list[Output]) -> None:
        held = self._held[completed.time]
        error = completed.error
        if error is None:
            self._form.give(outputs[0].session(held.capabilities[0]), completed.value)
        elif not self._policy.raises and isinstance(error, Exception):
            self._policy.note(completed.record, error, self._form.n_records(completed.record))
            self._policy.send(outputs, held.capabilities[-1])
        else:
            raise_outside(error, self._name, completed.time)
        held.n -= 1
        if not held.n:
            del self._held[completed.time]
            for capability in held.capabilities:
                capability.drop()

    def _count(self, n: int) -> None:
        self._n_tasks += n
        self._environment.n_outside += n
