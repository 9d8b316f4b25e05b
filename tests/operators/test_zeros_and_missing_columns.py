"""Keys that differ by container or by the number of workers: both zeros, and columns not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import ColumnError, WorkerError
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
