"""The command line on Spark: the same answers, and what Spark reads by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import EDGES, Ran

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

Run = Callable[..., Ran]


def as_parquet(folder: Path, **changed: list[int | None]) -> Path:
    """The small graph as Parquet, with some columns changed; a column of weights first."""
    pairs = [line.split() for line in EDGES.splitlines()[1:]]
    ends = dict(zip(("src", "dst"), zip(*pairs, strict=True), strict=True))
    columns = {"weight": [0.5] * len(pairs)}
    columns |= {name: [int(x) for x in end] for name, end in ends.items()} | changed
    path = folder / "graph.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_json_on_spark_has_what_it_has_here(run: Run, graph: Path) -> None:
    here = json.loads(run("triangles", graph, "--workers", 2, "--json").out)
    ran = run("triangles", graph, "--workers", 2, "--json", "--on", "spark")
    assert ran.status == 0
    there = json.loads(ran.out)
    assert list(there["seconds"]) == ["start", "read", "search", "stop", "total"]
    per_worker = there["per_worker"]
    assert [each["worker"] for each in per_worker] == [0, 1]
    assert sum(each["edges"] for each in per_worker) == 7
    assert sum(each["found"] for each in per_worker) == 2
    assert all(each["peak_bytes"] > 1_000_000 for each in per_worker)
    differing = ("on", "seconds", "per_worker")
    assert {k: v for k, v in there.items() if k not in differing} == {
        k: v for k, v in here.items() if k not in differing
    }


def test_all_matches_come_to_one_file(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "names.csv", tmp_path / "names.parquet"
    path.write_text("source,target\nann,bob\nbob,cy\ncy,ann\n")
    ran = run("triangles", path, "--workers", 2, "--on", "spark", "--out", out)
    assert (ran.status, ran.out) == (0, "")
    assert pq.read_table(out).to_pydict() == {"a": ["ann"], "b": ["bob"], "c": ["cy"]}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["names.csv", "names.parquet"]


def test_spark_scans_parquet_of_integers_by_itself(run: Run, tmp_path: Path) -> None:
    ran = run("triangles", as_parquet(tmp_path), "--workers", 2, "--on", "spark", "--json")
    told = json.loads(ran.out)
    assert (told["vertices"], told["edges"], told["matches"]) == (5, 7, 2)
    assert told["first"] == [[1, 2, 3], [2, 3, 4]]


def odd_file(folder: Path, what: str) -> Path:
    """A triangle as Parquet, in a file that Spark would not read, or not as it is meant."""
    path, ends = folder / "graph.parquet", [[1, 2, 1], [2, 3, 3]]
    names = {
        "two columns of a name": ["src", "src"],
        "names that differ in case": ["src", "SRC"],
        "a dotted name": ["x.y", "dst"],
    }
    if what == "a name that is a pattern":
        path = folder / "graph[12].parquet"
        pq.write_table(pa.table({"src": [1], "dst": [2]}), folder / "graph1.parquet")
    pq.write_table(pa.table(ends, names=names.get(what, ["src", "dst"])), path)
    if what == "cut off":
        path.write_bytes(path.read_bytes()[:-20])
    if what == "damaged inside":  # the footer is whole, and says where there are pages
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + bytes(40) + whole[44:])
    if what == "empty":
        path.write_bytes(b"")
    return path


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("cut off", 2, "this Parquet file cannot be read"),
        ("empty", 2, "this Parquet file is empty"),
        ("two columns of a name", 2, "which column 'src' is an end of the edges?"),
        ("names that differ in case", 0, "1\n"),
        ("a dotted name", 0, "1\n"),
        ("a name that is a pattern", 0, "1\n"),
    ],
)
def test_a_file_that_spark_would_not_read_is_what_it_is_here(
    run: Run, tmp_path: Path, what: str, status: int, said: str
) -> None:
    path = odd_file(tmp_path, what)
    here, there = (
        run("triangles", path, "--workers", 1, "--count", "--on", on) for on in ("local", "spark")
    )
    assert (there.status, there.out) == (here.status, here.out)
    assert here.status == status
    for ran in (here, there):
        assert said in (ran.out if status == 0 else ran.err)
        assert "Traceback" not in ran.err


def test_a_file_that_is_damaged_inside_fails_the_job_in_a_line(run: Run, tmp_path: Path) -> None:
    path = odd_file(tmp_path, "damaged inside")
    ran = run("triangles", path, "--workers", 1, "--count", "--on", "spark")
    assert (ran.status, ran.out) == (1, "")
    assert "pointstamp: the Spark job failed: " in ran.err
    assert "Traceback" not in ran.err
    assert "at org.apache" not in ran.err


def test_what_is_wrong_in_the_input_of_a_task_ends_with_2(run: Run, tmp_path: Path) -> None:
    path = as_parquet(tmp_path, dst=[2, 1, 3, None, 4, 4, 5])
    out = tmp_path / "out.parquet"
    ran = run("triangles", path, "--workers", 2, "--on", "spark", "--out", out)
    assert ran.status == 2
    assert "1 of 7 are null" in ran.err
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == [path]


def test_too_few_slots_are_said_before_anything_runs(run: Run, graph: Path) -> None:
    ran = run("triangles", graph, "--workers", 5, "--on", "spark")
    assert ran.status == 1
    assert "5 workers need 5 slots" in ran.err
    assert "Traceback" not in ran.err
