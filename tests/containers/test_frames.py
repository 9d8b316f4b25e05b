"""Tables and data frames are given wherever batches are."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers.frames import is_table, record_batches
from pointstamp.errors import ContainerError, SchemaError, WorkerError
from pointstamp.testing import collect

TABLE = pa.table({"k": ["a", "b", "a"], "x": [1, 2, None]})


class Frame:
    """What polars' frames are to others: columns behind Arrow's C stream interface."""

    columns = ("k", "x")

    def __init__(self, table: pa.Table = TABLE) -> None:
        views = pa.schema([("k", pa.string_view()), ("x", pa.int64())])
        self._table = table.cast(views)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


FORMS: list[Any] = [
    TABLE,
    pd.DataFrame({"k": ["a", "b", "a"], "x": pd.array([1, 2, None], "Int64")}, index=[7, 8, 9]),
    Frame(),
    TABLE.to_batches()[0],
]
over_forms = pytest.mark.parametrize("data", FORMS, ids=["table", "pandas", "frame", "batch"])
RECORDS = [("a", 1), ("a", None), ("b", 2)]


def records(build: Any) -> Any:
    """What comes out of a dataflow, without times, in an order."""
    return sorted((record for _, record in collect(build)), key=str)


@over_forms
def test_to_stream_is_a_stream_of_columns(data: Any) -> None:
    assert records(lambda scope: scope.to_stream(data)) == RECORDS
    doubled = records(lambda scope: scope.to_stream(data).aggregate([("x", "sum")], key="k"))
    assert doubled == [("a", 1), ("b", 2)]


def test_categories_of_views_are_those_of_text() -> None:
    views = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None], pa.uint32()), pa.array(["a", "b"], pa.string_view())
    )
    (batch,) = record_batches(pa.table({"k": views}))
    assert batch.schema.field("k").type == pa.dictionary(pa.uint32(), pa.large_string())
    assert batch.take(pa.array([2, 1])).to_pydict() == {"k": [None, "a"]}


@over_forms
def test_streams_of_batches_and_sessions_take_them(data: Any) -> None:
    assert records(lambda scope: scope.batches_to_stream([data])) == RECORDS

    def main(worker: Any) -> list[Any]:
        found: list[Any] = []
        with worker.dataflow() as scope:
            input, one = scope.new_input()
            (unordered, capability), other = scope.unordered_input()
            for stream in (one, other):
                stream.inspect(found.append)
        input.send_batch(data)
        input.close()
        with capability:
            unordered.session(capability).give_batch(data)
        worker.run()
        return found

    (found,) = ps.execute(main)
    assert sorted(found, key=str) == sorted(2 * RECORDS, key=str)


def test_the_batches_of_a_reader_are_read() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=2))
    assert [batch.num_rows for batch in record_batches(reader)] == [2, 1]


def test_single_columns_and_rows_are_no_tables() -> None:
    for data in (pa.array([1]), pa.chunked_array([[1]]), pd.Series([1]), [1], "ab", range(3)):
        assert not is_table(data)
    assert records(lambda scope: scope.to_stream(pd.Series([1, 2]))) == [1, 2]
    with pytest.raises(ContainerError, match=r"pyarrow.*ChunkedArray is no batch"):
        record_batches(pa.chunked_array([[1]]))


def test_what_a_graph_makes_of_a_table_is_columns() -> None:
    edges = pa.table({"src": [1, 3], "dst": [2, 2]})
    found = records(lambda scope: ps.graph.pagerank(scope.to_stream(edges), rounds=0))
    assert [vertex for vertex, _ in found] == [1, 2, 3]


def test_a_batch_of_another_type_is_still_refused() -> None:
    with pytest.raises(WorkerError, match="make it a list of records"):
        records(lambda scope: scope.batches_to_stream([(1, 2)]))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Duplicate column names found: ['a', 'a']"),
        (pd.DataFrame({"a": [1, "x"]}), "Conversion failed for column a with type object"),
        (pd.DataFrame({"a": [object()]}), "Conversion failed for column a with type object"),
        (pd.DataFrame({"a": [1j]}), "Conversion failed for column a with type complex128"),
        (pd.DataFrame({"a": [2**70]}), "too large"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "Sparse pandas data (column a)"),
        (pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="M")}), "'a' of a data frame"),
    ],
)
def test_pandas_frames_that_are_no_columns_of_arrow_are_refused(frame: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(said)):
        list(record_batches(frame))
