"""What is no vertex is refused in the same words, wherever it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("on", ["local", "spark"])
@pytest.mark.parametrize(
    ("dst", "said"),
    [
        ([2, -3, 3], "column 'dst': -3 is no vertex; vertices are integers from 0 to 2**63 - 1"),
        (["2", "3", "3"], "column 'src' holds integers and 'dst' names; write all vertices as"),
    ],
    ids=["negative", "names"],
)
def test_what_is_no_vertex_is_refused_in_the_same_words(
    run: Run, tmp_path: Path, on: str, dst: list[object], said: str
) -> None:
    path = tmp_path / "graph.parquet"
    pq.write_table(pa.table({"src": [1, 2, 1], "dst": dst}), path)
    ran = run("triangles", path, "--workers", 2, "--on", on, "--count")
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
