"""Kill -9 of a nightly job: of all its processes, at any moment of a night."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from tests.service.collection_lives import SCHEMAS, build, changes_of
from tests.service.deaths import end_session

pytestmark = pytest.mark.spark

N_NIGHTS = 12
NIGHT_S = 120.0
"""How long a night may take until something of it is written down or said."""


def killed(folder: Path, after_s: float | None) -> bool:
    """Have nights, for so long from when the second of those missing began; whether all are."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.killed_maintenance", str(folder), str(N_NIGHTS)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    try:
        if after_s is None:
            return running.wait(N_NIGHTS * NIGHT_S) == 0
        for _ in range(2):
            running.stdout.readline()
        time.sleep(after_s)
        assert running.poll() in (None, 0)
        return running.poll() == 0
    finally:
        end_session(running)
        running.stdout.close()


def expected() -> list[dict[str, Counter[Any]]]:
    """By night what a view says that changes."""
    nights = []
    with ps.View(build, **SCHEMAS) as view:
        for number in range(N_NIGHTS):
            for name, changes in changes_of(number).items():
                view.update(name, changes)
            told: Any = view.advance()
            nights.append({name: Counter(dict(changes)) for name, changes in told.items()})
    return nights


def found(folder: Path) -> list[dict[str, Counter[Any]]]:
    """The same of what the nights gave."""
    nights = []
    for number in range(N_NIGHTS):
        told = json.loads((folder / f"night-{number}").read_text())
        night: dict[str, Counter[Any]] = {}
        for name, rows in told.items():
            night[name] = Counter()
            for row, kind, version in rows:
                assert version == number
                night[name][tuple(row)] += 1 if kind == "insert" else -1
        nights.append(night)
    return nights


@pytest.mark.soak
@pytest.mark.xdist_group("own spark")
@pytest.mark.parametrize("seed", [500, 501])
def test_nights_that_are_killed_are_had_once(tmp_path: Path, seed: int) -> None:
    rolled = random.Random(seed)
    n_kills = 0
    while not killed(tmp_path, rolled.uniform(0.0, 3.0) if n_kills < 5 else None):
        n_kills += 1
    print(f"killed {n_kills} times, in {N_NIGHTS} nights")
    assert n_kills >= 3
    assert found(tmp_path) == expected()
