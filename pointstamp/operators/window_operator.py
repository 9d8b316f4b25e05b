"""The operator of windows: event-time windows, released when the event clock has passed them.

What the times mean, and which records are late, is said in `event_clock.py`. This file gives
windows (`window_state.py`) their capability: one for each worker, at the time at which the first of
them will be released, or, where that is not known, at the least time that may still come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pointstamp.containers import kind_of
from pointstamp.containers.event_times import EventTimes, Ints
from pointstamp.containers.registry import n_records, one_key
from pointstamp.dataflow.capability import Capability, InputCapability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.pact import Broadcast, Exchange
from pointstamp.dataflow.stash import Stash
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError
from pointstamp.operators.event_clock import (
    IDENTITY_CLOCK,
    EventClock,
    NumberedClock,
    TimestampClock,
    Watermark,
    largest_event_times,
)
from pointstamp.operators.window_assigners import Sessions, Sliding, Span, check_lateness
from pointstamp.operators.window_functions import Join, WindowFunction
from pointstamp.operators.window_state import OpenWindows, open_windows
from pointstamp.progress.operate import Interest
from pointstamp.progress.timestamp import Int, Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream


@dataclass(frozen=True)
class Side:
    """One of the streams that windows are made of.

    Attributes
    ----------
    time : callable, str, pyarrow.compute.Expression or None
        Of event times; None: the timestamp.
    key : callable, str, sequence of str or None
        Of records that are together.
    """

    stream: StreamCore[Any]
    time: Any
    key: Any


def windowed(
    sides: list[Side],
    windows: Sliding | Sessions,
    lateness: Span,
    clock: TimestampClock | EventClock | None,
    function: WindowFunction,
    name: str,
) -> tuple[Stream[Any], list[Stream[Any]]]:
    """What a window function makes of the windows; and the late records of each side."""
    check_windows(windows, name)
    number = check_lateness(lateness, windows)
    timestamp = sides[0].stream.scope.timestamp
    clock = _checked_clock(sides, windows, clock, name)
    builder = OperatorBuilder(sides[0].stream.scope, name)
    by_records = isinstance(clock, EventClock)
    # Of a clock by timestamps only the kind: functions are not the same in every process.
    named = clock if by_records else type(clock).__name__
    builder.declare(windows=windows, lateness=lateness, clock=named)
    for side in sides:
        pact = Exchange(side.key if side.key is not None else one_key)
        builder.new_input(
            side.stream, pact, Interest.ALWAYS if by_records else Interest.IF_CAPABILITY
        )
    readers = [_reader(side, windows, name) for side in sides]
    if by_records:
        for side in sides:
            clock_name = f"{name}Clock"
            largest = largest_event_times(side.stream, _reader(side, windows, name), clock_name)
            builder.new_input(largest, Broadcast(), Interest.ALWAYS)
    # What is restored is released later, for which there must be a capability.
    is_durable = builder.states.durable_state is not None
    run = sides[0].stream.scope.environment.run_epochs
    goes_on = run is not None and run.commits_later
    results: Stream[Any] = builder.new_output(initial=is_durable)
    late: list[Stream[Any]] = [builder.new_output(initial=False) for _ in sides]

    def make_logic(
        capabilities: list[Capability], info: OperatorInfo
    ) -> Callable[[list[Input], list[Output]], None]:
        if isinstance(function, Join):
            function.begin(info)
        state = open_windows(windows, [side.key for side in sides], function)
        if is_durable:
            _declare(state, info, sides, windows, readers, function)
        logic: _ByTimestamps | _ByRecords
        if isinstance(clock, EventClock):
            logic = _ByRecords(state, readers, number, clock, function, info, timestamp, goes_on)
        else:
            numbered = NumberedClock(clock, name, is_calendar=windows.is_calendar)
            logic = _ByTimestamps(state, readers, number, numbered, function, timestamp)
        if capabilities:
            with capabilities.pop() as first:
                logic.begin(first)
        return logic.run

    builder.build(make_logic)
    return results, late


_LAST = 2**63 - 1
"""No window ends later."""


class _ByTimestamps:
    """Releases windows at the timestamps that stand for their ends."""

    def __init__(
        self,
        state: OpenWindows,
        readers: list[EventTimes],
        lateness: int,
        clock: NumberedClock,
        function: WindowFunction,
        timestamp: Timestamp,
    ) -> None:
        self._state = state
        self._readers = readers
        self._lateness = lateness
        self._clock = clock
        self._function = function
        self._timestamp = timestamp
        self._capability: Capability | None = None
        """For when the first window is released."""

    def begin(self, first: Capability) -> None:
        """Take on what was restored."""
        self._clock.event_time(first.time)
        self._hold(first)

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        for side, input_ in enumerate(inputs):
            reader = self._readers[side]
            for at, batch in input_:
                now = self._clock.event_time(at.time)
                if reader.time is None:
                    times = reader.of_clock(self._clock.kind, now, n_records(batch))
                else:
                    times = reader.read(batch)
                batch, times, late = _split(batch, times, now - self._lateness)
                if late is not None:
                    outputs[1 + side].push(at.time, late)
                if len(times):
                    self._state.add(side, batch, times)
                    self._hold(at)
        self._release(inputs, outputs[0])

    def _hold(self, given: InputCapability | Capability) -> None:
        """Have a capability for when the first window is released, from one for now."""
        end = self._state.least_end()
        if end is None:
            return
        wanted = self._clock.timestamp(end + self._lateness)
        held = self._capability
        if held is None or not self._timestamp.less_equal(held.time, wanted):
            self._capability = given.delayed(wanted)
            if held is not None:
                held.drop()

    def _release(self, inputs: list[Input], output: Output) -> None:
        """Send the windows that are complete."""
        while (held := self._capability) is not None:
            end = self._state.least_end()
            if end is None:
                held.drop()
                self._capability = None
                return
            # Later than what is held, where the first window was sent or has grown.
            held.downgrade(self._clock.timestamp(end + self._lateness))
            if any(input_.frontier.less_than(held.time) for input_ in inputs):
                return
            _send(self._state, end, self._function, self._readers, output, held.time)


class _ByRecords:
    """Releases windows at the epochs whose records moved the clock past their ends."""

    def __init__(
        self,
        state: OpenWindows,
        readers: list[EventTimes],
        lateness: int,
        clock: EventClock,
        function: WindowFunction,
        info: OperatorInfo,
        timestamp: Timestamp,
        goes_on: bool,
    ) -> None:
        idle_s = None if clock.idle_after is None else clock.idle_after.total_seconds()
        self._state = state
        self._readers = readers
        self._lateness = lateness
        self._watermark = Watermark(len(readers), idle_s)
        self._function = function
        self._info = info
        self._timestamp = timestamp
        self._goes_on = goes_on
        """Whether windows that are open at the end of input are the next run's."""
        self._now = info.environment.clock
        self._epochs: Stash[_Epoch] = Stash(info, _Epoch, n_outputs=1 + len(readers))
        self._capability: Capability | None = None
        """While windows are open, for the least time that may still come."""
        self._timer_at: float | None = None

    def begin(self, first: Capability) -> None:
        """Take on what was restored."""
        if self._state.least_end() is not None:
            self._capability = first.delayed(first.time)

    def run(self, inputs: list[Input], outputs: list[Output]) -> None:
        """One activation."""
        n_sides = len(self._readers)
        for number, input_ in enumerate(inputs):
            for at, batch in input_:
                epoch = self._epochs.at(at)
                (epoch.batches if number < n_sides else epoch.largest).append(
                    (number % n_sides, batch)
                )
        for capabilities, epoch in self._epochs.by_output():
            self._complete(epoch, capabilities, outputs)
        self._follow(inputs, outputs[0])

    def _complete(
        self, epoch: _Epoch, capabilities: list[Capability], outputs: list[Output]
    ) -> None:
        """All records of an epoch are here: sort out those that are late, and move the clock."""
        now_s, time = self._now(), capabilities[0].time
        mark = self._watermark.value(now_s)
        for side, batch in epoch.batches:
            times = self._readers[side].read(batch)
            late = None
            if mark is not None:
                batch, times, late = _split(batch, times, mark - self._lateness)
            if late is not None:
                outputs[1 + side].push(time, late)
            if len(times):
                self._state.add(side, batch, times)
        for side, found in epoch.largest:
            self._watermark.advance(side, max(found), now_s)
        self._release(now_s, outputs[0], time)
        if self._capability is not None:
            # What is open has records of this epoch, so it is not sent at an earlier one.
            self._capability.downgrade(time)
        elif self._state.least_end() is not None:
            self._capability = capabilities[0].delayed(time)

    def _release(self, now_s: float, output: Output, time: Any) -> None:
        """Send the windows that the clock has passed."""
        mark = self._watermark.value(now_s)
        if mark is not None:
            self._send_by(mark - self._lateness, output, time)

    def _send_by(self, last: int, output: Output, time: Any) -> None:
        """Send all that end by then."""
        while (end := self._state.least_end()) is not None and end <= last:
            _send(self._state, last, self._function, self._readers, output, time)

    def _follow(self, inputs: list[Input], output: Output) -> None:
        """Hold no more than the least time that may come, and follow the system's clock."""
        held = self._capability
        if held is None:
            return
        to_come = [time for input_ in inputs for time in input_.frontier.elements]
        if to_come:
            held.downgrade(min(to_come, key=self._timestamp.key))
            now_s = self._now()
            self._release(now_s, output, held.time)
        elif self._goes_on:
            # The snapshot of the end has them.
            held.drop()
            self._capability = None
            return
        else:
            self._send_by(_LAST, output, held.time)
        if self._state.least_end() is None:
            held.drop()
            self._capability = None
        elif to_come:
            self._wait(now_s)

    def _wait(self, now_s: float) -> None:
        """Have the operator run when the system's clock reaches the first window's end."""
        end = self._state.least_end()
        assert end is not None
        seconds = self._watermark.seconds_until(end + self._lateness, now_s)
        if self._timer_at is not None and self._timer_at <= now_s:
            self._timer_at = None
        if seconds is not None and (self._timer_at is None or now_s + seconds < self._timer_at):
            self._timer_at = now_s + seconds
            self._info.activate_after(seconds)


@dataclass
class _Epoch:
    """What has come of an epoch that is not complete."""

    batches: list[tuple[int, Any]] = field(default_factory=list)
    """(side, batch) of the records."""
    largest: list[tuple[int, list[int]]] = field(default_factory=list)
    """(side, largest event times)."""


def _split(batch: Any, times: Ints, least: int) -> tuple[Any, Ints, Any]:
    """The records that are on time, their times, and the late ones or None."""
    is_late = times < least
    if not is_late.any():
        return batch, times, None
    kind = kind_of(batch)
    on_time = np.flatnonzero(~is_late)
    late = kind.take(batch, np.flatnonzero(is_late))
    return kind.take(batch, on_time), times[on_time], late


def _send(
    state: OpenWindows,
    last: int,
    function: WindowFunction,
    readers: list[EventTimes],
    output: Output,
    time: Any,
) -> None:
    """Send the windows that end by `last`, or as many as go together."""
    panes = state.pop(last)
    reader = next((reader for reader in readers if reader.kind is not None), readers[0])
    found = function.finish(panes, reader)
    if found is not None and n_records(found):
        output.push(time, found)


def _declare(
    state: OpenWindows,
    info: OperatorInfo,
    sides: list[Side],
    windows: Sliding | Sessions,
    readers: list[EventTimes],
    function: WindowFunction,
) -> None:
    """Have windows that are open outlast the program."""
    # Here and not above: few dataflows are durable.
    from pointstamp.checkpoint.keyed_state import KeyedBatches, by_key, names_in

    # A snapshot is of the same in the same windows; by another lateness, or clock, they go on.
    of_sides = "; ".join(
        f"{names_in(side.time) or 'a time'} by {names_in(side.key) or 'a key'}" for side in sides
    )

    hashes = [
        by_key(one_key if side.key is None else function.stored_key(number, side.key))
        for number, side in enumerate(sides)
    ]

    def restore(tag: tuple[Any, Any], part: Any) -> None:
        of, kinds = tag
        for reader, kind in zip(readers, kinds, strict=True):
            if kind is not None:
                reader.expect(kind)
        state.restore(of, part)

    table = KeyedBatches(
        lambda: (((of, [r.kind for r in readers]), part) for of, part in state.stored()),
        restore,
        lambda tag, part: hashes[tag[0][0]](tag, part),
        what=f"{function.stored} in {windows!r} of {of_sides}",
    )
    info.states.keep("windows", table)


def _reader(side: Side, windows: Sliding | Sessions, name: str) -> EventTimes:
    return EventTimes(
        side.time,
        name,
        is_calendar=windows.is_calendar,
        resolution=windows.resolution,
        outermost=windows.outermost,
    )


def check_windows(windows: Any, name: str) -> None:
    """Raise unless these are windows.

    Raises
    ------
    BuildError
    """
    if not isinstance(windows, (Sliding, Sessions)):
        raise BuildError(
            f"operator {name!r} needs windows such as ps.Tumbling(10), ps.Sliding(10, 5) or "
            f"ps.Sessions(10); found {windows!r}"
        )


def _checked_clock(
    sides: list[Side],
    windows: Sliding | Sessions,
    clock: TimestampClock | EventClock | None,
    name: str,
) -> TimestampClock | EventClock:
    """The clock, where the timestamps and the windows fit it."""
    if clock is not None and not isinstance(clock, (TimestampClock, EventClock)):
        raise BuildError(
            f"operator {name!r} needs a clock such as ps.EventClock() or "
            f"ps.TimestampClock(event_time, timestamp), or None; found {clock!r}"
        )
    scope = sides[0].stream.scope
    timestamp = scope.timestamp
    if not timestamp.total:
        raise BuildError(
            f"operator {name!r} needs timestamps in one line, to say how far event time has come; "
            f"those of scope {scope.name!r} are of {timestamp.name}: leave() it first"
        )
    if clock is None and windows.is_calendar and all(side.time is not None for side in sides):
        return EventClock()
    if clock is None and (timestamp != Int or windows.is_calendar):
        raise BuildError(
            f"operator {name!r} needs a clock, which says what event times the timestamps of "
            f"{timestamp.name} stand for: give clock=TimestampClock(event_time, timestamp)"
        )
    if isinstance(clock, EventClock):
        if any(side.time is None for side in sides):
            raise BuildError(
                f"operator {name!r} has a clock that records advance, and takes event times from "
                "timestamps: say what the time of a record is, as time=lambda record: ..."
            )
        if clock.idle_after is not None and not windows.is_calendar:
            raise BuildError(
                f"operator {name!r} cannot have the system's clock advance event times that are "
                f"integers, whose unit is not known: give windows of timedelta, not {windows!r}"
            )
    return clock or IDENTITY_CLOCK
