"""Operators that route: partition, branch_when, ok_err, distribute; all containers and workers."""

from __future__ import annotations

import collections
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import (
    BuildError,
    ColumnError,
    ContainerError,
    RouteError,
    SchemaError,
)
from pointstamp.testing import collect
from tests.dataflow.carried import (
    Run,
    arrays,
    cause_of,
    columns,
    over_containers,
    over_runs,
    rows,
)

NUMBERS = [(x, x % 3) for x in range(20)]
"""A number, and where it goes."""


def named(streams: list[Any]) -> Any:
    """(number of the stream, record) of each record of each of the streams."""
    marked = [
        stream.map_batches(lambda batch, i=i: [(i, r) for r in kind_of(batch).records(batch)])
        for i, stream in enumerate(streams)
    ]
    return marked[0].concat(*marked[1:])


@over_containers
@over_runs
def test_partition_sends_each_record_where_its_route_says(make: Any, run: Run) -> None:
    route = "y" if make is not rows else lambda r: r[1]
    found = run(lambda scope: named(make(scope, "xy", NUMBERS).partition(4, route)))
    assert found == sorted((0, (y, (x, y))) for x, y in NUMBERS)


@over_runs
def test_partition_by_an_expression(run: Run) -> None:
    low_bits = pc.bit_wise_and(pc.field("x"), 3)
    found = run(lambda scope: named(columns(scope, "xy", NUMBERS).partition(4, low_bits)))
    assert found == sorted((0, (x & 3, (x, y))) for x, y in NUMBERS)


def test_partition_keeps_the_order_of_records() -> None:
    seen: list[int] = []

    def build(scope: Any) -> Any:
        _, odd = scope.to_stream(range(100)).partition(2, lambda x: x % 2)
        return odd.inspect(seen.append)

    collect(build)
    assert seen == list(range(1, 100, 2))


@pytest.mark.parametrize("make", [rows, columns, arrays], ids=lambda make: make.__name__)
@pytest.mark.parametrize("bad", [3, -1])
def test_an_index_that_no_stream_has_is_named(make: Any, bad: int) -> None:
    route = "y" if make is not rows else lambda r: r[1]

    def build(scope: Any) -> Any:
        return named(make(scope, "xy", [(1, 0), (2, bad)]).partition(3, route))

    error, cause = cause_of(build)
    assert isinstance(cause, RouteError)
    assert error.operator == "Partition"
    assert f"routed to {bad}" in str(cause)
    assert "0 to 2" in str(cause)


NULL = pa.RecordBatch.from_pydict({"y": pa.array([0, None], pa.int64())})
TEXT = pa.RecordBatch.from_pydict({"y": pa.array(["0"])})


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda s: s.to_stream([1]).partition(2, lambda x: "a")[0], RouteError, ["'a' (str)"]),
        (lambda s: s.to_stream([1]).partition(0, lambda x: 0)[0], BuildError, ["0 were asked"]),
        (lambda s: s.to_stream([(1,)]).partition(2, "y")[0], ColumnError, ["'y'", "r[0]"]),
        (lambda s: s.to_stream([1]).partition(2, 5)[0], BuildError, ["found 5"]),
        (lambda s: s.to_stream([1]).partition(2, pc.field("y"))[0], ContainerError, ["rows"]),
        (lambda s: columns(s, "xy", NUMBERS).partition(3, "z")[0], ColumnError, ["'z'", "'x'"]),
        (
            lambda s: columns(s, "xy", NUMBERS).partition(3, pc.field("z") + 1)[0],
            ColumnError,
            ["(z, 1)", "'x'"],
        ),
        (lambda s: columns(s, "xy", NUMBERS).partition(3, len)[0], ContainerError, ["batches"]),
        (lambda s: s.batches_to_stream([NULL]).partition(2, "y")[0], SchemaError, ["1 of 2"]),
        (lambda s: s.batches_to_stream([TEXT]).partition(2, "y")[0], SchemaError, ["string"]),
    ],
    ids=["text", "none", "name on rows", "no route", "expression on rows", "no column",
         "no column in expression", "function on columns", "null", "text column"],
)  # fmt: skip
def test_a_route_that_does_not_fit_is_named(build: Any, kind: Any, words: list[str]) -> None:
    _, cause = cause_of(build)
    assert isinstance(cause, kind)
    for word in words:
        assert word in str(cause)


@over_containers
@over_runs
def test_branch_when_gives_the_batches_by_their_time(make: Any, run: Run) -> None:
    at = "y" if make is not rows else lambda r, time: r[1]

    def build(scope: Any) -> Any:
        stream = make(scope, "xy", NUMBERS).delay(at)
        return named(list(stream.branch_when(lambda time: time == 1)))

    assert run(build) == sorted((y, (int(y == 1), (x, y))) for x, y in NUMBERS)


@over_runs
def test_ok_err_gives_the_values_of_ok_and_of_err(run: Run) -> None:
    def half(record: Any) -> Any:
        x, _ = record
        return ps.Ok(x // 2) if x % 2 == 0 else ps.Err(f"{x} is odd")

    found = run(lambda scope: named(list(rows(scope, "xy", NUMBERS).ok_err(half))))
    ok = [(0, (0, x // 2)) for x, _ in NUMBERS if x % 2 == 0]
    assert found == sorted(ok) + sorted((0, (1, f"{x} is odd")) for x, _ in NUMBERS if x % 2)


@over_runs
def test_ok_err_by_an_expression(run: Run) -> None:
    def build(scope: Any) -> Any:
        return named(list(columns(scope, "xy", NUMBERS).ok_err(pc.field("x") < 5)))

    assert run(build) == sorted((0, (int(x >= 5), (x, y))) for x, y in NUMBERS)


def test_where_an_expression_is_null_the_record_is_not_ok() -> None:
    batch = pa.RecordBatch.from_pydict({"x": pa.array([1, None], pa.int64())})
    found = collect(lambda s: named(list(s.batches_to_stream([batch]).ok_err(pc.field("x") > 0))))
    assert found == [(0, (0, (1,))), (0, (1, (None,)))]


def test_what_is_neither_ok_nor_err_is_named() -> None:
    error, cause = cause_of(lambda scope: scope.to_stream([7]).ok_err(lambda x: x)[0])
    assert isinstance(cause, RouteError)
    assert error.operator == "OkErr"
    assert "gave 7 (int) for the record 7" in str(cause)


@over_containers
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_distribute_sends_whole_batches_where_the_function_says(make: Any, workers: int) -> None:
    arrived: dict[Any, list[int]] = collections.defaultdict(list)

    def build(scope: Any) -> Any:
        def note(time: Any, batch: Any) -> None:
            (number,) = {r[1] for r in kind_of(batch).records(batch)}
            arrived[number].append((scope.index, kind_of(batch).length(batch)))

        def route(time: Any, batch: Any) -> int:
            assert time == 0
            return next(iter(kind_of(batch).records(batch)))[1] % scope.peers

        # Batches as they are made: of up to 3 records, all with the same second number.
        same = [(x, number) for number in range(5) for x in range(3 * scope.peers)]
        stream = scope.concatenate(
            [make(scope, "xy", [r for r in same if r[1] == number]) for number in range(5)]
        )
        return stream.distribute(route).inspect_batch(note)

    found = collect(build, workers)
    assert len(found) == 5 * 3 * workers
    assert arrived == {number: [(number % workers, 3)] * workers for number in range(5)}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_is_not_there_is_named(workers: int) -> None:
    _, cause = cause_of(lambda s: s.to_stream("ab").distribute(lambda time, batch: 2), workers)
    assert isinstance(cause, RouteError)
    assert "a batch of 2 records at 0 was routed to 2" in str(cause)
    assert f"0 to {workers - 1}" in str(cause)


@over_runs
def test_all_batches_on_one_worker_and_time_passes(run: Run) -> None:
    """What is routed whole is counted like what is not: later times come."""

    def build(scope: Any) -> Any:
        stream = rows(scope, "xy", NUMBERS).delay(lambda r, time: r[1])
        return stream.distribute(lambda time, batch: time % scope.peers).count()

    found: collections.Counter[int] = collections.Counter()
    for time, n in run(build):
        found[time] += n
    assert found == collections.Counter(y for _, y in NUMBERS)


def flagged(kind: str) -> Any:
    """The numbers up to 19 with a column that says which are small, in batches of one kind."""

    def make(scope: Any) -> Any:
        mine = range(scope.index, 20, scope.peers)
        small = [x < 5 for x in mine]
        if kind == "arrays":
            return scope.batches_to_stream([Arrays(x=list(mine), small=small)])
        return scope.batches_to_stream([pa.RecordBatch.from_pydict({"x": mine, "small": small})])

    return make


@pytest.mark.parametrize("kind", ["columns", "arrays"])
@over_runs
def test_a_predicate_may_be_a_column_of_booleans(run: Run, kind: str) -> None:
    make = flagged(kind)
    expected = sorted((0, (int(x >= 5), (x, x < 5))) for x in range(20))
    assert run(lambda scope: named(list(make(scope).ok_err("small")))) == expected
    assert run(lambda scope: named(list(make(scope).branch("small"))[::-1])) == expected
    assert run(lambda scope: make(scope).filter("small")) == [(0, (x, True)) for x in range(5)]


@pytest.mark.parametrize(
    ("batch", "kind", "words"),
    [
        ([(1, True)], ColumnError, ["'ok'", "r[0]"]),
        (Arrays(x=[1]), ColumnError, ["'ok'", "'x'"]),
        (Arrays(ok=[1]), SchemaError, ["booleans", "int64"]),
        (TEXT.rename_columns(["ok"]), SchemaError, ["booleans", "string"]),
        (TEXT, ColumnError, ["'ok'", "'y'"]),
    ],
    ids=["rows", "no column", "integers", "text", "no column of Arrow"],
)
@pytest.mark.parametrize("method", ["ok_err", "branch"])
def test_a_predicate_that_is_no_column_of_booleans_is_named(
    batch: Any, kind: Any, words: list[str], method: str
) -> None:
    _, cause = cause_of(lambda s: getattr(s.batches_to_stream([batch]), method)("ok")[0])
    assert isinstance(cause, kind)
    for word in words:
        assert word in str(cause)


def test_a_flag_that_is_null_is_not_true() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2, 3], "ok": [None, True, False]})
    found = collect(lambda s: named(list(s.batches_to_stream([batch]).ok_err("ok"))))
    assert found == [(0, (0, (2, True))), (0, (1, (1, None))), (0, (1, (3, False)))]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_records_for_which_an_expression_is_equal_meet(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = columns(scope, "x", [(x,) for x in range(12)])
        met = stream.exchange(pc.field("x") - pc.field("x") / 3 * 3)
        return met.map_batches(lambda batch: [(x, scope.index) for x in batch["x"].to_pylist()])

    found = [record for _, record in collect(build, workers)]
    assert [x for x, _ in found] == list(range(12))
    where = {(x % 3, worker) for x, worker in found}
    assert len(where) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_event_times_are_computed_by_an_expression(workers: int) -> None:
    def build(scope: Any) -> Any:
        done, _ = columns(scope, "x", [(1,), (4,)]).window(ps.Tumbling(10), time=pc.field("x") * 3)
        return done

    assert collect(build, workers) == [(10, (1, 0, 10)), (20, (4, 10, 20))]
