"""A worker's event loop: a thread in which its coroutines run.

A worker waits for messages, an event loop for sockets and timers, and neither can wait
for the other's. So the loop has a thread of its own, begun with the first coroutine and
ended with the worker; what the coroutines come to is called out to the worker
(`Environment.call`), which is woken by it. Nothing here knows of capabilities or times.

Rules
-----
1. Everything in this file runs in the loop's thread, but what says that it is for others.
2. A coroutine that was begun comes to an outcome exactly once, a cancelled one too:
   an operator waits for it.
3. `KeyboardInterrupt` and `SystemExit` of a coroutine are the worker's: they are outcomes
   like others here. Of anything else in the loop they end it, and fail the worker.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from pointstamp.errors import InputError
from pointstamp.progress.timestamp import Timestamp

STOP_S = 0.3
"""How long coroutines that were cancelled may take until the worker ends without them."""


class EventLoop:
    """Runs coroutines in a thread; see `Environment.event_loop`. For other threads.

    Parameters
    ----------
    name : str
        Of the thread.
    fail : callable
        Called, in the loop's thread, with an error that ended the loop.
    """

    def __init__(self, name: str, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail
        # With a factory the runner does not make the loop that of the calling thread.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._closed = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Have `function(*args)` called in the loop; nothing happens once that has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *args)

    def close(self) -> None:
        """Cancel what is under way, and end; returns at most `STOP_S` seconds later."""
        self.call(self._end)
        self._thread.join(STOP_S)

    def _run(self) -> None:
        try:
            with self._runner:
                self._runner.run(self._until_closed())
        except BaseException as error:  # noqa: BLE001  (it is the worker's to raise)
            self._fail(error)

    async def _until_closed(self) -> None:
        await self._closed

    def _end(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)


class Outcomes:
    """On the way from coroutines to their operator, which is activated for them.

    `put` is for the loop's thread and `take` for the worker's. The order that makes this
    sound: `put` appends and then looks whether the bell was rung; `take` unsets the
    bell and then looks at what there is.
    """

    __slots__ = ("_activate", "_arrived", "_call", "_is_closed", "_is_rung")

    def __init__(
        self, call: Callable[[Callable[[], None]], None], activate: Callable[[], None]
    ) -> None:
        self._call = call
        self._activate = activate
        self._arrived: deque[Any] = deque()
        self._is_closed = False
        self._is_rung = False

    def put(self, outcome: Any) -> None:
        """Hand `outcome` over, and have the operator run unless it is going to."""
        if self._is_closed:
            return
        self._arrived.append(outcome)
        if not self._is_rung:
            self._is_rung = True
            self._call(self._activate)

    def take(self) -> Iterator[Any]:
        """What has arrived by now."""
        self._is_rung = False
        for _ in range(len(self._arrived)):
            yield self._arrived.popleft()

    def close(self) -> None:
        """Forget what comes from now on; for the worker's thread, whose operator has ended."""
        self._is_closed = True


class Completed(NamedTuple):
    """What one call of an operator's code came to."""

    time: Any
    record: Any
    value: Any
    error: BaseException | None


class CoroutineTasks:
    """The calls of one operator's code that are under way.

    Parameters
    ----------
    call : callable
        Gives a coroutine for a record.
    outcomes : Outcomes
        Gets a `Completed` for each.
    """

    def __init__(self, call: Callable[[Any], Awaitable[Any]], outcomes: Outcomes) -> None:
        self._call = call
        self._outcomes = outcomes
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, departures: Sequence[tuple[Any, Sequence[Any]]]) -> None:
        """Begin a call for each record of these (time, records)."""
        for time, records in departures:
            for record in records:
                task = asyncio.ensure_future(self._fly(record))
                self._tasks.add(task)
                task.add_done_callback(partial(self._land, time, record))

    def cancel(self) -> None:
        """Cancel all."""
        for task in self._tasks:
            task.cancel()

    async def _fly(self, record: Any) -> tuple[Any, BaseException | None]:
        try:
            return await self._call(record), None
        except BaseException as error:  # noqa: BLE001  (raised, or routed, by the operator)
            return None, error

    def _land(self, time: Any, record: Any, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        value, error = (None, asyncio.CancelledError()) if task.cancelled() else task.result()
        self._outcomes.put(Completed(time, record, value, _outcome(error)))


class Yielded(NamedTuple):
    """A record, or a batch, that a source gave."""

    value: Any


class Advanced(NamedTuple):
    """A source gives nothing before `time` any more."""

    time: Any


class Ended(NamedTuple):
    """A source gives nothing any more; or failed."""

    error: BaseException | None


class AsyncInput:
    """The argument of an asynchronous source: its current time, its worker, and how to advance.

    Attributes
    ----------
    time
        The time of what is given now.
    index, peers : int
        The worker's number, and how many there are.
    """

    def __init__(
        self, name: str, timestamp: Timestamp, index: int, peers: int, outcomes: Outcomes
    ) -> None:
        self.time: Any = timestamp.minimum
        self.index = index
        self.peers = peers
        self._name = name
        self._timestamp = timestamp
        self._outcomes = outcomes

    def advance_to(self, time: Any) -> None:
        """Promise to give at `time` or later only.

        Raises
        ------
        InputError
            If `time` is not at or after the current time.
        """
        time = self._timestamp.check(time)
        if not self._timestamp.less_equal(self.time, time):
            raise InputError(
                f"source {self._name!r} is at {self.time} and cannot go back to {time}"
            )
        self.time = time
        self._outcomes.put(Advanced(time))

    def __repr__(self) -> str:
        return f"AsyncInput({self._name!r}, {self.time!r})"


class Generating:
    """One run of an asynchronous generator, for a source.

    Parameters
    ----------
    generate : callable
        The asynchronous generator function.
    input_ : AsyncInput
        What it is called with.
    outcomes : Outcomes
        Gets `Yielded`, `Advanced` and at last `Ended`.
    buffer : int
        How much may be given that the operator has not sent yet.
    """

    def __init__(
        self,
        generate: Callable[[AsyncInput], AsyncIterator[Any]],
        input_: AsyncInput,
        outcomes: Outcomes,
        buffer: int,
    ) -> None:
        self._generate = generate
        self._input = input_
        self._outcomes = outcomes
        self._buffer = buffer
        self._n_waiting = 0
        self._room = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._end)

    def cancel(self) -> None:
        """Have the generator end where it waits."""
        if self._task is not None:
            self._task.cancel()

    def make_room(self, n: int) -> None:
        """So much of what was given has been sent."""
        self._n_waiting -= n
        self._room.set()

    async def _run(self) -> BaseException | None:
        try:
            given = self._generate(self._input)
            try:
                async for value in given:
                    await self._give(value)
            finally:
                await _close(given)
        except BaseException as error:  # noqa: BLE001  (raised by the operator)
            return error
        return None

    async def _give(self, value: Any) -> None:
        self._n_waiting += 1
        self._outcomes.put(Yielded(value))
        while self._n_waiting >= self._buffer:
            self._room.clear()
            await self._room.wait()

    def _end(self, task: asyncio.Task[Any]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.result()
        self._outcomes.put(Ended(_outcome(error)))


async def _close(given: AsyncIterator[Any]) -> None:
    """Let a generator do what it has to at its end; other iterators have none."""
    if isinstance(given, AsyncGenerator):
        await given.aclose()


def _outcome(error: BaseException | None) -> BaseException | None:
    """`error`, as one of the user's where their code cancelled a coroutine that we did not."""
    if not isinstance(error, asyncio.CancelledError):
        return error
    cancelled = concurrent.futures.CancelledError("its coroutine was cancelled")
    cancelled.__cause__ = error
    return cancelled
