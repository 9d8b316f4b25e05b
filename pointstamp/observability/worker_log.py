"""The log of one worker: what is recorded goes to buffers, and from those to files and streams.

Theory of operation
-------------------
Each type of events has a buffer. When it is full, its events are made a batch, which is
appended to the type's file and given to the streams that read it. So that neither an
observer nor a worker that is stopped from outside misses much, the buffers are emptied
at the end of a step, too, where the last time is long enough ago; and before a long park
the worker takes a short one, so that there is such a step.

Parks alone are no reason to empty the buffers. The dataflows that read the log have the
worker wake and park again, and those of two workers would keep each other busy that way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from struct import error as StructError  # noqa: N812  (the name says too little)
from typing import TYPE_CHECKING, Any

from pointstamp.communication.communicator import Channel
from pointstamp.dataflow.step_observer import StepObserver
from pointstamp.errors import UsageError
from pointstamp.formats.arrow_stream_file import StreamFile
from pointstamp.metrics.tick_clock import TICK
from pointstamp.observability.buffer import Buffer
from pointstamp.observability.clock import LogClock
from pointstamp.observability.event_types import EVENTS, NONE, VERSION, EventType, unfit
from pointstamp.observability.live import LogSource, log_source
from pointstamp.observability.logged import (
    LoggedCapabilities,
    LoggedChannel,
    LoggedCounts,
    LoggedOperate,
    LoggedOperator,
    LoggedQueue,
    LoggedScope,
)
from pointstamp.progress.operate import DirectOperate, Operate
from pointstamp.progress.topology import Port

if TYPE_CHECKING:
    from pointstamp.dataflow.channels import Queue, Tee
    from pointstamp.dataflow.operator import Operator
    from pointstamp.operators.scope import Scope
    from pointstamp.operators.stream import Stream

_NONE = NONE  # compiled, a number of C

WRITE_EVERY_S = 0.5
"""How long what happened may be missing in the files, at most, unless a step takes longer."""

STREAM_EVERY_S = 0.01
"""The same for the streams."""


class WorkerLog(StepObserver):
    """What one worker records; see `pointstamp.dataflow.logging_protocol.Logger`."""

    def __init__(
        self,
        index: int,
        peers: int,
        clock: LogClock,
        folder: Path | None,
        own: Sequence[EventType] = (),
    ) -> None:
        types = {**EVENTS, **{of.name: of for of in own}}
        self._clock = clock
        self._index = index
        self._peers = peers
        self._folder = folder
        self._files: dict[str, StreamFile] = {}
        self._buffers = {name: Buffer(of, clock, self._full) for name, of in types.items()}
        self._schedules = self._buffers["schedules"]
        self._messages = self._buffers["messages"]
        self._progress = self._buffers["progress"]
        self._parks = self._buffers["parks"]
        self._capabilities = self._buffers["capabilities"]
        self._sources: dict[str, list[LogSource]] = {name: [] for name in types}
        self._kept: dict[str, list[Any]] = {name: [] for name, of in types.items() if of.is_kept}
        self._lost: list[tuple[int, int, Any]] = []
        self._is_timed = clock.unit == "ns"
        self._every_s = 0.0
        self._every = 0
        """The same, as the clock is read."""
        self._last = self._seen = self._clock.now()
        self._n_operators = 0
        self._n_channels = 0
        self._scopes: list[int] = []
        """By the number of a scope: that of the operator that it is; or `NONE`."""
        self._operators: dict[tuple[int, int], int] = {}
        """By scope and node."""
        self._addresses: list[tuple[int, str]] = []
        """By operator: that of its dataflow, and its address as a text."""
        self._write_every(WRITE_EVERY_S)
        if folder is not None:
            # One file is there from the start, locked: so a reader sees that a worker runs, or was
            # killed, that has nothing to write yet.
            self._file(EVENTS["operators"], self._buffers["operators"])
            for of in own:  # a reader finds those of which there is none yet, too
                buffer = self._buffers[of.name]
                self._file(of, buffer).write(buffer.take())

    def watch(self, worker: Any) -> None:
        """See `Logger`: what is logged is reported by the worker itself."""

    # While a dataflow is built.

    def begin_scope(self, number: int, parent: int | None, node: int, name: str) -> None:
        """See `Logger`."""
        self._scopes.extend([NONE] * (number + 1 - len(self._scopes)))
        if parent is None:
            self._scopes[number] = self._register("dataflow", NONE, number, name)
        else:
            self._scopes[number] = self._made("scope", parent, node, name)

    def operator(self, scope: int, node: int, name: str) -> Callable[..., Operator]:
        """See `Logger`."""
        return partial(
            LoggedOperator,
            self._made("operator", scope, node, name),
            self._clock,
            self._schedules,
            self._buffers["frontiers"],
        )

    def operate(self, scope: int, node: int, operator: Operate) -> Any:
        """See `Logger`."""
        number = self._operators.get((scope, node))
        if number is None:  # a scope was recorded when it began
            number = self._made("operator", scope, node, operator.name)
        make: Any = LoggedScope if isinstance(operator, DirectOperate) else LoggedOperate
        return make(number, self._clock, self._schedules, operator)

    def capabilities(self, operator: Any) -> Callable[..., LoggedCapabilities]:
        """See `Logger`."""
        capabilities = self._buffers["capabilities"]
        return partial(LoggedCapabilities, operator.number, self._clock, capabilities, self._lost)

    def output(self, operator: Any, tee: Tee) -> None:
        """See `Logger`: what is sent is recorded where it arrives."""

    def channel(self, channel: Channel) -> Channel:
        """See `Logger`."""
        return LoggedChannel(channel, self._index, self._clock, self._messages)

    def queue(self) -> Callable[..., Queue]:
        """See `Logger`."""
        return partial(LoggedQueue, self._index, self._clock, self._messages)

    def connect(
        self, queue: Any, operator: Any, port: int, scope: int, source: Port, pact: str
    ) -> None:
        """See `Logger`."""
        if isinstance(queue, LoggedQueue):
            queue.connect(self._n_channels)
        self._connected(scope, source, (operator.number, port), pact)

    def crossing(self, scope: int, source: Port, target: Port, way: str) -> None:
        """See `Logger`."""
        node, port = target
        self._connected(scope, source, (self._number(scope, node), port), way)

    def _connected(self, scope: int, source: Port, target: Port, pact: str) -> None:
        """Record a stream to an operator of a number, or to the scope itself."""
        node, output = source
        self._buffers["channels"].add_with(
            (pact,), self._clock.now(), self._n_channels, self._scopes[scope],
            self._number(scope, node), output, *target,
        )  # fmt: skip
        self._n_channels += 1

    def _number(self, scope: int, node: int) -> int:
        """Of an operator of a scope; of the scope for 0."""
        return self._operators.get((scope, node), NONE) if node else self._scopes[scope]

    def summaries(self, operator: Any, table: Sequence[Mapping[int, Any]]) -> None:
        """See `Logger`."""
        buffer = self._buffers["summaries"]
        for port, row in enumerate(table):
            for output, paths in row.items():
                text = " or ".join(map(str, paths))
                buffer.add_with((text,), self._clock.now(), operator.number, port, output)

    def observer(self, scope: int) -> LoggedCounts:
        """See `Logger`."""
        within, buffer = self._scopes[scope], self._buffers["reachability"]
        return LoggedCounts(scope, within, self._operators, self._clock, buffer)

    def stream(self, scope: Scope, what: str, name: str = "") -> Stream[Any]:
        """See `Scope.log_stream`."""
        if what not in self._buffers:
            raise UsageError(
                f"scope {scope.name!r} asks for {what!r}; the events of a log are "
                f"{', '.join(self._buffers)}"
            )
        stream, source = log_source(scope, what, name)
        self._empty(self._buffers[what], self._clock.moment())  # to those that listen already
        for batch in self._kept.get(what, ()):
            source.put(batch)
        source.put(None, self._clock.moment())
        self._sources[what].append(source)
        # The dataflow may end before there is nothing more to record.
        scope.environment.closers.callback(self._leave, what, source)
        self._write_every(STREAM_EVERY_S)
        return stream

    def _leave(self, what: str, source: LogSource) -> None:
        if source in self._sources[what]:
            self._sources[what].remove(source)

    def _made(self, kind: str, scope: int, node: int, name: str) -> int:
        number = self._register(kind, self._scopes[scope], node, name)
        self._operators[scope, node] = number
        return number

    def _register(self, kind: str, scope: int, node: int, name: str) -> int:
        number = self._n_operators
        self._n_operators += 1
        if scope == NONE:
            self._addresses.append((number, str(node)))
        else:
            dataflow, around = self._addresses[scope]
            self._addresses.append((dataflow, f"{around}/{node}"))
        dataflow, address = self._addresses[number]
        self._buffers["operators"].add_with(
            (kind, name, address), self._clock.now(), number, scope, dataflow
        )
        return number

    # While it runs.

    def now(self) -> int:
        """See `Logger`."""
        return self._clock.now()

    def visited(self, scope: int, began: int) -> None:
        """See `Logger`."""
        self._schedules.add(self._clock.now(), began, self._scopes[scope], 0, 0, 0)

    def progress_sent(self, scope: int, n_updates: int) -> None:
        """See `Logger`."""
        number = self._number_within(scope)
        if number != _NONE:
            at = self._clock.now()
            for peer in range(self._peers):
                if peer != self._index:
                    self._progress.add(at, number, n_updates, self._index, peer, True)

    def progress_received(self, scope: int, sender: int, n_updates: int) -> None:
        """See `Logger`."""
        number = self._number_within(scope)
        if number != _NONE:
            self._progress.add(self._clock.now(), number, n_updates, sender, self._index, False)

    def _number_within(self, scope: int) -> int:
        """Of a scope; `NONE` of one that is not logged."""
        return self._scopes[scope] if scope < len(self._scopes) else NONE

    def park(self, park: Callable[[float | None], None], timeout_s: float | None) -> None:
        """See `Logger`."""
        if self._every and self._has_unwritten():
            timeout_s = self._every_s if timeout_s is None else min(timeout_s, self._every_s)
        began = self._clock.now()
        park(timeout_s)
        self._parks.add(self._clock.now(), began, 0, 0, 0, 0)

    def text(self, text: str) -> None:
        """See `Logger`."""
        self._buffers["texts"].add_with((text,), self._clock.now())

    def own(self, name: str, values: Mapping[str, Any]) -> None:
        """See `Logger`."""
        buffer = self._buffers.get(name)
        of = None if buffer is None else buffer.of
        if buffer is None or of is None or not of.is_own or len(of.columns) != len(values) + 1:
            of = None
        if of is None or any(column not in of.columns for column in values):
            own = {n: list(b.of.columns)[1:] for n, b in self._buffers.items() if b.of.is_own}
            raise UsageError(
                f"worker {self._index} logs {name!r} with {list(values)}; the types of events of "
                f"this log, with all of their columns, are {own}"
            )
        assert buffer is not None
        numbers = [values[column] for column in list(of.numbers)[1:]]
        texts = tuple(values[column] for column in of.texts)
        try:
            buffer.add_with(texts, self._clock.now(), *numbers)
        except (StructError, OverflowError) as error:
            column, kind = unfit(of, numbers)
            raise UsageError(
                f"worker {self._index} logs {name!r} with {values[column]!r:.200} as {column!r}, "
                f"which is of type {kind}"
            ) from error

    def tick(self) -> None:
        """See `Logger`."""
        if self._lost:
            self._record_lost()
        if self._is_timed:
            # What was recorded in the step has looked at the clock; a step of nothing looks now.
            at = self._clock.last
            if at == self._seen:
                at = self._clock.now()
            self._seen = at
            if at - self._last < self._every:
                return
        elif not any(self._sources.values()):
            return  # nothing waits for the files of a simulation
        if self._has_unwritten():
            self._empty_all()
        else:
            self._last = self._clock.now()

    def end_streams(self) -> None:
        """See `Logger`."""
        self._record_lost()
        self._empty_all()
        for sources in self._sources.values():
            for source in sources:
                source.end()
            sources.clear()
        self._write_every(WRITE_EVERY_S)

    def close(self) -> None:
        """See `Logger`."""
        try:
            self._record_lost()
            self._empty_all()
        finally:
            for sources in self._sources.values():
                sources.clear()
            for buffer in self._buffers.values():
                buffer.end()
            with ExitStack() as files:  # all of them, also where one cannot be written
                for file in self._files.values():
                    files.callback(file.close)

    # Out of the buffers.

    def _write_every(self, seconds: float) -> None:
        if self._is_timed:
            self._every_s = seconds
            self._every = int(seconds * 1e18) // TICK.ns_of(1_000_000_000)

    def _has_unwritten(self) -> bool:
        """Whether anything but parks waits to be written."""
        return any(buffer.n for buffer in self._buffers.values() if buffer is not self._parks)

    def _record_lost(self) -> None:
        """Record the capabilities that the garbage collector found."""
        found = len(self._lost)
        if found:
            # Any thread may append meanwhile: what is behind those that were found stays.
            lost = self._lost[:found]
            del self._lost[:found]
            for number, output, time in lost:
                self._capabilities.add_at(time, self._clock.now(), number, output, -1, 0, 0)

    def _empty_all(self) -> None:
        until = self._clock.moment()
        for buffer in self._buffers.values():
            self._empty(buffer, until)
        self._clock.forget()
        self._last = self._clock.now()

    def _full(self, buffer: Buffer) -> None:
        # Not until now: what records several things at once has looked at the clock before.
        self._empty(buffer, buffer.last)

    def _empty(self, buffer: Buffer, until: int) -> None:
        """Pass on what is there; nothing that comes later is of a moment before `until`."""
        of = buffer.of
        sources = self._sources[of.name]
        batch = None
        if buffer.n:
            batch = buffer.take()
            if of.is_kept:
                self._kept[of.name].append(batch)
            if self._folder is not None:
                self._file(of, buffer).write(batch)
        for source in sources:
            source.put(batch, until)

    def _file(self, of: EventType, buffer: Buffer) -> StreamFile:
        file = self._files.get(of.name)
        if file is None:
            assert self._folder is not None
            metadata = {
                "version": VERSION,
                "events": of.name,
                "worker": str(self._index),
                "workers": str(self._peers),
                "unit": self._clock.unit,
            }
            path = self._folder / of.file
            file = self._files[of.name] = StreamFile(path, buffer.schema, metadata)
        return file
