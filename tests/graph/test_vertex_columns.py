"""Vertices and weights, from every form that users have them in."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pointstamp.containers import Arrays
from pointstamp.errors import ColumnError, SchemaError
from pointstamp.graph.vertex_columns import vertex_column, weighted_columns


@pytest.mark.parametrize(
    "batch",
    [
        [3, 4],
        Arrays(vertex=[3, 4]),
        Arrays(other=[0, 0], id=np.array([3, 4], np.uint8)),
        pa.RecordBatch.from_pydict({"v": [3, 4]}),
    ],
    ids=["rows", "vertex", "id", "first"],
)
def test_vertices_are_read_from(batch):
    assert vertex_column(batch)["vertex"].tolist() == [3, 4]


@pytest.mark.parametrize(
    "batch",
    [
        [(1, 2, 1), (2, 3, 0.5)],
        Arrays(a=[1, 2], b=[2, 3], c=[1, 0.5]),
        Arrays(weight=[1, 0.5], src=[1, 2], dst=[2, 3]),
        pa.RecordBatch.from_pydict({"src": [1, 2], "dst": [2, 3], "weight": [1.0, 0.5]}),
        pa.RecordBatch.from_pydict(
            {"s": [1, 2], "t": [2, 3], "w": pa.array([1, 0.5], pa.float32())}
        ),
    ],
    ids=["rows", "first three", "named", "arrow", "float32"],
)
def test_weighted_edges_are_read_from(batch):
    assert list(weighted_columns(batch)) == [(1, 2, 1.0), (2, 3, 0.5)]


@pytest.mark.parametrize(
    ("read", "batch", "error", "message"),
    [
        (vertex_column, ["a"], SchemaError, "integers"),
        (vertex_column, Arrays(vertex=[0.5]), SchemaError, "integers in the column 'vertex'"),
        (vertex_column, pa.RecordBatch.from_pydict({"id": [1, None]}), SchemaError, "1 of 2"),
        (vertex_column, Arrays(), ColumnError, "has none"),
        (
            weighted_columns,
            pa.RecordBatch.from_pydict({"src": [1], "dst": [2], "weight": [None]}),
            SchemaError,
            "1 of 1",
        ),
        (
            weighted_columns,
            pa.RecordBatch.from_pydict({"src": [1], "dst": [2], "weight": [Decimal(1)]}),
            SchemaError,
            r"in the column 'weight', not decimal128\(1, 0\): cast them",
        ),
        (weighted_columns, Arrays(src=[1], dst=[2]), ColumnError, "three columns"),
        (weighted_columns, [(1, 2, None)], SchemaError, "triples"),
        (weighted_columns, [(1, 2, -0.5), (1, 2, 1)], SchemaError, "1 of 2 are not"),
    ],
)
def test_what_cannot_be_read_is_refused(read, batch, error, message):
    with pytest.raises(error, match=message):
        read(batch)
