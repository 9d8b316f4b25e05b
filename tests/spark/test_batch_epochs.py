"""What is kept of the batches of a query, on workers that are threads; no Spark runs."""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.checkpoint.objects import objects_at
from pointstamp.errors import CheckpointError, UsageError, WorkerError
from pointstamp.service.changes_columns import columns_of_changes
from pointstamp.service.epoch_run import stored_changes
from pointstamp.service.spec import RESULT, service_spec
from pointstamp.spark.batch_epochs import KeptBatches, check_alone, gathered
from pointstamp.spark.feed_forms import Signed

SALES = {"sales": "shop long, cents long"}
BATCHES = [[(1, 30, 1), (2, 10, 1)], [(1, 30, -1), (1, 50, 1)], [], [(2, 10, -1)]]


def per_shop(scope: Any, sales: Any) -> Any:
    return sales.group_by("shop").agg(n=ps.count(), cents=ps.sum("cents"))


def run(folder: Path, batch: int, workers: int, rows: Any = None) -> list[Any]:
    """The changes of a batch as all workers have them: they are the same."""
    spec = service_spec(per_shop, {}, {}, {}, SALES)
    wire = columns_of_changes(spec.collections["sales"])
    decode = {"sales": partial(Signed("n").changes, wire=wire)}
    schema = pa.schema([(name, pa.int64()) for name in ("shop", "cents", "n")])
    given = [
        ("sales", pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True))], schema))
        for row in (BATCHES[batch] if rows is None else rows)
    ]

    def main(worker: ps.Worker) -> Any:
        kept = KeptBatches(Checkpoint(folder), "q", batch)
        done = kept.run(worker, spec, decode, given[worker.index :: worker.peers])
        found = [
            tuple(row.values())
            for changes in stored_changes(kept.checkpoint, done.outputs[RESULT])
            for row in changes.to_pylist()
        ]
        return done.epoch, done.time, sorted(found)

    first, *others = ps.execute(main, workers=workers, threads=True)
    assert all(other == first for other in others)
    assert first[0] == batch
    return [first[1], first[2]]


def test_each_batch_gives_what_changes_and_again_the_same(tmp_path: Path) -> None:
    expected = [
        [(1, 1, 30, 1), (2, 1, 10, 1)],
        [(1, 1, 30, -1), (1, 1, 50, 1)],
        [],
        [(2, 1, 10, -1)],
    ]
    for batch, changes in enumerate(expected):
        time, found = run(tmp_path, batch, 1 + batch % 3)
        assert found == changes
        # Repeated on other workers, of whatever rows, nothing runs.
        assert run(tmp_path, batch, 1 + (batch + 1) % 3, [(9, 9, 9)]) == [time, found]


def test_a_batch_that_fails_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path, 0, 2)
    with pytest.raises(WorkerError, match="the diff, column 'n', is null"):
        run(tmp_path, 1, 2, [(1, 50, 1), (1, 50, None)])
    assert run(tmp_path, 1, 2)[1] == [(1, 1, 30, -1), (1, 1, 50, 1)]


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (2, "batch 2 of query q follows on batch 1, and the last that .* has is batch 0"),
        (3, "batch 3 of query q follows on batch 2"),
    ],
)
def test_a_batch_that_follows_on_another_one_is_refused(
    tmp_path: Path, batch: int, said: str
) -> None:
    run(tmp_path, 0, 1)
    with pytest.raises((CheckpointError, WorkerError), match=said):
        run(tmp_path, batch, 1)
    with pytest.raises((CheckpointError, WorkerError), match=f"batch {batch - 1}, .* has is none"):
        run(tmp_path / "lost", batch, 1)


def test_values_are_gathered_in_the_order_of_workers() -> None:
    def main(worker: ps.Worker) -> Any:
        return gathered(worker, {"is": worker.index}), gathered(worker, None)

    expected = [{"is": 0}, {"is": 1}, {"is": 2}], [None, None, None]
    assert list(ps.execute(main, workers=3, threads=True)) == [expected] * 3


def test_two_calls_in_one_run_of_a_query_are_refused_and_those_of_former_runs_are_not(
    tmp_path: Path,
) -> None:
    runs = [str(uuid.UUID(int=number)) for number in range(2)]
    for run in runs:  # started again, it is of another call
        for _ in range(2):
            check_alone(objects_at(tmp_path), run, f"call of {run}")
    assert len([*(tmp_path / "calls").iterdir()]) == 1
    for _ in range(2):
        for call in ("other", f"call of {runs[1]}"):
            with pytest.raises(UsageError, match="two calls of maintain_stream are in one query"):
                check_alone(objects_at(tmp_path), runs[1], call)
    # What is no run as Spark numbers them is not known to be one.
    for run in (None, "", "mine"):
        for call in ("a", "b"):
            check_alone(objects_at(tmp_path), run, call)
