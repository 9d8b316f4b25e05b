"""The declarative pipeline of `examples/pipeline`, run by PySpark's own `spark-pipelines`."""

from __future__ import annotations

import importlib.util
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx
import pyarrow.dataset as ds
import pytest

from pointstamp.spark.spark_home import PREPARED

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("own spark")]

PROGRAM = Path(__file__).resolve().parent.parent.parent / "examples" / "pipeline" / "run.py"
N_FILES = 3


# What else may be written in a pipeline; nothing reads it, so that Spark only has to understand it.
OTHERS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
import pointstamp as ps
import pointstamp.spark
from pointstamp.graph import motifs

spark = SparkSession.active()

def edges():
    table = spark.read.table("edges")
    return pointstamp.spark.with_schema(table, "src long, dst long, change long not null")

def graph():
    return pointstamp.spark.graph(edges(), workers=2)

@dp.temporary_view
def cores():
    return graph().k_core()

@dp.temporary_view
def paths():
    return graph().sssp(1, "change")

@dp.temporary_view
def least():
    columns = {"least": ("id", "least(least, coalesce(msg, least))")}
    return graph().pregel(columns, "min(msg)", send_to_dst="src.least")

@dp.temporary_view
def found():
    def build(scope, edges):
        return motifs(edges, "(a)-[]->(b); (b)-[]->(a)")

    return pointstamp.spark.run(build, {"edges": edges()}, "a long, b long", workers=2)

@dp.temporary_view
def of_two_integers():
    ends = pointstamp.spark.with_schema(spark.read.table("edges"), "src int, dst long")
    return pointstamp.spark.graph(ends, workers=2).k_core()

@dp.temporary_view
def refused():
    table = spark.read.table("edges")
    for what, given in (
        ("with_schema", lambda: pointstamp.spark.graph(table, workers=2)),
        ("with_schema", lambda: pointstamp.spark.run(lambda scope, edges: edges, table, workers=2)),
        ("run no jobs", lambda: graph().count("(a)-[]->(b)")),
    ):
        try:
            given()
        except ps.errors.PointstampError as error:
            assert what in str(error), error
        else:
            raise AssertionError(f"it was to be refused by {what}")
    return edges()
"""


def rows(folder: Path, table: str) -> list[Any]:
    found = ds.dataset(folder / "tables" / table).to_table().to_pylist()
    return [tuple(row.values()) for row in found]


def changes_of(folder: Path, number: int) -> list[tuple[int, ...]]:
    lines = (folder / "data" / f"{number}.csv").read_text().splitlines()
    return [tuple(map(int, line.split(","))) for line in lines]


def graphs(folder: Path) -> list[Any]:
    """After each file, the graph of the edges that are there."""
    counts: Counter[tuple[int, int]] = Counter()
    found = []
    for number in range(N_FILES):
        for u, v, change in changes_of(folder, number):
            counts[u, v] += change
        found.append(networkx.DiGraph([edge for edge, n in counts.items() if n > 0]))
    return found


def labels_of(graph: Any) -> dict[int, int]:
    parts = networkx.weakly_connected_components(graph)
    return {node: min(part) for part in parts for node in part}


def test_tables_are_what_a_recount_says_and_components_go_on_with_the_second_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quick_to_start: str,
) -> None:
    # Of two Javas for each run, PySpark starts the second alone.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", quick_to_start)
    # So that the server of the pipeline takes a port that is free; not as a value of "1", with
    # which Java would look for the classes of a checkout of Spark.
    monkeypatch.setenv("SPARK_TESTING", "true")
    spec = importlib.util.spec_from_file_location("run", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    project = tmp_path / "project"
    program.make(project)
    # Its Javas take Spark's classes as they were written down if their path begins as it did then,
    # and not with the folder of the settings.
    archives = [*map(str, (PREPARED / "jars").glob("slf4j-api-*.jar")), f"{PREPARED}/jars/*"]
    with (project / program.DEFAULTS).open("a") as settings:
        settings.write(f"spark.driver.extraClassPath {':'.join(archives)}\n")
    others = project / "transformations" / "others.py"
    others.write_text(OTHERS)
    for number in range(N_FILES - 1):
        program.put(project, number)
    program.main(str(project))
    others.unlink()  # they were understood
    program.put(project, N_FILES - 1)
    program.main(str(project))
    found = graphs(project)
    assert not networkx.utils.graphs_equal(found[-2], found[-1])

    triangles = Counter(
        a
        for a, b in found[-1].edges
        for c in found[-1][b]
        if found[-1].has_edge(c, a) and len({a, b, c}) == 3
    )
    assert dict(rows(project, "triangles")) == triangles
    assert sum(triangles.values())

    expected = [labels_of(graph) for graph in found]
    assert sorted(rows(project, "components")) == sorted(expected[-1].items())
    # Each file is an epoch, of whichever run: what is there already is not told again.
    moved = Counter(row[:4] for row in rows(project, "moved"))
    assert set(moved.values()) == {1}
    for epoch, (before, after) in enumerate(pairwise([{}, *expected])):
        gone, come = before.items() - after.items(), after.items() - before.items()
        assert {row[:3] for row in moved if row[3] == epoch} == {
            *((node, label, "delete") for node, label in gone),
            *((node, label, "insert") for node, label in come),
        }
    assert len(rows(project, "edges")) == sum(len(changes_of(project, n)) for n in range(N_FILES))

    n = sum(triangles.values()) // 3
    _, last = capsys.readouterr().out.splitlines()
    assert last == (
        f"{n} triangles, {len({*expected[-1].values()})} components of {len(found[-1])} vertices"
    )
