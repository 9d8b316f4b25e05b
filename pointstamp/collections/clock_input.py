"""Clocks: inputs with one value that never decreases, beside those of collections.

Which records are there may depend on what time it is (`Collection.temporal_filter`). That time
is an input as others are, with a value at each epoch: a program that runs again gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointstamp.containers.words import DateType, TimestampType, WordType, type_named
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import InputError, SchemaError
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle


@dataclass(frozen=True)
class ClockInput:
    """Declares a clock as an input of a `View`; `view.advance(name=value)` sets it.

    type : "timestamp", "timestamp_utc", "date", or a signed integer such as "long"

    Raises
    ------
    SchemaError
        For another type.
    """

    type: str = "timestamp"

    def __post_init__(self) -> None:
        clock_type(self.type)


class Clock:
    """One value that never decreases, as operators of a dataflow read it.

    Made by `Scope.new_clock`. It has no value at first.
    """

    def __init__(self, words: StreamCore[Any], kind: WordType, name: str) -> None:
        self.words = words
        self.type = kind
        self.name = name

    def __repr__(self) -> str:
        return f"Clock({self.name!r}, {self.type.name})"


class ClockHandle:
    """Sets a clock at the current time of its input, and advances that.

    Every worker has one, and all must advance or close theirs. The clock is at the greatest value
    that one of them has set.
    """

    def __init__(self, handle: InputHandle, kind: WordType) -> None:
        self._handle = handle
        self._type = kind
        self._now: int | None = None

    @property
    def time(self) -> Any:
        """The time at which the clock is set now."""
        return self._handle.time

    def set(self, value: Any) -> None:
        """Move the clock to `value`, at the current time.

        Raises
        ------
        DataError
            If it is no value of the clock's type.
        InputError
            If it is before the value of the clock, which this one has set.
        """
        self.set_word(self.word(value))

    def word(self, value: Any) -> int:
        """The word of a value that it may be set to; raises as `set` does."""
        word = self._type.to_word(value)
        if self._now is not None and word < self._now:
            raise InputError(
                f"the clock {self._handle.name!r} is at {self._type.to_value(self._now)} and "
                f"cannot go back to {value}"
            )
        return word

    def set_word(self, word: int) -> None:
        """Move the clock to what `word` gave."""
        if word != self._now:
            self._handle.send(word)
            self._now = word

    def advance_to(self, time: Any) -> None:
        """Promise to set the clock at `time` or later only; raises as that of an input does."""
        self._handle.advance_to(time)

    def close(self) -> None:
        """Promise not to set the clock any more. Closing twice is closing once."""
        self._handle.close()

    def __enter__(self) -> ClockHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ClockHandle({self._handle.name!r}, {self._type.name})"


def new_clock(scope: Scope, kind: str, name: str) -> tuple[ClockHandle, Clock]:
    """See `Scope.new_clock`."""
    found = clock_type(kind)
    handle, words = scope.new_input(name)
    return ClockHandle(handle, found), Clock(words, found, name)


def clock_type(name: str) -> WordType:
    """The type of that name, if a clock can have it."""
    found = type_named(name)
    if not (found.is_signed or isinstance(found, (DateType, TimestampType))):
        raise SchemaError(
            f"a clock is a timestamp, a date or a signed integer, and cannot be {found.name}"
        )
    return found
