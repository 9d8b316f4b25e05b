"""`Changes`: what changed of a collection in an epoch, and `CollectionSnapshot`: what it is."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, overload

from pointstamp.collections.copies import check_copies, copied
from pointstamp.collections.html_table import SHOWN_ROWS, html_table
from pointstamp.collections.schema import Schema
from pointstamp.containers.text_sweep import SWEEPS, Held
from pointstamp.containers.updates import Rows
from pointstamp.containers.words import table_with


class Changes(Sequence[tuple[tuple[Any, ...], int]]):
    """Pairs of a row and its diff, sorted by row, nulls first.

    Parameters
    ----------
    schema : Schema
        Of the rows.
    rows : int64[n, w + 1]
        Their words, and diffs; consolidated.
    """

    def __init__(self, schema: Schema, rows: Rows) -> None:
        self.schema = schema
        self._rows = rows
        self._pairs: list[tuple[tuple[Any, ...], int]] | None = None
        if schema.texts:
            SWEEPS.add_result(self)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> tuple[tuple[Any, ...], int]: ...

    @overload
    def __getitem__(self, at: slice) -> list[tuple[tuple[Any, ...], int]]: ...

    def __getitem__(self, at: int | slice) -> Any:
        return self._all()[at]

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence):
            return self._all() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compares by value, like a list

    def __reduce__(self) -> tuple[Any, ...]:
        return _changes, (self.schema, _encoded(self.schema, self._rows))

    def __repr__(self) -> str:
        return repr(self._all())

    def _repr_html_(self) -> str:
        """The first of them, as a table: what a notebook shows."""
        shown = [(*self.schema.cells(row), diff) for row, diff in self._all()[:SHOWN_ROWS]]
        names = [*self.schema.names, diff_column(self.schema)]
        return html_table(names, shown, len(self))

    def held_texts(self) -> list[Held]:
        """See `text_sweep.py`."""
        return [(self._rows, self.schema.texts)]

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` of the columns, and `diff`, in no order."""
        batch = self.schema.to_arrow(self._rows)
        return table_with(batch, diff_column(self.schema), self._rows[:, -1].copy())

    def to_pandas(self) -> Any:
        """A frame of pandas of the same."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A frame of polars of the same."""
        return import_module("polars").from_arrow(self.to_arrow())

    def _all(self) -> list[tuple[tuple[Any, ...], int]]:
        if self._pairs is None:
            pairs = zip(self.schema.to_rows(self._rows), self._rows[:, -1].tolist(), strict=True)
            self._pairs = self.schema.in_order(pairs)
        return self._pairs


def missing_row(schema: Schema, rows: Rows) -> tuple[Any, ...] | None:
    """The first of some consolidated rows that is there fewer than no times, if one is."""
    below = rows[rows[:, -1] < 0][:1]
    return schema.to_rows(below)[0] if len(below) else None


class CollectionSnapshot(Sequence[tuple[Any, ...]]):
    """The rows of a collection at a time, sorted, nulls first, with duplicates."""

    def __init__(self, schema: Schema, rows: Rows) -> None:
        self.schema = schema
        self._rows = rows
        self._all: list[tuple[Any, ...]] | None = None
        if schema.texts:
            SWEEPS.add_result(self)

    def __len__(self) -> int:
        return int(self._rows[:, -1].sum())

    @overload
    def __getitem__(self, at: int) -> tuple[Any, ...]: ...

    @overload
    def __getitem__(self, at: slice) -> list[tuple[Any, ...]]: ...

    def __getitem__(self, at: int | slice) -> Any:
        return self._listed()[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence):
            return self._listed() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compares by value, like a list

    def __reduce__(self) -> tuple[Any, ...]:
        return _snapshot, (self.schema, _encoded(self.schema, self._rows))

    def __repr__(self) -> str:
        return repr(self._listed())

    def _repr_html_(self) -> str:
        """The first of them, as a table: what a notebook shows."""
        shown = [self.schema.cells(row) for row in self._listed()[:SHOWN_ROWS]]
        return html_table(self.schema.names, shown, len(self))

    def held_texts(self) -> list[Held]:
        """See `text_sweep.py`."""
        return [(self._rows, self.schema.texts)]

    def to_arrow(self) -> Any:
        """A `pyarrow.RecordBatch`, in no order."""
        return self.schema.to_arrow(copied(self._rows, self._rows[:, -1], "a batch of all"))

    def to_pandas(self) -> Any:
        """A frame of pandas of the same."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A frame of polars of the same."""
        return import_module("polars").from_arrow(self.to_arrow())

    def _listed(self) -> list[tuple[Any, ...]]:
        if self._all is None:
            check_copies(self._rows[:, -1], "a list of all")
            pairs = zip(self.schema.to_rows(self._rows), self._rows[:, -1].tolist(), strict=True)
            self._all = [row for row, n in self.schema.in_order(pairs) for _ in range(n)]
        return self._all


def _encoded(schema: Schema, rows: Rows) -> bytes:
    return pickle.dumps(schema.updates(rows))


def _changes(schema: Schema, encoded: bytes) -> Changes:
    # The numbers are in none of what a sweep looks at, up to the end of this.
    with SWEEPS.held_back():
        return Changes(schema, pickle.loads(encoded).rows)


def _snapshot(schema: Schema, encoded: bytes) -> CollectionSnapshot:
    with SWEEPS.held_back():
        return CollectionSnapshot(schema, pickle.loads(encoded).rows)


def diff_column(schema: Schema) -> str:
    """`diff`, with so many underscores that no column is called so."""
    name = "diff"
    while name in schema.names:
        name += "_"
    return name
