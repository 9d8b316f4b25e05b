"""Runs of one epoch, each of which begins with the snapshot of the one before."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint
from pointstamp.collections.schema import schema_of
from pointstamp.errors import (
    CheckpointStructureError,
    SchemaError,
    UsageError,
    WorkerError,
)
from pointstamp.service.changes_columns import columns_of_changes
from pointstamp.service.epoch_run import (
    CommittedRun,
    EpochPart,
    EpochRun,
    EpochRuns,
    stored_changes,
    with_schemas,
)
from pointstamp.service.feed_columns import feed_rows
from pointstamp.service.spec import service_spec
from pointstamp.spark.feed_forms import ChangeFeed, FeedForm
from tests.collections.test_durable import renewed_texts
from tests.service.collection_lives import SCHEMAS, build
from tests.service.collection_lives import changes_of as changes_of_epoch

SALES = {"sales": "shop long, item string?"}


def per_shop(scope: Any, sales: Any) -> Any:
    return sales.group_by("shop").agg(n=ps.count(), item=ps.max("item"))


def prepared(
    folder: Path, builds: Any, schemas: dict[str, str], form: FeedForm | None = None
) -> tuple[EpochRuns, EpochRun]:
    """The next run of a folder, which is brought columns of changes if not said otherwise."""
    runs = EpochRuns(Checkpoint(folder))
    spec = service_spec(builds, {}, {}, {}, schemas)
    decode = {
        name: (lambda batch: batch)
        if form is None
        else partial(form.changes, wire=columns_of_changes(spec.collections[name]))
        for name in schemas
    }
    return runs, runs.new_run(spec, decode, f"attempt {id(runs)}")


def work(run: EpochRun, workers: int, arrivals: Sequence[tuple[str, pa.RecordBatch]]) -> list[Any]:
    """What each worker gives, of its share of the batches, over a message."""

    def main(worker: ps.Worker) -> dict[str, Any]:
        return run.work(worker, arrivals[worker.index :: worker.peers]).to_json()

    return [EpochPart.from_json(said) for said in ps.execute(main, workers=workers, threads=True)]


def sales(rows: list[tuple[int, str | None, str, int]]) -> list[tuple[str, pa.RecordBatch]]:
    """Rows of a feed, each a batch."""
    names = ["shop", "item", "_change_type", "_commit_version"]
    kinds = [pa.int64(), pa.string(), pa.string(), pa.int64()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    return [
        ("sales", pa.RecordBatch.from_pylist([dict(zip(names, r, strict=True))], schema=schema))
        for r in rows
    ]


def pairs(run: CommittedRun, checkpoint: Checkpoint, output: str) -> list[Any]:
    """(row, diff) of what came out, sorted."""
    found = []
    for batch in stored_changes(checkpoint, run.outputs[output]):
        for row in batch.to_pylist():
            diff = row.pop("diff")
            found.append((tuple(row.values()), diff))
    return sorted(found, key=repr)


def test_runs_on_other_numbers_of_workers_give_what_a_view_gives(tmp_path: Path) -> None:
    with ps.View(build, **SCHEMAS) as view:
        for epoch in range(5):
            arrivals = []
            for name, changes in changes_of_epoch(epoch).items():
                view.update(name, changes)
                schema = schema_of(SCHEMAS[name])
                arrivals += [
                    (name, schema.to_arrow(one.rows).append_column("diff", pa.array([diff])))
                    for row, diff in changes
                    for one in [schema.to_updates([row], 1, "a test")]
                ]
            expected = {name: list(changes) for name, changes in view.advance().items()}
            with renewed_texts():
                runs, run = prepared(tmp_path, build, SCHEMAS)
                parts = work(run, 1 + epoch % 3, arrivals)
                committed = runs.commit(run, parts, None)
                assert committed.epoch == epoch
                for name, changes in expected.items():
                    found = pairs(committed, runs.checkpoint, name)
                    assert found == sorted(changes, key=repr), (epoch, name)


def test_a_run_that_ends_before_it_counts_has_changed_nothing(tmp_path: Path) -> None:
    first = sales([(1, "tea", "insert", 0), (2, None, "insert", 0), (1, "ink", "insert", 0)])
    runs, run = prepared(tmp_path, per_shop, SALES, ChangeFeed())
    runs.commit(run, work(run, 2, first), None)
    second = sales([(1, "tea", "update_preimage", 3), (1, "pen", "update_postimage", 3)])
    for _ in range(2):
        runs, run = prepared(tmp_path, per_shop, SALES, ChangeFeed())
        work(run, 2, second)
        # It is not committed: its program was killed.
    committed = runs.commit(run, work(run, 1, second), None)
    assert committed.epoch == 1
    assert pairs(committed, runs.checkpoint, "result") == [((1, 2, "pen"), 1), ((1, 2, "tea"), -1)]
    # What those that were not committed have left goes with the next that is.
    for version in (4, 5):
        runs, run = prepared(tmp_path, per_shop, SALES, ChangeFeed())
        runs.commit(run, work(run, 1, sales([(7, "x", "insert", version)])), None)
    files = [path.name for path in tmp_path.rglob("attempt-*")]
    assert len(files) == 2, files


def test_a_run_is_known_by_its_name(tmp_path: Path) -> None:
    for night in (1, 2):
        runs, run = prepared(tmp_path, per_shop, SALES, ChangeFeed())
        assert runs.committed(f"night {night}") is None
        runs.commit(run, work(run, 1, sales([(1, "tea", "insert", night)])), f"night {night}")
    runs = EpochRuns(Checkpoint(tmp_path))
    again = runs.committed("night 2")
    assert again is not None
    assert (again.epoch, again.name) == (1, "night 2")
    assert abs(again.time - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=5)
    assert pairs(again, runs.checkpoint, "result") == [((1, 1, "tea"), -1), ((1, 2, "tea"), 1)]
    with pytest.raises(UsageError, match=r"'night 1' was epoch 0 of .* the last run is epoch 1"):
        runs.committed("night 1")


def test_a_version_of_a_feed_counts_once(tmp_path: Path) -> None:
    runs, run = prepared(tmp_path, per_shop, SALES, ChangeFeed())
    arrivals = sales([(1, "tea", "insert", 4), (1, "ink", "insert", 3)])
    runs.commit(run, work(run, 2, arrivals), None)
    _, run = prepared(tmp_path, per_shop, SALES, ChangeFeed())
    with pytest.raises(
        WorkerError, match=r"DataError: .*'sales' is of version 4 .* from version 5 on"
    ):
        work(run, 1, sales([(1, "pen", "insert", 5), (1, "tea", "insert", 4)]))


def test_other_inputs_and_other_folders_are_refused(tmp_path: Path) -> None:
    runs, run = prepared(tmp_path / "runs", per_shop, SALES)
    runs.commit(run, work(run, 1, []), None)
    with pytest.raises(
        CheckpointStructureError,
        match=r"cents long, and in .*they are 'sales': shop",
    ):
        prepared(tmp_path / "runs", per_shop, {"sales": "shop long, item string?, cents long"})
    service = ps.serve(
        per_shop, threads=True, collections=SALES, checkpoint=tmp_path / "s", snapshot_every=1
    )
    with service:
        service.input("sales").insert([(1, "tea")])
        service.advance()
    with pytest.raises(CheckpointStructureError, match="is that of a service"):
        EpochRuns(Checkpoint(tmp_path / "s"))


def test_upserts_and_clocks_are_refused(tmp_path: Path) -> None:
    for declared in (ps.UpsertInput("shop long, item string?", key="shop"), ps.ClockInput("long")):
        inputs: Any = {"t": declared}
        with pytest.raises(
            UsageError, match="the input 't' is of upserts, or a clock, which only ser"
        ):
            prepared(tmp_path, lambda scope, t: scope.new_collection("a long")[1], inputs)


def test_schemas_that_differ_in_nulls_and_order_alone_are_those_of_the_first_run(
    tmp_path: Path,
) -> None:
    odd = schema_of("a int, b string?")
    before = {"t": schema_of("a long, b string?")}
    assert with_schemas({"t": schema_of("a long?, b string")}, before) == before
    assert with_schemas({"t": schema_of("b string, a long?")}, before) == before
    assert with_schemas({"t": odd}, before) == {"t": odd}
    assert with_schemas({"u": odd}, before) == {"u": odd}
    spaced = schema_of(pa.schema([pa.field("the shop, or so", pa.int64(), False)]))
    runs, run = prepared(tmp_path, lambda scope, t: t, {"t": spaced})  # type: ignore[dict-item]
    runs.commit(run, work(run, 1, []), None)
    assert EpochRuns(Checkpoint(tmp_path)).schemas == {"t": spaced}


def columns(**given: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(given)


def test_a_diff_is_as_many_rows_of_a_feed_in_batches_of_some_size() -> None:
    schema, now = schema_of("a long"), dt.datetime.now(dt.UTC)
    many = 150_000
    found = list(feed_rows(schema, columns(a=[1, 2, 3], diff=[1, -many, 2]), 5, now, "result"))
    assert [len(batch) for batch in found] == [65_536, 65_536, many + 3 - 2 * 65_536]
    rows = (
        pa.Table.from_batches(found).group_by(["a", "_change_type"]).aggregate([([], "count_all")])
    )
    assert sorted(map(tuple, (row.values() for row in rows.to_pylist()))) == [
        (1, "insert", 1),
        (2, "delete", many),
        (3, "insert", 2),
    ]
    assert list(feed_rows(schema, columns(a=[1], diff=[1]).slice(1), 5, now, "result")) == []
    with pytest.raises(SchemaError, match="output 'result' has the column '_commit_version'"):
        list(feed_rows(schema_of("_commit_version long"), columns(), 5, now, "result"))
