"""An operator with much to do does not keep others waiting."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.containers import kind_of
from pointstamp.dataflow.channels import BATCH_COST, BUDGET, LARGE_RECORDS
from tests.conftest import once_from


@pytest.mark.parametrize("n_records", [1, 1000])
def test_a_long_queue_is_taken_in_turns(n_records: int) -> None:
    """What one step works off is bounded, however much waits."""
    n_batches = 20 * BUDGET // (n_records + BATCH_COST)
    largest: list[int] = []

    def main(worker: Any) -> int:
        seen = []
        with worker.dataflow() as scope:
            _input, stream = scope.new_input()
            stream.inspect_batch(lambda time, batch: seen.append(len(batch)))
        worker.step()
        (queue,) = [o for o in worker._subgraphs[0].children if o.name == "InspectBatch"]
        for _ in range(n_batches):
            queue._inputs[0]._queue.push(0, [0] * n_records)
            queue.consumed[0].update(0, -n_records)  # as nobody has counted them as produced
        n_steps, before = 0, 0
        while worker.has_work:
            worker.step()
            n_steps += 1
            largest.append(len(seen) - before)
            before = len(seen)
        assert len(seen) == n_batches
        return n_steps

    (n_steps,) = ps.execute(main)
    assert n_steps >= 19
    assert max(largest) * (n_records + BATCH_COST) <= BUDGET + n_records + BATCH_COST


@pytest.mark.parametrize("workers", once_from(4, [1, 4]))
def test_a_small_dataflow_goes_on_beside_a_long_queue(workers: int) -> None:
    """Its epochs complete within a few steps each, while the other works its queue off."""

    def main(worker: Any) -> tuple[int, int]:
        with worker.dataflow("large") as scope:
            large, stream = scope.new_input()
            busy = stream.exchange().map(lambda x: x).map(lambda x: x).probe()
        with worker.dataflow("small") as scope:
            small, stream = scope.new_input()
            probe = stream.exchange().probe()
        for _ in range(120):
            large.send_batch(list(range(BUDGET // 2)))
        large.advance_to(1)
        epochs = 0
        while busy.less_than(1):
            small.send(epochs)
            small.advance_to(epochs + 1)
            worker.step_while(lambda: probe.less_than(small.time) and busy.less_than(1))
            epochs += 1
        return epochs

    assert min(ps.execute(main, workers=workers, threads=True)) >= 4


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_a_large_batch_is_exchanged_in_pieces(kind: str) -> None:
    n_records = LARGE_RECORDS + 5

    def main(worker: Any) -> list[int]:
        sizes: list[int] = []
        numbers = range(n_records)
        batch = list(numbers) if kind == "rows" else pa.RecordBatch.from_pydict({"x": [*numbers]})

        with worker.dataflow() as scope:
            one = scope.to_stream([0] if worker.index == 0 else []).map_batches(lambda _: batch)
            moved = one.exchange(None if kind == "rows" else "x")
            moved.inspect_batch(lambda time, b: sizes.append(kind_of(b).length(b)))
        worker.run()
        return sizes

    sizes = ps.execute(main, workers=2, threads=True)
    assert sum(map(sum, sizes)) == n_records
    assert max(map(max, sizes)) <= 65_536


def test_a_step_that_was_cut_comes_back_without_news() -> None:
    """The rest is taken, although nobody sends or moves anything any more."""

    def main(worker: Any) -> int:
        seen: list[int] = []
        with worker.dataflow() as scope:
            input, stream = scope.new_input()
            stream.inspect(seen.append)
        for i in range(3 * BUDGET // BATCH_COST):
            input.send_batch([i])
            input.advance_to(0)  # which sends what was given
        worker.step_while(lambda: len(seen) < 3 * BUDGET // BATCH_COST)
        return len(seen)

    assert ps.execute(main) == [3 * BUDGET // BATCH_COST]
