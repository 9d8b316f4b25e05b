"""A program with files as its source and its sink is killed by SIGKILL: each record once."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MEMORY = Path("/dev/shm")
"""Processes are killed, not the machine: no disk has to be waited for."""

PROGRAM = Path(__file__).with_name("killed_flow.py")


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def outlived(folder: Path, seed: int, n_kills: int, *bug: str) -> tuple[int, Any]:
    """How often it was killed, and what came out; None if it could not go on."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(PROGRAM), str(folder), str(seed), str(n_kills), *bug]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        assert bug, ran.stderr
        return 0, None
    said = json.loads(ran.stdout)
    return said["n_killed"], said["found"]


def expected(folder: Path) -> list[Any]:
    """The running counts of each word."""
    counts = Counter(
        word for path in (folder / "in").iterdir() for word in path.read_text().split()
    )
    return sorted([word, n + 1] for word, total in counts.items() for n in range(total))


def test_what_was_killed_goes_on_and_each_record_is_there_once(place: Path) -> None:
    n_killed, found = outlived(place, 1, 12)
    assert found == expected(place)
    assert n_killed >= 4, "it ended before it was killed: make it slower"
    assert list((place / "out" / ".staged").iterdir()) == []


@pytest.mark.parametrize("bug", ["early position", "late position", "commit before snapshot"])
def test_a_bug_that_is_planted_is_caught_by_kills(place: Path, bug: str) -> None:
    for seed in range(4):
        folder = place / str(seed)
        _, found = outlived(folder, seed, 8, bug)
        if found != expected(folder):
            return
    pytest.fail(f"not caught: {bug}")
