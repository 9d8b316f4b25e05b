"""Kill -9 of a service and of Spark's driver while a table is merged into."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.deaths import end_session
from tests.spark.killed_merges import expected

pytestmark = pytest.mark.spark

N_EPOCHS = 30
N_KILLS = 4
LIFE_S = 240.0
"""How long a life takes at most that is not ended."""


def last_of(folder: Path, log: str) -> int:
    """The last batch of the query in one of Spark's logs, or -1."""
    found = folder.rglob(f"{log}/[0-9]*")
    return max((int(path.name) for path in found if path.name.isdigit()), default=-1)


def killed(folder: Path, after_s: float | None) -> bool:
    """Live, for so long from when merging began; whether all epochs are in the table."""
    with (folder / "errors").open("ab") as errors:
        running = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.killed_merges", str(folder), str(N_EPOCHS)],
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert running.stdout is not None
    try:
        if after_s is None:
            return running.wait(LIFE_S) == 0
        running.stdout.readline()
        time.sleep(after_s)
        assert running.poll() in (None, 0), (folder / "errors").read_text()[-2_000:]
        return running.poll() == 0
    finally:
        end_session(running)
        running.stdout.close()


@pytest.mark.soak
@pytest.mark.xdist_group("own spark")
@pytest.mark.parametrize("seed", [600, 601])
def test_a_table_that_is_merged_into_while_killed_has_each_row_once(
    tmp_path: Path, seed: int
) -> None:
    (tmp_path / "tables").mkdir()
    rolled = random.Random(seed)
    n_kills = n_in_batch = n_half = 0
    while not killed(tmp_path, rolled.uniform(0.0, 2.0) if n_kills < N_KILLS else None):
        n_kills += 1
        queries = tmp_path / "checkpoint"
        n_in_batch += last_of(queries, "offsets") > last_of(queries, "commits")
        n_half += (tmp_path / "tables" / ".report.new").exists()
        assert n_kills <= N_KILLS, (tmp_path / "errors").read_text()[-2_000:]
    print(
        f"killed {n_kills} times, {n_in_batch} of them in a batch, {n_half} with a file half done"
    )
    assert n_kills >= 2
    assert n_in_batch >= 1
    assert json.loads((tmp_path / "last").read_text()) == expected(N_EPOCHS)
