# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Where events wait until there are enough for a batch.

The numbers of an event are put into an array that is there already, so that recording one makes
no objects and takes some nanoseconds, compiled. So are times that are integers; other times, and
texts, are kept as the objects that they are. All become columns when the batch is made.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from pointstamp.formats.arrow_stream_file import Column, batch_of, schema_of, texts_of
from pointstamp.observability.event_types import MOMENTS, EventType

CAPACITY = 4096
"""Events in a full buffer."""

_CAPACITY = CAPACITY  # compiled, a number of C

_MOST = 6
"""How many numbers an event is recorded with."""

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
        "_numbers",
        "_offset",
        "_on_full",
        "_other_times",
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
                self._other_times.append((self.n, time))
        else:
            self._other_times.append((self.n, time))
        self.add(at, a, b, c, d, e)

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
        n, width = self.n, self._width
        rows = np.asarray(self._numbers)[: n * width].reshape(n, width)
        columns: list[Column] = [
            self._column(name, kind, rows[:, column])
            for column, (name, kind) in enumerate(self.of.numbers.items())
        ]
        if self.of.has_time:
            times = texts_of(np.asarray(self._times)[:n], self._other_times)
            batch = batch_of(self._schema, [*columns, times])
        else:
            texts = [[str(row[i]) for row in self._texts_of] for i in range(len(self.of.texts))]
            batch = batch_of(self._schema, [*columns, *texts])
        self._forget()
        return batch

    def _column(self, name: str, kind: str, values: npt.NDArray[np.int64]) -> Any:
        # Copies, of what is about to be overwritten.
        if kind == "float64":
            return values.copy().view(np.float64)
        return values + self._offset if name in MOMENTS else values.astype(kind)


def _forget(buffer: Buffer) -> None:
    buffer._forget()
