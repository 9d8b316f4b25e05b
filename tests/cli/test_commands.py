"""What the commands ask: what is all theirs, and what does not go together."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]

COMMON = [
    *("--workers", "--on", "--master", "--out", "--count"),
    *("--log", "--progress", "--json", "--traceback", "--help"),
]


@pytest.mark.parametrize(
    ("command", "own", "usage"),
    [
        ("motifs", ["--distinct"], "motifs [OPTIONS] PATTERN EDGES"),
        ("triangles", [], "triangles [OPTIONS] EDGES"),
        ("cliques", [], "cliques [OPTIONS] K EDGES"),
    ],
)
def test_a_command_asks_for_its_own_and_then_for_what_all_ask(
    run: Run, command: str, own: list[str], usage: str
) -> None:
    told = run(command, "--help").out
    assert usage in told.translate({ord(brace): None for brace in "{}"})  # as some Typers have it
    assert re.findall(r"^  (--\w+)", told, re.MULTILINE) == [*own, *COMMON]


def test_a_master_without_spark_is_refused(run: Run, graph: Path) -> None:
    ran = run("triangles", graph, "--workers", 1, "--master", "local[4]")
    assert (ran.status, ran.out) == (2, "")
    assert "--master local[4] says where Spark is" in ran.err
    assert "add --on spark" in ran.err


def test_a_place_that_cannot_be_written_is_said_before_spark_starts(run: Run, graph: Path) -> None:
    ran = run("triangles", graph, "--on", "spark", "--out", "/proc/matches")
    assert (ran.status, ran.out) == (2, "")
    assert "--out /proc/matches: cannot be written" in ran.err
    assert "starting Spark" not in ran.err
