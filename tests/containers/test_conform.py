"""Batches made to fit a schema, nulls below null structs among them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pointstamp.containers.conform import conform
from pointstamp.errors import SchemaError

FULL = pa.struct([pa.field("n", pa.int64(), nullable=False), pa.field("text", pa.string())])
LOOSE = pa.struct([("n", pa.int64()), ("text", pa.string())])
ROWS = [{"n": 1, "text": "a"}, None, {"n": 3, "text": None}]


def with_nulls_below(rows, kind=LOOSE):
    """An array whose null structs have nulls in their fields, as `take` leaves them."""
    there = pa.array([row for row in rows if row is not None], kind)
    places = iter(range(len(there)))
    return there.take(pa.array([None if row is None else next(places) for row in rows]))


def listed(kind):
    return pa.list_(pa.field("element", kind))


LISTS = pa.ListArray.from_arrays([0, 2, 2, 3], with_nulls_below(ROWS))
MAPS = pa.MapArray.from_arrays([0, 2, 2, 3], ["x", "y", "z"], with_nulls_below(ROWS))
DEEP = pa.StructArray.from_arrays([with_nulls_below(ROWS), pa.array([1, 2, 3])], ["in", "out"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (with_nulls_below(ROWS), FULL),
        (with_nulls_below(ROWS)[1:], FULL),
        (pa.nulls(2, LOOSE), FULL),
        (pa.nulls(2, FULL), pa.struct([FULL[0], pa.field("text", pa.large_string())])),
        (LISTS, listed(FULL)),
        (LISTS[1:], listed(FULL)),
        (MAPS, pa.map_(pa.string(), FULL)),
        (MAPS[2:], pa.map_(pa.string(), FULL)),
        (DEEP, pa.struct([("in", FULL), ("out", pa.int32())])),
    ],
)
def test_a_null_struct_fits_a_type_whose_fields_have_no_nulls(values, kind):
    batch = pa.RecordBatch.from_arrays([values], names=["s"])
    fitting = conform(batch, pa.schema([("s", kind)]))
    fitting.validate(full=True)
    assert fitting.schema.field("s").type == kind
    assert fitting.column("s").to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([{"n": None, "text": "a"}, None], LOOSE), FULL),
        (pa.array([[{"n": None, "text": "a"}]], listed(LOOSE)), listed(FULL)),
        (pa.array([[("x", {"n": None})]], pa.map_(pa.string(), LOOSE)), pa.map_(pa.string(), FULL)),
    ],
)
def test_a_null_that_is_read_does_not_fit_a_field_without_any(values, kind):
    batch = pa.RecordBatch.from_arrays([values], names=["s"])
    with pytest.raises(SchemaError, match="the results do not fit the schema of the DataFrame"):
        conform(batch, pa.schema([("s", kind)]))
