"""A captured stream: how far its times have come, and its batches, one after the other.

What a stream is to an operator that reads it, written down: changes of the frontier,
and batches at times. Before the first event the frontier is the least time; a batch
comes at a time that the frontier allows then; with the frontier's last time the stream
ends. So the events are all that an operator downstream may know, and a dataflow fed
with them sees no difference.

Here are the events, and the plainest place to keep them. Files: `event_streams.py` and
`capture_files.py`. Sockets: `communication/event_sockets.py`.

Source: timely-dataflow `dataflow/operators/core/capture/event.rs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from pointstamp.errors import UsageError


class Progress(NamedTuple):
    """A change of the frontier: each (time, +1) entered it, each (time, -1) left it."""

    changes: list[tuple[Any, int]]


class Messages(NamedTuple):
    """A batch of records at a time."""

    time: Any
    batch: Any


Event = Progress | Messages


class CapturedPart(NamedTuple):
    """The part of a stream that one worker captures."""

    worker: int
    """The number of the worker."""
    peers: int
    """How many workers capture, each its own part."""
    times: str
    """The name of the type of the times."""


class EventWriter(Protocol):
    """Takes the events of one part; made by an `EventTarget`."""

    def push(self, event: Event) -> None:
        """Take the next event; after the last one the frontier is empty."""

    def has_room(self) -> bool:
        """Whether to push more now; if not, it will `wake` its opener."""

    def is_finished(self) -> bool:
        """Whether all, the end included, is where it should be. Raises what went wrong."""

    def close(self) -> None:
        """Let go of everything, finished or not. Closing twice is closing once."""


class EventTarget(Protocol):
    """Where a stream can be captured to."""

    def writer(self, part: CapturedPart, wake: Callable[[], None]) -> EventWriter:
        """Begin; `wake` may be called from any thread."""


class EventReader(Protocol):
    """Gives the events of one part; made by an `EventSource`."""

    def take(self) -> Event | None:
        """The next event, or None: not yet (`wake` is called when it is here), or the end."""

    def is_ended(self) -> bool:
        """Whether nothing more comes."""

    def close(self) -> None:
        """Let go of everything. Closing twice is closing once."""


class EventSource(Protocol):
    """Where one part of a stream can be replayed from."""

    def reader(self, times: str, wake: Callable[[], None]) -> EventReader:
        """Begin, for times of the type of that name; `wake` may be called from any thread."""


class Events:
    """The events of one part of a captured stream, in memory.

    A stream can be captured to it once, and replayed from it any number of times, also
    while it is being captured by this process. It can be pickled.

    >>> events = Events([Messages(0, ["a"]), Progress([(0, -1)])])
    >>> len(events), events.is_complete
    (2, True)
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._n_open = 1
        self._watchers: list[Callable[[], None]] = []
        given: Any = events  # of any type, until it is looked at
        if not isinstance(given, Iterable):
            raise UsageError(f"Events is given an iterable of events, and not {given!r:.200}")
        for event in events:
            self.push(event)

    @property
    def is_complete(self) -> bool:
        """Whether the frontier is empty: the stream ended, and nothing more comes."""
        return self._n_open == 0

    def push(self, event: Event) -> None:
        """Append an event."""
        self._n_open += net(event)
        self._events.append(event)
        for wake in self._watchers:
            wake()

    def has_room(self) -> bool:
        """True: as much as memory holds."""
        return True

    def is_finished(self) -> bool:
        """Whether the stream has ended."""
        return self.is_complete

    def close(self) -> None:
        """Nothing to let go of."""

    def writer(self, part: CapturedPart, wake: Callable[[], None]) -> EventWriter:
        """Itself."""
        return self

    def reader(self, times: str, wake: Callable[[], None]) -> EventReader:
        """Reads from the first event on."""
        if not self.is_complete:
            self._watchers.append(wake)
        return _EventsReader(self, wake)

    def let_go(self, wake: Callable[[], None]) -> None:
        """Wake no more, if it was to be woken."""
        if wake in self._watchers:
            self._watchers.remove(wake)

    def __getitem__(self, index: int) -> Event:
        return self._events[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Events, (self._events,))

    def __repr__(self) -> str:
        return f"Events({len(self)} events{'' if self.is_complete else ', not ended'})"


class _EventsReader:
    """Goes through an `Events` that may still grow."""

    def __init__(self, events: Events, wake: Callable[[], None]) -> None:
        self._events = events
        self._wake = wake
        self._place = 0

    def take(self) -> Event | None:
        if self._place == len(self._events):
            return None
        self._place += 1
        return self._events[self._place - 1]

    def is_ended(self) -> bool:
        return self._events.is_complete and self._place == len(self._events)

    def close(self) -> None:
        self._events.let_go(self._wake)


class IterableReader:
    """Goes through any iterable of events, which ends where it ends."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._remaining = iter(events)
        self._is_ended = False

    def take(self) -> Event | None:
        """The next one; waits for as long as the iterable does."""
        for event in self._remaining:
            return event
        self._is_ended = True
        return None

    def is_ended(self) -> bool:
        """Whether the iterable is exhausted."""
        return self._is_ended

    def close(self) -> None:
        """Let go of the iterable."""
        self._is_ended = True
        self._remaining = iter(())


def net(event: Event) -> int:
    """How many more times the frontier has after `event`; it began with one."""
    return sum(change for _, change in event.changes) if isinstance(event, Progress) else 0
