"""The home of Spark that a session of this machine has, and what is left of those before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark")

MAKE = """
import os, signal, sys
from pointstamp.spark import spark_home
home = spark_home.of_installed()
assert home is None or (home / "jars").is_dir()
print("none" if home is None else home.name, flush=True)
if "killed" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
assert home is None or os.listdir(home.parent) == [home.name]
"""


def made(temporary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAKE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def test_the_home_of_a_program_that_was_killed_goes_when_the_next_begins(tmp_path: Path) -> None:
    killed = made(tmp_path, "killed")
    assert killed.returncode == -signal.SIGKILL
    if killed.stdout.strip() == "none":
        pytest.skip("PySpark is not installed where another Python would find it")
    assert [path.name for path in tmp_path.iterdir()] == [killed.stdout.strip()]
    after = made(tmp_path)
    assert after.returncode == 0, after.stderr
    assert list(tmp_path.iterdir()) == []
