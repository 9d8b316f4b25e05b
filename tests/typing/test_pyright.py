"""Pyright sees the same types as mypy, where one of its two packages is at hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def checker() -> str | None:
    """The command, beside this Python or on the path."""
    beside = Path(sys.executable).parent
    names = ("pyright", "basedpyright")
    found = (shutil.which(name, path=str(beside)) or shutil.which(name) for name in names)
    return next((command for command in found if command), None)


def run(folder: Path, file: Path, **more: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "include": [str(file)],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT)],
        **more,
    }
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = checker()
    if command is None:
        pytest.skip("neither pyright nor basedpyright is installed")
    return subprocess.run(
        [command, "-p", str(config), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_pyright_agrees_about_the_types_of_operators(tmp_path: Path) -> None:
    done = run(tmp_path, HERE / "streams.py")
    assert done.returncode == 0, done.stdout


def test_pyright_agrees_about_what_a_program_is_given(tmp_path: Path) -> None:
    """Every call of the file that is said to be wrong is wrong."""
    done = run(tmp_path, HERE / "launching.py", reportUnnecessaryTypeIgnoreComment="error")
    assert done.returncode == 0, done.stdout


def test_pyright_looks_at_what_it_is_given(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from typing import assert_type\n"
        "import pointstamp as ps\n"
        "def check(texts: ps.Stream[str]) -> None:\n"
        "    assert_type(texts.map(len), ps.Stream[str])\n"
    )
    assert "assert_type" in run(tmp_path, wrong).stdout
