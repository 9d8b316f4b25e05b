"""The notebooks of the documentation run, and show what they have; in a kernel of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.once
@pytest.mark.xdist_group("long")
def test_the_notebooks_show_what_they_have() -> None:
    script = ROOT / "docs" / "run_notebooks.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_on_its_page(path: Path) -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text()
    assert f"(notebooks/{path.name})" in page
    title = json.loads(path.read_text())["cells"][0]["source"]
    (first, *_) = "".join(title).splitlines()
    assert f"#{first}" in page.splitlines()


def test_the_cells_show_a_picture_a_page_and_how_far_a_run_was() -> None:
    shown = "".join(path.read_text() for path in NOTEBOOKS)
    assert "image/svg+xml" in shown
    assert "<iframe src=" in shown
    assert "240,000 records" in shown
    assert "100 % read" in shown
    assert "127.0.0.1:40211" in shown  # in place of the port and the token of that run
