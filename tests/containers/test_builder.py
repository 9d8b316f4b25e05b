"""Builders keep the order, fill containers, and cut and join without losing any."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, Builder, kind_of
from pointstamp.containers.builder import PREFERRED_BYTES, PREFERRED_RECORDS
from pointstamp.errors import ContainerError, SchemaError

MAKE = {
    "rows": lambda numbers: [(n,) for n in numbers],
    "arrays": lambda numbers: Arrays(n=np.array(numbers, np.int64)),
    "columns": lambda numbers: pa.record_batch({"n": pa.array(numbers, pa.int64())}),
}


def records_of(containers):
    return [record for batch in containers for record in kind_of(batch).records(batch)]


gifts = st.lists(
    st.tuples(
        st.sampled_from(["give", "flush", *MAKE]),
        st.integers(0, 5) | st.sampled_from([30_000, 70_000, 200_000]),
    ),
    max_size=8,
)


def numbers_of(batch):
    """Those of its records, without making a tuple of each where there is none."""
    if isinstance(batch, list):
        return np.array([n for (n,) in batch], np.int64)
    return batch["n"] if isinstance(batch, Arrays) else batch["n"].to_numpy()


@given(gifts)
def test_every_record_leaves_once_in_order_in_containers_that_are_not_too_large(gifts):
    out, given_numbers, n_given, n = [], [], 0, 0
    builder = Builder(out.append)
    for what, size in gifts:
        numbers = range(n, n + size)
        n += size
        if what == "flush":
            builder.flush()
        elif what == "give":
            numbers = numbers[:10]
            for number in numbers:
                builder.give((number,))
        else:
            builder.give_batch(MAKE[what](numbers))
        if what != "flush":
            given_numbers.append(np.array(numbers, np.int64))
            n_given += len(numbers)
        assert len(builder) + sum(kind_of(b).length(b) for b in out) == n_given
    builder.flush()
    assert len(builder) == 0
    none = np.empty(0, np.int64)
    found = np.concatenate([none, *map(numbers_of, out)])
    assert np.array_equal(found, np.concatenate([none, *given_numbers]))
    assert all(0 < kind_of(batch).length(batch) <= PREFERRED_RECORDS for batch in out)


def test_small_records_fill_containers():
    out = []
    builder = Builder(out.append)
    for n in range(300_000):
        builder.give(n)
    for batch in out:
        assert (
            len(batch) > 0.4 * PREFERRED_RECORDS
            or kind_of(batch).n_bytes(batch) > 0.8 * PREFERRED_BYTES
        )


def test_large_records_fill_containers_by_bytes():
    out = []
    builder = Builder(out.append)
    for n in range(200):
        builder.give(bytes(100_000) + bytes([n]))
    builder.flush()
    sizes = [sum(map(len, batch)) for batch in out]
    assert max(sizes) < 3 * PREFERRED_BYTES
    assert sum(sizes) > 200 * 100_000


@pytest.mark.parametrize("kind", ["arrays", "columns"])
def test_small_batches_are_put_together(kind):
    out = []
    builder = Builder(out.append)
    for n in range(1_000):
        builder.give_batch(MAKE[kind](range(100 * n, 100 * n + 100)))
    builder.flush()
    assert len(out) <= 4
    assert records_of(out) == [(n,) for n in range(100_000)]


def test_a_batch_that_fills_a_container_passes_without_a_copy():
    for kind, make in MAKE.items():
        out = []
        batch = make(range(50_000))
        Builder(out.append).give_batch(batch)
        assert out[0] is batch if kind != "rows" else out


def test_a_list_that_was_given_can_be_changed_when_small():
    out, batch = [], [1, 2]
    builder = Builder(out.append)
    builder.give_batch(batch)
    batch.append(3)
    builder.flush()
    assert out == [[1, 2]]


@pytest.mark.parametrize(
    ("batch", "other"),
    [
        (pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"]})),
        (pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})),
        (Arrays(a=np.array([1])), Arrays(a=np.array([1.0]))),
    ],
)
def test_another_schema_is_refused_and_what_came_before_has_left(batch, other):
    out = []
    builder = Builder(out.append)
    builder.give_batch(batch)
    with pytest.raises(SchemaError) as caught:
        builder.give_batch(other)
    assert out == [batch]
    for schema in (kind_of(batch).schema(batch), kind_of(other).schema(other)):
        assert str(schema) in str(caught.value)


def test_the_schema_is_remembered_when_the_batch_has_left():
    builder = Builder(lambda batch: None)
    builder.give_batch(pa.record_batch({"a": [1]}))
    builder.flush()
    with pytest.raises(SchemaError):
        builder.give_batch(pa.record_batch({"a": ["x"]}))


def test_another_kind_flushes_and_goes_on():
    out = []
    builder = Builder(out.append)
    builder.give(1)
    builder.give_batch(Arrays(a=[2]))
    builder.give_batch(pa.record_batch({"a": [3]}))
    builder.give(4)
    builder.flush()
    assert [kind_of(batch).name for batch in out] == ["rows", "arrays", "columns", "rows"]


def test_what_is_no_container_is_refused():
    with pytest.raises(ContainerError, match="generator"):
        Builder(lambda batch: None).give_batch(x for x in [1])
