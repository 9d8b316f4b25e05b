"""Runs a program that dies, again and again, until it has come through all of its lives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.os_processes import of_session
from tests.service.lives import Life

PROGRAM = "import sys; from {} import main; main(*sys.argv[1:])"

LIFE_S = 300.0
"""How long a program may take for each of its lives, on a machine with much else to do."""

GONE_S = 60.0
"""How soon all workers are gone when their driver is. Mostly that is a matter of milliseconds."""


def come_through(
    program: str,
    folder: Path,
    lives: list[Life],
    moments: Mapping[str, Collection[str]],
    check: Callable[[Path], int],
    killed: str = "killed",
) -> None:
    """A plan from its beginning to its end; what was done in it is on standard output.

    Parameters
    ----------
    moments : mapping
        The points of each moment, for what is said.
    check : callable
        Compares what came out with the oracle; of how many epochs.
    """
    began = time.monotonic()
    longest_s = run(program, folder, lives)
    n_epochs = check(folder)
    done = ends(folder)
    assert [(end["number"], end["where"], end["who"]) for end in done] == [
        (life.number, life.where, life.who) for life in lives[:-1]
    ]
    for moment, points in moments.items():
        whom = Counter(end["who"] for end in done if end["where"] in points)
        print(f"{killed} {moment}: {whom.total()} {dict(sorted(whom.items()))}")
    print(
        f"{killed} in all: {len(done)}, in {n_epochs} epochs and {time.monotonic() - began:.0f} s; "
        f"workers outlived their driver by {longest_s:.3f} s at most"
    )


def run(program: str, folder: Path, lives: list[Life]) -> float:
    """Have all these lives; how long anybody outlived a driver that was killed, at most.

    Parameters
    ----------
    program : str
        The module whose `main(folder, lives)` has them, until it dies.
    """
    longest_s = 0.0
    while lives:
        numbered = json.dumps([asdict(life) for life in lives])
        with (folder / "said").open("w+") as said:
            running = subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format(program), str(folder), numbered],
                env={**os.environ, "PYTHONPATH": str(Path.cwd())},
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = running.wait(LIFE_S * len(lives))
                longest_s = max(longest_s, gone(running.pid))
            finally:
                end_session(running)
            said.seek(0)
            told = said.read()
        if status == 0:
            return longest_s
        assert status == -signal.SIGKILL, (lives, ends(folder), told)
        # What it was to live on after that, the next program has.
        lives = [life for life in lives if life.number > ends(folder)[-1]["number"]]
    return longest_s


def end_session(running: subprocess.Popen[Any]) -> None:
    """Kill a program that was started in a session of its own, and all that it started."""
    for left in of_session(running.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(left.pid, signal.SIGKILL)
    running.wait()


def ends(folder: Path) -> list[dict[str, Any]]:
    """What was written down of each kill."""
    return [json.loads(line) for line in (folder / "ends").read_text().splitlines()]


def gone(session: int) -> float:
    """Wait until no process of the session is left; how long that took."""
    began = time.monotonic()
    while left := of_session(session):
        assert time.monotonic() < began + GONE_S, f"still there: {left}"
    return time.monotonic() - began
