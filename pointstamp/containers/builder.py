"""Fills containers to the size that is best to send, in the order of giving.

Too small and every batch pays for a message; too large and nothing overlaps and
memory grows. Preferred: 65,536 records or about 1 MiB, whichever comes first.

*Rules.* Records leave in the order in which they came. Small batches of a kind
are put together, big ones cut, without a copy where the kind can. When the kind
changes, what was collected leaves first. Batches of one kind keep one schema
for the life of a builder.

Knows nothing of where containers go: it calls `ready` with each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from pointstamp.containers.frames import is_table, record_batches
from pointstamp.containers.kind import Kind
from pointstamp.containers.registry import batch_bytes, batch_schema, kind_of, n_records
from pointstamp.errors import ContainerError, SchemaError

PREFERRED_RECORDS = 65_536
PREFERRED_BYTES = 1 << 20

# Compiled, numbers of C.
_MOST_RECORDS, _MOST_BYTES = float(PREFERRED_RECORDS), float(PREFERRED_BYTES)

_ROWS: Kind[list[Any]] = kind_of([])

_UNSEEN = object()
"""In place of the schema of the last batch, where there was none of this kind."""

# How many rows to take before their size is first estimated, and how many times as
# many until the next look: a misjudged container stays below that factor.
_FIRST_LOOK = 16
_LOOK_GROWTH = 8


class Builder:
    """Collects records and batches, and hands out containers of the preferred size.

    Parameters
    ----------
    ready
        Called with each finished container, from within `give`, `give_batch` and `flush`.

    >>> out = []
    >>> builder = Builder(out.append)
    >>> builder.give("a"); builder.give_batch(["b", "c"]); out
    []
    >>> builder.flush(); out
    [['a', 'b', 'c']]
    """

    __slots__ = (
        "_batches",
        "_fill",
        "_kind",
        "_look_at",
        "_n_records",
        "_rows",
        "_schema",
        "_schemas",
        "ready",
    )

    def __init__(self, ready: Callable[[Any], object]) -> None:
        self.ready = ready
        # Of `_rows` and `_batches` (containers of `_kind`, not rows) one is always empty.
        self._rows: list[Any] = []
        self._look_at = _FIRST_LOOK
        self._batches: list[Any] = []
        self._kind: Kind[Any] = _ROWS
        self._n_records = 0
        self._fill = 0.0
        self._schemas: dict[str, Any] = {}
        self._schema: Any = _UNSEEN
        """That of the last batch, if it is one of `_kind`."""

    def __len__(self) -> int:
        """How many records were given and have not left yet."""
        return len(self._rows) + self._n_records

    def is_empty(self) -> bool:
        """Whether all that was given has left."""
        return not self._rows and not self._batches

    def held(self) -> list[Any]:
        """The containers that are collected; records that are not in one are not among them."""
        return list(self._batches)

    def give(self, record: Any) -> None:
        """Take one record."""
        if self._batches:
            self._flush_batches()
        rows = self._rows
        rows.append(record)
        if len(rows) >= self._look_at:
            self._look()

    def give_batch(self, batch: Any) -> None:
        """Take a container of any kind, or a table or data frame as its record batches.

        Raises
        ------
        ContainerError
            For a type of which no kind is registered.
        SchemaError
            For a schema other than that of earlier batches of the kind. What was
            given before has left by then.
        """
        try:
            kind = kind_of(batch)
        except ContainerError:
            if not is_table(batch):
                raise
            for part in record_batches(batch):
                self.give_batch(part)
            return
        if kind is _ROWS:
            self._give_rows(batch)
        elif n := n_records(batch):
            self._give_columns(kind, batch, n)

    def flush(self) -> None:
        """Hand out what was collected, if anything."""
        if self._rows:
            self._flush_rows()
        if self._batches:
            self._flush_batches()

    def _give_rows(self, batch: list[Any]) -> None:
        if self._batches:
            self._flush_batches()
        if not self._rows and 2 * len(batch) >= PREFERRED_RECORDS:
            self._cut(_ROWS, batch)
            return
        self._rows.extend(batch)
        if len(self._rows) >= self._look_at:
            self._look()

    def _give_columns(self, kind: Kind[Any], batch: Any, n: int) -> None:
        if self._rows or kind is not self._kind:
            self.flush()
            self._kind = kind
            self._schema = _UNSEEN
        schema = batch_schema(kind, batch)
        # What is the same object was looked at: mostly that of all batches of a stream, or None.
        if schema is not self._schema:
            self._check_schema(kind, schema)
        fill = _fill_of(kind, batch, n)
        if self._fill + fill > 1:
            self.flush()
        if fill > 1:
            self._cut(kind, batch)
            return
        self._batches.append(batch)
        self._n_records += n
        self._fill += fill
        if self._fill >= 0.5:
            self._flush_batches()

    def _check_schema(self, kind: Kind[Any], schema: Any) -> None:
        expected = self._schemas.setdefault(kind.name, schema)
        if schema is not expected and schema != expected:
            self.flush()
            raise SchemaError(
                f"a batch of {kind.name} has another schema than those before it in its stream; "
                f"expected:\n{expected}\nfound:\n{schema}\ncast it, or send it on another stream"
            )
        self._schema = schema

    def _look(self) -> None:
        """Hand the rows out if they fill a container, or say when to look again."""
        n_rows = len(self._rows)
        fill = _fill_of(_ROWS, self._rows, n_rows)
        if fill >= 0.9:
            self._flush_rows()
        if fill:
            soon = min(_LOOK_GROWTH * n_rows, int(n_rows / fill))
            self._look_at = max(1, min(soon, PREFERRED_RECORDS))

    def _flush_rows(self) -> None:
        rows, self._rows = self._rows, []
        if len(rows) == 1:
            self.ready(rows)  # there is nothing to cut
        else:
            self._cut(_ROWS, rows)

    def _flush_batches(self) -> None:
        batches, self._batches = self._batches, []
        self._n_records = 0
        self._fill = 0.0
        self.ready(self._kind.concat(batches) if len(batches) > 1 else batches[0])

    def _cut(self, kind: Kind[Any], batch: Any) -> None:
        """Hand out `batch`, in equal pieces if it is more than a container should hold."""
        n = n_records(batch)
        fill = _fill_of(kind, batch, n)
        if fill <= 1 or n == 1:
            self.ready(batch)
            return
        n_pieces = min(n, math.ceil(fill))
        bounds = [n * piece // n_pieces for piece in range(n_pieces + 1)]
        for start, stop in itertools.pairwise(bounds):
            self.ready(kind.slice(batch, start, stop))


def _fill_of(kind: Kind[Any], batch: Any, n: int) -> float:
    """How much of a container of the preferred size `batch` fills, with its `n` records."""
    return max(n / _MOST_RECORDS, batch_bytes(kind, batch) / _MOST_BYTES)
