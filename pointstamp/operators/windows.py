"""Windows of event time, released when the frontier shows that they are complete.

What the times mean, and which records are late, is said in `window_assigners.py`. A window
that has records holds a capability for the timestamp at which it will be released.

Fixed windows are stored by their end, one list of batches each, and what is released
together is one batch. Sessions are stored by key; a batch is cut into stretches without a
gap first, so that what is done one by one is done per stretch and not per record.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pointstamp.containers import Arrays, kind_of
from pointstamp.containers.event_times import (
    event_times,
    group_numbers,
    key_at,
    with_bounds,
)
from pointstamp.containers.gather import take
from pointstamp.containers.keys import canonical_key, check_rows_key
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Frontier, Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.errors import BuildError, UsageError
from pointstamp.operators.window_assigners import (
    IDENTITY_CLOCK,
    EventClock,
    Ints,
    Sessions,
    Sliding,
    Window,
)
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Int

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


def window(
    stream: Stream[Any],
    windows: Sliding | Sessions,
    time: Any,
    key: Any,
    lateness: int,
    clock: EventClock | None,
    name: str = "Window",
) -> tuple[Stream[Any], Stream[Any]]:
    """See `Stream.window`."""
    if not isinstance(windows, (Sliding, Sessions)):
        raise BuildError(
            f"operator {name!r} needs windows such as ps.Tumbling(10), ps.Sliding(10, 5) or "
            f"ps.Sessions(10); found {windows!r}"
        )
    if type(lateness) is not int or lateness < 0:
        raise UsageError(f"lateness is an integer of at least 0; found {lateness!r}")
    clock = _clock(stream, clock, name)
    builder = OperatorBuilder(stream.scope, name)
    pact = Exchange(key if key is not None else _all_together)
    builder.new_input(stream, pact, Interest.IF_CAPABILITY)
    # What is restored is released later, for which there must be a capability.
    is_durable = builder.states.durable_state is not None
    results = builder.new_output(initial=is_durable), builder.new_output(initial=False)

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        state: _WindowState
        if isinstance(windows, Sessions):
            state = _SessionWindows(windows, key, time)
        else:
            state = _FixedWindows(windows, key, time)
        if is_durable:
            with capabilities.pop() as first:
                _declare(state, info, key, partial(_release_capability, first, clock, lateness))

        def logic(inputs: list[Input], outputs: list[Output]) -> None:
            for at, batch in inputs[0]:
                now = clock.event_time(at.time)
                times = _times(batch, time, now, name)
                late = times < now - lateness
                if late.any():
                    outputs[1].push(at.time, take(batch, np.flatnonzero(late)))
                    on_time = np.flatnonzero(~late)
                    batch, times = take(batch, on_time), times[on_time]
                if len(times):
                    state.add(batch, times, partial(_release_capability, at, clock, lateness))
            state.release(inputs[0].frontier, outputs[0])

        return logic

    builder.build(make_logic)
    return results


Hold = Callable[[int], Capability]
"""The capability for when a window that ends there is released."""


def _declare(state: _WindowState, info: OperatorInfo, key: Any, hold: Hold) -> None:
    """Have windows that are open outlast the program."""
    # Here and not above: few dataflows are durable.
    from pointstamp.checkpoint.keyed_state import KeyedBatches, by_key

    hashes = by_key(key if key is not None else _all_together)
    table = KeyedBatches(state.everything, partial(state.take_in, hold), hashes)
    info.states.keep("windows", table)


class _WindowState(Protocol):
    """Windows that are not complete."""

    def everything(self) -> Iterator[tuple[Any, Any]]:
        """Each window, as a tag and a batch."""

    def take_in(self, hold: Hold, tag: Any, batch: Any) -> None:
        """One of those, or a part of it."""

    def add(self, batch: Any, times: Ints, hold: Hold) -> None:
        """Put records that are on time into their windows."""

    def release(self, frontier: Frontier, output: Output) -> None:
        """Send the windows that are complete."""


class _OpenWindow:
    """The records of fixed windows that end together, and when they are released."""

    __slots__ = ("batches", "capability", "rows")

    def __init__(self, capability: Capability) -> None:
        self.capability = capability
        self.batches: list[Any] = []
        self.rows: dict[Any, list[Any]] = {}


class _FixedWindows:
    """Tumbling and sliding windows."""

    def __init__(self, windows: Sliding, key: Any, time: Any) -> None:
        self._windows = windows
        self._key = key
        self._time = time
        self._open: dict[int, _OpenWindow] = {}
        self._ends: list[int] = []

    def add(self, batch: Any, times: Ints, hold: Hold) -> None:
        records, starts = self._windows.windows_of(times)
        order = np.argsort(starts, kind="stable")
        records, starts = records[order], starts[order]
        cuts = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1, append=starts[-1:] + 1))
        for first, after in pairwise(cuts.tolist()):
            end = int(starts[first]) + self._windows.size
            self._keep(self._ending(end, hold), take(batch, records[first:after]))

    def everything(self) -> Iterator[tuple[int, Any]]:
        for end, window in self._open.items():
            yield from ((end, records) for records in window.rows.values())
            yield from ((end, batch) for batch in window.batches)

    def take_in(self, hold: Hold, tag: int, batch: Any) -> None:
        self._keep(self._ending(tag, hold), batch)

    def _ending(self, end: int, hold: Hold) -> _OpenWindow:
        if end not in self._open:
            self._open[end] = _OpenWindow(hold(end))
            heapq.heappush(self._ends, end)
        return self._open[end]

    def _keep(self, window: _OpenWindow, part: Any) -> None:
        if type(part) is not list:
            window.batches.append(part)
            return
        key = self._key
        check_rows_key(key, part[0])
        for record in part:
            window.rows.setdefault(None if key is None else canonical_key(key(record)), []).append(
                record
            )

    def release(self, frontier: Frontier, output: Output) -> None:
        while self._ends:
            window = self._open[self._ends[0]]
            if frontier.less_than(window.capability.time):
                return
            end = heapq.heappop(self._ends)
            del self._open[end]
            with window.capability as capability:
                self._send(end, window, capability.time, output)

    def _send(self, end: int, window: _OpenWindow, at: Any, output: Output) -> None:
        start = end - self._windows.size
        if window.rows:
            output.push(at, [Window(key, start, end, rows) for key, rows in window.rows.items()])
        if window.batches:
            batch = kind_of(window.batches[0]).concat(window.batches)
            n_records = len(batch)
            starts, ends = np.full(n_records, start), np.full(n_records, end)
            output.push(at, with_bounds(batch, starts, ends, self._time))


class _OpenSession:
    """An open session: `[first, end)`."""

    __slots__ = ("capability", "end", "first", "key", "parts")

    def __init__(self, key: Any, first: int, end: int) -> None:
        self.key = key
        self.first = first
        self.end = end
        self.parts: list[Any] = []
        self.capability: Capability | None = None
        """None when it became part of another, or was released."""


class _SessionWindows:
    """Sessions, by key."""

    def __init__(self, windows: Sessions, key: Any, time: Any) -> None:
        self._gap = windows.gap
        self._key = key
        self._time = time
        self._open: dict[Any, list[_OpenSession]] = {}
        self._ends: list[tuple[int, int, _OpenSession]] = []
        self._numbers = count()

    def add(self, batch: Any, times: Ints, hold: Hold) -> None:
        groups = group_numbers(batch, self._key, "Window")
        order = np.lexsort((times, groups))
        times, groups = times[order], groups[order]
        is_cut = (np.diff(groups) != 0) | (np.diff(times) >= self._gap)
        cuts = [0, *(np.flatnonzero(is_cut) + 1).tolist(), len(times)]
        batch = take(batch, order)
        slice_ = kind_of(batch).slice
        for first, after in pairwise(cuts):
            key = key_at(batch, self._key, first)
            stretch = _OpenSession(key, int(times[first]), int(times[after - 1]) + self._gap)
            stretch.parts.append(slice_(batch, first, after))
            self._join(stretch, hold)

    def everything(self) -> Iterator[tuple[tuple[int, int], Any]]:
        for sessions in self._open.values():
            for session in sessions:
                yield from (((session.first, session.end), part) for part in session.parts)

    def take_in(self, hold: Hold, tag: tuple[int, int], batch: Any) -> None:
        key = key_at(batch, self._key, 0)
        for known in self._open.get(key, ()):
            if (known.first, known.end) == tag:
                known.parts.append(batch)
                return
        session = _OpenSession(key, *tag)
        session.parts.append(batch)
        session.capability = hold(session.end)
        self._open.setdefault(key, []).append(session)
        heapq.heappush(self._ends, (session.end, next(self._numbers), session))

    def _join(self, stretch: _OpenSession, hold: Hold) -> None:
        """Make one session of the stretch and those that it touches."""
        known = self._open.setdefault(stretch.key, [])
        touched = [s for s in known if s.first < stretch.end and stretch.first < s.end]
        known[:] = [s for s in known if s not in touched]
        last = max(touched, key=lambda s: s.end, default=stretch)
        if last.end > stretch.end or (last is not stretch and last.end == stretch.end):
            stretch.capability, last.capability = last.capability, None
            stretch.end = last.end
        else:
            stretch.capability = hold(stretch.end)
        for session in touched:
            stretch.first = min(stretch.first, session.first)
            stretch.parts += session.parts
            if session.capability is not None:
                session.capability.drop()
                session.capability = None
        known.append(stretch)
        heapq.heappush(self._ends, (stretch.end, next(self._numbers), stretch))

    def release(self, frontier: Frontier, output: Output) -> None:
        while self._ends:
            _, _, session = self._ends[0]
            if session.capability is None:
                heapq.heappop(self._ends)
            elif frontier.less_than(session.capability.time):
                return
            else:
                self._send(session.end, output)

    def _send(self, end: int, output: Output) -> None:
        """All sessions that end at `end`, in one batch."""
        done: list[_OpenSession] = []
        at = None
        while self._ends and self._ends[0][0] == end:
            _, _, session = heapq.heappop(self._ends)
            if session.capability is None:
                continue
            known = self._open[session.key]
            known.remove(session)
            if not known:
                del self._open[session.key]
            done.append(session)
        for session in done:
            assert session.capability is not None
            at = session.capability.time
        output.push(at, self._batch(done))
        for session in done:
            assert session.capability is not None
            session.capability.drop()
            session.capability = None

    def _batch(self, done: list[_OpenSession]) -> Any:
        wholes = [kind_of(s.parts[0]).concat(s.parts) for s in done]
        if type(wholes[0]) is list:
            return [
                Window(s.key, s.first, s.end, rows) for s, rows in zip(done, wholes, strict=True)
            ]
        sizes = [len(whole) for whole in wholes]
        starts = np.repeat(np.array([s.first for s in done], np.int64), sizes)
        ends = np.repeat(np.array([s.end for s in done], np.int64), sizes)
        return with_bounds(kind_of(wholes[0]).concat(wholes), starts, ends, self._time)


def _times(batch: Any, time: Any, now: int, name: str) -> Ints:
    if time is None:
        return np.full(kind_of(batch).length(batch), now, np.int64)
    return event_times(batch, time, name)


def _release_capability(
    at: InputCapability | Capability, clock: EventClock, lateness: int, end: int
) -> Capability:
    """The right to release a window that ends at `end`."""
    return at.delayed(clock.timestamp(end + lateness))


def _all_together(given: Any) -> Any:
    """One key for all: of a record 0, of a batch as many."""
    is_batch = isinstance(given, Arrays) or hasattr(given, "num_rows")
    return np.zeros(len(given), np.int64) if is_batch else 0


def _clock(stream: Stream[Any], clock: EventClock | None, name: str) -> EventClock:
    timestamp = stream.scope.timestamp
    if not timestamp.total:
        raise BuildError(
            f"operator {name!r} needs timestamps in one line, to say how far event time has come; "
            f"those of scope {stream.scope.name!r} are of {timestamp.name}: leave() it first"
        )
    if clock is None and timestamp != Int:
        raise BuildError(
            f"operator {name!r} needs a clock, which says what event times the timestamps of "
            f"{timestamp.name} stand for: give clock=EventClock(event_time, timestamp)"
        )
    return clock or IDENTITY_CLOCK
