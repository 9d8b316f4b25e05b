"""Changes of a collection as one row for each key and epoch, or each as often as it is there."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointstamp.collections.schema import schema_of
from pointstamp.errors import ColumnError, DataError, SchemaError
from pointstamp.service.feed_columns import copies
from pointstamp.service.upsert_rows import upsert_schema, upserts_of
from tests.conftest import examples

SCHEMA = schema_of("n long, city string?, country string")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KEY = ["country", "city"]

Change = tuple[int, str | None, str, int, int]
"""A row, a diff and an epoch."""


def batches(changes: list[Change], size: int = 3) -> list[pa.RecordBatch]:
    names = ["n", "city", "country", "diff", "_commit_version"]
    kinds = [pa.int64(), pa.string(), pa.string(), pa.int64(), pa.int64()]
    columns = [*zip(names, kinds, strict=True), ("_commit_timestamp", pa.timestamp("us", "UTC"))]
    rows = [
        dict(zip(names, change, strict=True)) | {"_commit_timestamp": time(change[-1])}
        for change in changes
    ]
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [pa.RecordBatch.from_pylist(part, schema=pa.schema(columns)) for part in parts]


def time(epoch: int) -> dt.datetime:
    return START + dt.timedelta(seconds=epoch)


def found(changes: list[Change], size: int = 3) -> list[tuple[Any, ...]]:
    made = upserts_of(SCHEMA, KEY, "result", batches(changes, size))
    assert made.schema == upsert_schema(SCHEMA, KEY, "result")
    rows = [tuple(row.values()) for row in made.to_pylist()]
    assert all(row[-1] == time(row[-2]) for row in rows)
    return sorted((row[:-1] for row in rows), key=repr)


def test_a_key_has_one_row_in_an_epoch() -> None:
    changes: list[Change] = [
        (1, "Rome", "it", -1, 4),
        (2, "Rome", "it", 1, 4),
        (5, None, "it", -1, 4),
        (2, "Rome", "it", -1, 5),
        (7, "Oslo", "no", 1, 5),
        (9, "Oslo", "us", 1, 5),
    ]
    assert found(changes, 2) == [
        (2, "Rome", "it", False, 4),
        (2, "Rome", "it", True, 5),
        (5, None, "it", True, 4),
        (7, "Oslo", "no", False, 5),
        (9, "Oslo", "us", False, 5),
    ]
    assert found([]) == []
    # As of two workers, of which one has from before what the other one takes away.
    assert found([(1, "a", "b", 1, 3), (1, "a", "b", -1, 3)], 1) == []


@pytest.mark.parametrize("diffs", [(1, 1), (-1, -1), (2, -1)])
def test_a_second_row_of_a_key_is_an_error_that_names_it(diffs: tuple[int, int]) -> None:
    changes = [(1, None, "it", diffs[0], 4), (2, None, "it", diffs[1], 4), (3, "x", "it", 1, 4)]
    with pytest.raises(
        DataError, match="'result' has a second row of the key country='it', city=None in epoch 4"
    ):
        found(changes)


TABLES = st.lists(st.dictionaries(st.sampled_from([None, "a", "b"]), st.integers(0, 2)), max_size=6)


@settings(max_examples=examples(60))
@given(TABLES, st.integers(1, 5))
def test_upserts_have_a_table_be_what_it_is_in_each_epoch(
    tables: list[dict[str | None, int]], size: int
) -> None:
    changes: list[Change] = []
    for epoch, (before, after) in enumerate(pairwise([{}, *tables])):
        for diff, of in ((-1, before.items() - after.items()), (1, after.items() - before.items())):
            changes += [(n, city, "it", diff, epoch) for city, n in of]
    rows = found(changes, size)
    merged: dict[str | None, int] = {}
    for epoch, table in enumerate(tables):
        for n, city, _, is_deleted, at in rows:
            if at == epoch and is_deleted:
                assert merged.pop(city) == n
            elif at == epoch:
                merged[city] = n
        assert merged == table


def test_what_upserts_cannot_be_made_of_is_refused() -> None:
    with pytest.raises(ColumnError, match="upserts of output 'result' is given the column 'x'"):
        upsert_schema(SCHEMA, ["x"], "result")
    with pytest.raises(SchemaError, match="upserts of output 'result' need a key"):
        upsert_schema(SCHEMA, [], "result")
    with pytest.raises(SchemaError, match="has the column '_deleted', which its upserts have"):
        upsert_schema(schema_of("_deleted long"), ["_deleted"], "result")


def test_rows_are_as_many_as_there_are() -> None:
    schema = schema_of("a long")
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "diff": [2, 0, 1]})
    assert [made.to_pydict() for made in copies(schema, batch, "result")] == [{"a": [1, 1, 3]}]
    below = pa.RecordBatch.from_pydict({"a": [1, 2], "diff": [2, -1]})
    with pytest.raises(DataError, match=r"'result' has the row \(2,\) fewer than no times"):
        list(copies(schema, below, "result"))
