"""Records kept by number, of columns that grow and of batches, against a list of all records."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays, kind_of
from pointstamp.containers.join_index import ColumnsIndex
from pointstamp.containers.kept_records import KeptRecords, _Batches, _Columns


def batch_of(form: str, start: int, n: int) -> Any:
    """Records that are told apart by their first column."""
    of = np.arange(start, start + n)
    if form == "arrays":
        return Arrays(a=of, b=of.astype(np.int8), c=of / 2, d=of.astype("M8[s]"), e=of % 2 == 0)
    if form == "objects":
        return Arrays(a=of, b=np.array([(i,) for i in range(n)] + [None], object)[:n])
    columns = {"a": pa.array(of), "b": pa.array(of / 4, pa.float32())}
    if form == "text":
        columns["c"] = pa.array([str(i) for i in range(n)])
    elif form == "times":
        columns["c"] = pa.array(of).cast(pa.timestamp("ms", "UTC"))
        columns["d"] = pa.array(of, pa.int32()).cast(pa.date32())
    else:
        columns["c"] = pa.array([None if form == "nulls" else i for i in range(n)], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize(
    ("forms", "first", "last"),
    [
        (("arrays",), _Columns, _Columns),
        (("objects",), _Batches, _Batches),
        (("text",), _Batches, _Batches),
        (("times",), _Columns, _Columns),
        (("numbers",), _Columns, _Columns),
        (("numbers", "nulls"), _Columns, _Batches),
        (("nulls", "numbers"), _Batches, _Batches),
    ],
)
def test_records_are_those_of_their_numbers(
    forms: tuple[str, ...], first: type, last: type
) -> None:
    @given(st.lists(st.integers(1, 40), min_size=2, max_size=7), st.data())
    def check(sizes: list[int], data: st.DataObject) -> None:
        kept, records = None, []
        for place, n in enumerate(sizes):
            form = forms[0] if place < len(sizes) // 2 else forms[-1]
            batch = batch_of(form, len(records), n)
            if kept is None:
                kept = KeptRecords(batch)
                assert type(kept._kept) is first
            else:
                kept.add(batch)
            records += kind_of(batch).records(batch)
            numbers = st.integers(0, len(records) - 1)
            rows = np.array(data.draw(st.lists(numbers, min_size=1, max_size=30)))
            order, taken = kept.take(rows)
            rows = rows if order is None else rows[order]
            assert sorted(range(len(rows))) == sorted(
                range(len(rows)) if order is None else order.tolist()
            )
            kind = kind_of(taken)
            assert list(kind.records(taken)) == [records[row] for row in rows.tolist()]
            assert kind.schema(taken) == kind.schema(batch)
        assert kept is not None
        assert type(kept._kept) is last
        assert [r for b in kept.batches() for r in kind_of(b).records(b)] == records

    check()


def test_what_was_taken_stays_as_it_is_when_more_comes() -> None:
    kept = KeptRecords(batch_of("arrays", 0, 3))
    (view,) = kept.batches()
    before = list(view)
    _, taken = kept.take(np.array([2, 2]))
    for start in range(3, 60, 3):
        kept.add(batch_of("arrays", start, 3))
    assert list(view) == before
    assert taken["a"].tolist() == [2, 2]


def test_a_join_has_all_pairs_after_a_null_came() -> None:
    day = datetime.date(2024, 1, 1)
    index = ColumnsIndex("k", "k")
    schema = pa.schema({"k": pa.int64(), "x": pa.date32()})
    for values in ([day, day], [None, day]):
        index.add(pa.RecordBatch.from_pydict({"k": [1, 2], "x": values}, schema), time=0)
    asks = pa.RecordBatch.from_pydict({"k": [2, 1, 3]})
    found = [
        (own["k"].to_pylist(), other["x"].to_pylist())
        for _, own, other in index.pairs(asks, lambda time: time)
    ]
    pairs = [pair for keys, days in found for pair in zip(keys, days, strict=True)]
    assert sorted(pairs, key=str) == [(1, None), (1, day), (2, day), (2, day)]
