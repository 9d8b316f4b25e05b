"""Reductions and the k largest, against sorting all records, on any number of workers."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp.containers import Arrays
from pointstamp.containers.keys import hash_key
from pointstamp.errors import BuildError, DataError, WorkerError
from pointstamp.testing import collect

RECORDS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(0, 99)), max_size=30
)
"""(key, value, number)."""
WORKERS = st.sampled_from([1, 2, 4])


def as_rows(records: Any) -> Any:
    return records


def as_columns(records: Any) -> Any:
    return pa.RecordBatch.from_arrays(
        [pa.array([r[i] for r in records], pa.int64()) for i in range(3)], names=["k", "v", "n"]
    )


def as_arrays(records: Any) -> Any:
    return Arrays(
        {name: np.array([r[i] for r in records], np.int64) for i, name in enumerate("kvn")}
    )


MAKES = st.sampled_from([as_rows, as_columns, as_arrays])


def stream_of(scope: Any, make: Any, records: Any) -> Any:
    """In several batches, of which each worker has some."""
    mine = records[scope.index :: scope.peers]
    parts = [part for part in (mine[::2], mine[1::2]) if part]
    return scope.batches_to_stream([make(part) for part in parts])


@given(RECORDS, WORKERS, MAKES, st.sampled_from(["sum", "min", "max"]))
def test_a_reduction_is_that_of_all_records(
    records: Any, workers: int, make: Any, name: Any
) -> None:
    function: Any = {"sum": lambda a, b: a + b, "min": min, "max": max}[name]
    groups: Any = collections.defaultdict(list)
    for key, value, number in records:
        groups[key].append((value, number))

    def build(scope: Any) -> Any:
        stream = stream_of(scope, make, records)
        if make is not as_rows:
            return stream.reduce(name, key="k")
        return stream.map(lambda r: (r[0], r[1])).reduce(function)

    whole = {"sum": sum, "min": min, "max": max}[name]
    found = sorted((key, value) for _, (key, value, *_) in collect(build, workers=workers))
    assert found == sorted((key, whole(v for v, _ in of)) for key, of in groups.items())
    if make is not as_rows:
        numbers = sorted((r[0], r[2]) for _, r in collect(build, workers=workers))
        assert numbers == sorted((key, whole(n for _, n in of)) for key, of in groups.items())


@given(RECORDS, WORKERS, MAKES, st.integers(1, 5), st.booleans())
def test_the_k_largest_are_those_of_all_records(
    records: Any, workers: int, make: Any, k: int, keyed: bool
) -> None:
    def build(scope: Any) -> Any:
        stream = stream_of(scope, make, records)
        if make is as_rows:
            return stream.top_k(k, lambda r: r[1], (lambda r: r[0]) if keyed else None)
        return stream.top_k(k, "v", "k" if keyed else None)

    found = [tuple(record) for _, record in collect(build, workers=workers)]
    groups: Any = collections.defaultdict(list)
    for record in records:
        groups[record[0] if keyed else None].append(record)
    values = [
        (key, value)
        for key, of in groups.items()
        for value in sorted((r[1] for r in of), reverse=True)[:k]
    ]
    assert sorted((r[0] if keyed else 0, r[1]) for r in found) == sorted(
        (key if keyed else 0, value) for key, value in values
    )
    assert not collections.Counter(found) - collections.Counter(map(tuple, records))
    # Whichever of equals they are, they are the same on any number of workers.
    assert sorted(found) == sorted(tuple(r) for _, r in collect(build, workers=1))


@pytest.mark.parametrize("n", [150, 700])
def test_the_largest_of_many_records_are_chosen_as_those_of_few(n: int) -> None:
    records = [(i * 37 % 11, i) for i in range(n)]
    best = sorted(records, key=lambda r: (-r[0], hash_key(r)))
    for k in (1, 3, 80):
        found = collect(lambda s, k=k: s.to_stream(records).top_k(k, by=lambda r: r[0]))
        assert sorted(record for _, record in found) == sorted(best[:k])


def test_nulls_and_nans_are_in_no_top() -> None:
    values = pa.array([1.0, None, math.nan, 3.0])
    batch = pa.RecordBatch.from_arrays([values], names=["v"])
    assert collect(lambda s: s.batches_to_stream([batch]).top_k(3, "v")) == [
        (0, (1.0,)),
        (0, (3.0,)),
    ]
    rows = collect(lambda s: s.to_stream([1.0, math.nan, 3.0]).top_k(3))
    assert rows == [(0, 1.0), (0, 3.0)]


def test_rows_compared_by_none_are_in_no_top() -> None:
    rows = [("a", None), ("b", 2), ("c", None), ("d", 1)]
    assert collect(lambda s: s.to_stream(rows).top_k(3, by=lambda r: r[1])) == [
        (0, ("b", 2)), (0, ("d", 1))]  # fmt: skip
    assert collect(lambda s: s.to_stream([None, 3, None]).top_k(2)) == [(0, 3)]


class Plain:
    """Of which no hash is stable."""


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 1, "b": b} for b in range(5)],
        [{"a": 1, "b": [{b}, {"c": b}]} for b in range(5)],
        [{"a": 1, "b": ({"c": b},)} for b in range(5)],
    ],
)
def test_ties_of_rows_that_are_no_keys_are_cut_alike_whatever_their_order(rows: Any) -> None:
    def found(rows: Any, workers: int) -> list[Any]:
        def build(scope: Any) -> Any:
            return stream_of(scope, as_rows, rows).top_k(2, by=lambda r: r["a"])

        return sorted((record for _, record in collect(build, workers=workers)), key=repr)

    expected = found(rows, 1)
    assert len(expected) == 2
    assert found(rows[::-1], 1) == found(rows[2:] + rows[:2], 2) == expected
    assert found([dict(reversed(row.items())) for row in rows], 1) == expected


def test_ties_of_objects_are_cut_too() -> None:
    rows = [Plain(), Plain()]
    assert len(collect(lambda s: s.to_stream(rows).top_k(1, by=lambda r: 1))) == 1


def test_texts_and_times_can_be_the_largest() -> None:
    batch = pa.RecordBatch.from_pydict({"v": ["pear", "apple", "plum"], "n": [1, 2, 3]})
    assert collect(lambda s: s.batches_to_stream([batch]).top_k(2, "v")) == [
        (0, ("pear", 1)), (0, ("plum", 3))]  # fmt: skip


def test_records_reduce_by_a_key_and_failures_are_routed() -> None:
    def longest(a: str, b: str) -> str:
        return max(a, b, key=len)

    def build(scope: Any) -> Any:
        return scope.to_stream(["a", "bcd", "be"]).reduce(longest, key=lambda text: text[0])

    assert collect(build) == [(0, ("a", "a")), (0, ("b", "bcd"))]

    def failing(side: int) -> Any:
        return lambda scope: scope.to_stream([("a", 1), ("a", 0), ("b", 4)]).reduce(
            lambda a, b: a // b, on_error="route"
        )[side]

    assert collect(failing(0)) == [(0, ("a", 1)), (0, ("b", 4))]
    [(_, failed)] = collect(failing(1))
    assert (failed.record, failed.operator) == (("a", 0), "Reduce")


def test_what_travels_is_one_record_for_each_key() -> None:
    sent: list[int] = []

    def build(scope: Any) -> Any:
        return scope.to_stream([(x % 2, x) for x in range(1000)]).reduce(max)

    from pointstamp.operators import reductions

    reduced = reductions.reduce_rows
    try:
        reductions.reduce_rows = lambda *args: sent.append(len(found := reduced(*args))) or found
        assert collect(build) == [(0, (0, 998)), (0, (1, 999))]
    finally:
        reductions.reduce_rows = reduced
    assert sent == [2]


def test_what_cannot_be_reduced_is_named(first_cause: Any) -> None:
    def cause(build: Any) -> Any:
        with pytest.raises(WorkerError) as raised:
            collect(build)
        return first_cause(raised.value)

    batch = pa.RecordBatch.from_pydict({"k": [1], "v": [2]})
    columns = lambda s: s.batches_to_stream([batch])  # noqa: E731
    assert "one of ['sum'" in str(cause(lambda s: columns(s).reduce("mean", key="k")))
    assert isinstance(cause(lambda s: columns(s).reduce(max, key="k")), BuildError)
    assert isinstance(cause(lambda s: s.to_stream([1]).reduce(max)), DataError)
    assert isinstance(cause(lambda s: s.to_stream([1]).top_k(0)), BuildError)
    assert "by the name of a column" in str(cause(lambda s: columns(s).top_k(1)))
    by_expression = cause(lambda s: columns(s).top_k(1, by=pc.field("v") + 1))
    assert isinstance(by_expression, BuildError)
    assert "map_batches can add" in str(by_expression)
