# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Where events wait until there are enough for a batch.

The numbers of an event are put into an array that is there already, so that recording one makes
no objects and takes some nanoseconds, compiled. So are times that are integers; other times, and
texts, are kept as the objects that they are. All become columns when the batch is made, in which
times are texts: that is most of what an event costs, so compiled the digits are written here.
"""

from __future__ import annotations

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
    texts_of,
    texts_side_by_side,
)
from pointstamp.observability.event_types import MOMENTS, EventType

CAPACITY = 4096
"""Events in a full buffer."""

_CAPACITY = CAPACITY  # compiled, a number of C

_MOST = 6
"""How many numbers an event is recorded with."""

_LONGEST = 20
"""Characters of a text of 64 bits."""

_ZERO, _MINUS = 48, 45  # characters

_CODES = {"int64": "q", "int32": "i", "bool": "?", "float64": "d"}
_INTEGER, _FLOAT = Struct("=q"), Struct("=d")


class Buffer:
    """The events of one type that are not written yet.

    Parameters
    ----------
    offset : int
        What is added to moments, to make them those of all workers.
    on_full : callable
        Called with the buffer when it is full; must `take`.

    >>> from pointstamp.observability.event_types import CAPABILITIES, TEXTS
    >>> buffer = Buffer(TEXTS, 100, lambda buffer: None)
    >>> buffer.add_with(("begun",), 7)
    >>> buffer.take().to_pylist()
    [{'at': 107, 'text': 'begun'}]
    >>> buffer = Buffer(CAPABILITIES, 100, lambda buffer: None)
    >>> buffer.add_at((2, 0), 8, 5, 0, -1, 0, 0)
    >>> buffer.take().to_pylist()
    [{'at': 108, 'operator': 5, 'output': 0, 'change': -1, 'time': '(2, 0)'}]
    """

    __slots__ = (
        "_is_busy",
        "_is_compiled",
        "_numbers",
        "_offset",
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

    def __init__(self, of: EventType, offset: int, on_full: Callable[[Buffer], None]) -> None:
        self.of = of
        self.n = 0
        self._offset = offset
        self._on_full = on_full
        self._width = len(of.numbers)
        self._is_compiled = build_info() == "compiled"
        self._is_busy = False
        """Whether it makes objects, in which the garbage collector may come along."""
        self._owner = self._thread()
        # Each event is written with `_MOST` numbers, whatever its type: those that it does not
        # have are where the next one comes, or behind the last.
        self._numbers: Any = array("q", bytes(8 * (CAPACITY * self._width + _MOST)))
        self._times: Any = array("q", bytes(8 * CAPACITY if of.has_time else 8))
        self._other_times: list[tuple[int, Any]] = []
        """Those that are no integers of 64 bits, with the numbers of their events."""
        self._texts_of: list[tuple[Any, ...]] = []
        self._row = Struct("=" + "".join(_CODES[kind] for kind in of.numbers.values()))
        self._schema = schema_of(of.columns)

    @property
    def schema(self) -> Any:
        """The Arrow schema of the batches."""
        return self._schema

    @property
    def last(self) -> int:
        """The moment of the last event."""
        at: int = self._numbers[(self.n - 1) * self._width]
        return at + self._offset

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
            try:
                self._times[self.n] = time
            except OverflowError:
                self._add_other(time)
        else:
            self._add_other(time)
        self.add(at, a, b, c, d, e)

    def add_number(self, time: int, at: int, a: int, b: int, c: int, d: int, e: int) -> None:
        """The same, where the time is known to be an integer of 64 bits."""
        self._times[self.n] = time
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
            self._numbers[first + column] = number
        self._texts_of.append(texts)
        self.n += 1
        if self.n == _CAPACITY:
            self._on_full(self)

    def end(self) -> None:
        """Throw away what is there, and what comes."""
        self._on_full = _forget
        self._forget()

    def _forget(self) -> None:
        self._texts_of.clear()
        self._other_times.clear()
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
        columns: list[Column] = [
            self._column(name, kind, rows[:, column])
            for column, (name, kind) in enumerate(self.of.numbers.items())
        ]
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
            return texts_of(np.asarray(self._times)[:n], self._other_times)
        ends = np.zeros(n + 1, np.int32)
        characters = np.empty(n * _LONGEST, np.uint8)
        if n:
            _write_digits(self._times, ends, characters)
        return texts_side_by_side(ends, characters)

    def _column(self, name: str, kind: str, values: npt.NDArray[np.int64]) -> Any:
        # Copies, of what is about to be overwritten.
        if kind == "float64":
            return values.copy().view(np.float64)
        return values + self._offset if name in MOMENTS else values.astype(kind)


def _write_digits(numbers: Any, ends: Any, characters: Any) -> None:
    """Write the texts of numbers one after the other.

    `numbers : int64[>= n]` · `ends : int32[n + 1]`, of which the first is 0 ·
    `characters : uint8[n * 20]`
    """
    begin = at = 0
    for place in range(len(ends) - 1):
        number = numbers[place]
        if place and number == numbers[place - 1]:  # as often: an operator moves all of a time
            length = at - begin
            begin = at
            at += length
            for i in range(begin, at):
                characters[i] = characters[i - length]
        else:
            begin = at
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
            for i in range(at - 1, begin - 1, -1):
                if i == begin and number < 0:
                    break
                characters[i] = _ZERO + rest % 10
                rest //= 10
        ends[place + 1] = at


def _forget(buffer: Buffer) -> None:
    buffer._forget()
