"""Where events wait until there are enough for a batch.

The numbers of an event are packed into memory that is there already, so that telling
makes no objects; texts and times are kept as the objects that they are, and become text
when the batch is made.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np

from pointstamp.formats.arrow_stream_file import Column, batch_of, schema_of
from pointstamp.observability.event_types import MOMENTS, EventType

CAPACITY = 4096
"""Events in a full buffer."""

_CODES = {"int64": "q", "int32": "i", "bool": "?", "float64": "d"}


class Buffer:
    """The events of one type that are not written yet.

    Parameters
    ----------
    offset : int
        What is added to moments, to make them those of all workers.
    on_full : callable
        Called with the buffer when it is full; must `take`.

    >>> from pointstamp.observability.event_types import TEXTS
    >>> buffer = Buffer(TEXTS, 100, lambda buffer: None)
    >>> buffer.add_with(("begun",), 7)
    >>> buffer.take().to_pylist()
    [{'at': 107, 'text': 'begun'}]
    """

    __slots__ = (
        "_dtype",
        "_offset",
        "_on_full",
        "_pack_into",
        "_row",
        "_rows",
        "_schema",
        "_texts_of",
        "_unpack_from",
        "n",
        "of",
    )

    def __init__(self, of: EventType, offset: int, on_full: Callable[[Buffer], None]) -> None:
        row = Struct("=" + "".join(_CODES[kind] for kind in of.numbers.values()))
        self.of = of
        self.n = 0
        self._offset = offset
        self._on_full = on_full
        self._pack_into = row.pack_into
        self._unpack_from = row.unpack_from
        self._row = row.size
        self._rows = bytearray(row.size * CAPACITY)
        self._texts_of: list[tuple[Any, ...]] = []
        self._dtype = np.dtype([(name, kind) for name, kind in of.numbers.items()])
        self._schema = schema_of(of.columns)

    @property
    def schema(self) -> Any:
        """The Arrow schema of the batches."""
        return self._schema

    @property
    def last(self) -> int:
        """The moment of the last event."""
        at: int = self._unpack_from(self._rows, (self.n - 1) * self._row)[0]
        return at + self._offset

    def add(self, *numbers: int) -> None:
        """An event that has only numbers, in the order of the columns."""
        self._pack_into(self._rows, self.n * self._row, *numbers)
        self.n += 1
        if self.n == CAPACITY:
            self._on_full(self)

    def add_with(self, texts: tuple[Any, ...], *numbers: int) -> None:
        """An event that has texts, too: anything that has a `str`."""
        # As `add`, and not by it: it is called for every message.
        self._texts_of.append(texts)
        self._pack_into(self._rows, self.n * self._row, *numbers)
        self.n += 1
        if self.n == CAPACITY:
            self._on_full(self)

    def end(self) -> None:
        """Throw away what is there, and what comes."""
        self._on_full = Buffer._forget
        self._forget()

    def _forget(self) -> None:
        self._texts_of.clear()
        self.n = 0

    def take(self) -> Any:
        """The events so far as a record batch; the buffer is empty after that."""
        rows = np.frombuffer(self._rows, self._dtype, self.n)
        numbers: list[Column] = [self._column(name, rows[name]) for name in self.of.numbers]
        texts = [[str(row[i]) for row in self._texts_of] for i in range(len(self.of.texts))]
        self._forget()
        return batch_of(self._schema, [*numbers, *texts])

    def _column(self, name: str, values: Any) -> Any:
        # Copies, of what is about to be overwritten.
        return values + self._offset if name in MOMENTS else np.ascontiguousarray(values)
