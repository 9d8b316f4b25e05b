"""Changes of a collection as upserts: one row for each key and epoch, which is there or deleted.

For tables that are written by key. A collection has no key of itself, so one is given, and a second
row of it in an epoch is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.collections.schema import Schema
from pointstamp.collections.upserts import TIMESTAMP, VERSION
from pointstamp.containers.convert import arrow_array, numbers
from pointstamp.containers.text_sweep import SWEEPS
from pointstamp.containers.updates import Rows
from pointstamp.errors import DataError, SchemaError
from pointstamp.kernels.consolidation import consolidate_all
from pointstamp.service.changes_columns import to_rows
from pointstamp.service.event_columns import DELETED
from pointstamp.service.feed_columns import FEED_TIME, with_columns_of_epochs


def upsert_schema(schema: Schema, key: Sequence[str], output: str) -> pa.Schema:
    """The columns of upserts: those of the collection, and three more.

    Raises
    ------
    ColumnError
        If there is no column of the key.
    SchemaError
        If the key is empty, or the output has a column that upserts have for themselves.
    """
    if not key:
        raise SchemaError(f"upserts of output {output!r} need a key, of one column or more")
    for name in key:
        schema.column(name, f"the key of the upserts of output {output!r}")
    return with_columns_of_epochs(
        schema, DELETED, pa.bool_(), f"output {output!r}", "its upserts have for themselves"
    )


def upserts_of(
    schema: Schema, key: Sequence[str], output: str, batches: Iterable[pa.RecordBatch]
) -> pa.RecordBatch:
    """One row for each epoch and key: the one that is there then, or else the one that was.

    Parameters
    ----------
    schema : Schema
        Of the collection.
    key : sequence of str
        Columns.
    output : str
        For messages.
    batches : iterable of pyarrow.RecordBatch
        All changes of some keys: columns of changes, the epoch and its time.

    Raises
    ------
    DataError
        If there is a second row of a key in an epoch.

    Examples
    --------
    >>> import datetime as dt
    >>> from pointstamp.collections.schema import schema_of
    >>> now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    >>> changes = pa.RecordBatch.from_pydict({
    ...     "city": ["Rome", "Rome", "Oslo"], "n": [1, 2, 5], "diff": [-1, 1, -1],
    ...     "_commit_version": [7, 7, 7], "_commit_timestamp": [now] * 3})
    >>> found = upserts_of(schema_of("city string, n long"), ["city"], "result", [changes])
    >>> sorted((row["city"], row["n"], row["_deleted"]) for row in found.to_pylist())
    [('Oslo', 5, True), ('Rome', 2, False)]
    """
    with SWEEPS.held_back():
        return _upserts_of(schema, key, output, batches)


def _upserts_of(
    schema: Schema, key: Sequence[str], output: str, batches: Iterable[pa.RecordBatch]
) -> pa.RecordBatch:
    form, times = _KeyedForm(schema, key), dict[int, Any]()
    parts = [np.empty((0, schema.n_words + 2), np.int64)]
    for batch in batches:
        epochs = numbers(batch.column(VERSION))
        found, firsts = np.unique(epochs, return_index=True)
        at = batch.column(TIMESTAMP).take(arrow_array(firsts)).to_pylist()
        times |= dict(zip(found.tolist(), at, strict=True))
        changes = batch.drop_columns([VERSION, TIMESTAMP])
        rows = to_rows(schema, changes, f"the upserts of output {output!r}")
        parts.append(form.keyed(epochs, rows))
    # Some may cancel: a service on another number of workers than before has changes of a row from
    # before and after at two of them.
    rows, starts = form.grouped(consolidate_all(parts))
    there, was = np.maximum(rows[:, -1], 0), np.maximum(-rows[:, -1], 0)
    n_there, n_was = _summed(there, starts), _summed(was, starts)
    second = np.flatnonzero(np.maximum(n_there, n_was) > 1)
    if len(second):
        at = starts[second[0]]
        row = dict(
            zip(schema.names, schema.to_rows(form.restored(rows[at : at + 1]))[0], strict=True)
        )
        raise DataError(
            f"output {output!r} has a second row of the key "
            f"{', '.join(f'{name}={row[name]!r}' for name in key)} in epoch {rows[at, 0]}, beside "
            f"{row}; upserts need one row for each key: give a key that each row has for itself, "
            "or reduce them to one"
        )
    chosen = starts.copy()
    # One at most in each group, so that they are in the order of those groups.
    chosen[n_there > 0] = np.flatnonzero(there)
    epochs = np.ascontiguousarray(rows[chosen, 0])
    added = [
        pa.array((n_there == 0).tolist(), pa.bool_()),
        arrow_array(epochs),
        pa.array([times[epoch] for epoch in epochs.tolist()], FEED_TIME),
    ]
    columns = schema.to_arrow(form.restored(rows[chosen])).columns
    into = upsert_schema(schema, key, output)
    return pa.RecordBatch.from_arrays([*columns, *added], schema=into)


class _KeyedForm:
    """Rows int64[n, w + 2] with the epoch and the words of the key first, and diffs last."""

    def __init__(self, schema: Schema, key: Sequence[str]) -> None:
        of_key = [word for name in key for word in schema.words(name)]
        self._order = of_key + [word for word in range(schema.n_words) if word not in of_key]
        self._n_first = 1 + len(of_key)

    def keyed(self, epochs: Rows, rows: Rows) -> Rows:
        """Of rows int64[n, w + 1], and the epoch of each."""
        keyed = np.column_stack([epochs, rows[:, self._order], rows[:, -1]])
        return np.ascontiguousarray(keyed)

    def restored(self, rows: Rows) -> Rows:
        """Rows of the schema, each once."""
        restored = np.ones((len(rows), len(self._order) + 1), np.int64)
        restored[:, self._order] = rows[:, 1:-1]
        return restored

    def grouped(self, rows: Rows) -> tuple[Rows, Rows]:
        """Rows in the order of epoch and key, and where another one of these begins."""
        rows = rows[np.lexsort(rows[:, : self._n_first].T[::-1])]
        keys = rows[:, : self._n_first]
        is_new = np.ones(len(rows), bool)
        is_new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        return rows, np.flatnonzero(is_new)


def _summed(counts: Rows, starts: Rows) -> Rows:
    """The sum of each group."""
    return np.add.reduceat(counts, starts) if len(starts) else counts
