"""What was taken for one thing and could have been another is said with the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_header_that_could_be_an_edge_is_in_the_summary_and_in_the_object(
    run: Run, tmp_path: Path, workers: int
) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("ann bob\n1 2\n2 3\n1 3\n")
    said = f"{path}: line 1, 'ann bob', was taken for a header and not for an edge"
    ran = run("triangles", path, "--workers", workers, "--count")
    assert (ran.status, ran.out) == (0, "1\n")
    assert f"  note: {said}" in ran.err
    (note,) = json.loads(run("triangles", path, "--workers", workers, "--json").out)["notes"]
    assert note.startswith(said)


def test_a_header_that_is_one_is_no_news(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("source,target\n1,2\n")
    assert "note" not in run("cliques", 2, path, "--workers", 1).err
    assert "notes" not in json.loads(run("cliques", 2, path, "--workers", 1, "--json").out)
