"""Aggregates so far: against a dictionary per key, on columns of all kinds."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable
from pointstamp.containers import Arrays
from pointstamp.containers.running_totals import FUNCTIONS, RunningTotals
from pointstamp.errors import BuildError, ColumnError, WorkerError

ALL = [("x", function) for function in FUNCTIONS]


def so_far(records: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
    """What is expected of (key, value), one after the other; None is null."""
    values: dict[Any, list[Any]] = defaultdict(list)
    found = []
    for key, value in records:
        if value is not None:
            values[key].append(value)
        of = values[key]
        found.append(
            {
                "count": len(of),
                "sum": sum(of) if of else None,
                "mean": sum(of) / len(of) if of else None,
                "min": min(of) if of else None,
                "max": max(of) if of else None,
            }
        )
    return found


def told(totals: RunningTotals, batch: Any) -> list[dict[str, Any]]:
    found = totals.extended(batch)
    return [{f: row[f"x_{f}"] for f in FUNCTIONS} for row in found.to_pylist()]


keys = st.sampled_from([0, 1, -5, 2**62, None])
texts = st.sampled_from(["", "a", "bb", None])
values = st.one_of(st.none(), st.integers(-(2**40), 2**40))
batches = st.lists(st.lists(st.tuples(keys, values), max_size=12), max_size=5)


@given(batches, st.booleans())
def test_record_by_record(given_: list[list[tuple[Any, Any]]], is_float: bool) -> None:
    totals = RunningTotals("k", ALL, "an example")
    kind = pa.float64() if is_float else pa.int64()
    expected = so_far([record for batch in given_ for record in batch])
    found = []
    for batch in given_:
        ks, xs = zip(*batch, strict=True) if batch else ((), ())
        columns = {"k": pa.array(ks, pa.int64()), "x": pa.array(xs, kind)}
        found += told(totals, pa.record_batch(columns))
    assert found == expected  # sums of such integers are exact as floats, too


@given(st.lists(st.lists(st.tuples(texts, keys, st.integers(0, 9)), max_size=9), max_size=4))
def test_keys_of_texts_and_of_several_columns(given_: list[list[Any]]) -> None:
    by_text, by_both = (RunningTotals(key, ALL, "x") for key in ("t", ["t", "k"]))
    rows = [record for batch in given_ for record in batch]
    found_by_text, found_by_both = [], []
    for batch in given_:
        ts, ks, xs = zip(*batch, strict=True) if batch else ((), (), ())
        made = pa.record_batch(
            {"t": pa.array(ts, pa.string()), "k": pa.array(ks, pa.int64()), "x": pa.array(xs)}
            if batch
            else {
                "t": pa.array([], pa.string()),
                "k": pa.array([], pa.int64()),
                "x": pa.array([], pa.int64()),
            }
        )
        found_by_text += told(by_text, made)
        found_by_both += told(by_both, made)
    assert found_by_text == so_far([(t, x) for t, _, x in rows])
    assert found_by_both == so_far([((t, k), x) for t, k, x in rows])


def test_extremes_keep_their_type() -> None:
    days = [dt.date(2026, 5, 3), None, dt.date(2026, 5, 1)]
    batch = pa.record_batch(
        {
            "k": [1, 1, 1],
            "day": pa.array(days, pa.date32()),
            "small": pa.array([3, 4, 1], pa.int8()),
            "half": pa.array([2.5, np.nan, 1.5], pa.float32()),
        }
    )
    of = [(column, "min") for column in ("day", "small", "half")]
    found = RunningTotals("k", of, "an example").extended(batch)
    assert found.schema.types[4:] == [pa.date32(), pa.int8(), pa.float32()]
    assert found["day_min"].to_pylist() == [days[0], days[0], days[2]]
    assert found["small_min"].to_pylist() == [3, 3, 1]
    assert found["half_min"].to_pylist() == [2.5, 2.5, 1.5]


def test_columns_of_arrays() -> None:
    totals = RunningTotals("k", ALL, "an example")
    found = totals.extended(
        Arrays(k=np.array([1, 2, 1], np.int32), x=np.array([5, 6, 1], np.uint8))
    )
    assert list(found) == [
        (1, 5, 1, 5, 5.0, 5, 5),
        (2, 6, 1, 6, 6.0, 6, 6),
        (1, 1, 2, 5, 3.0, 1, 6),
    ]
    assert found["x_min"].dtype == np.uint8


# As an operator.


def spent(worker: ps.Worker) -> list[Any]:
    found: list[Any] = []
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        stream.running_aggregate([("x", "sum")], "k").inspect_batch(
            lambda time, batch: found.extend((time, *row.values()) for row in batch.to_pylist())
        )
    for epoch in range(3):
        if worker.index == 0:
            input.send_batch(pa.record_batch({"k": list(range(6)), "x": [1 + epoch] * 6}))
        input.advance_to(epoch + 1)
    input.close()
    worker.run()
    return found


@pytest.mark.parametrize("workers", [1, 3])
def test_totals_go_on_from_epoch_to_epoch(workers: int) -> None:
    found = ps.execute(spent, workers=workers, threads=True)
    expected = [(e, k, 1 + e, (1, 3, 6)[e]) for e in range(3) for k in range(6)]
    assert sorted(row for of in found for row in of) == expected


def test_what_is_kept_of_the_keys_is_enough_to_go_on() -> None:
    of = [("x", "sum"), ("x", "mean"), ("x", "max"), ("y", "count")]
    columns = {"t": ["a", None, "b"], "x": [4.0, None, 2.0], "y": [None, None, 1]}
    batch = pa.record_batch(columns)
    first, again, whole = (RunningTotals("t", of, "an example") for _ in range(3))
    first.extended(batch)
    again.restore(first.touched())
    whole.extended(batch)
    assert again.extended(batch).equals(whole.extended(batch))


def test_no_time_is_no_value() -> None:
    times = np.array(["NaT", "2026-05-03", "2026-05-01"], "M8[D]")
    of = [("t", "min"), ("t", "count")]
    found = RunningTotals("k", of, "an example").extended(Arrays(k=[1, 1, 1], t=times))
    assert found["t_min"][1:].tolist() == [dt.date(2026, 5, 3), dt.date(2026, 5, 1)]
    assert found["t_count"].tolist() == [0, 1, 2]


def test_aggregates_that_are_others_do_not_go_on(tmp_path: Any) -> None:
    checkpoint = Checkpoint(tmp_path)

    def main(worker: ps.Worker, function: str) -> None:
        how = Durable(checkpoint, checkpoint.latest())
        with worker.dataflow("totals", durable=how) as scope:
            input, stream = scope.new_input()
            stream.running_aggregate([("x", function)], "k")
        epoch = how.epoch + 1
        input.advance_to(epoch)
        snapshot = worker.snapshot(epoch)
        input.send_batch(pa.record_batch({"k": [1], "x": [2]}))
        input.close()
        worker.step_while(lambda: not snapshot.done)
        checkpoint.commit_manifest(epoch, [snapshot.part], {})

    for _ in range(2):
        ps.execute(main, "max")
    with pytest.raises(
        WorkerError, match=r"'totals/RunningAggregate' keeps in 'x_sum by k'.* kept in 'x_max by k'"
    ):
        ps.execute(main, "sum")


# What is refused.


@pytest.mark.parametrize(
    ("aggregates", "key", "words"),
    [
        ([("x", "median")], "k", r"cannot aggregate by \('x', 'median'\).*'count', 'max'"),
        ([], "k", "takes a list of aggregates"),
        ("x", "k", "takes a list of aggregates"),
        ([("x", "sum"), ("x", "sum")], "k", "twice"),
        ([("x", "sum")], len, "keyed by columns"),
        ([("x", "sum")], None, "keyed by columns"),
    ],
)
def test_what_is_no_aggregate_is_refused(aggregates: Any, key: Any, words: str) -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([1]).running_aggregate(aggregates, key)

    with pytest.raises(WorkerError, match=words) as caught:
        ps.testing.collect(build)
    assert isinstance(caught.value.__cause__, BuildError)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"k": [1], "y": [1]}, "'x'"),
        ({"k": [1], "x": ["a"]}, "has values of string, which have no sum so far"),
        ({"k": [1], "x": [1], "x_sum": [1]}, "cannot add the column 'x_sum'"),
        ({"k": [1, 1], "x": [2**62, 2**62]}, "beyond 64 bits at record 1"),
        ({"k": [1], "x": pa.array([2**63], pa.uint64())}, "integers of 2"),
    ],
)
def test_columns_that_cannot_be_aggregated_are_refused(columns: Any, words: str) -> None:
    def build(scope: ps.Scope) -> Any:
        batch = pa.record_batch(columns)
        return scope.batches_to_stream([batch]).running_aggregate([("x", "sum")], "k")

    with pytest.raises(WorkerError, match=words):
        ps.testing.collect(build)


def test_rows_are_refused() -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([{"k": 1, "x": 2}]).running_aggregate([("x", "sum")], "k")

    with pytest.raises(WorkerError, match="list of Python records"):
        ps.testing.collect(build)


def test_a_column_that_changes_its_type_is_refused() -> None:
    totals = RunningTotals("k", [("x", "sum")], "an example")
    totals.extended(Arrays(k=[1], x=[1]))
    with pytest.raises(ps.errors.SchemaError, match="was of integers before"):
        totals.extended(Arrays(k=[1], x=[1.5]))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(ColumnError, match="'k'"):
        RunningTotals("k", [("x", "sum")], "an example").extended(Arrays(x=[1]))
