"""Packed batches: what is dealt arrives, whole and in order, in pieces worth a shuffle."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers.builder import PREFERRED_BYTES, PREFERRED_RECORDS
from pointstamp.errors import ContainerError, SchemaError
from pointstamp.spark.packed_batches import PackedBatch, distribute, pack, resized, unpack
from pointstamp.spark.task import conform


def numbered(start, stop):
    return pa.RecordBatch.from_pydict({"n": pa.array(range(start, stop), pa.int64())})


@given(
    sizes=st.lists(st.integers(0, 50), max_size=8),
    first=st.integers(0, 5),
    workers=st.integers(1, 4),
)
def test_what_is_dealt_arrives_once_and_in_order(sizes, first, workers):
    starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    batches = [numbered(*span) for span in itertools.pairwise(starts)]
    arrived = list(unpack(distribute(batches, 3, first, workers)))
    assert all(packed.input == 3 and 0 <= packed.worker < workers for packed in arrived)
    records = [n for packed in arrived for n in packed.batch.column("n").to_pylist()]
    assert records == list(range(starts[-1]))


def nested(nullable):
    """A schema with fields at every level, of which all may be null, or none."""

    def field(name, kind):
        return pa.field(name, kind, nullable=nullable, metadata={"of": name})

    pair = pa.struct([field("x", pa.int32()), field("few", pa.list_(field("item", pa.int8())))])
    map = pa.map_(pa.field("key", pa.string(), nullable=False), field("value", pair))
    return pa.schema(
        [field("n", pa.int64()), field("map", map), field("many", pa.large_list(pair))]
    )


def test_fields_may_be_null_at_every_level_once_they_are_dealt():
    pair = {"x": 1, "few": [2, 3]}
    row = {"n": 7, "map": [("a", pair)], "many": [pair, pair]}
    batch = pa.RecordBatch.from_pylist([row], schema=nested(False))
    [packed] = unpack(distribute([batch], 0, 0, 1))
    assert packed.batch.to_pylist() == [row]
    assert packed.batch.schema.equals(nested(True), check_metadata=True)
    assert conform(packed.batch, nested(False)).equals(batch)  # and back, for the result


def test_workers_are_dealt_to_in_turn():
    batches = [numbered(0, PREFERRED_RECORDS)] * 5
    assert [packed.worker for packed in unpack(distribute(batches, 0, 4, 3))] == [1, 2, 0, 1, 2]


def test_small_batches_are_put_together_and_large_ones_cut():
    small = list(resized([numbered(0, 10)] * 1000))
    assert [batch.num_rows for batch in small] == [10_000]
    wide = pa.RecordBatch.from_pydict({"t": ["x" * 1000] * 10_000})
    assert all(batch.nbytes <= 2 * PREFERRED_BYTES for batch in resized([wide]))
    assert sum(batch.num_rows for batch in resized([wide])) == 10_000


def test_a_parcel_of_a_slice_carries_the_slice_only():
    whole = numbered(0, 60_000)
    row = pack(PackedBatch(0, 0, whole.slice(100, 5)))
    assert row.nbytes < 1000
    [packed] = unpack([row])
    assert packed.batch.equals(numbered(100, 105))


def test_several_rows_in_one_batch_are_as_many_packed_batches():
    rows = [pack(PackedBatch(worker, 0, numbered(worker, worker + 2))) for worker in range(3)]
    together = pa.Table.from_batches(rows).combine_chunks().to_batches()
    assert [(p.worker, p.batch.column("n").to_pylist()) for p in unpack(together)] == [
        (0, [0, 1]),
        (1, [1, 2]),
        (2, [2, 3]),
    ]


def test_a_batch_that_conforms_is_not_copied():
    batch = numbered(0, 3)
    assert conform(batch, batch.schema) is batch


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        ({"n": [1]}, {"m": pa.int64()}),
        ({"n": [1]}, {"n": pa.int64(), "m": pa.int64()}),
        ({"n": [1], "m": [1]}, {"n": pa.int64()}),
        ({"n": [300]}, {"n": pa.int8()}),
        ({"n": ["x"]}, {"n": pa.int64()}),
        ({"n": [1.5]}, {"n": pa.int64()}),
        ({"n": [[1]]}, {"n": pa.string()}),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(columns, schema):
    with pytest.raises(SchemaError):
        conform(pa.RecordBatch.from_pydict(columns), pa.schema(schema))


def test_rows_are_refused():
    with pytest.raises(ContainerError, match="make columns of them with map_batches"):
        conform([1, 2], pa.schema({"n": pa.int64()}))
