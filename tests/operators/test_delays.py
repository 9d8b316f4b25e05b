"""Operators that keep records for later: the delays, and reclock; all containers and workers."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.errors import (
    BuildError,
    CapabilityError,
    ColumnError,
    ContainerError,
    SchemaError,
    TimestampError,
    WorkerError,
)
from pointstamp.testing import collect
from tests.dataflow.carried import (
    Run,
    cause_of,
    columns,
    over_containers,
    over_runs,
    rows,
    settle,
)

RECORDS = [(x, x * x % 11) for x in range(30)]
"""A number, and the time that it is moved to."""


@over_containers
@over_runs
@pytest.mark.parametrize("method", ["delay", "delay_total"])
def test_delay_moves_each_record_to_its_time(make: Any, run: Run, method: str) -> None:
    at = "t" if make is not rows else lambda r, time: time + r[1]
    found = run(lambda scope: getattr(make(scope, "xt", RECORDS), method)(at))
    assert found == sorted((t, (x, t)) for x, t in RECORDS)


@over_runs
def test_delay_by_an_expression(run: Run) -> None:
    found = run(lambda scope: columns(scope, "xt", RECORDS).delay(pc.field("t") * 2))
    assert found == sorted((2 * t, (x, t)) for x, t in RECORDS)


@over_containers
@over_runs
def test_delay_batch_moves_batches_from_time_to_time(make: Any, run: Run) -> None:
    at = "t" if make is not rows else lambda r, time: time + r[1]

    def build(scope: Any) -> Any:
        return make(scope, "xt", RECORDS).delay(at).delay_batch(lambda time: time - time % 4 + 3)

    assert run(build) == sorted((t - t % 4 + 3, (x, t)) for x, t in RECORDS)


def capabilities_of(operator: str) -> list[Any]:
    """The times of all capabilities that an operator holds in this process."""
    gc.collect()
    found = [c for c in gc.get_objects() if issubclass(type(c), ps.Capability)]
    return sorted(c.time for c in found if c.live and repr(operator) in repr(c))


@pytest.mark.parametrize("method", ["delay", "delay_total"])
def test_one_capability_for_each_distinct_time_until_it_is_complete(method: str) -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            delayed = getattr(stream, method)(lambda x, time: x)
            delayed.inspect_batch(lambda time, batch: out.append((time, batch)))
        name = "Delay" if method == "delay" else "DelayTotal"

        def at(time: int) -> list[Any]:
            input.advance_to(time)
            settle(worker)
            return capabilities_of(name)

        for x in (5, 3, 5, 3, 3, 9):
            input.send(x)
        held = [at(1), at(3)]
        assert out == []
        held.append(at(4))
        assert out == [(3, [3, 3, 3])]
        input.send(5)
        held += [at(5), at(6)]
        assert out == [(3, [3, 3, 3]), (5, [5, 5, 5])]
        held.append(at(10))
        assert out[2:] == [(9, [9])]
        return held

    assert ps.execute(main, threads=True) == [
        [[3, 5, 9], [3, 5, 9], [5, 9], [5, 9], [9], []],
    ]


def test_a_time_for_which_records_wait_already_is_checked_too() -> None:
    """What came at time 0 waits for 2; what came at 3 may not join it."""

    def main(worker: Any) -> None:
        with worker.dataflow() as scope:
            early, first = scope.new_input("early")
            late, second = scope.new_input("late")
            first.concat(second).delay(lambda x, time: 2)
        early.send("a")
        settle(worker)
        late.advance_to(3)
        late.send("b")

    with pytest.raises(WorkerError) as caught:
        ps.execute(main)
    assert isinstance(caught.value.__cause__, CapabilityError)
    assert "'Delay' cannot delay its capability from 3 to 2" in str(caught.value)


@pytest.mark.parametrize(
    ("build", "kind", "words"),
    [
        (lambda s: s.delay_batch(lambda t: 3).delay(lambda r, t: 2), CapabilityError,
         ["'Delay'", "from 3 to 2"]),
        (lambda s: s.delay_batch(lambda t: 3).delay_total(lambda r, t: 2), CapabilityError,
         ["'DelayTotal'", "from 3 to 2"]),
        (lambda s: s.delay_batch(lambda t: 3).delay_batch(lambda t: 2), CapabilityError,
         ["'DelayBatch'", "from 3 to 2"]),
        (lambda s: s.delay(lambda r, t: "soon"), TimestampError, ["'soon'"]),
        (lambda s: s.delay(lambda r, t: [t]), TimestampError,
         ["'Delay'", "(1, 2)", "from 0 to [0]"]),
        (lambda s: s.delay_batch(lambda t: -1), TimestampError, ["-1"]),
        (lambda s: s.delay("x"), ColumnError, ["'x'"]),
        (lambda s: s.delay(pc.field("x")), ContainerError, ["rows"]),
    ],
    ids=["rows", "total", "batches", "text", "list", "negative", "name on rows",
         "expression on rows"],
)  # fmt: skip
def test_a_time_that_rows_cannot_go_to_is_named(build: Any, kind: Any, words: list[str]) -> None:
    _, cause = cause_of(lambda scope: build(scope.to_stream([(1, 2)])))
    assert isinstance(cause, kind)
    for word in words:
        assert word in str(cause)


@pytest.mark.parametrize(
    ("values", "at", "kind", "words"),
    [
        ([4, 2], "x", CapabilityError, ["from 3 to 2"]),
        ([4, 5], pc.field("x") - 3, CapabilityError, ["from 3 to 1"]),
        ([4, -5], "x", TimestampError, ["-5"]),
        ([4, None], "x", SchemaError, ["1 of 2"]),
        ([4.5], "x", SchemaError, ["double"]),
        ([4], "y", ColumnError, ["'y'"]),
        ([4], lambda record, time: 4, ContainerError, ["record batches"]),
    ],
    ids=["back", "back by expression", "negative", "null", "float", "no column", "function"],
)
def test_a_time_that_columns_cannot_go_to_is_named(
    values: list[Any], at: Any, kind: Any, words: list[str]
) -> None:
    batch = pa.RecordBatch.from_pydict({"x": values})
    _, cause = cause_of(
        lambda scope: scope.batches_to_stream([batch]).delay_batch(lambda t: 3).delay(at)
    )
    assert isinstance(cause, kind)
    for word in words:
        assert word in str(cause)


def test_inside_a_loop_times_are_pairs_and_a_total_delay_is_refused() -> None:
    def build(scope: Any, method: str) -> Any:
        with scope.iterative() as inner:
            stream = scope.to_stream([1, 2]).enter(inner)
            delayed = getattr(stream, method)(lambda x, time: (time[0] + x, x))
            return delayed.map_batches(lambda b: list(b)).leave()

    assert collect(lambda scope: build(scope, "delay")) == [(1, 1), (2, 2)]
    _, cause = cause_of(lambda scope: build(scope, "delay_total"))
    assert isinstance(cause, BuildError)
    assert "Product(Int, Int)" in str(cause)


def clocked(records: list[tuple[int, int]], ticks: list[int]) -> list[tuple[int, Any]]:
    """The oracle: each record at the first tick that is not before it."""
    found = []
    for x, t in records:
        later = [tick for tick in ticks if tick >= t]
        if later:
            found.append((min(later), (x, t)))
    return sorted(found)


@over_containers
@over_runs
def test_reclock_gives_each_record_at_the_next_time_of_the_clock(make: Any, run: Run) -> None:
    at = "t" if make is not rows else lambda r, time: r[1]
    ticks = [2, 3, 7]

    def build(scope: Any) -> Any:
        clock = scope.to_stream(ticks).delay(lambda x, time: x)
        return make(scope, "xt", RECORDS).delay(at).reclock(clock)

    assert run(build) == clocked(RECORDS, ticks)
    assert len(clocked(RECORDS, ticks)) < len(RECORDS)  # some come after the last tick


@pytest.mark.parametrize("seed", range(12))
def test_reclock_for_random_times_and_schedules(seed: int) -> None:
    random_ = random.Random(seed)
    records = [(x, random_.randrange(20)) for x in range(random_.randrange(40))]
    ticks = [random_.randrange(20) for _ in range(random_.randrange(6))]

    def build(scope: Any) -> Any:
        mine = ticks if scope.index == 0 else []
        clock = scope.to_stream(mine).delay(lambda x, time: x).broadcast()
        return rows(scope, "xt", records).delay(lambda r, time: r[1]).reclock(clock)

    assert collect(build, workers=3, seed=seed) == clocked(records, ticks)


def test_reclock_waits_for_the_clock_and_for_the_data() -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            data, records = scope.new_input("data")
            clock, ticks = scope.new_input("clock")
            records.reclock(ticks).inspect_batch(lambda time, batch: out.append((time, batch)))

        def settled() -> list[Any]:
            settle(worker)
            return list(out)

        data.send("a")
        data.advance_to(10)
        seen = [settled()]  # the data is there, and no tick
        clock.advance_to(5)
        clock.send("tick")
        seen.append(settled())  # a tick, at a time that is not over
        clock.advance_to(20)
        seen.append(settled())
        data.send("b")
        clock.send("tick")
        clock.close()
        seen.append(settled())  # the clock is over, and more data may come
        data.advance_to(21)
        seen.append(settled())
        return seen

    first, second = (5, ["a"]), (20, ["b"])
    assert ps.execute(main) == [[[], [], [first], [first], [first, second]]]


def test_in_a_partial_order_reclock_sends_what_is_at_or_before_the_tick() -> None:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        times = ps.Product(ps.Int, ps.Int)
        with worker.dataflow(timestamp=times) as scope:
            data = scope.to_stream([(0, 2), (1, 0), (3, 3)]).delay(lambda r, time: r)
            clock = scope.to_stream([(1, 1), (2, 5)]).delay(lambda r, time: r)
            data.reclock(clock).inspect_batch(
                lambda time, batch: out.extend((time, record) for record in batch)
            )
        worker.run()
        return out

    # (0, 2) is before (1, 1) in the order of tuples, and not in that of the times.
    assert ps.execute(main) == [[((1, 1), (1, 0)), ((2, 5), (0, 2))]]


def test_reclock_forgets_what_no_time_of_the_clock_will_come_for() -> None:
    class Record:
        """What can be seen to be gone."""

    def main(worker: Any) -> list[bool]:
        with worker.dataflow() as scope:
            data, records = scope.new_input("data")
            clock, ticks = scope.new_input("clock")
            records.reclock(ticks)
        record = Record()
        kept = weakref.ref(record)
        data.send(record)
        del record
        settle(worker)
        seen = [kept() is not None]
        clock.close()
        settle(worker)
        data.send("more")
        settle(worker)
        seen.append(kept() is not None)
        return seen

    assert ps.execute(main) == [[True, False]]
