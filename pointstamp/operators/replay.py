"""A captured stream, again: the same batches at the same times, and no time complete too soon.

A worker replays any number of captured parts, none included. Each begins with a
capability for the least time, as the capture began with that frontier; events that come
to the frontier and leave it are capabilities made and dropped. So n parts that were
captured can be replayed by m workers, each of which takes some.

Source: timely-dataflow `dataflow/operators/core/capture/replay.rs`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial as partial_call
from typing import TYPE_CHECKING, Any

from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.durability import NOT_REPLAYED
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorBuilder, OperatorInfo
from pointstamp.dataflow.scope_core import ScopeCore
from pointstamp.errors import EventError, TruncatedError, UsageError
from pointstamp.formats.events import (
    Event,
    EventReader,
    IterableReader,
    Messages,
    Progress,
)
from pointstamp.progress.antichain import MutableAntichain
from pointstamp.progress.timestamp import Timestamp

if TYPE_CHECKING:
    from pointstamp.operators.stream import Stream

Wake = Callable[[], None]
Open = Callable[[Wake], EventReader]


class _Part:
    """One captured part, and the capabilities that its frontier is."""

    def __init__(self, reader: EventReader, least: Capability, timestamp: Timestamp) -> None:
        self._reader = reader
        self._timestamp = timestamp
        self._held: dict[Any, list[Any]] = {least.time: [least, 1]}
        """By time: a capability, and how many times the events count it."""
        self._last: Capability | None = None
        """When the frontier is empty: held until the reader has seen its end too."""

    def go_on(self, output: Output) -> bool:
        """Replay up to the next batch; whether there may be more at once."""
        while self._held or self._last is not None:
            event = self._reader.take()
            if event is None:
                if self._reader.is_ended():
                    self._finish()
                return False
            if self._last is not None:
                raise EventError(
                    f"a captured stream goes on after its frontier was empty, with {event!r:.200}"
                )
            if isinstance(event, Progress):
                self._move(event.changes)
            elif isinstance(event, Messages):
                self._send(event, output)
                return True
            else:
                raise EventError(
                    f"a captured stream has {event!r:.200} ({type(event).__name__}) among its "
                    "events, which are ps.Progress and ps.Messages"
                )
        return False

    def _move(self, changes: list[tuple[Any, int]]) -> None:
        for time, change in sorted(changes, key=lambda item: -item[1]):
            time = self._timestamp.check(time)
            if time not in self._held:
                if change < 0:
                    raise EventError(
                        f"a time leaves the frontier of a captured stream that is not there: "
                        f"{time}; there are {list(self._held)}"
                    )
                self._held[time] = [self._before(time).delayed(time), 0]
            self._held[time][1] += change
            if self._held[time][1] <= 0:
                capability, _ = self._held.pop(time)
                if self._held:
                    capability.drop()
                else:
                    self._last = capability

    def _finish(self) -> None:
        if self._last is None:
            raise TruncatedError(
                "the events of a captured stream end, and its frontier is still at "
                f"{list(self._held)}: the capture did not end"
            )
        self._last.drop()
        self._last = None
        self._reader.close()

    def _send(self, event: Messages, output: Output) -> None:
        time = self._timestamp.check(event.time)
        self._before(time)
        output.push(time, event.batch)

    def _before(self, time: Any) -> Capability:
        """What allows to send at `time`."""
        for known, (capability, _) in self._held.items():
            if self._timestamp.less_equal(known, time):
                found: Capability = capability
                return found
        raise EventError(
            f"the events of a captured stream contradict each other: something comes at {time}, "
            f"and the frontier is at {list(self._held)}"
        )


class _CompleteOnly:
    """Of a reader's events those of times that are complete in every part.

    Parameters
    ----------
    reader : EventReader
        Of a part which may be cut off.
    limit : MutableAntichain
        Times at or after this frontier are left out.
    """

    def __init__(self, reader: EventReader, limit: MutableAntichain, timestamp: Timestamp) -> None:
        self._reader = reader
        self._limit = limit
        self._timestamp = timestamp
        self._open = {timestamp.minimum: 1}
        self._is_ended = False

    def take(self) -> Event | None:
        """The next one; at the end, what makes the frontier empty."""
        while not self._is_ended:
            try:
                event = self._reader.take()
            except TruncatedError:
                event = None
            if event is None:
                self._is_ended = True
                rest = [(time, -count) for time, count in self._open.items() if count]
                return Progress(rest) if rest else None
            if isinstance(event, Progress):
                for time, change in event.changes:
                    self._open[time] = self._open.get(time, 0) + change
                return event
            if not self._limit.less_equal(event.time):
                return event
        return None

    def is_ended(self) -> bool:
        """Whether all was given."""
        return self._is_ended

    def close(self) -> None:
        """Let go of what is read."""
        self._reader.close()


def _opens(scope: ScopeCore[Any], sources: Any, partial: bool) -> list[Open]:
    """What opens each part that this worker replays."""
    if isinstance(sources, (str, os.PathLike)):
        from pointstamp.formats.capture_files import captured_files

        files = captured_files(sources)
        mine = files[scope.index :: scope.peers]
        limit = _limit(files, scope.timestamp) if partial else None
        return [_open_file(file, scope.timestamp, limit) for file in mine]
    if partial:
        raise UsageError("partial=True is for files: give the path of what was captured")
    given = [sources] if hasattr(sources, "reader") else sources
    if not isinstance(given, Iterable):
        raise UsageError(
            "a stream can be replayed from the path of what was captured, or from a list of "
            f"Events, Accept, Connect or iterables of events; found {sources!r}"
        )
    return list(_opens_of(given, scope.timestamp))


def _opens_of(sources: Iterable[Any], timestamp: Timestamp) -> Iterator[Open]:
    for source in sources:
        if isinstance(source, (str, os.PathLike)):
            from pointstamp.formats.capture_files import CaptureFile

            yield _open_file(CaptureFile(source), timestamp, None)
        elif hasattr(source, "reader"):
            yield partial_call(source.reader, timestamp.name)
        elif isinstance(source, Iterable):
            yield partial_call(_open_iterable, source)
        else:
            raise UsageError(
                f"a part of a captured stream is a file, Events, Accept, Connect or an iterable of "
                f"events; found {source!r}"
            )


def _open_file(file: Any, timestamp: Timestamp, limit: MutableAntichain | None) -> Open:
    def open_(wake: Wake) -> EventReader:
        reader: EventReader = file.reader(timestamp.name, wake)
        return reader if limit is None else _CompleteOnly(reader, limit, timestamp)

    return open_


def _open_iterable(events: Iterable[Event], wake: Wake) -> EventReader:
    return IterableReader(events)


def _limit(files: Iterable[Any], timestamp: Timestamp) -> MutableAntichain:
    """The least times that are not complete in one of the parts."""
    from pointstamp.formats.capture_files import frontier_at_end

    limit = MutableAntichain(timestamp)
    for file in files:
        changes = frontier_at_end(file)
        if changes is not None:
            for time, change in [(timestamp.minimum, 1), *changes]:
                limit.change(time, change)
    return limit


class ReplayMethods(ScopeCore["Stream[Any]"]):
    """Replaying captured streams. Methods of `Scope`."""

    def replay(self, sources: Any, *, partial: bool = False, name: str = "Replay") -> Stream[Any]:
        """Replay a captured stream: its batches at their times, and its progress.

        As many workers as one likes can replay what others captured: each part is
        replayed by one of them, and a time is complete when it is so in all parts.

        Parameters
        ----------
        sources : path, or sequence of Events, Connect, Accept or iterables of events
            A path is that of the folder (or of one file) that was captured to, the same
            on all workers, which share its files. Else every worker gives its own.
        partial : bool
            Of files of a capture that was interrupted, or goes on: replay the times that
            are complete in all of them, and leave out the others. Without it they are an
            error, where they end.

        Raises
        ------
        TruncatedError
            When it comes to where a file was cut off; says which, and at which byte.
            A file that is still written to ends where it ends just then.
        FileFormatError
            For files that are no capture, or damaged, or not all there.
        PeerLostError
            When a connection ends before its stream.
        EventError
            When events contradict each other.

        >>> import pointstamp as ps
        >>> events = [ps.Messages(0, ["a"]), ps.Progress([(5, 1), (0, -1)]),
        ...           ps.Messages(7, ["b"]), ps.Progress([(5, -1)])]
        >>> ps.testing.collect(lambda scope: scope.replay([events]))
        [(0, 'a'), (7, 'b')]
        """
        opens = _opens(self, sources, partial)
        builder = OperatorBuilder(self, name)
        builder.states.refuse(NOT_REPLAYED)
        stream = builder.new_output()

        def make_logic(
            capabilities: list[Capability], info: OperatorInfo
        ) -> Callable[[list[Input], list[Output]], bool]:
            environment = self.environment
            wake = partial_call(environment.call, info.activate)
            parts = []
            with capabilities.pop() as least:
                for open_ in opens:
                    reader = open_(wake)
                    held = least.delayed(least.time)
                    environment.closers.callback(reader.close)
                    parts.append(_Part(reader, held, self.timestamp))

            def logic(inputs: list[Input], outputs: list[Output]) -> bool:
                # A batch of each part per activation, so that what it sets off goes on meanwhile.
                more = [part.go_on(outputs[0]) for part in parts]
                return any(more)

            return logic

        builder.build(make_logic)
        return stream
