"""The command: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.harness.find import names

ROOT = Path(__file__).resolve().parent.parent.parent


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_list_has_every_benchmark() -> None:
    ran = benchmarks("--list")
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == names()


def test_a_name_that_is_not_there_is_misuse() -> None:
    ran = benchmarks("nope")
    assert ran.returncode == 2
    assert ran.stderr == f"benchmarks: no benchmark 'nope'; there are {', '.join(names())}\n"


def test_a_size_that_is_not_there_is_misuse() -> None:
    assert benchmarks("chain", "--size", "huge").returncode == 2


def test_a_benchmark_runs_and_says_what_it_measured() -> None:
    before = sorted((ROOT / "benchmarks" / "results").glob("*"))
    ran = benchmarks("chain", "--size", "tiny", "--samples", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "us per operator" in ran.stdout
    # What was only tried is not kept.
    assert sorted((ROOT / "benchmarks" / "results").glob("*")) == before


def test_a_profile_shows_where_the_time_goes() -> None:
    ran = benchmarks("chain", "--size", "tiny", "--profile")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("chain: Pointstamp, workers 1")
    assert "tottime" in ran.stdout
