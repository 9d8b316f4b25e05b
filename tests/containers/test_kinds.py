"""The laws of `Kind`, for every kind that is registered."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, hash_keys, kind_of
from pointstamp.errors import ColumnError, ContainerError, KeyHashError, SchemaError

records = st.lists(
    st.tuples(st.integers(-5, 5), st.text("abc", max_size=3), st.floats(-2, 2)), max_size=40
)


@dataclass(frozen=True)
class Form:
    """How to make a container of one kind of the same records."""

    name: str
    make: Callable[[list[tuple[Any, ...]]], Any]
    key: Any
    """Chooses the first field."""


def as_arrays(rows: list[tuple[Any, ...]]) -> Arrays:
    numbers, texts, floats = zip(*rows, strict=True) if rows else ((), (), ())
    return Arrays(
        number=np.array(numbers, np.int64),
        text=np.array(texts, object),
        float=np.array(floats, np.float64),
    )


def as_columns(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    numbers, texts, floats = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        {
            "number": pa.array(numbers, pa.int32()),
            "text": pa.array(texts, pa.string()),
            "float": pa.array(floats, pa.float64()),
        }
    )


FORMS = [
    Form("rows", list, lambda record: record[0]),
    Form("arrays", as_arrays, "number"),
    Form("columns", as_columns, "number"),
]


@pytest.fixture(scope="module", params=FORMS, ids=lambda form: form.name)
def form(request):
    return request.param


def test_the_kind_is_found_by_type(form):
    assert kind_of(form.make([])).name == form.name


@given(records, records)
def test_lengths_add_up(form, some, more):
    a, b = form.make(some), form.make(more)
    kind = kind_of(a)
    assert kind.length(a) == len(some)
    assert kind.length(kind.concat([a, b])) == len(some) + len(more)
    assert list(kind.records(kind.concat([a, b]))) == some + more


@given(records, st.integers(0, 40))
def test_slices_put_together_are_the_whole(form, rows, at):
    batch = form.make(rows)
    kind = kind_of(batch)
    at = min(at, len(rows))
    parts = [kind.slice(batch, 0, at), kind.slice(batch, at, len(rows))]
    assert list(kind.records(parts[0])) == rows[:at]
    assert list(kind.records(kind.concat(parts))) == rows


@given(records, st.integers(1, 5))
def test_split_keeps_every_record_in_order_with_those_of_its_hash(form, rows, peers):
    batch = form.make(rows)
    kind = kind_of(batch)
    hashes = kind.hashes(batch, form.key)
    parts = kind.split(batch, hashes, peers)
    assert len(parts) == peers
    for peer, part in enumerate(parts):
        expected = [
            r for r, hash in zip(rows, hashes.tolist(), strict=True) if hash % peers == peer
        ]
        assert list(kind.records(part)) == expected


@given(records)
def test_what_was_encoded_decodes_to_the_same_records(form, rows):
    batch = form.make(rows)
    kind = kind_of(batch)
    decoded = kind.decode([memoryview(bytes(buffer)) for buffer in kind.encode(batch)])
    assert type(decoded) is type(batch)
    assert list(kind.records(decoded)) == rows


@given(records)
def test_a_slice_encodes_itself_alone(form, rows):
    batch = form.make(rows)
    kind = kind_of(batch)
    part = kind.slice(batch, len(rows) // 2, len(rows))
    assert list(kind.records(kind.decode(kind.encode(part)))) == rows[len(rows) // 2 :]


@given(records)
def test_every_kind_hashes_the_same_keys_alike(form, rows):
    batch = form.make(rows)
    kind = kind_of(batch)
    assert kind.hashes(batch, form.key).tolist() == hash_keys([r[0] for r in rows]).tolist()
    assert kind.hashes(batch, None).tolist() == hash_keys(rows).tolist()


@given(records)
def test_several_columns_hash_like_a_tuple(rows):
    expected = hash_keys([(r[1], r[0]) for r in rows]).tolist()
    for batch in (as_arrays(rows), as_columns(rows)):
        assert kind_of(batch).hashes(batch, ["text", "number"]).tolist() == expected


@given(records)
def test_a_function_is_called_with_the_batch_of_columns(rows):
    expected = hash_keys([r[0] for r in rows]).tolist()
    for batch in (as_arrays(rows), as_columns(rows)):
        kind = kind_of(batch)
        assert kind.hashes(batch, lambda batch: batch["number"]).tolist() == expected
    chunked = kind.hashes(batch, lambda batch: pa.chunked_array([batch["number"]]))
    assert chunked.tolist() == expected


def test_a_function_that_gives_too_few_keys_is_refused():
    for batch in (as_arrays([(1, "a", 0.0)] * 3), as_columns([(1, "a", 0.0)] * 3)):
        with pytest.raises(KeyHashError, match=r"2 keys .* 3 records"):
            kind_of(batch).hashes(batch, lambda batch: batch["number"][:2])


def test_a_function_that_gives_tuples_is_refused_for_arrays():
    for batch in (Arrays(a=[1, 2], b=["a", "b"]), Arrays(a=[1, 2], b=[3, 4])):
        with pytest.raises(KeyHashError, match=r"shape \(2, 2\): name several columns"):
            kind_of(batch).exchange(batch, list, 2)


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    for batch in (as_arrays([]), as_columns([])):
        for key in ("weight", ["number", "weight"]):
            with pytest.raises(ColumnError, match=r"'weight'.*\['number', 'text', 'float'\]"):
                kind_of(batch).hashes(batch, key)
        with pytest.raises(ColumnError, match="empty list"):
            kind_of(batch).hashes(batch, [])


def test_a_column_name_is_no_key_of_rows():
    kind = kind_of([])
    with pytest.raises(ColumnError, match=r"r\['src'\]"):
        kind.hashes([{"src": 1}], "src")
    with pytest.raises(ColumnError, match=r"\(1, 2\).*r\[0\]"):
        kind.hashes([(1, 2)], ["src", "dst"])


def test_one_worker_gets_the_batch_itself(form):
    batch = form.make([(1, "a", 0.5)])
    kind = kind_of(batch)
    assert kind.split(batch, kind.hashes(batch, form.key), 1)[0] is batch


def test_sizes_grow_with_the_records(form):
    few, many = form.make([(1, "a", 0.5)] * 10), form.make([(1, "a", 0.5)] * 10_000)
    kind = kind_of(few)
    assert 100 < kind.n_bytes(few) < 10_000
    assert 500 < kind.n_bytes(many) / kind.n_bytes(few) < 1_500
    assert kind.n_bytes(form.make([])) == 0


def test_dictionaries_survive_concat_and_encoding():
    some, more = (
        pa.record_batch({"name": pa.array(names).dictionary_encode()})
        for names in (["a", "b"], ["c", "a", None])
    )
    kind = kind_of(some)
    whole = kind.decode(kind.encode(kind.concat([some, more])))
    assert whole.column("name").to_pylist() == ["a", "b", "c", "a", None]


def test_decoded_columns_are_views_of_the_bytes_where_these_are_many():
    for batch in (Arrays(x=np.arange(2_000)), pa.record_batch({"x": np.arange(100)})):
        kind = kind_of(batch)
        buffers = [bytearray(buffer) for buffer in kind.encode(batch)]
        column = np.asarray(kind.decode(buffers)["x"])
        assert any(np.shares_memory(column, np.frombuffer(b, np.uint8)) for b in buffers)


TEXTS = [np.array(["a"], dtype) for dtype in ("U", object, np.dtypes.StringDType())]
DAY = np.array([100 * 365], "M8[D]")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], np.array([2**63 + 1], np.uint64)),
        ([2**53 + 1], [0.5]),
        ([1], ["a"]),
        (["a"], [b"a"]),
        (np.array([1], "M8[ns]"), np.array([None])),
        (np.array(["3000-01-01"], "M8[s]"), DAY.astype("M8[ns]")),
    ],
)
def test_arrays_are_not_put_together_at_a_loss(one, other):
    pair = [Arrays(k=one), Arrays(k=other)]
    for batches in (pair, pair[::-1]):
        with pytest.raises(SchemaError, match=r"cannot be put together.* cast them to one"):
            kind_of(pair[0]).concat(batches)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], np.array([2], np.int8)),
        (np.array([0.5], np.float32), [0.25]),
        ([1], [None]),
        ([], [1]),
        (DAY.astype("M8[s]"), DAY.astype("M8[us]")),
        *itertools.combinations(TEXTS, 2),
    ],
)
def test_arrays_of_other_widths_are_put_together(one, other):
    batches = [Arrays(k=one), Arrays(k=other)]
    whole = kind_of(batches[0]).concat(batches)
    assert list(whole) == [(x,) for column in (one, other) for x in column]
    assert len(one) or whole["k"].dtype == np.int64


def test_arrays_of_other_columns_are_not_put_together():
    kind, batch = kind_of(Arrays()), Arrays(a=[1], b=[2])
    assert list(kind.concat([batch, Arrays(b=[4], a=[3])])) == [(1, 2), (3, 4)]
    for more in (Arrays(a=[1]), Arrays(a=[1], b=[2], c=[3])):
        with pytest.raises(SchemaError, match=r"'b': dtype\('int64'\)\} and \{'a'"):
            kind.concat([batch, more])


@pytest.mark.parametrize(
    "b", [pa.array([3.5]), pa.array(["a"]), pa.array(["a"]).dictionary_encode()]
)
def test_record_batches_of_other_schemas_are_not_put_together(b):
    whole = pa.record_batch({"a": [1], "b": [2]})
    for more in (pa.record_batch({"a": [1], "b": b}), whole.select(["a"])):
        with pytest.raises(SchemaError, match=r"\(a: int64.* and \(a: int64.*cast them to one"):
            kind_of(whole).concat([more, whole])


@pytest.mark.parametrize("batch", [Arrays(a=[1, 2]), pa.record_batch({"a": [1, 2]})])
def test_masked_keys_of_a_function_are_refused(batch):
    def key(batch):
        return np.ma.array(batch["a"], mask=[True, False])

    with pytest.raises(KeyHashError, match=r"masked array.*keys\.filled"):
        kind_of(batch).hashes(batch, key)


@pytest.mark.parametrize("batch", [Arrays(a=[1, 2]), pa.record_batch({"a": [1, 2]})])
@pytest.mark.parametrize(
    ("given", "said"), [(0, r"0 \(int\)"), (None, "None"), ([0], r"1 keys \(list\)")]
)
def test_one_key_for_all_records_of_a_batch_is_refused(batch, given, said):
    with pytest.raises(KeyHashError, match=f"gave {said}.* for a batch of 2 records; it is called"):
        kind_of(batch).hashes(batch, lambda batch: given)


def test_arrays_refuse_columns_that_do_not_fit():
    with pytest.raises(ContainerError, match="'a': 2, 'b': 3"):
        Arrays(a=[1, 2], b=[1, 2, 3])
    with pytest.raises(ContainerError, match=r"shape \(2, 2\)"):
        Arrays(a=np.zeros((2, 2)))
    with pytest.raises(ContainerError, match=r"'b' is a masked array.*filled"):
        Arrays(a=[1], b=np.ma.array([1], mask=[True]))
    with pytest.raises(ColumnError, match=r"'c'.*\['a'\]"):
        Arrays(a=[1])["c"]


def test_arrays_are_read_only_and_leave_the_original_alone():
    original = np.arange(3)
    column = Arrays(a=original)["a"]
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 9
    original[0] = 9


def test_arrays_of_every_dtype_travel():
    batch = Arrays(
        time=np.array(["2020-01-01", "NaT"], "M8[us]"),
        text=np.array(["a", "bc"]),
        flag=np.array([True, False]),
        pair=np.array([(1, 2.0), (3, 4.0)], [("i", "i4"), ("f", "f8")]),
        strided=np.arange(4)[::2],
        swapped=np.array([1, 2], ">i4"),
        object=np.array([{"a": 1}, None], object),
    )
    decoded = kind_of(batch).decode(kind_of(batch).encode(batch))
    assert [str(decoded[name]) for name in batch.names] == [str(c) for _, c in batch.items()]
    assert [decoded[n].dtype for n in batch.names] == [column.dtype for _, column in batch.items()]


def test_arrays_are_equal_by_value_and_a_mapping_by_name():
    batch = Arrays({"a": [1, 2], "b": [3, 4]})
    assert batch == Arrays(a=[1, 2], b=[3, 4])
    assert batch != Arrays(a=[1, 2], b=[3, 5])
    assert batch != Arrays(a=[1, 2])
    assert {name: column.tolist() for name, column in dict(batch).items()} == {
        "a": [1, 2],
        "b": [3, 4],
    }
    assert "a" in batch
    assert "c" not in batch
    assert repr(batch) == "Arrays(a: int64, b: int64; 2 records)"
