"""Clocks: inputs with one value that never decreases, beside those of collections.

Which records are there may depend on what time it is (`Collection.temporal_filter`). That time
is an input as others are, with a value at each epoch: a program that runs again gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pointstamp.collections.durable_rows import last_epoch
from pointstamp.collections.schema import Column, Schema
from pointstamp.containers.updates import Updates
from pointstamp.containers.words import DateType, TimestampType, WordType, type_named
from pointstamp.dataflow.capability import Capability
from pointstamp.dataflow.handles import Input, Output
from pointstamp.dataflow.operator import OperatorInfo
from pointstamp.dataflow.pact import Exchange
from pointstamp.dataflow.stream_core import StreamCore
from pointstamp.errors import BuildError, InputError, SchemaError
from pointstamp.operators.generic import operator
from pointstamp.operators.scope import Scope
from pointstamp.operators.sources import InputHandle
from pointstamp.operators.transform import transform
from pointstamp.progress.operate import Interest

_KEY = 0


@dataclass(frozen=True)
class ClockInput:
    """Declares a clock as an input of a `View` or of a service.

    In a view `view.advance(name=value)` sets it, in a service `service.input(name).set(value)`.

    Parameters
    ----------
    type : str
        "timestamp", "timestamp_utc", "date", or an integer such as "long"; not "uint64".
    every : timedelta, optional
        In a service: have it go by itself, by the wall time, which is committed as an epoch as
        often as this says. It is that of UTC, also where the type has no zone.

    Raises
    ------
    SchemaError
        For another type, or an integer that is to go by itself.
    BuildError
        If `every` is no length of time above 0.
    """

    type: str = "timestamp"
    every: timedelta | None = None

    def __post_init__(self) -> None:
        kind = clock_type(self.type)
        if self.every is None:
            return
        if not isinstance(self.every, timedelta) or self.every <= timedelta(0):
            raise BuildError(
                f"a clock is given every={self.every!r}, and needs a timedelta above 0"
            )
        if kind.is_integer:
            raise SchemaError(
                f"a clock of {kind.name} cannot go by itself: the time is a timestamp, or a date"
            )

    @property
    def word_type(self) -> WordType:
        """That of its values."""
        return clock_type(self.type)

    @property
    def schema(self) -> Schema:
        """Of the collection of its values, as which a service has it."""
        return Schema((Column("value", self.word_type),))


class Clock:
    """A clock as operators of a dataflow read it: one value that never decreases.

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
    return ClockHandle(handle, found), Clock(_kept(words, name), found, name)


def clock_of_changes(stream: StreamCore[Any], declared: ClockInput, name: str) -> Clock:
    """A clock of the changes of the collection of its values."""

    def words(time: Any, batch: Updates) -> list[int]:
        found: list[int] = batch.rows[:, 0].tolist()
        return found

    return Clock(
        _kept(transform(stream, name, words, of_updates=True), name), declared.word_type, name
    )


def _kept(words: StreamCore[Any], name: str) -> StreamCore[Any]:
    """The same words; a program that begins with a snapshot has first what the clock was at.

    One worker keeps it for all, and readers have it from there.
    """

    def build(capability: Capability, info: OperatorInfo) -> Callable[[Input, Output], None]:
        # A table of one key, by which the words are exchanged, too.
        state = info.state("now")
        begun: list[Capability] = []
        if _KEY in state:
            begun.append(capability.delayed(last_epoch(info) + 1))
            info.activate()
        capability.drop()
        info.states.holds_no_texts()  # a clock is of no texts

        def logic(input_: Input, output: Output) -> None:
            for held in begun:
                with held:
                    output.session(held).give(state[_KEY])
            begun.clear()
            for time, batch in input_:
                latest = max(batch)
                if _KEY not in state or latest > state[_KEY]:
                    state[_KEY] = latest
                output.session(time).give_batch(batch)

        return logic

    pact = Exchange(lambda word: _KEY)
    return operator([words], [pact], f"{name}Clock", build, Interest.NEVER)


def clock_type(name: str) -> WordType:
    """The type of that name, if a clock can have it."""
    found = type_named(name)
    if not (found.is_signed or isinstance(found, (DateType, TimestampType))):
        raise SchemaError(
            f"a clock is a timestamp, a date or an integer up to long, and cannot be {found.name}"
        )
    return found
