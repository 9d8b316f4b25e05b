"""Clocks of a service: what a program sets, and what goes by itself.

A value of a clock is a row of a collection of one column, and is staged, committed and logged as
one. So it has an epoch of the sequence that all collections go by, and a service that begins again
reads what the clock was from its log, and not from the wall.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pointstamp.collections.clock_input import ClockInput
from pointstamp.collections.schema import Schema
from pointstamp.containers.words import DAY_US, DateType
from pointstamp.errors import InputError, PointstampError, StoppedError, UsageError, WorkerError
from pointstamp.service.changes_columns import to_columns

if TYPE_CHECKING:
    from pointstamp.service.collection_handles import CollectionFeeds


class ClockFeed:
    """A clock of a service; `service.advance()` commits what it is set to.

    One with `every=` goes by itself. Any thread may use it.
    """

    def __init__(self, feeds: CollectionFeeds, name: str, declared: ClockInput) -> None:
        self._feeds = feeds
        self._last: int | None = None
        self._lock = threading.Lock()
        self.name = name
        self.declared = declared

    def set(self, value: Any) -> None:
        """Move the clock to `value`, with the next epoch.

        Of several programs that set it, the greatest value counts.

        Raises
        ------
        DataError
            If it is no value of the clock's type.
        InputError
            If it is before a value that was set here.
        UsageError
            If the clock goes by itself.
        StoppedError
            If the service has stopped.
        """
        if self.declared.every is not None:
            raise UsageError(
                f"the clock {self.name!r} goes by itself, every {self.declared.every}, and cannot "
                "be set; declare it without every= to set it"
            )
        kind = self.declared.word_type
        word = kind.to_word(value)
        with self._lock:
            if self._last is not None and word < self._last:
                raise InputError(
                    f"the clock {self.name!r} is at {kind.to_value(self._last)} and cannot go "
                    f"back to {value}"
                )
            self._feeds.hold(self.name, clock_row(self.declared.schema, word))
            self._last = word

    def __repr__(self) -> str:
        return f"ClockFeed({self.name!r}, {self.declared})"


class ClockTicker:
    """Commits the wall time of the clocks that go by themselves, each as often as it says.

    It runs in the program that has the service, and ends with it. A tick that cannot be decided
    now is left out: the next one says more.
    """

    def __init__(self, feeds: CollectionFeeds, clocks: Mapping[str, ClockInput]) -> None:
        self._periods = {
            name: declared.every.total_seconds()
            for name, declared in clocks.items()
            if declared.every is not None
        }
        self._clocks = clocks
        is_ending = self._is_ending = threading.Event()
        # The thread must not keep alive a service that is let go of, and ends with it.
        self._feeds = weakref.ref(feeds, lambda _: is_ending.set())
        self._thread = threading.Thread(target=self._run, name="pointstamp-clock", daemon=True)

    def start(self) -> None:
        """Begin, if there is such a clock; the first values are committed at once."""
        if self._periods:
            self._thread.start()

    def stop(self) -> None:
        """End, and wait for it. Again does nothing."""
        self._is_ending.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        due = dict.fromkeys(self._periods, time.monotonic())
        while not self._is_ending.wait(max(0.0, min(due.values()) - time.monotonic())):
            now = time.monotonic()
            names = [name for name, at in due.items() if at <= now]
            if not self._tick(names):
                return
            for name in names:
                # Ticks that were missed are not made up for.
                period = self._periods[name]
                due[name] += period * max(1, (time.monotonic() - due[name]) // period)

    def _tick(self, names: list[str]) -> bool:
        """Commit the wall time of some clocks; whether to go on."""
        feeds = self._feeds()
        if feeds is None:
            return False
        now = wall_time_us()
        rows = {
            name: clock_row(declared.schema, _word(declared, now))
            for name, declared in self._clocks.items()
            if name in names
        }
        try:
            return feeds.tick(rows)
        except (StoppedError, WorkerError):
            return False
        except PointstampError:
            # Workers are started again, or the folder does not answer: as for any commit.
            return not feeds.service.is_over


def wall_time_us() -> int:
    """Microseconds since 1970, in UTC."""
    return time.time_ns() // 1_000


def clock_row(schema: Schema, word: int) -> pa.RecordBatch:
    """A value of a clock as columns of changes."""
    return to_columns(schema, np.array([[word, 1]], np.int64))


def _word(declared: ClockInput, now_us: int) -> int:
    return now_us // DAY_US if isinstance(declared.word_type, DateType) else now_us
