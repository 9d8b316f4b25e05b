"""The pipeline of `examples/stream_on_spark.py`: files in, Parquet out, stopped in the middle."""

from __future__ import annotations

import importlib
import os
import random
from collections import Counter
from pathlib import Path

import networkx
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
N_FILES = 6
WINDOW = 2
"""After how many files an edge of `changes` goes."""


@pytest.fixture
def example(monkeypatch):
    """The module, with the two examples beside it that it is made of."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("stream_on_spark")


@pytest.fixture(scope="module")
def parts(data):
    """The real graph in the order of its edges, or, where it is not, a random one; in parts.

    That the real one is not there is said by the test of the published count, which is skipped.
    """
    try:
        file = data("sx-mathoverflow-a2q", "sx-mathoverflow-a2q.txt.gz")
    except pytest.skip.Exception:
        draw = random.Random(2)
        edges = [(draw.randrange(900), draw.randrange(900)) for _ in range(6000)]
    else:
        from pointstamp.formats.edge_files import read_edges

        batches = [batch.to_pydict() for batch in read_edges(str(file)).batches()]
        edges = [edge for b in batches for edge in zip(b["src"], b["dst"], strict=True)]
    size = -(-len(edges) // N_FILES)
    return [edges[start : start + size] for start in range(0, len(edges), size)]


def changes_of(parts, k):
    """The edges of a part come, and those of an earlier one go."""
    gone = parts[k - WINDOW] if k >= WINDOW else []
    return [(edge, +1) for edge in parts[k]] + [(edge, -1) for edge in gone]


def put(folder, parts, which):
    """Have some of the files arrive."""
    for k in which:
        edges = [f"{u} {v} {k}" for u, v in parts[k]]
        changes = [f"{u},{v},{n}" for (u, v), n in changes_of(parts, k)]
        for name, lines in (("edges", edges), ("changes", changes)):
            file = folder / name / f"{k}.csv"
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(lines))
            os.utime(file, (1e9 + k, 1e9 + k))


def test_a_stream_of_files_is_kept_by_a_service_that_is_stopped_and_goes_on(
    spark, example, parts, tmp_path, capsys
):
    put(tmp_path, parts, range(3))
    example.work_off(spark, tmp_path, 2)
    put(tmp_path, parts, range(3, N_FILES))
    example.work_off(spark, tmp_path, 1)
    told = spark.read.parquet(str(tmp_path / "triangles")).collect()
    came = [row for row in told if row._change_type == "insert"]
    counts = sorted((row._commit_version, row.triangles) for row in came)
    # Each file of edges is an epoch once, between those of changes; the first says that there are 0
    # before it, if it comes second.
    assert len({epoch for epoch, _ in counts}) == len(counts) in (N_FILES, N_FILES + 1)
    graph = networkx.Graph([(u, v) for part in parts for u, v in part if u != v])
    assert counts[-1][1] == sum(networkx.triangles(graph).values()) // 3
    moved = spark.read.parquet(str(tmp_path / "components")).collect()
    labels = check_components(moved, parts)
    example.say(spark, tmp_path)
    n_components = len({*labels.values()})
    assert capsys.readouterr().out == f"{counts[-1][1]} triangles\n{n_components} components\n"


def check_components(moved, parts):
    """After each epoch, what was told so far are the components; and nothing is told twice."""
    rows, counts, labels = Counter(), Counter(), {}
    versions = sorted({row._commit_version for row in moved})
    assert len(versions) == N_FILES
    for epoch, version in enumerate(versions):
        for row in moved:
            if row._commit_version == version:
                rows[row.node, row.label] += 1 if row._change_type == "insert" else -1
        assert set(rows.values()) <= {0, 1}
        labels = dict(pair for pair, n in rows.items() if n)
        assert len(labels) == sum(rows.values())
        for (u, v), change in changes_of(parts, epoch):
            counts[min(u, v), max(u, v)] += change
        graph = networkx.Graph([(u, v) for (u, v), n in counts.items() if n > 0 and u != v])
        expected = {
            v: least for c in networkx.connected_components(graph) for least in [min(c)] for v in c
        }
        assert labels == expected
    return labels
