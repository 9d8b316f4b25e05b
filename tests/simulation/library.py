"""Operators of the library, as parts of random dataflows.

Each takes streams of records to as many, in a way that depends on nothing but the
records and their times: so a dataflow with them can be steady. No record comes out
with more lives than one that went in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pointstamp.operators.window_assigners as windows
from pointstamp.operators.stream import Stream
from pointstamp.progress.timestamp import Int, Timestamp
from tests.simulation.behaviour import later
from tests.simulation.plans import LIBRARY, N_GROUPS, Record


def make(kind: str, timestamp: Timestamp, streams: Sequence[Stream[Any]]) -> list[Stream[Any]]:
    """The streams that a part of the library makes of others; `kind` is a key of `LIBRARY`."""
    made = _MAKERS[kind](timestamp, *streams)
    assert len(made) == LIBRARY[kind][1]
    return made


def _group(record: Record) -> int:
    return record[0] % N_GROUPS


def _delay(timestamp: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    return [stream.delay(lambda record, time: later(timestamp, time, lambda: record[0] % 3))]


def _delay_batch(timestamp: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    return [stream.delay_batch(lambda time: later(timestamp, time, lambda: 1))]


def _partition(_: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    return stream.partition(2, lambda record: record[0] % 2)


def _branch_when(timestamp: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    second = later(timestamp, timestamp.minimum, lambda: 1)
    return [*stream.branch_when(lambda time: timestamp.less_equal(second, time))]


@dataclass(frozen=True)
class _Sum:
    """Of some records: how many, of which sum, and the most lives."""

    n: int = 0
    total: int = 0
    lives: int = 0

    def plus(self, record: Record) -> _Sum:
        number, lives = record
        return _Sum(self.n + 1, self.total + number, max(self.lives, lives))

    def record(self) -> list[Record]:
        return [((self.total * 31 + self.n) % 1009, self.lives - 1)] if self.lives else []


def _aggregate(_: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    sums = stream.aggregate(
        lambda key, record, sum: sum.plus(record), lambda key, sum: sum, _group, _Sum()
    )
    return [sums.flat_map(_Sum.record)]


def _accumulate(_: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    def add(sum: _Sum, batch: list[Record]) -> _Sum:
        for record in batch:
            sum = sum.plus(record)
        return sum

    sums = stream.exchange(lambda record: 0).accumulate(_Sum(), add)
    return [sums.flat_map(_Sum.record)]


def _state_machine(timestamp: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    """Each number once, when it is first seen; where times are in no line, always.

    Which of two times comes first is up to the schedule there, if neither is less.
    """

    def first(number: int, record: Record, state: Any) -> tuple[bool, list[Record]]:
        return True, [] if state and timestamp.total else [(number, 0)]

    return [stream.state_machine(first, lambda record: record[0], default=False)]


def _join(_: Timestamp, left: Stream[Any], right: Stream[Any]) -> list[Stream[Any]]:
    def meet(pair: tuple[Record, Record]) -> list[Record]:
        (one, some), (other, more) = pair
        lives = min(some, more) - 1
        # Pairs are many: most are let go, or a loop would square them each time around.
        return [((one + other) % 1009, lives)] if lives > 0 and (one ^ other) % 4 == 0 else []

    return [left.join(right, _group).flat_map(meet)]


def _window(timestamp: Timestamp, stream: Stream[Any]) -> list[Stream[Any]]:
    if timestamp != Int:
        return _aggregate(timestamp, stream)  # windows are of integers
    held, _ = stream.window(windows.Tumbling(2), key=_group)
    return [held.flat_map(_of_window)]


def _of_window(window: Any) -> list[Record]:
    sum = _Sum()
    for record in window.records:
        sum = sum.plus(record)
    return sum.record()


_MAKERS: dict[str, Callable[..., list[Stream[Any]]]] = {
    "delay": _delay,
    "delay batch": _delay_batch,
    "partition": _partition,
    "branch when": _branch_when,
    "aggregate": _aggregate,
    "accumulate": _accumulate,
    "state machine": _state_machine,
    "join": _join,
    "window": _window,
}
