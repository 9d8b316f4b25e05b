"""What --out replaces, and what it refuses before anything is begun."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("", "an empty name, or '.', names no file"),
        ("/dev/null", "--out /dev/null: this is no ordinary file"),
        ("{folder}/null", "null: this is no ordinary file"),
        ("{folder}/pipe", "pipe: this is no ordinary file"),
        ("{folder}/" + "x" * 300, "cannot be written: File name too long"),
        ("/proc/matches", "--out /proc/matches: cannot be written"),
    ],
    ids=["nothing", "device", "link to a device", "pipe", "long", "unwritable"],
)
def test_what_is_no_place_for_a_file_ends_with_2_and_stays(
    run: Run, graph: Path, out: str, said: str
) -> None:
    folder = graph.parent
    (folder / "null").symlink_to("/dev/null")
    os.mkfifo(folder / "pipe")
    before = sorted(folder.iterdir())
    ran = run("triangles", graph, "--workers", 1, "--out", out.format(folder=folder))
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert "searching" not in ran.err
    assert "Traceback" not in ran.err
    assert sorted(folder.iterdir()) == before
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_file_that_a_link_leads_to_is_written(run: Run, graph: Path, workers: int) -> None:
    target, link = graph.parent / "target.parquet", graph.parent / "link.parquet"
    link.symlink_to(target.name)
    assert run("triangles", graph, "--workers", workers, "--out", link).status == 0
    assert link.is_symlink()
    assert pq.read_table(target).num_rows == 2
