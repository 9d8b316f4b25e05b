"""A batch that was taken apart is the same when put together, whatever part of whatever type."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointstamp.containers import decode, encode
from pointstamp.containers.columns import APART_BYTES
from pointstamp.containers.flat import is_flat, put_together, take_apart
from tests.conftest import examples

N = 50
VALUES = {
    pa.int8(): range(N),
    pa.uint64(): range(N),
    pa.float16(): np.arange(N, dtype=np.float16),
    pa.float64(): [n / 3 for n in range(N)],
    pa.bool_(): [n % 3 == 0 for n in range(N)],
    pa.date32(): [datetime.date(2020, 1, 1 + n % 28) for n in range(N)],
    pa.timestamp("us", "UTC"): range(N),
    pa.duration("ns"): range(N),
    pa.decimal128(12, 2): [decimal.Decimal(n) for n in range(N)],
    pa.binary(3): [b"%03d" % n for n in range(N)],
    pa.string(): ["x" * (n % 7) for n in range(N)],
    pa.large_string(): ["é" * (n % 7) for n in range(N)],
    pa.binary(): [bytes(n % 5) for n in range(N)],
    pa.large_binary(): [bytes(n % 5) for n in range(N)],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_every_slice_of_every_type_comes_back(kind, data):
    nulls = np.array(data.draw(st.lists(st.booleans(), min_size=N, max_size=N)))
    whole = pa.record_batch(
        {
            "v": pa.array(list(VALUES[kind]), kind),
            "some": pa.array(
                [None if no else v for no, v in zip(nulls, VALUES[kind], strict=True)], kind
            ),
        },
        metadata={"unit": "m"},
    )
    start = data.draw(st.integers(0, N))
    batch = whole.slice(start, data.draw(st.integers(0, N - start)))
    assert is_flat(batch.schema)
    buffers = take_apart(batch)
    got = put_together([bytes(buffer) for buffer in buffers])
    assert got.equals(batch, check_metadata=True)
    got.validate(full=True)
    again = put_together(take_apart(got))  # a batch that came may be sent on
    assert again == batch


def test_nothing_of_a_slice_is_copied_but_offsets():
    batch = pa.record_batch({"a": np.arange(1_000), "s": ["x"] * 1_000})
    for part in (batch, batch.slice(500, 100)):
        _, a, _, s = take_apart(part)
        for buffer, column in ((a, part.column(0).buffers()[1]), (s, part.column(1).buffers()[2])):
            assert np.shares_memory(
                np.frombuffer(buffer, np.uint8), np.frombuffer(column, np.uint8)
            )
    assert len(a) <= 8 * 107
    assert len(s) <= 107


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(3),
        pa.array([[1], [2, 3], None]),
        pa.array([{"x": 1}, {"x": 2}, None]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["a", "b", "a"], pa.string_view()),
        pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 3, pa.binary(16))),
    ],
    ids=lambda column: str(column.type),
)
def test_other_types_are_not_taken_apart_and_travel(column):
    assert not is_flat(pa.schema({"v": column.type}))
    large = pa.record_batch({"v": pa.concat_arrays([column] * (APART_BYTES))})
    assert decode(encode(large, 1)) == (1, large)


def test_a_batch_without_columns_is_not_taken_apart():
    assert not is_flat(pa.schema([]))


def test_large_batches_are_taken_apart_and_small_ones_are_not():
    large = pa.record_batch({"a": np.arange(APART_BYTES // 8), "b": [None] * (APART_BYTES // 8)})
    large = large.set_column(1, "b", large["b"].cast(pa.int8()))
    assert len(encode(large, 1)) > 3
    assert decode(encode(large, 1)) == (1, large)
    assert decode([b"".join(encode(large, 1))]) == (1, large)
    assert len(encode(large.slice(0, 10), 1)) <= 3


def test_buffers_that_are_too_short_are_refused():
    header, *rest = take_apart(pa.record_batch({"a": np.arange(100)}))
    with pytest.raises(pa.ArrowInvalid):
        put_together([header, rest[0][:-1]])
