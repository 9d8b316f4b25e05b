"""The home of Spark that a session of this machine has, and what is left of those before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pointstamp.errors import SparkSetupError
from pointstamp.spark import prepare, spark_home

pytest.importorskip("pyspark", reason="the extra spark")

MAKE = """
import os, signal, sys
from pathlib import Path
from pointstamp.spark import spark_home
spark_home.PREPARED = Path("/none")
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


def test_a_home_that_was_prepared_is_taken_as_long_as_pyspark_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = spark_home.folder_of_installed()
    if installed is None:
        pytest.skip("PySpark is not installed where another Python would find it")
    monkeypatch.setattr(spark_home, "PREPARED", tmp_path)
    assert not spark_home.is_prepared(installed)
    (tmp_path / spark_home.OF).write_text(spark_home.identity(installed))
    assert spark_home.is_prepared(installed)
    assert spark_home.of_installed.__wrapped__() == tmp_path
    other = tmp_path / "pyspark"
    other.mkdir()
    (other / "version.py").write_text((installed / "version.py").read_text())
    assert not spark_home.is_prepared(other)
    (tmp_path / spark_home.OF).write_text(spark_home.identity(installed) + "1")
    assert not spark_home.is_prepared(installed)


def test_java_takes_the_classes_that_are_written_down(tmp_path: Path) -> None:
    assert spark_home.java_options(tmp_path) == ""
    (tmp_path / spark_home.CLASSES).touch()
    taken = f" -XX:SharedArchiveFile={tmp_path / spark_home.CLASSES} -Xlog:disable"
    assert spark_home.java_options(tmp_path) == taken
    with_blank = tmp_path / "a b"  # an option would be two
    with_blank.mkdir()
    (with_blank / spark_home.CLASSES).touch()
    assert spark_home.java_options(with_blank) == ""


def test_what_cannot_be_prepared_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho Traceback >&2; echo 'OSError: no room' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(SparkSetupError, match=r"start as without it: OSError: no room$"):
        prepare()
