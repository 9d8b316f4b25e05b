"""What a snapshot writes follows what has changed since the last one, and not what there is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.checkpoint import Checkpoint, Durable

SCHEMA = "k long, v long"
N_CHANGED = 50


def joined(t: Any) -> Any:
    return t.join(t.select("k", w="v"), on="k")


def looped(t: Any) -> Any:
    return t.iterate(lambda s: s.select(k="k", v="k").concat(s).distinct(), limit=2)


FORMS = {
    "join": joined,
    "sums": lambda t: t.group_by("k").agg(n=ps.count(), v=ps.sum("v")),
    "values": lambda t: t.group_by("k").agg(v=ps.median("v")),
    "answers": lambda t: t.group_by("k").top_k(1, by="v"),
    "counts": lambda t: t.distinct(),
    "loop": looped,
}


def snapshots(worker: ps.Worker, folder: str, form: str, n_rows: int) -> list[Any]:
    """The parts of two snapshots: of so many rows, and of a few changes."""
    checkpoint = Checkpoint(folder)
    with worker.dataflow("program", durable=Durable(checkpoint)) as scope:
        input_, collection = scope.new_collection(SCHEMA)
        probe = FORMS[form](collection).probe()
    made = [worker.snapshot(epoch, background=False) for epoch in range(2)]
    keys = range(n_rows)
    input_.insert(pa.table({"k": keys, "v": [key % 97 for key in keys]}))
    input_.advance_to(1)
    worker.step_while(partial(probe.less_than, 1))
    places = range(0, n_rows, n_rows // N_CHANGED)
    input_.delete([(key, key % 97) for key in places])
    input_.insert([(key, 1_000 + key % 97) for key in places])
    input_.close()
    worker.run()
    return [snapshot.part for snapshot in made]


def n_bytes(folder: Path, form: str, n_rows: int) -> tuple[int, int]:
    ((first, second),) = ps.simulate(snapshots, str(folder), form, n_rows, workers=1)
    return first.n_bytes, second.n_bytes


@pytest.mark.parametrize("form", FORMS)
def test_the_second_snapshot_of_more_rows_writes_no_more(tmp_path: Path, form: str) -> None:
    whole, few = n_bytes(tmp_path / "few", form, 2_500)
    larger, more = n_bytes(tmp_path / "more", form, 10_000)
    assert larger > 2 * whole
    assert 0 < more < 1.2 * few
    assert more < larger / 4


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_of_a_million_rows_a_thousand_changes_are_written(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.N_CHANGED", 1_000)
    whole, changes = n_bytes(tmp_path, form, 1_000_000)
    print(f"{form}: {whole} bytes, then {changes}")
    assert changes < whole / 30
