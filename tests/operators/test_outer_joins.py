"""Outer joins, semijoins and antijoins per time, against nested loops."""

from __future__ import annotations

import collections
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, ColumnError, ContainerError, SchemaError, WorkerError
from pointstamp.testing import collect

Side = list[tuple[int, int, int]]
"""(time, key, value) of each record, in the order of times."""

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.string()), ("value", pa.int64())])
HOWS = ["inner", "left", "right", "full", "semi", "anti"]


def as_rows(records: Any) -> Any:
    return [(key, value) for key, value in records]


def as_columns(records: Any) -> Any:
    """With keys of two columns, of which one is text."""
    keys, values = [k for k, _ in records], [v for _, v in records]
    return pa.RecordBatch.from_pydict(
        {"key": keys, "text": [str(k) for k in keys], "value": values}, schema=SCHEMA
    )


def run(make: Any, sides: tuple[Side, Side], how: Any, workers: int) -> list[Any]:
    is_rows = make is as_rows

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            handles, streams = zip(*(scope.new_input() for _ in range(2)), strict=True)
            key: Any = (lambda r: r[0]) if is_rows else ["key", "text"]
            schemas = (SCHEMA, SCHEMA)
            found = streams[0].join(streams[1], key, how=how, schemas=schemas)
            found.inspect_batch(
                lambda t, b: out.extend((t, r) for r in ps.containers.kind_of(b).records(b))
            )
        for handle, side in zip(handles, sides, strict=True):
            by_time: Any = collections.defaultdict(list)
            for time, key, value in side[worker.index :: worker.peers]:
                by_time[time].append((key, value))
            for time, records in by_time.items():
                handle.advance_to(time)
                handle.send_batch(make(records))
                worker.step()
            handle.close()
        worker.run()
        return out

    parts = ps.execute(main, workers=workers, threads=True)
    plain = [(t, r if is_rows else from_columns(r, how)) for part in parts for t, r in part]
    return sorted(plain, key=repr)


def from_columns(record: Any, how: str) -> Any:
    """As rows have it."""
    key, text, *values = record
    assert text == str(key)
    if how in ("semi", "anti"):
        return key, values[0]
    return tuple(None if value is None else (key, value) for value in values)


def oracle(sides: tuple[Side, Side], how: str) -> list[Any]:
    found: list[Any] = []
    left, right = sides
    for time, key, value in left:
        partners = [(k, v) for t, k, v in right if (t, k) == (time, key)]
        if how == "semi" or how == "anti":
            found += [(time, (key, value))] if bool(partners) == (how == "semi") else []
            continue
        found += [(time, ((key, value), partner)) for partner in partners]
        if not partners and how in ("left", "full"):
            found.append((time, ((key, value), None)))
    if how in ("right", "full"):
        met = {(t, k) for t, k, _ in left}
        found += [(t, (None, (k, v))) for t, k, v in right if (t, k) not in met]
    return sorted(found, key=repr)


SIDES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 9)), max_size=12
).map(sorted)


@given(SIDES, SIDES, st.sampled_from(HOWS), st.sampled_from([1, 2, 4]),
       st.sampled_from([as_rows, as_columns]))  # fmt: skip
def test_joins_are_those_of_two_loops(
    left: Any, right: Any, how: str, workers: int, make: Any
) -> None:
    assert run(make, (left, right), how, workers) == oracle((left, right), how)


def test_joins_inside_of_a_loop_are_per_round() -> None:
    """Times are in a partial order there: rounds of several epochs."""

    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                loop, again = inner.feedback(1, limit=4)
                here = stream.enter(inner).concat(again)
                loop.connect(here.map(lambda x: x + 1))
                evens = here.filter(lambda x: x % 2 == 0)
                alone = here.join(evens, lambda x: x, how="anti")
                alone.inspect_batch(lambda t, b: out.extend((t, x) for x in b))
        for epoch in range(3):
            input.advance_to(epoch)
            if worker.index == 0:
                input.send(10 * epoch)
        return out

    for workers in (1, 2):
        parts = ps.execute(main, workers=workers, threads=True)
        found = sorted(item for part in parts for item in part)
        odd = [(epoch, turn) for epoch in range(3) for turn in (1, 3)]
        assert found == [((epoch, turn), 10 * epoch + turn) for epoch, turn in odd]


def columns(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def joined(left: Any, right: Any, *key: Any, **options: Any) -> Any:
    out: list[Any] = []

    def build(scope: Any) -> Any:
        streams = [
            scope.batches_to_stream([batch] if batch is not None else []) for batch in (left, right)
        ]
        found = streams[0].join(streams[1], *key, **options)
        return found.inspect_batch(lambda time, batch: out.append(batch))

    collect(build)
    return pa.Table.from_batches(out).sort_by("k").to_pydict() if out else None


def test_keys_are_of_either_side_and_nulls_and_nans_have_no_partner() -> None:
    left = columns(k=pa.array([1, 2, None], pa.int64()), x=["a", "b", "c"])
    right = columns(of=pa.array([2, 3, None], pa.int32()), x=["p", "q", "r"])
    assert joined(left, right, "k", "of", how="full") == {
        "k": [1, 2, 3, None, None],
        "x": ["a", "b", None, "c", None],
        "x_right": [None, "p", "q", None, "r"],
    }
    nan = float("nan")
    floats = columns(k=[1.0, nan], x=[1, 2])
    assert joined(floats, floats, "k", how="semi") == {"k": [1.0], "x": [1]}
    assert joined(floats, floats, "k", how="anti")["x"] == [2]
    rows = collect(lambda s: s.to_stream([nan]).join(s.to_stream([nan]), how="full"))
    assert len(rows) == 2


def test_the_columns_of_a_side_are_learnt_from_any_worker_or_given() -> None:
    left, right = columns(k=[1, 2, 3, 4], x=[1, 2, 3, 4]), columns(k=[9], y=["z"])

    def build(scope: Any, **options: Any) -> Any:
        ones = scope.batches_to_stream([left] if scope.index == 0 else [])
        others = scope.batches_to_stream([right] if scope.index == 1 else [])
        return ones.join(others, "k", how="left", **options)

    assert collect(build, workers=4) == [(0, (n, n, None)) for n in (1, 2, 3, 4)]
    assert joined(left, None, "k", how="left", schemas=(None, right.schema)) == {
        "k": [1, 2, 3, 4], "x": [1, 2, 3, 4], "y": [None] * 4}  # fmt: skip
    assert joined(left, None, "k", how="anti") == {"k": [1, 2, 3, 4], "x": [1, 2, 3, 4]}
    with pytest.raises(WorkerError, match="before the right stream has had any batch"):
        joined(left, None, "k", how="left")


@pytest.mark.parametrize("how", ["inner", "full"])
def test_columns_whose_names_repeat_are_kept_or_refused_and_not_lost(
    how: Any, first_cause: Any
) -> None:
    def joined(left: list[str], right: list[str]) -> Any:
        batches = [
            pa.RecordBatch.from_arrays([pa.array([i]) for i in range(len(names))], names=names)
            for names in (left, right)
        ]

        def build(scope: Any) -> Any:
            one, other = (scope.batches_to_stream([batch]) for batch in batches)
            return one.join(other, "k", how=how)

        return collect(build)

    assert joined(["k", "x", "x"], ["k", "y"]) == [(0, (0, 1, 2, 1))]
    for left, right in ((["k", "x", "x_right"], ["k", "x"]), (["k", "x"], ["k", "x", "x_right"])):
        with pytest.raises(WorkerError, match="two columns 'x_right'") as raised:
            joined(left, right)
        assert isinstance(first_cause(raised.value), ColumnError)


def test_what_cannot_be_joined_so_is_named(first_cause: Any) -> None:
    def cause(**options: Any) -> Any:
        with pytest.raises(WorkerError) as raised:
            collect(lambda s: s.to_stream([1]).join(s.to_stream([2]), **options))
        return first_cause(raised.value)

    assert isinstance(cause(how="outer"), BuildError)
    for how in ("left", "right", "full", "semi", "anti"):
        refused = cause(how=how, retain=True)
        assert isinstance(refused, BuildError)
        assert "'Join' cannot retain" in str(refused)
        assert f"how={how!r}" in str(refused)
    arrays = Arrays(k=[1], x=[2])
    with pytest.raises(WorkerError, match="arrays have none") as raised:
        collect(
            lambda s: s.batches_to_stream([arrays]).join(
                s.batches_to_stream([arrays]), "k", how="full"
            )
        )
    assert isinstance(first_cause(raised.value), ContainerError)
    texts, numbers = columns(k=["a"]), columns(k=[1])
    with pytest.raises(WorkerError) as raised:
        joined(numbers, texts, "k", how="full")
    assert isinstance(first_cause(raised.value), SchemaError)


def test_failures_of_keys_are_routed_from_outer_joins_too() -> None:
    def build(side: int) -> Any:
        def make(scope: Any) -> Any:
            left, right = scope.to_stream(["1", "one"]), scope.to_stream(["2"])
            return left.join(right, int, how="full", on_error="route", name="Match")[side]

        return make

    assert sorted(collect(build(0)), key=repr) == [(0, ("1", None)), (0, (None, "2"))]
    [(_, failed)] = collect(build(1))
    assert (failed.record, failed.operator) == ("one", "MatchLeft")
