"""The known triangle counts of real graphs, by the command line, on both carriers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pointstamp.cli.app import app

PUBLISHED = [
    "ca-GrQc",
    "email-Eu-core",
    "facebook_combined",
    "p2p-Gnutella08",
    "p2p-Gnutella24",
    "wiki-Vote",
]
RECOMPUTED = [
    "CollegeMsg",
    "ca-CondMat-LCC",
    "ca-HepPh-LCC",
    "email-Eu-core-temporal-Dept1",
    "email-Eu-core-temporal-Dept3",
    "sx-mathoverflow-a2q",
]
SMALL = [
    "karate",
    "A",
    "ldbc-cdlp-undirected-example",
    "ldbc-undirected-example",
    "ldbc-wcc-example",
    "LFAT5",
    "tree-example",
]

Data = Callable[..., Path]


def check(edges: Path, triangles: int, on: str, workers: int) -> None:
    """Count with `pointstamp triangles`; exactly as known."""
    asked = ["triangles", str(edges), "--count", "--json", "--on", on, "--workers", str(workers)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["matches"] == triangles
    assert told["workers"] == workers == len(told["per_worker"])
    if triangles:
        assert sum(worker["prefixes"] for worker in told["per_worker"]) > 0


def known(data: Data, graph: str, by: str) -> int:
    answers = json.loads(data(graph, "answers.json").read_text())
    return int(answers[by]["triangles"])


LOCALLY = [*((graph, 1) for graph in PUBLISHED), *((graph, 2) for graph in PUBLISHED[::2])]
"""To start a worker takes longer than to count: on one all of them, on more some."""


@pytest.mark.parametrize(("graph", "workers"), [*LOCALLY, ("wiki-Vote", 2), ("wiki-Vote", 3)])
def test_published_counts_by_processes(graph: str, workers: int, data: Data) -> None:
    edges = data(graph, f"{graph}.txt.gz")
    check(edges, known(data, graph, "published"), "local", workers)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("graph", "workers"),
    [(PUBLISHED[0], 2), ("wiki-Vote", 1), ("wiki-Vote", 3)],
)
def test_published_counts_by_spark(graph: str, workers: int, data: Data) -> None:
    edges = data(graph, f"{graph}.txt.gz")
    check(edges, known(data, graph, "published"), "spark", workers)


@pytest.mark.parametrize("graph", RECOMPUTED)
def test_counts_that_another_library_found(graph: str, data: Data) -> None:
    """Of undirected simple graphs, from files with directions, repeats and times."""
    edges = data(graph, f"{graph}.txt.gz")
    check(edges, known(data, graph, "recomputed"), "local", 1)


@pytest.mark.parametrize("graph", SMALL)
def test_published_counts_of_small_matrices(graph: str, data: Data) -> None:
    answers = json.loads(data("lagraph-small", "answers.json").read_text())
    edges = data("lagraph-small", f"{graph}.mtx.gz")
    check(edges, answers["published"][graph]["triangles"], "local", 2 if graph == "A" else 1)
