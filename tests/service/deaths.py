"""Runs a program that dies, again and again, until it has come through all of its lives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.service.lives import Life, processes

PROGRAM = "import sys; from {} import main; main(*sys.argv[1:])"

LIFE_S = 300.0
"""How long a program may take for each of its lives, on a machine with much else to do."""

GONE_S = 10.0
"""How soon all workers are gone when their driver is. Mostly that is a matter of milliseconds."""


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
                for left in processes(running.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(left, signal.SIGKILL)
                running.wait()
            said.seek(0)
            told = said.read()
        if status == 0:
            return longest_s
        assert status == -signal.SIGKILL, (lives, ends(folder), told)
        # What it was to live on after that, the next program has.
        lives = [life for life in lives if life.number > ends(folder)[-1]["number"]]
    return longest_s


def ends(folder: Path) -> list[dict[str, Any]]:
    """What was written down of each kill."""
    return [json.loads(line) for line in (folder / "ends").read_text().splitlines()]


def gone(session: int) -> float:
    """Wait until no process of the session is left; how long that took."""
    began = time.monotonic()
    while left := processes(session):
        assert time.monotonic() < began + GONE_S, f"still there: {left}"
    return time.monotonic() - began
