"""What a dataflow held goes when it is complete, without Python looking for garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.dataflow.collector import collector_off

N = 5


@dataclass(frozen=True)
class Record:
    """One that can be referred to weakly."""

    number: int


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    with collector_off():
        yield


def mapped(stream: ps.Stream[Record]) -> None:
    stream.map(lambda record: record.number)


def exchanged(stream: ps.Stream[Record]) -> None:
    stream.exchange(key=lambda record: record.number).inspect(lambda record: None)


def kept_by_logic(stream: ps.Stream[Record]) -> None:
    def build(capability: Any, info: Any) -> Any:
        capability.drop()
        kept: list[Any] = []

        def logic(input: Any, output: Any) -> None:
            for _, batch in input:
                kept.append(batch)

        return logic

    stream.unary(ps.Pipeline(), "Keep", build)


def in_a_loop(stream: ps.Stream[Record]) -> None:
    loop, again = stream.scope.feedback(1)
    loop.connect(stream.concat(again).filter(lambda record: False))


def in_a_nested_scope(stream: ps.Stream[Record]) -> None:
    with stream.scope.iterative() as inner:
        kept_by_logic(stream.enter(inner))


def grouped(stream: ps.Stream[Record]) -> None:
    stream.distinct()


PROGRAMS = [
    mapped,
    exchanged,
    kept_by_logic,
    in_a_loop,
    in_a_nested_scope,
    grouped,
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_records_go(program: Any, threads: int) -> None:
    def main(worker: Any) -> tuple[int, int, ps.Scope]:
        records = [Record(number) for number in range(N)]
        known = [*map(weakref.ref, records)]
        with worker.dataflow() as scope:
            program(scope.to_stream(records))
        records = []
        before = sum(reference() is not None for reference in known)
        worker.run()
        after = sum(reference() is not None for reference in known)
        # A program may still know the scope, and a stream of it.
        return before, after, scope

    for before, after, _ in ps.execute(main, workers=threads, threads=True):
        assert (before, after) == (N, 0)


def test_columns_go() -> None:
    def main(worker: Any) -> list[bool]:
        column = np.arange(N)
        known = weakref.ref(column)
        with worker.dataflow() as scope:
            stream = scope.batches_to_stream([Arrays({"x": column})])
            stream.map_batches(lambda batch: batch).inspect_batch(lambda time, batch: None)
        del column
        there = [known() is not None]
        worker.run()
        return [*there, known() is not None]

    assert ps.execute(main) == [[True, False]]


def test_what_was_dropped_goes() -> None:
    def main(worker: Any) -> list[int]:
        records = [Record(number) for number in range(N)]
        known = [*map(weakref.ref, records)]
        with worker.dataflow() as scope:
            kept_by_logic(scope.to_stream(records))
            endless, _ = scope.new_input()
        records = []
        worker.step()
        worker.drop_dataflow(scope)
        return [reference() is not None for reference in known] + [endless.is_closed]

    assert ps.execute(main) == [[False] * N + [True]]
