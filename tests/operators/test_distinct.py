"""Distinct records: of each time, and over the rounds of a loop."""

from __future__ import annotations

import random
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.errors import BuildError, WorkerError
from pointstamp.operators import distinct
from pointstamp.testing import collect


@pytest.fixture(params=[1, 2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def as_rows(records: list[tuple[int, str]]) -> Any:
    return list(records)


def as_columns(records: list[tuple[int, str]]) -> Any:
    numbers, texts = zip(*records, strict=True)
    return pa.RecordBatch.from_pydict({"n": list(numbers), "t": list(texts)})


def as_arrays(records: list[tuple[int, str]]) -> Any:
    return Arrays(n=np.array([n for n, _ in records]), m=np.array([len(t) for _, t in records]))


@pytest.mark.parametrize("make", [as_rows, as_columns, as_arrays])
@pytest.mark.parametrize("seed", range(3))
def test_of_equal_records_of_a_time_one_passes(make: Any, seed: int, workers: int) -> None:
    draw = random.Random(seed)
    batches = [[(draw.randrange(4), "x" * draw.randrange(3)) for _ in range(9)] for _ in range(6)]

    def build(scope: Any) -> Any:
        mine = [make(batch) for batch in batches[scope.index :: scope.peers]]
        times = iter(range(len(mine)))
        stream = scope.batches_to_stream(mine).delay_batch(lambda time: next(times) % 2)
        return stream.distinct()

    def plain(scope: Any) -> Any:
        mine = [make(batch) for batch in batches[scope.index :: scope.peers]]
        times = iter(range(len(mine)))
        return scope.batches_to_stream(mine).delay_batch(lambda time: next(times) % 2)

    assert collect(build, workers) == sorted(set(collect(plain, workers)))


def test_the_same_record_passes_again_at_another_time() -> None:
    def build(scope: Any) -> Any:
        times = iter([0, 1, 0])
        return scope.to_stream("aaa").delay(lambda record, time: next(times)).distinct()

    assert collect(build) == [(0, "a"), (1, "a")]


def test_nulls_are_equal_and_so_are_nans(workers: int) -> None:
    def build(scope: Any) -> Any:
        batch = pa.RecordBatch.from_pydict({"x": [None, float("nan"), None, float("nan"), 1.0]})
        return scope.batches_to_stream([batch]).distinct()

    assert len(collect(build, workers)) == 3


EDGES = {n: [(3 * n + 1) % 50, (7 * n) % 50, n // 2] for n in range(50)}


def reached_in_rounds() -> dict[int, int]:
    """By breadth-first search: the round at which each number is reached from 1."""
    found, frontier, rounds = {1: 0}, [1], 0
    while frontier:
        rounds += 1
        frontier = sorted({m for n in frontier for m in EDGES[n]} - found.keys())
        found.update(dict.fromkeys(frontier, rounds))
    return found


def search(scope: Any, as_columns: bool) -> Any:
    def after(batch: Any) -> Any:
        if as_columns:
            numbers = batch["n"].to_pylist()
            return pa.RecordBatch.from_pydict({"n": [m for n in numbers for m in EDGES[n]]})
        return [m for n in batch for m in EDGES[n]]

    found: list[Any] = [pa.RecordBatch.from_pydict({"n": [1]})] if as_columns else [[1]]
    with scope.iterative() as inner:
        loop, again = inner.feedback(1)
        start = scope.batches_to_stream(found if scope.index == 0 else []).enter(inner)
        reached = start.concat(again).distinct(over_rounds=True)
        loop.connect(reached.map_batches(after))
        with_round = reached.unary(
            ps.Pipeline(),
            "WithRound",
            lambda capability, info: _with_round,
        )
        return with_round.leave()


def _with_round(input: Any, output: Any) -> None:
    for time, batch in input:
        numbers = batch if type(batch) is list else batch["n"].to_pylist()
        output.session(time).give_many((n, time.time[1]) for n in numbers)


@pytest.mark.parametrize("as_columns", [False, True])
def test_over_rounds_a_record_passes_once_at_its_least_round(
    as_columns: bool, workers: int
) -> None:
    expected = [(0, pair) for pair in sorted(reached_in_rounds().items())]
    assert collect(lambda scope: search(scope, as_columns), workers) == expected


@pytest.mark.parametrize("seed", range(8))
def test_the_least_round_does_not_depend_on_timing(seed: int) -> None:
    expected = [(0, pair) for pair in sorted(reached_in_rounds().items())]
    assert collect(lambda scope: search(scope, False), workers=3, seed=seed) == expected


def test_what_has_passed_is_forgotten_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Noted(distinct._Passed):
        """Goes into a set by its identity."""

        __hash__ = object.__hash__  # type: ignore[assignment]  # each is another one, here

        def __init__(self) -> None:
            super().__init__()
            alive.add(self)

    def main(worker: ps.Worker) -> list[int]:
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            with scope.iterative() as inner:
                once = stream.enter(inner).distinct(over_rounds=True).leave()
            probe = once.distinct().probe()
        n_alive = []
        for epoch in range(20):
            input.send(epoch % 3)
            input.advance_to(epoch + 1)
            worker.step_while(lambda: probe.less_than(input.time))
            n_alive.append(len(alive))
        return n_alive

    monkeypatch.setattr(distinct, "_Passed", Noted)
    [n_alive] = ps.execute(main)
    assert max(n_alive) <= 2


def test_rounds_are_asked_for_where_there_are_some() -> None:
    with pytest.raises(WorkerError, match="which have none") as caught:
        collect(lambda scope: scope.to_stream([1]).distinct(over_rounds=True))
    assert isinstance(caught.value.__cause__, BuildError)
