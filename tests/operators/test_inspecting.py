"""Operators that look at what flows by: records with their times, frontiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.containers import Arrays
from pointstamp.testing import collect


@pytest.mark.parametrize("make", [list, lambda numbers: Arrays(x=np.array(numbers))])
def test_inspect_time_sees_each_record_with_its_time(make: Any) -> None:
    seen: list[Any] = []

    def build(scope: Any) -> Any:
        stream = scope.batches_to_stream([make([1, 2])]).delay_batch(lambda time: 4)
        return stream.inspect_time(lambda time, record: seen.append((time, record)))

    assert collect(build) == seen
    assert [time for time, _ in seen] == [4, 4]


@pytest.mark.parametrize("seed", range(10))
def test_a_frontier_past_a_time_is_seen_after_its_batches(seed: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        seen: list[Any] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.exchange().inspect_frontier(
                lambda elements: seen.append(("frontier", elements)),
                lambda time, batch: seen.append(("batch", time)),
            )
        for epoch in range(5):
            input.send_batch([1, 2, 3, 4])
            input.advance_to(epoch + 1)
            worker.step()
        input.close()
        worker.run()
        return seen

    n_batches = 0
    for seen in ps.simulate(main, workers=3, seed=seed):
        frontier = [0]
        for what, found in seen:
            if what == "frontier":
                assert found != frontier
                frontier = found
            else:
                n_batches += 1
                assert all(least <= found for least in frontier[:1] or [found + 1])
        assert frontier == []
    assert n_batches


def test_pipe_calls_a_function_with_the_stream() -> None:
    def several(stream: Any, n: int, *, plus: int) -> Any:
        return stream.flat_map(lambda x: n * [x + plus])

    assert collect(lambda scope: scope.to_stream([1]).pipe(several, 2, plus=5)) == [(0, 6), (0, 6)]
