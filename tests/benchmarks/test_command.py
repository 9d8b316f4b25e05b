"""The commands: `python -m benchmarks`, and `pointstamp bench`, which becomes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.find import names
from pointstamp.cli.bench import checkout
from pointstamp.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent.parent


def pointstamp(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pointstamp.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_the_list_has_every_benchmark(tmp_path: Path) -> None:
    ran = pointstamp("bench", "--list", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == names()


def test_a_name_that_is_not_there_is_misuse() -> None:
    ran = pointstamp("bench", "nope")
    assert ran.returncode == 2
    assert ran.stderr.startswith("benchmarks: no benchmark 'nope'; there are barrier, ")


def test_a_size_that_is_not_there_is_misuse() -> None:
    assert pointstamp("bench", "chain", "--size", "huge").returncode == 2


def test_a_benchmark_runs_and_says_what_it_measured() -> None:
    before = sorted((ROOT / "benchmarks" / "results").glob("*"))
    ran = pointstamp("bench", "chain", "--size", "tiny", "--samples", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "us per operator" in ran.stdout
    # What was only tried is not kept.
    assert sorted((ROOT / "benchmarks" / "results").glob("*")) == before


def test_an_installed_package_says_that_a_checkout_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="an installed package does not have them; get the"):
        checkout(tmp_path / "site-packages" / "pointstamp")


def test_a_profile_shows_where_the_time_goes() -> None:
    ran = pointstamp("bench", "chain", "--size", "tiny", "--profile")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("chain: Pointstamp, workers 1")
    assert "tottime" in ran.stdout
