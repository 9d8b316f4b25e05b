"""What the progress display and the summary show, and that they show it as it is."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from pointstamp.cli.display import Display, console_for
from tests.cli.conftest import EDGES, Ran

Run = Callable[..., Ran]


def test_brackets_and_colons_of_names_are_shown_as_they_are(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "[bold]:smile:[x].txt"
    path.write_text(EDGES)
    ran = run("motifs", "(x)-[]->(y); (y)-[red]->(x)", path, "--workers", 1)
    assert ran.status == 0
    assert f"matches of (x)-[]->(y); (y)-[red]->(x) in {path}, 1 worker" in ran.err


def test_progress_shows_what_it_is_told_as_it_is() -> None:
    shown = io.StringIO()
    Display("motifs", console_for(shown)).print_line("[red]:warning:[/nothing]")
    assert shown.getvalue().endswith("[red]:warning:[/nothing]\n")
