"""Upserts as columns: those of the collection, whether the key goes, and a place in its epoch.

So they are staged and logged like any batch, as `changes_columns` does it with changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pointstamp.collections.upserts import EventForm
from pointstamp.containers.convert import numbers
from pointstamp.containers.updates import Updates
from pointstamp.errors import SchemaError
from pointstamp.service.changes_columns import columns_of_changes

DELETED, PLACE = "_deleted", "_place"


def columns_of_events(form: EventForm) -> pa.Schema:
    """The columns of the collection, of which only the key is there where it goes, and two more.

    Raises `SchemaError` if the collection has a column of their names.

    >>> from pointstamp.collections.schema import schema_of
    >>> form = EventForm(schema_of("id long, state string"), "id", "orders")
    >>> [(field.name, field.nullable) for field in columns_of_events(form)]
    [('id', False), ('state', True), ('_deleted', False), ('_place', False)]
    """
    for name in (DELETED, PLACE):
        if name in form.schema.names:
            raise SchemaError(
                f"a collection of upserts cannot have a column {name!r}, by which it is sent "
                f"whether a key goes, and in which order; rename it: {form.schema}"
            )
    fields: list[Any] = [
        field.with_nullable(field.nullable or field.name not in form.keys)
        for field in list(columns_of_changes(form.schema))[:-1]
    ]
    ours = [pa.field(DELETED, pa.bool_(), False), pa.field(PLACE, pa.int64(), False)]
    return pa.schema([*fields, *ours])


def event_batch(
    form: EventForm, columns: pa.RecordBatch, is_deleted: bool, places: pa.Array[Any]
) -> pa.RecordBatch:
    """Rows, or keys that go, as a batch of those columns."""
    n, wire = columns.num_rows, columns_of_events(form)
    found = dict(zip(columns.schema.names, columns.columns, strict=True))
    arrays = [
        found[field.name] if field.name in found else pa.nulls(n, field.type)
        for field in list(wire)[:-2]
    ]
    gone: pa.Array[Any] = pa.array(np.full(n, is_deleted))
    return pa.RecordBatch.from_arrays([*arrays, gone, places], schema=wire)


def to_events(form: EventForm, batch: pa.RecordBatch, where: str) -> Updates:
    """A batch of those columns as rows of events, int64[n, form.width].

    Raises
    ------
    DataError
        If a value is null that may not be.
    """
    schema = form.schema
    rows = np.zeros((batch.num_rows, form.width), np.int64)
    rows[:, -1] = 1
    rows[:, form.n_key] = numbers(batch.column(PLACE))
    rows[:, : form.n_key] = form.key_schema.to_updates(batch.select(form.keys), 1, where).rows[
        :, :-1
    ]
    there = np.flatnonzero(~batch.column(DELETED).to_numpy(zero_copy_only=False))
    kept = batch.select(schema.names).take(there)
    rows[there, form.after : -1] = schema.to_updates(kept, 1, where).rows[:, :-1]
    rows[there, form.after - 1] = 1
    return Updates(rows, form.texts)
