"""Lists of at most so many records, full, complete or old; and flattening, their inverse."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, SchemaError, WorkerError
from pointstamp.runtime.timers import Timers
from pointstamp.testing import collect

BATCHES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8).map(sorted)
"""(time, number of records)."""


def run(batches: Any, max_size: int, make: Any) -> list[Any]:
    def main(worker: Any) -> list[Any]:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.batch(max_size).inspect_batch(lambda t, b: out.append((t, b)))
        number = 0
        for time, n in batches:
            input.advance_to(time)
            if n:
                input.send_batch(make(list(range(number, number + n))))
            number += n
            worker.step()
        return out

    [out] = ps.execute(main)
    return out


@given(BATCHES, st.integers(1, 7))
def test_lists_are_full_but_the_last_of_each_time(batches: Any, max_size: int) -> None:
    wanted: dict[int, list[int]] = {}
    number = 0
    for time, n in batches:
        wanted.setdefault(time, []).extend(range(number, number + n))
        number += n
    rows = [(t, part) for t, b in run(batches, max_size, list) for part in b]
    columns = [
        (t, b["x"].to_pylist())
        for t, b in run(batches, max_size, lambda v: pa.RecordBatch.from_pydict({"x": v}))
    ]
    for lists in (rows, columns):
        for time, records in wanted.items():
            mine = [part for t, part in lists if t == time]
            assert [x for part in mine for x in part] == records
            assert all(len(part) == max_size for part in mine[:-1])
            assert all(0 < len(part) <= max_size for part in mine)


@pytest.mark.parametrize("timeout", [2, datetime.timedelta(seconds=2)])
def test_a_list_leaves_when_its_first_record_has_waited(timeout: Any) -> None:
    """By the schedule's clock: nothing sleeps."""

    def main(worker: Any) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            batches = stream.batch(10, timeout)
            batches.inspect(lambda b: out.append((b, worker.timers.now() - began)))
        began = worker.timers.now()
        input.send_batch([1])
        while worker.timers.now() < began + 1:
            worker.step_or_park(0.1)
        input.send_batch([2])
        worker.step_while(lambda: not out)
        return out

    [[(records, after_s)]] = ps.simulate(main, workers=1, seed=3)
    assert records == [1, 2]
    assert 2 <= after_s < 2.5


def test_a_list_leaves_also_if_the_worker_was_held_up_when_it_was_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between its two looks at the clock: the one timer must not ring before the list is due."""
    now = [0.0]
    after = Timers.after

    def held_up(timers: Timers, seconds: float, call: Any) -> None:
        after(timers, seconds, call)
        now[0] += 5

    def main(worker: Any) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.batch(10, 2).inspect(out.append)
        worker.timers.clock = lambda: now[0]
        input.send(1)
        for _ in range(5):
            worker.step()
        return list(out)

    monkeypatch.setattr(Timers, "after", held_up)
    assert ps.execute(main) == [[[1]]]


def test_lists_of_many_times_have_one_timer() -> None:
    """Of those that are sent none stays, and of those that wait each leaves when it is due."""

    def main(worker: Any) -> Any:
        out: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            _, other = scope.new_input()  # which stays at 0, so that no time is complete
            batches = stream.concat(other).batch(10, 2)
            batches.inspect(lambda b: out.append((*b, worker.timers.now() - began)))
        began = worker.timers.now()
        for time in range(3):
            while worker.timers.now() < began + time:
                worker.step_or_park(0.1)
            input.advance_to(time)
            input.send(time)
            worker.step()
        assert len(worker.timers.waiting) == 1
        worker.step_while(lambda: len(out) < 3)
        return out

    [found] = ps.simulate(main, workers=1, seed=3)
    assert [record for record, _ in found] == [0, 1, 2]
    assert all(record + 2 <= after_s < record + 2.5 for record, after_s in found)


def test_a_list_that_waits_holds_its_time_and_no_longer() -> None:
    def main(worker: Any) -> Any:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            probe = stream.batch(10).probe()
        input.send(1)
        input.advance_to(4)
        worker.step_while(lambda: probe.less_than(4))
        return probe.elements

    assert ps.execute(main) == [[4]]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"max_size": 0}, "max_size is an integer from 1 on, not 0"),
        ({"max_size": 2.0}, "max_size is an integer from 1 on, not 2.0"),
        *(
            ({"max_size": 1, "timeout": timeout}, "timeout is a positive timedelta or number")
            for timeout in (-1, "1", math.nan, math.inf, 10**400)
        ),
    ],
)
def test_sizes_and_timeouts_that_cannot_be_are_refused_where_they_are_given(
    options: dict[str, Any], refusal: str
) -> None:
    def build(scope: Any) -> Any:
        stream = scope.to_stream([1])
        with pytest.raises(BuildError, match=f"operator 'Batch': {refusal}"):
            stream.batch(**options)
        return stream

    assert collect(build) == [(0, 1)]


def test_flattening_takes_lists_apart() -> None:
    assert collect(lambda s: s.to_stream("abc").batch(2).flatten()) == [
        (0, "a"), (0, "b"), (0, "c")]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())])
def test_a_column_of_lists_is_flattened(kind: Any) -> None:
    lists = pa.array([[9], [1, 2], [], None, [3, None]], kind)
    batch = pa.RecordBatch.from_pydict({"a": list("zabcd"), "b": lists, "c": [0, 1, 2, 3, 4]})
    found: list[Any] = []

    def build(scope: Any) -> Any:
        flat = scope.batches_to_stream([batch.slice(1)]).flatten("b")
        return flat.inspect_batch(lambda time, b: found.append(b))

    collect(build)
    assert found[0].to_pydict() == {"a": list("aadd"), "b": [1, 2, 3, None], "c": [1, 1, 4, 4]}


def test_what_cannot_be_flattened_is_named(first_cause: Any) -> None:
    for batch in (pa.RecordBatch.from_pydict({"b": [1]}), Arrays(b=[1])):
        with pytest.raises(WorkerError) as raised:
            collect(lambda s, batch=batch: s.batches_to_stream([batch]).flatten("b"))
        assert isinstance(first_cause(raised.value), SchemaError)
    with pytest.raises(WorkerError):
        collect(lambda s: s.to_stream([1]).flatten())
