"""Snapshots: what it takes to store the state of an operator, and to have it back.

The state is counts by key, in columns: a key of 8 bytes and a count of 8. It is cut and
written to a folder of this machine (synced), sealed, and read back; whole, and where one key
in a hundred has changed since the snapshot before. The baseline writes the same columns as
one Arrow file, without bins, checksums or a sync: what the disk and Arrow take. Two more rows are
of an arrangement of a collection, rows of two words and a diff.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.harness.case import OURS, Benchmark, Case, Effort, Measure, Quantity, Reading, Size
from benchmarks.harness.memory import peaks

KEYS = {"tiny": 1_000, "small": 1_000_000, "full": 10_000_000}
CHANGED = 100
"""One key in so many has changed."""
CHANGED_ROWS = 1_000
"""And one row of a collection."""
KEY = ("program/Count", "state")
ARROW = "Arrow, one file"

Sample = Callable[[Path, int], tuple[float, int]]
"""Seconds and bytes, for a state of so many keys."""


def _table(n_keys: int) -> Any:
    from pointstamp.checkpoint.keyed_columns import KeyedColumns

    table = KeyedColumns({"key": "int64", "count": "int64"})
    # Far apart, as hashes of something would be, and not in order.
    rows = table.rows(np.arange(n_keys) * 0x9E3779B97F4A7C1)
    np.add.at(table["count"], rows, 1)
    return table


def _written(checkpoint: Any, epoch: int, table: Any, before: Any = None) -> Any:
    part = checkpoint.write_part(epoch, 0, {KEY: table.take_delta()}, before)
    checkpoint.commit_manifest(epoch, [part], {})
    return part


def whole(folder: Path, n_keys: int) -> tuple[float, int]:
    """Cut, write and seal everything."""
    from pointstamp.checkpoint import Checkpoint

    table = _table(n_keys)
    began = perf_counter()
    part = _written(Checkpoint(folder), 0, table)
    return perf_counter() - began, part.n_bytes


def changes(folder: Path, n_keys: int) -> tuple[float, int]:
    """The same of the second snapshot, after one key in a hundred has changed."""
    from pointstamp.checkpoint import Checkpoint

    checkpoint, table = Checkpoint(folder), _table(n_keys)
    first = _written(checkpoint, 0, table)
    rows = np.random.default_rng(0).choice(n_keys, n_keys // CHANGED, replace=False)
    table["count"][rows] += 1
    table.touch(rows)
    began = perf_counter()
    part = _written(checkpoint, 1, table, first)
    return perf_counter() - began, part.n_bytes


def _updates(n_rows: int) -> tuple[Any, Any]:
    """A table of an arrangement of so many rows of two words, and a change of one in a thousand."""
    from pointstamp.checkpoint.keyed_state import by_key
    from pointstamp.checkpoint.keyed_updates import KeyedUpdates
    from pointstamp.containers.updates import FirstWords, Updates

    def rows(first: int, n: int, diff: int) -> Any:
        keys = np.arange(first, first + n)
        return np.column_stack([keys, keys, np.full(n, diff)])

    everything = Updates(rows(0, n_rows, 1))
    table = KeyedUpdates(
        lambda: [("rows", everything)],
        lambda name, updates: None,
        by_key(FirstWords(1)),
        lambda name, changed: Updates(changed),
        lambda: n_rows,
    )
    n_changed = n_rows // CHANGED_ROWS
    gone, come = rows(0, n_changed, -1), rows(n_rows, n_changed, 1)
    return table, np.concatenate([gone, come])


def all_of_collection(folder: Path, n_rows: int) -> tuple[float, int]:
    """Cut, write and seal an arrangement of a collection."""
    from pointstamp.checkpoint import Checkpoint

    table, _ = _updates(n_rows)
    began = perf_counter()
    part = _written(Checkpoint(folder), 0, table)
    return perf_counter() - began, part.n_bytes


def changes_of_collection(folder: Path, n_rows: int) -> tuple[float, int]:
    """The same of the second snapshot, after one row in a thousand has changed."""
    from pointstamp.checkpoint import Checkpoint

    checkpoint, (table, changed) = Checkpoint(folder), _updates(n_rows)
    first = _written(checkpoint, 0, table)
    table.add("rows", changed)
    began = perf_counter()
    part = _written(checkpoint, 1, table, first)
    return perf_counter() - began, part.n_bytes


def restored(folder: Path, n_keys: int) -> tuple[float, int]:
    """Find the last snapshot, look at every byte, and make the table of it again."""
    from pointstamp.checkpoint import Checkpoint
    from pointstamp.checkpoint.bins import N_BINS
    from pointstamp.checkpoint.keyed_columns import KeyedColumns

    part = _written(Checkpoint(folder), 0, _table(n_keys))
    began = perf_counter()
    checkpoint = Checkpoint(folder)
    manifest = checkpoint.latest()
    assert manifest is not None
    table = KeyedColumns({"key": "int64", "count": "int64"})
    table.load(checkpoint.read_bins(manifest, *KEY, range(N_BINS)), 0, 1)
    seconds = perf_counter() - began
    assert len(table) == n_keys
    return seconds, part.n_bytes


def one_file(folder: Path, n_keys: int) -> tuple[float, int]:
    """The columns as they are."""
    import pyarrow as pa

    columns = [pa.array(np.arange(n_keys)), pa.array(np.ones(n_keys, np.int64))]
    batch = pa.RecordBatch.from_arrays(columns, names=["key", "count"])
    path = folder / "counts.arrow"
    began = perf_counter()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return perf_counter() - began, path.stat().st_size


def measured(sample: Sample, n_keys: int) -> Measure:
    """Each sample in a folder of its own; the first warms kernels up."""

    def measure(effort: Effort) -> Reading:
        seconds: list[float] = []
        n_bytes = 0
        for number in range(effort.samples + 1):
            with tempfile.TemporaryDirectory() as folder:
                took, n_bytes = sample(Path(folder), 1_000 if not number else n_keys)
            if number:
                seconds.append(took)
            if sum(seconds) > effort.patience_s:
                break
        return Reading(seconds, peaks(), details={"bytes": n_bytes})

    return measure


def cases(size: Size) -> list[Case]:
    """A snapshot, a second one, and having it back."""
    n_keys = KEYS[size]
    ours = [
        Case(OURS, measured(sample, n_keys), at={"what": what}, samples=3)
        for what, sample in (
            ("a snapshot of all", whole),
            ("a snapshot where 1 % has changed", changes),
            ("a restore", restored),
            ("a snapshot of all of an arrangement", all_of_collection),
            ("one where 0.1 % of its rows have changed", changes_of_collection),
        )
    ]
    return [*ours, Case(ARROW, measured(one_file, n_keys), samples=3)]


BENCHMARK = Benchmark(
    name="snapshots",
    title="Snapshots of ten million counts",
    about="Keyed state in columns, 16 bytes per key, to a local folder and back.",
    quantity=Quantity("ms", 1e3),
    cases=cases,
    baselines=(ARROW,),
    floors=(ARROW,),
)
