"""Every block of Python in the documentation runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointstamp.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A block of Python on a page, and the text that the page says it prints."""

    page: Path
    line: int
    program: str
    printed: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    pattern = r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?"
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])
        for found in re.finditer(pattern, text, re.DOTALL | re.MULTILINE)
    ]


def marked(block: Block) -> object:
    marks = (pytest.mark.spark, pytest.mark.xdist_group("own spark"))
    return pytest.param(block, id=str(block), marks=marks if ".spark" in block.program else ())


EVERY = [block for page in PAGES for block in blocks(page)]


@pytest.mark.parametrize("block", [*map(marked, EVERY)])
def test_a_block_of_the_documentation_runs(block: Block) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.program], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    if block.printed is not None:
        assert ran.stdout == block.printed


def test_no_block_is_overlooked() -> None:
    for page in PAGES:
        assert page.read_text().count("```python") == len(blocks(page))
    assert len(EVERY) >= 7


def test_a_block_that_prints_says_what() -> None:
    assert [str(block) for block in EVERY if "print(" in block.program and not block.printed] == []


def test_the_picture_is_of_the_program_beside_it() -> None:
    script = ROOT / "docs" / "draw_dataflow.py"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


def test_the_tables_are_what_is_counted() -> None:
    script = ROOT / "docs" / "count_progress.py"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_option_of_the_command_line_is_in_the_readme() -> None:
    options = {
        option
        for command in app.app.registered_commands
        for option in re.findall(
            r"--[a-z]+", _help_of(command.name or str(command.callback.__name__))
        )
    }
    readme = (ROOT / "README.md").read_text()
    assert {o for o in options - {"--help"} if o not in readme} == set()


def _help_of(command: str) -> str:
    args = [sys.executable, "-m", "pointstamp.cli", command, "--help"]
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def test_every_example_is_on_its_page() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    named = re.findall(r"^\| \[`(\w+\.py)`\]\(\.\./examples/\1\) \| .+ \|$", page, re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))
