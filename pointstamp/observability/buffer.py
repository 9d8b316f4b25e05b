# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Where events wait until there are enough for a batch.

The numbers of an event are put into an array that is there already, so that recording one makes
no objects and takes some nanoseconds, compiled. So are times that are integers or pairs of them;
other times, and texts, are kept as the objects that they are. All become columns when the batch is
made, in which times are texts: that is most of what an event costs, so compiled the digits are
written here.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from struct import Struct
from threading import get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.compiled import build_info
from pointstamp.formats.arrow_stream_file import (
    Column,
    batch_of,
    schema_of,
    texts_side_by_side,
)
from pointstamp.observability.clock import LogClock
from pointstamp.observability.event_types import CODES, MOMENTS, EventType
from pointstamp.progress.change_batch import as_number

CAPACITY = 4096
"""Events in a full buffer."""

_CAPACITY = CAPACITY  # compiled, a number of C

_MOST = 6
"""How many numbers an event is recorded with."""

_LONGEST = 20
"""Characters of a text of 64 bits."""

_LONGEST_PAIR = 2 * _LONGEST + 4

_NO_PAIR = -(2**62)
"""In place of the first of a pair: the time is an integer."""

_BEYOND = 2**61
"""What `as_number` makes of integers that are no numbers here."""

_IS_LITTLE = sys.byteorder == "little"

_ZERO, _MINUS, _OPEN, _CLOSE, _COMMA, _SPACE = b"0-(), "

_INTEGER, _FLOAT = Struct("=q"), Struct("=d")


class Buffer:
    """The events of one type that are not written yet.

    Parameters
    ----------
    clock : LogClock
        What was read from it are the moments of events, as they are given.
    on_full : callable
        Called with the buffer when it is full; must `take`.

    >>> from pointstamp.observability.event_types import CAPABILITIES, TEXTS
    >>> from pointstamp.observability.clock import LogClock
    >>> clock = LogClock(iter([7, 8]).__next__)
    >>> buffer = Buffer(TEXTS, clock, lambda buffer: None)
    >>> buffer.add_with(("begun",), clock.now())
    >>> buffer.take().to_pylist()
    [{'at': 7, 'text': 'begun'}]
    >>> buffer = Buffer(CAPABILITIES, clock, lambda buffer: None)
    >>> buffer.add_at((2, 0), clock.now(), 5, 0, -1, 0, 0)
    >>> buffer.take().to_pylist()
    [{'at': 8, 'operator': 5, 'output': 0, 'change': -1, 'time': '(2, 0)'}]
    """

    __slots__ = (
        "_clock",
        "_dtypes",
        "_has_pairs",
        "_is_busy",
        "_is_compiled",
        "_numbers",
        "_on_full",
        "_other_times",
        "_owner",
        "_row",
        "_schema",
        "_texts_of",
        "_times",
        "_width",
        "n",
        "of",
    )

    def __init__(self, of: EventType, clock: LogClock, on_full: Callable[[Buffer], None]) -> None:
        self.of = of
        self.n = 0
        self._clock = clock
        self._on_full = on_full
        self._width = len(of.numbers)
        self._is_compiled = build_info() == "compiled"
        self._is_busy = False
        """Whether it makes objects, in which the garbage collector may come along."""
        self._owner = self._thread()
        # Each event is written with `_MOST` numbers, whatever its type: those that it does not
        # have are where the next one comes, or behind the last.
        self._numbers: Any = array("q", bytes(8 * (CAPACITY * self._width + _MOST)))
        self._times: Any = array("q", bytes(16 * CAPACITY if of.has_time else 16))
        """Two numbers each: a pair, or `_NO_PAIR` and the integer."""
        self._has_pairs = False
        self._other_times: list[tuple[int, Any]] = []
        """Those that are neither, with the numbers of their events."""
        self._texts_of: list[tuple[Any, ...]] = []
        self._row = Struct("=" + "".join(CODES[kind] for kind in of.numbers.values()))
        self._schema = schema_of(of.columns)
        moments = ("at",) if of.is_own else MOMENTS
        self._dtypes = [
            None if name in moments else np.dtype(kind) for name, kind in of.numbers.items()
        ]
        """Of the columns of numbers; None of moments."""

    @property
    def schema(self) -> Any:
        """The Arrow schema of the batches."""
        return self._schema

    @property
    def last(self) -> int:
        """The moment of the last event."""
        return self._clock.moment_of(self._numbers[(self.n - 1) * self._width])

    def add(self, at: int, a: int, b: int, c: int, d: int, e: int) -> None:
        """An event that has only numbers, in the order of the columns; what it has not, is 0."""
        first = self.n * self._width
        # Not by a local name, which compiled would count references to the array atomically.
        self._numbers[first] = at
        self._numbers[first + 1] = a
        self._numbers[first + 2] = b
        self._numbers[first + 3] = c
        self._numbers[first + 4] = d
        self._numbers[first + 5] = e
        self.n += 1
        if self.n == _CAPACITY:
            self._on_full(self)

    def add_at(self, time: Any, at: int, a: int, b: int, c: int, d: int, e: int) -> None:
        """The same, of one that has a time of a dataflow, too."""
        if type(time) is int:
            inner = as_number(time)
            if inner < _BEYOND:
                self.add_number(inner, at, a, b, c, d, e)
                return
        elif type(time) is tuple and len(time) == 2:
            first, second = time
            if type(first) is int and type(second) is int:
                outer, inner = as_number(first), as_number(second)
                if outer < _BEYOND and inner < _BEYOND:
                    self.add_pair(outer, inner, at, a, b, c, d, e)
                    return
        self._add_other(time)
        self.add(at, a, b, c, d, e)

    def add_number(self, time: int, at: int, a: int, b: int, c: int, d: int, e: int) -> None:
        """The same, where the time is known to be an integer of 64 bits."""
        self._times[2 * self.n] = _NO_PAIR
        self._times[2 * self.n + 1] = time
        # As `add`, once more: of most events, and to hand them on takes as long as to write them.
        first = self.n * self._width
        self._numbers[first] = at
        self._numbers[first + 1] = a
        self._numbers[first + 2] = b
        self._numbers[first + 3] = c
        self._numbers[first + 4] = d
        self._numbers[first + 5] = e
        self.n += 1
        if self.n == _CAPACITY:
            self._on_full(self)

    def add_pair(
        self, outer: int, inner: int, at: int, a: int, b: int, c: int, d: int, e: int
    ) -> None:
        """The same, where it is a pair of integers, and the first less than 2**61 off zero."""
        self._times[2 * self.n] = outer
        self._times[2 * self.n + 1] = inner
        self._has_pairs = True
        self.add(at, a, b, c, d, e)

    def is_open(self) -> bool:
        """Whether an event that has only numbers may be added even by the garbage collector.

        It comes in any thread, and in whatever makes objects, as a batch that is being made does.
        """
        return not self._is_busy and self.n < _CAPACITY - 1 and self._thread() == self._owner

    def _add_other(self, time: Any) -> None:
        self._is_busy = True
        self._other_times.append((self.n, time))
        self._is_busy = False

    def _thread(self) -> int:
        """A number of the thread that this is called in."""
        if self._is_compiled:
            return _thread_in_c()  # type: ignore[name-defined,no-any-return]  # noqa: F821  (a name of the .pxd alone)
        return get_ident()

    def add_with(self, texts: tuple[Any, ...], *numbers: Any) -> None:
        """An event of any type, with its texts: anything that has a `str`."""
        fitting = self._row.unpack(self._row.pack(*numbers))  # raises if one does not fit
        first = self.n * self._width
        for column, number in enumerate(fitting):
            if type(number) is float:
                (number,) = _INTEGER.unpack(_FLOAT.pack(number))
            self._put(first + column, number)
        self._texts_of.append(texts)
        self.n += 1
        if self.n == _CAPACITY:
            self._on_full(self)

    def _put(self, place: int, number: int) -> None:
        # By itself: where methods take any number of arguments, no place has a type.
        self._numbers[place] = number

    def end(self) -> None:
        """Throw away what is there, and what comes."""
        self._on_full = _forget
        self._forget()

    def _forget(self) -> None:
        self._texts_of.clear()
        self._other_times.clear()
        self._has_pairs = False
        self.n = 0

    def take(self) -> Any:
        """The events so far as a record batch; the buffer is empty after that."""
        self._is_busy = True
        try:
            return self._taken()
        finally:
            self._is_busy = False

    def _taken(self) -> Any:
        n, width = self.n, self._width
        rows = np.asarray(self._numbers)[: n * width].reshape(n, width)
        columns: list[Column] = list(map(self._column, self._dtypes, rows.T))
        if self.of.has_time:
            batch = batch_of(self._schema, [*columns, self._texts_of_times()])
        else:
            texts = [[str(row[i]) for row in self._texts_of] for i in range(len(self.of.texts))]
            batch = batch_of(self._schema, [*columns, *texts])
        self._forget()
        return batch

    def _texts_of_times(self) -> Any:
        n = self.n
        if self._other_times or not self._is_compiled:
            return self._texts_of_any()
        ends = np.zeros(n + 1, np.int32)
        longest = _LONGEST_PAIR if self._has_pairs else _LONGEST
        characters = np.empty(n * longest + 8, np.uint8)
        if n:
            _write_times(self._times, ends, characters)
        return texts_side_by_side(ends, characters)

    def _texts_of_any(self) -> list[str]:
        times = np.asarray(self._times)[: 2 * self.n].reshape(-1, 2).tolist()
        texts = [
            str(inner) if outer == _NO_PAIR else f"({outer}, {inner})" for outer, inner in times
        ]
        for place, other in self._other_times:
            texts[place] = str(other)
        return texts

    def _column(self, dtype: np.dtype[Any] | None, values: npt.NDArray[np.int64]) -> Any:
        # Copies, of what is about to be overwritten.
        if dtype is None:
            return self._clock.moments(values)
        return values.copy().view(dtype) if dtype.kind == "f" else values.astype(dtype)


def _write_times(times: Any, ends: Any, characters: Any) -> None:
    """Write the texts of times one after the other.

    `times : int64[>= 2 * n]`, as in `Buffer` · `ends : int32[n + 1]`, of which the first is 0 ·
    `characters : uint8[n * 20 + 8]`, or `[n * 44 + 8]` where there are pairs

    Mostly a text is the one before it, but for its last digit. Its first sixteen characters are
    kept as two numbers, by functions of C: only compiled code comes here. To read again what was
    just written by smaller pieces, the processor waits until it is in its cache.
    """
    begin = at = length = shift = last = 0
    outer = inner = tens = 0
    low = high = step = 0
    for place in range(len(ends) - 1):
        was_outer, was_inner, was_tens, was_begin = outer, inner, tens, begin
        outer = times[2 * place]
        inner = times[2 * place + 1]
        is_pair = outer != _NO_PAIR
        tens = inner // 10
        begin = at
        if place and inner >= 0 and was_inner >= 0 and tens == was_tens and outer == was_outer:
            if length <= 16:
                step = inner - was_inner
                if last < 8:
                    low += step << shift
                else:
                    high += step << shift
                _put_eight_in_c(characters, at, low)  # type: ignore[name-defined]  # noqa: F821
                if length > 8:
                    _put_eight_in_c(characters, at + 8, high)  # type: ignore[name-defined]  # noqa: F821
            else:
                for i in range(0, length, 8):
                    low = _eight_in_c(characters, was_begin + i)  # type: ignore[name-defined]  # noqa: F821
                    _put_eight_in_c(characters, at + i, low)  # type: ignore[name-defined]  # noqa: F821
                characters[at + last] = _ZERO + (inner - 10 * tens)
            at += length
        else:
            if is_pair:
                characters[at] = _OPEN
                at += 1
            for is_inner in range(0 if is_pair else 1, 2):
                number = inner if is_inner else outer
                rest = number
                if number < 0:
                    characters[at] = _MINUS
                    at += 1
                    rest = -(number + 1)
                    rest += 1  # of the least of 64 bits there is no other sign
                left = rest
                at += 1
                while left > 9:
                    left //= 10
                    at += 1
                i = at
                while rest > 9:
                    i -= 1
                    characters[i] = _ZERO + rest % 10
                    rest //= 10
                characters[i - 1] = _ZERO + rest
                if is_pair and not is_inner:
                    characters[at] = _COMMA
                    characters[at + 1] = _SPACE
                    at += 2
            if is_pair:
                characters[at] = _CLOSE
                at += 1
            length = at - begin
            last = length - 1 - is_pair
            shift = 8 * (last % 8) if _IS_LITTLE else 56 - 8 * (last % 8)
            low = _eight_in_c(characters, begin)  # type: ignore[name-defined]  # noqa: F821
            high = _eight_in_c(characters, begin + 8)  # type: ignore[name-defined]  # noqa: F821
        ends[place + 1] = at


def _forget(buffer: Buffer) -> None:
    buffer._forget()
