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


def run(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "include": [str(file) for file in files],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT)],
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


def test_pyright_agrees_with_mypy(tmp_path: Path) -> None:
    """About operators and what a program is given, as it sees a mistake."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from typing import assert_type\n"
        "import pointstamp as ps\n"
        "def check(texts: ps.Stream[str]) -> None:\n"
        "    assert_type(texts.map(len), ps.Stream[str])\n"
    )
    # Each call of `launching.py` that is said to be wrong is wrong, or the word is unnecessary.
    done = run(tmp_path, HERE / "streams.py", HERE / "launching.py", wrong)
    (error,) = (line for line in done.stdout.splitlines() if " error: " in line)
    assert "wrong.py:4" in error
    assert "assert_type" in error
