"""Errors as data where records or states are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays, kind_of
from pointstamp.errors import BuildError, DataError
from pointstamp.testing import collect
from tests.dataflow.carried import arrays, cause_of, columns, rows

RECORDS = [(x % 4, x) for x in range(20)]
"""A key and a value. What is refused are the values 0, 5, 10 and 15, all of different keys."""

BAD = [(0, 0), (1, 5), (2, 10), (3, 15)]
GOOD = sorted(record for record in RECORDS if record not in BAD)


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def kept_by_key(records: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted((k, sum(x for of, x in records if of == k)) for k in range(4))


def refuses(record: Any) -> Any:
    value = record[1] if isinstance(record, tuple) else record
    if value % 5 == 0:
        raise ValueError(f"{value} is refused")
    return value


def total(key: Any, record: Any, so_far: int) -> int:
    return so_far + int(refuses(record))


def running(key: Any, record: Any, state: int) -> tuple[int, list[Any]]:
    return state + int(refuses(record)), [record]


def put_together(streams: Any) -> tuple[Any, Any]:
    """All results as one stream, and the failures."""
    *results, failed = streams
    results = results[0] if len(results) == 1 and isinstance(results[0], list) else results
    return results[0].concat(*results[1:]), failed


Act = Callable[[Any, Any], Any]

ON_ROWS: dict[str, Act] = {
    "StateMachineKey": lambda s, on_error: s.state_machine(
        lambda k, r, n: (n + 1, [r]), key=lambda r: refuses(r) % 3, default=0, on_error=on_error
    ),
    "StateMachine": lambda s, on_error: s.state_machine(
        running, key=lambda r: r[0], default=0, on_error=on_error
    ),
    "JoinLeft": lambda s, on_error: s.join(
        s.filter(lambda r: r in GOOD), key=refuses, on_error=on_error
    ),
}
"""Each gives the good records again, in some form."""


def outcome(build: Callable[[Any], Any], workers: int) -> tuple[list[Any], list[Any], int]:
    """(time, record) of the results and of the failures, and how many were dropped."""

    def main(worker: ps.Worker) -> Any:
        found: tuple[list[Any], list[Any]] = ([], [])
        with worker.dataflow() as scope:
            for kept, stream in zip(found, build(scope), strict=False):
                stream.inspect_batch(
                    lambda time, batch, kept=kept: kept.extend(
                        (time, record) for record in kind_of(batch).records(batch)
                    )
                )
        worker.run()
        return *found, sum(worker.dropped.values())

    parts = ps.execute(main, workers=workers, threads=True)
    good, bad = ([item for part in parts for item in part[i]] for i in (0, 1))
    return sorted(good, key=repr), bad, sum(part[2] for part in parts)


@pytest.mark.parametrize("operator", ON_ROWS)
def test_what_fails_on_a_record_goes_beside_the_stream(operator: str, workers: int) -> None:
    act = ON_ROWS[operator]

    def plain(record: Any) -> Any:
        return record[0] if isinstance(record[0], tuple) else record

    def build(scope: Any) -> Any:
        return put_together(act(rows(scope, "kx", RECORDS), "route"))

    good, bad, dropped = outcome(build, workers)
    assert sorted(plain(record) for _, record in good) == GOOD
    assert sorted(failed.record for _, failed in bad) == BAD
    assert {failed.operator for _, failed in bad} == {operator}
    assert {str(failed.error) for _, failed in bad} == {f"{x} is refused" for x in (0, 5, 10, 15)}
    assert {time for time, _ in bad} == {0}
    assert dropped == 0


@pytest.mark.parametrize("operator", ON_ROWS)
def test_what_fails_on_a_record_may_be_dropped_and_is_counted(operator: str) -> None:
    def build(scope: Any) -> Any:
        streams = ON_ROWS[operator](rows(scope, "kx", RECORDS), "drop")
        return put_together((*streams, None) if isinstance(streams, tuple) else (streams, None))[:1]

    good, _, dropped = outcome(build, 2)
    assert (len(good), dropped) == (len(GOOD), 4)


def test_an_aggregate_stays_as_it_was_before_what_failed(workers: int) -> None:
    def build(scope: Any) -> Any:
        return rows(scope, "kx", RECORDS).aggregate(total, default=0, on_error="route")

    good, bad, _ = outcome(build, workers)
    assert [record for _, record in good] == kept_by_key(GOOD)
    assert sorted(failed.record for _, failed in bad) == BAD
    assert {failed.operator for _, failed in bad} == {"Aggregate"}


def test_of_failures_alone_there_is_no_aggregate(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = rows(scope, "kx", [(7, 5), (8, 1)])
        return stream.aggregate(total, default=0, on_error="route")

    good, bad, _ = outcome(build, workers)
    assert good == [(0, (8, 1))]
    assert [failed.record for _, failed in bad] == [(7, 5)]


def test_what_emit_fails_on_is_the_key_with_its_aggregate(workers: int) -> None:
    def emit(key: int, so_far: int) -> int:
        return so_far // (key - 1)

    def build(scope: Any) -> Any:
        stream = rows(scope, "kx", [(1, 2), (1, 4), (3, 9)])
        return stream.aggregate(lambda k, x, n: n + x, emit, default=0, on_error="route")

    good, bad, _ = outcome(build, workers)
    assert good == [(0, 4)]
    assert [(f.record, type(f.error)) for _, f in bad] == [((1, 6), ZeroDivisionError)]


def test_records_that_are_no_pairs_have_no_key(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([(1, 2), 3, (4, 5, 6)] if scope.index == 0 else [])
        return stream.aggregate(lambda k, x, n: n + x, default=0, on_error="route")

    good, bad, _ = outcome(build, workers)
    assert good == [(0, (1, 2))]
    assert sorted(map(str, (f.record for _, f in bad))) == ["(4, 5, 6)", "3"]
    assert {f.operator for _, f in bad} == {"AggregateKey"}


def test_a_state_stays_as_it_was_before_what_failed() -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([("a", x) for x in (1, 5, 2, 0, 3)])
        return stream.delay(lambda r, time: [1, 5, 2, 0, 3].index(r[1])).state_machine(
            lambda key, x, n: (n + refuses(x), [n + x]), default=0, on_error="route"
        )

    good, bad, _ = outcome(build, 1)
    assert good == [(0, 1), (2, 3), (4, 6)]
    assert [(time, f.record) for time, f in bad] == [(1, ("a", 5)), (3, ("a", 0))]


@pytest.mark.parametrize("make", [columns, arrays])
def test_on_columns_a_fold_fails_for_the_records_of_a_key(make: Any, workers: int) -> None:
    def of_two(key: int, batch: Any) -> Any:
        if key == 2:
            raise ValueError("not 2")
        return batch

    def aggregated(scope: Any) -> Any:
        return make(scope, "kx", RECORDS).aggregate(
            lambda key, batch, n: n + len(of_two(key, batch)), key="k", default=0, on_error="route"
        )

    def machine(scope: Any) -> Any:
        return make(scope, "kx", RECORDS).state_machine(
            lambda key, batch, n: (1, of_two(key, batch)), key="k", on_error="route"
        )

    for build, expected in (
        (aggregated, [(0, (k, 5)) for k in (0, 1, 3)]),
        (machine, sorted(((0, r) for r in RECORDS if r[0] != 2), key=repr)),
    ):
        good, bad, _ = outcome(build, workers)
        assert good == expected
        ((time, failed),) = bad
        assert (time, sorted(kind_of(failed.record).records(failed.record))) == (
            0,
            [r for r in RECORDS if r[0] == 2],
        )
    _, _, dropped = outcome(
        lambda s: [
            make(s, "kx", RECORDS).aggregate(
                lambda key, batch, n: len(of_two(key, batch)), key="k", on_error="drop"
            )
        ],
        workers,
    )
    assert dropped == 5


def test_what_is_made_of_named_aggregates_may_fail(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = columns(scope, "kx", RECORDS)
        return stream.aggregate([("x", "sum")], lambda batch: 1 / 0, key="k", on_error="route")

    good, bad, _ = outcome(build, workers)
    assert good == []
    assert sum(len(failed.record) for _, failed in bad) == 4


def test_accumulate_leaves_out_the_batches_on_which_it_fails(workers: int) -> None:
    def logic(seen: int, batch: list[Any]) -> int:
        return seen + sum(map(refuses, batch))

    def build(scope: Any) -> Any:
        batches = [[(0, 1), (0, 2)], [(0, 3), (0, 5)], [(0, 4)]] if scope.index == 0 else [[(0, 5)]]
        return scope.batches_to_stream(batches).accumulate(0, logic, on_error="route")

    good, bad, _ = outcome(build, workers)
    # Small batches may have been put together on the way.
    lost = sum(x for _, f in bad for _, x in f.record if x != 5)
    assert sum(value for _, value in good) + lost == 10
    assert sum(len([x for _, x in f.record if x == 5]) for _, f in bad) == workers
    assert len(good) <= 1  # a worker on which all failed has no value


@pytest.mark.parametrize("make", [columns, arrays])
def test_a_column_of_booleans_is_a_predicate_that_may_fail(make: Any, workers: int) -> None:
    """A name is no function of a record: it is asked of the batch."""

    def flagged(scope: Any) -> Any:
        def flag(batch: Any) -> Any:
            if isinstance(batch, Arrays):
                return Arrays({**dict(batch), "even": batch["x"] % 2 == 0})
            even = pc.equal(pc.bit_wise_and(batch["x"], 1), 0)
            return pa.RecordBatch.from_pydict({"k": batch["k"], "x": batch["x"], "even": even})

        return make(scope, "kx", RECORDS).map_batches(flag)

    even = [(*r, True) for r in RECORDS if r[1] % 2 == 0]
    good, bad, _ = outcome(lambda s: flagged(s).filter("even", on_error="route"), workers)
    assert ([record for _, record in good], bad) == (sorted(even, key=repr), [])
    good, bad, _ = outcome(lambda s: flagged(s).filter("x", on_error="route"), workers)
    assert (good, {type(f.error) for _, f in bad}) == ([], {ps.errors.SchemaError})


def test_a_column_of_rows_is_an_error_of_the_program() -> None:
    def build(scope: Any) -> Any:
        return rows(scope, "kx", RECORDS).filter("k", on_error="route")[0]

    _, cause = cause_of(build)
    assert isinstance(cause, ps.errors.ColumnError)


def test_a_window_takes_the_records_that_have_a_time_and_a_key(workers: int) -> None:
    def build(scope: Any) -> Any:
        stream = rows(scope, "kx", RECORDS)
        done, late, failed = stream.window(
            ps.Tumbling(10), time=refuses, key=lambda r: 12 // r[0], on_error="route"
        )
        return done.concat(late), failed

    good, bad, _ = outcome(build, workers)
    found = [record for _, window in good for record in window.records]
    assert sorted(found) == [r for r in GOOD if r[0]]
    assert sorted(f.record for _, f in bad) == sorted({*BAD, *(r for r in RECORDS if not r[0])})
    assert {f.operator for _, f in bad} == {"Window"}


def test_columns_without_event_times_fail_for_their_batch(workers: int) -> None:
    def build(scope: Any) -> Any:
        good = pa.RecordBatch.from_pydict({"t": pa.array([1, 2], pa.int64())})
        bad = pa.RecordBatch.from_pydict({"t": pa.array([None], pa.int64())})
        batches = [good.slice(0, 2), bad] if scope.index == 0 else []
        stream = scope.source(lambda capability, info: _each_alone(capability, batches))
        done, late, failed = stream.window(ps.Tumbling(10), time="t", on_error="route")
        return done.concat(late), failed

    good, bad, _ = outcome(build, workers)
    assert [record for _, record in good] == [(1, 0, 10), (2, 0, 10)]
    assert [(f.record["t"].to_pylist(), type(f.error)) for _, f in bad] == [([None], DataError)]


def _each_alone(capability: Any, batches: list[Any]) -> Any:
    """Sends each batch by itself: a session puts small ones together."""
    left = list(batches)

    def logic(output: Any) -> bool:
        if left:
            output.session(capability).give_batch(left.pop(0))
            return True
        capability.drop()
        return False

    return logic


def test_a_join_says_on_which_side_a_key_failed(workers: int) -> None:
    def build(scope: Any) -> Any:
        left, right = (rows(scope, "kx", records) for records in ([(0, 5), (0, 1)], [(0, 1)]))
        right = right.concat(rows(scope, "kx", [(1, 10)]))
        return left.join(right, key=refuses, on_error="route")

    good, bad, _ = outcome(build, workers)
    assert good == [(0, ((0, 1), (0, 1)))]
    assert sorted((f.operator, f.record) for _, f in bad) == [
        ("JoinLeft", (0, 5)),
        ("JoinRight", (1, 10)),
    ]


@pytest.mark.parametrize(
    "act",
    [
        lambda s, f: s.partition(2, f),
        lambda s, f: s.branch_when(f),
        lambda s, f: s.ok_err(f),
        lambda s, f: s.delay(f),
        lambda s, f: s.delay_batch(f),
        lambda s, f: s.distribute(f),
        lambda s, f: s.exchange(f),
        lambda s, f: s.accumulate(0, f),
        lambda s, f: s.aggregate(f),
        lambda s, f: s.state_machine(f),
        lambda s, f: s.join(s, f),
        lambda s, f: s.window(ps.Tumbling(3), time=f),
        lambda s, f: s.iterate(lambda again: again, until=f),
    ],
)
def test_code_that_would_never_be_awaited_is_refused(act: Any) -> None:
    """What it gives is true whatever it says, or no key, or no time."""

    async def always(*args: Any) -> bool:
        return True

    with pytest.raises(ps.errors.WorkerError, match="is an async def") as caught:
        collect(lambda scope: act(rows(scope, "kx", RECORDS), always))
    assert isinstance(caught.value.__cause__, BuildError)


@pytest.mark.parametrize("make", [columns, arrays])
def test_a_loop_may_stop_by_a_column_of_booleans(make: Any, workers: int) -> None:
    def count_down(batch: Any) -> Any:
        numbers = [max(0, x - 1) for x, *_ in kind_of(batch).records(batch)]
        done = [x == 0 for x in numbers]
        if isinstance(batch, Arrays):
            return Arrays(x=numbers, done=done)
        return pa.RecordBatch.from_pydict({"x": pa.array(numbers, pa.int64()), "done": done})

    def build(scope: Any) -> Any:
        stream = make(scope, "x", [(3,), (5,), (1,)]).map_batches(count_down)
        return stream.iterate(lambda again: again.map_batches(count_down), until="done", limit=20)

    assert collect(build, workers) == [(0, (0, True))] * 3
