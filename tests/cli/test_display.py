"""What the progress display and the summary show, and that they show it as it is."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from pointstamp.cli.display import Display, console_for
from pointstamp.cli.progress import Report
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
    Display("motifs", 1, console_for(shown)).print_line("[red]:warning:[/nothing]")
    assert shown.getvalue().endswith("[red]:warning:[/nothing]\n")


def test_a_log_says_now_and_then_that_there_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("pointstamp.cli.display.time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr("pointstamp.cli.display.FRAMES_PER_S", 0.01)  # here, when it is called
    shown = io.StringIO()
    display = Display("cliques", 1, console_for(shown))
    with display.working("searching"):
        display.take(Report(0, edges=5))
        for _ in range(25):
            clock[0] += 1
            display.tick()
    assert shown.getvalue().splitlines() == [
        "cliques    0.0 s  searching",
        "cliques    2.0 s  searching: edges read 5",
        "cliques   12.0 s  searching: still at it, edges read 5",
        "cliques   22.0 s  searching: still at it, edges read 5",
    ]


def test_a_terminal_shows_the_seconds_pass_without_any_news() -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    until = time.monotonic() + 60
    with Display("cliques", 1, console).working("searching"):
        # Drawn by Rich's thread: nobody tells the display anything.
        while len(seconds := set(re.findall(r"searching, (\d+\.\d) s", shown.getvalue()))) < 3:
            assert time.monotonic() < until, f"only {seconds} in a minute"
            time.sleep(0.01)
