"""Keys that differ by container or by the number of workers: zeros, NaNs, and columns not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, ColumnError, SchemaError, WorkerError
from pointstamp.testing import collect

ZEROS = [0.0, -0.0, 1.0]


def record_batch(kind: Any) -> Any:
    return pa.RecordBatch.from_arrays(
        [pa.array(ZEROS, kind), pa.array([1, 2, 4])], names=["k", "x"]
    )


COLUMNS = [
    pytest.param(record_batch(pa.float64()), id="float64"),
    pytest.param(record_batch(pa.float32()), id="float32"),
    pytest.param(
        record_batch(pa.float64()).set_column(0, "k", pa.array(ZEROS).dictionary_encode()),
        id="dictionary",
    ),
    pytest.param(Arrays(k=np.array(ZEROS), x=[1, 2, 4]), id="arrays"),
]


@pytest.mark.parametrize("batch", COLUMNS[:3])
def test_both_zeros_are_one_value(batch: Any) -> None:
    def distinct(scope: Any) -> Any:
        stream = scope.batches_to_stream([batch.append_column("all", pa.array([0, 0, 0]))])
        return stream.aggregate([("k", "count_distinct")], key="all")

    assert collect(distinct) == [(0, (0, 2))]


def test_nulls_without_a_type_are_no_distinct_value() -> None:
    def distinct(scope: Any) -> Any:
        stream = scope.batches_to_stream([pa.record_batch({"k": [1, 1], "x": pa.nulls(2)})])
        return stream.aggregate([("x", "count_distinct")], key="k")

    assert collect(distinct) == [(0, (1, 0))]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch", COLUMNS)
def test_both_zeros_are_one_key_of_columns_as_of_rows(batch: Any, workers: int) -> None:
    def stream(scope: Any) -> Any:
        return scope.batches_to_stream([batch] if scope.index == 0 else [])

    def named(scope: Any) -> Any:
        return stream(scope).aggregate([("x", "sum")], key="k")

    def folded(scope: Any) -> Any:
        return stream(scope).aggregate(lambda key, part, n: n + len(part), key="k", default=0)

    def sessions(scope: Any) -> Any:
        return stream(scope).count_window(ps.Sessions(9), "x", "k")[0]

    def rows(scope: Any) -> Any:
        pairs = list(zip(ZEROS, [1, 2, 4], strict=True))
        stream = scope.to_stream(pairs if scope.index == 0 else [])
        return stream.aggregate(lambda key, value, n: n + value, default=0)

    assert collect(rows, workers=workers) == [(0, (0.0, 3)), (0, (1.0, 4))]
    found = collect(named, workers=workers)
    assert found == [(0, (0.0, 3)), (0, (1.0, 4))]
    assert "-" not in str(found)
    assert collect(folded, workers=workers) == [(0, (0.0, 2)), (0, (1.0, 1))]
    assert sorted(r[:2] for _, r in collect(sessions, workers=workers)) == [(0.0, 2), (1.0, 1)]


NANS = np.array([np.nan, -np.nan, 1.0])
BY_NAN: dict[str, Any] = {
    "aggregate": (lambda s: s.aggregate([("x", "sum")], key="k"), 3),
    "reduce": (lambda s: s.reduce("sum", key="k"), 3),
    "top_k": (lambda s: s.top_k(1, by="x", key="k"), 2),
    "aggregate apart": (
        lambda s: s.aggregate(lambda key, part, n: n + len(part), key="k", default=0),
        2,
    ),
    "count_window": (lambda s: s.count_window(ps.Tumbling(9), "x", "k")[0], 2),
    "sessions": (lambda s: s.count_window(ps.Sessions(9), "x", "k")[0], 2),
}


@pytest.mark.parametrize("name", BY_NAN)
def test_a_nan_of_either_sign_is_one_key_of_columns(name: str) -> None:
    make, expected = BY_NAN[name]
    columns = pa.array(NANS), pa.array(NANS, pa.float16()), pa.array(NANS).dictionary_encode()
    for batch in [pa.record_batch({"k": k, "x": [1, 2, 4]}) for k in columns]:
        found = collect(lambda scope, batch=batch: make(scope.batches_to_stream([batch])))
        assert [record[1] for _, record in found if np.isnan(record[0])] == [expected], batch.schema


BATCH = pa.RecordBatch.from_pydict({"k": [1], "x": [2]})
KEYED = {
    "exchange": lambda s: s.exchange("nokey"),
    "exchange by several": lambda s: s.exchange(["k", "nokey"]),
    "join": lambda s: s.join(s, "nokey"),
    "aggregate": lambda s: s.aggregate([("x", "sum")], key="nokey"),
    "state_machine": lambda s: s.state_machine(lambda k, b, n: (n, b), "nokey"),
    "window": lambda s: s.window(ps.Tumbling(5), "x", "nokey")[0],
    "top_k": lambda s: s.top_k(1, "x", "nokey"),
    "reduce": lambda s: s.reduce("sum", "nokey"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("make", KEYED.values(), ids=KEYED)
def test_a_key_that_is_no_column_is_an_error_on_any_number_of_workers(
    make: Any, workers: int, first_cause: Any
) -> None:
    with pytest.raises(WorkerError) as raised:
        collect(lambda scope: make(scope.batches_to_stream([BATCH])), workers=workers)
    assert isinstance(first_cause(raised.value), ColumnError)
    assert "nokey" in str(raised.value)


TWICE = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["k", "x", "k"])
TWICE_KEYED = {
    "exchange": lambda s: s.exchange("k"),
    "aggregate": lambda s: s.aggregate([("x", "sum")], key="k"),
    "aggregate of it": lambda s: s.aggregate([("k", "sum")], key="x"),
    "top_k": lambda s: s.top_k(1, "k"),
    "window": lambda s: s.window(ps.Tumbling(5), "k", "x")[0],
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("make", TWICE_KEYED.values(), ids=TWICE_KEYED)
def test_a_name_of_two_columns_is_an_error_on_any_number_of_workers(
    make: Any, workers: int, first_cause: Any
) -> None:
    with pytest.raises(WorkerError, match="'k' is the name of 2 columns") as raised:
        collect(lambda scope: make(scope.batches_to_stream([TWICE])), workers=workers)
    assert isinstance(first_cause(raised.value), ColumnError)


@pytest.mark.parametrize("workers", [1, 2])
def test_columns_of_one_name_travel_where_none_is_named(workers: int) -> None:
    def build(scope: Any) -> Any:
        return scope.batches_to_stream([TWICE] if scope.index == 0 else []).exchange()

    assert collect(build, workers=workers) == [(0, (1, 2, 3))]


def test_a_column_is_no_key_of_rows_on_one_worker_either(first_cause: Any) -> None:
    with pytest.raises(WorkerError) as raised:
        collect(lambda scope: scope.to_stream([(1, 2)]).exchange("k"))
    assert isinstance(first_cause(raised.value), ColumnError)


# Columns that Arrow itself does not work with.

DICTIONARIES = [
    pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values))
    for indices, values in (
        ([0, 1, None], ["a", "b"]),
        ([0, 1, 2], ["b", "c", "d"]),
        ([0, 1, 2], ["a", "a", None]),
    )
]
BY_KEY: dict[str, Any] = {
    "aggregate": lambda s: s.aggregate([("x", "sum")], key="k"),
    "aggregate apart": lambda s: s.aggregate(
        lambda k, part, n: n + sum(part["x"].to_pylist()), key="k", default=0
    ),
    "reduce": lambda s: s.reduce("sum", key="k"),
    "top_k": lambda s: s.top_k(9, by="x", key="k"),
    "semijoin": lambda s: s.join(s, "k", how="semi"),
    "fold_window": lambda s: s.fold_window([("x", "sum")], ps.Tumbling(99), "x", "k")[0],
    "sessions": lambda s: s.fold_window([("x", "sum")], ps.Sessions(99), "x", "k")[0],
    "state_machine": lambda s: s.state_machine(
        lambda k, part, n: (n, [(k, x) for x in part["x"].to_pylist()]), key="k", default=0
    ),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", BY_KEY)
def test_equal_values_of_dictionaries_are_one_key(name: str, workers: int) -> None:
    """Of several dictionaries, and of one that has a value twice and null as a value."""
    values = ["a", "b", None, "b", "c", "d", "a", "a", None]

    def build(scope: Any) -> Any:
        batches = [
            pa.record_batch({"k": column, "x": [3 * place + i for i in range(3)]})
            for place, column in enumerate(DICTIONARIES)
        ]
        return BY_KEY[name](scope.batches_to_stream(batches if scope.index == 0 else []))

    found: dict[Any, int] = {}
    for _, (key, x, *_) in collect(build, workers=workers):
        found[key] = found.get(key, 0) + x
    expected = {key: sum(x for x, of in enumerate(values) if of == key) for key in values}
    if name == "semijoin":
        del expected[None]  # which has no partner
    assert found == expected


def test_dictionaries_that_cannot_be_one_are_named(first_cause: Any) -> None:
    def build(scope: Any) -> Any:
        columns = [pa.array(map(str, range(at, at + 99))) for at in (0, 99)]
        kind = pa.dictionary(pa.int8(), pa.string())
        batches = [pa.record_batch({"k": column.cast(kind)}) for column in columns]
        return scope.batches_to_stream(batches).batch(999)

    with pytest.raises(WorkerError, match=r"'k': 'dictionary<.*wider indices") as raised:
        collect(build)
    assert isinstance(first_cause(raised.value), SchemaError)


@pytest.mark.parametrize("workers", [1, 2])
def test_records_without_columns_are_as_many_as_they_were(workers: int) -> None:
    batch = pa.record_batch({"k": [1, 2, 3]}).select([])
    for make, n in (
        (lambda s: s.exchange(), 3),
        (lambda s: s.batch(2), 3),
        (lambda s: s.distinct(), 1),
    ):

        def build(scope: Any, make: Any = make) -> Any:
            return make(scope.batches_to_stream([batch] if scope.index == 0 else []))

        assert collect(build, workers=workers) == [(0, ())] * n


@pytest.mark.parametrize("operator", ["distinct", "exchange"])
def test_a_column_of_which_arrow_takes_no_records_is_named(operator: str, first_cause: Any) -> None:
    batch = pa.record_batch({"x": [1, 2, 3], "k": pa.array(["a", "a", "b"], pa.string_view())})

    def build(scope: Any) -> Any:
        return getattr(scope.batches_to_stream([batch.select(["k"])]), operator)()

    with pytest.raises(WorkerError, match=r"'k' is of type string_view.*large_string") as raised:
        collect(build, workers=2 if operator == "exchange" else 1)
    assert isinstance(first_cause(raised.value), SchemaError)


def test_the_largest_values_of_a_dictionary_are_those_of_its_values() -> None:
    batch = pa.record_batch({"k": pa.array(["b", "c", None, "a"]).dictionary_encode()})
    found = collect(lambda s: s.batches_to_stream([batch]).top_k(2, by="k"))
    assert found == [(0, ("b",)), (0, ("c",))]


def test_no_columns_are_no_key() -> None:
    with pytest.raises(WorkerError, match=r"'Aggregate' cannot be keyed by \[\]"):
        collect(lambda s: s.batches_to_stream([BATCH]).aggregate([("x", "sum")], key=[]))
    with pytest.raises(WorkerError, match=r"Aggregate cannot aggregate 'nothing': its columns are"):
        collect(lambda s: s.batches_to_stream([BATCH]).aggregate([("nothing", "sum")], key="k"))


@pytest.mark.parametrize("key", ["count", ["k", "count"]])
def test_a_key_of_the_name_of_the_answer_is_refused_when_windows_are_built(
    key: Any, first_cause: Any
) -> None:
    with pytest.raises(WorkerError, match="CountWindow calls its answer 'count'") as raised:
        collect(lambda s: s.batches_to_stream([]).count_window(ps.Tumbling(5), "x", key)[0])
    assert isinstance(first_cause(raised.value), BuildError)
