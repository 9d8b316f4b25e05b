"""Every block of Python in the documentation runs, and prints what the page says.

Programs for other engines stand in fences of another name (`py`, `rust`, `java`), and do not run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
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
    pattern = r"^```python\n(.*?)^```$(?:\n\n(?:</div>\n\n)?^```text\n(.*?)^```$)?"
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])
        for found in re.finditer(pattern, text, re.DOTALL | re.MULTILINE)
    ]


EVERY = [block for page in PAGES for block in blocks(page)]
ON_SPARK = [block for block in EVERY if ".spark" in block.program]

RUN_EACH = """
import contextlib, io, json, sys, traceback, types
for line in sys.stdin:
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(json.loads(line), "<block>", "exec"), main.__dict__)
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), flush=True)
"""
"""Programs one after the other, each as a main module: a Java takes longer than most of them."""


@pytest.mark.parametrize("block", [block for block in EVERY if block not in ON_SPARK], ids=str)
def test_a_block_of_the_documentation_runs(block: Block) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.program], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    if block.printed is not None:
        assert ran.stdout == block.printed


@pytest.fixture(scope="module")
def run_on_spark() -> Iterator[Callable[[str], list[str]]]:
    """Runs a program in a process that keeps its Java; what it printed, and its error."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN_EACH], stdin=pipe, stdout=pipe, text=True
    ) as running:

        def run(program: str) -> list[str]:
            print(json.dumps(program), file=running.stdin, flush=True)
            answer: list[str] = json.loads(running.stdout.readline())
            return answer

        yield run


@pytest.mark.spark
@pytest.mark.xdist_group("own spark")
@pytest.mark.parametrize("block", ON_SPARK, ids=str)
def test_a_block_with_spark_runs(block: Block, run_on_spark: Callable[[str], list[str]]) -> None:
    printed, error = run_on_spark(block.program)
    assert not error
    if block.printed is not None:
        assert printed == block.printed


@pytest.mark.spark
@pytest.mark.xdist_group("own spark")
def test_the_example_with_spark_runs(run_on_spark: Callable[[str], list[str]]) -> None:
    """Here, for it needs a Java as blocks do."""
    printed, error = run_on_spark((ROOT / "examples" / "triangles_on_spark.py").read_text())
    assert not error
    # Of i -> i+1, i+2, i+3 below 10, those that begin at 0: 0-1-2, 0-1-3, 0-2-3.
    assert "3 triangles begin at 0\n" in printed


def test_no_block_is_overlooked() -> None:
    for page in PAGES:
        assert page.read_text().count("```python") == len(blocks(page))
    assert len(EVERY) >= 7


def test_a_block_that_prints_says_what() -> None:
    assert [str(block) for block in EVERY if "print(" in block.program and not block.printed] == []


@pytest.mark.parametrize("name", ["draw_dataflow.py", "draw_frontiers.py"])
def test_a_picture_is_of_the_program_beside_it(name: str) -> None:
    script = ROOT / "docs" / name
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


@pytest.mark.xdist_group("long")
@pytest.mark.new_interpreters
def test_the_tables_are_what_is_counted() -> None:
    script = ROOT / "docs" / "count_progress.py"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_option_of_the_command_line_is_on_its_page() -> None:
    options = {
        option
        for command in app.app.registered_commands
        for option in re.findall(
            r"--[a-z]+", _help_of(command.name or str(command.callback.__name__))
        )
    }
    page = (ROOT / "docs" / "command_line.md").read_text()
    assert {o for o in options - {"--help"} if o not in page} == set()


def _help_of(command: str) -> str:
    args = [sys.executable, "-m", "pointstamp", command, "--help"]
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout


def test_every_example_is_on_its_page() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    named = re.findall(r"^\| \[`(\w+\.py)`\]\(\.\./examples/\1\) \| .+ \|$", page, re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_are_there(page: Path) -> None:
    """As the site's strict build has it, which needs MkDocs."""
    for target, anchor in re.findall(
        r"\]\((?!https?:)([^)#\s]*\.md)?#([^)\s]+)\)", page.read_text()
    ):
        assert anchor in _anchors(page.parent / target if target else page), f"{target}#{anchor}"


@cache
def _anchors(page: Path) -> set[str]:
    """Those of the headings, as Python-Markdown and GitHub make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = {*re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)}
    words = (re.sub(r"\]\([^)]*\)|[^\w\s-]", "", head).strip().lower() for head in heads)
    return named | {re.sub(r"\s+", "-", head) for head in words}


def test_the_navigation_of_the_site_has_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"(?:: |- )([\w/]+\.md)$", navigation, re.MULTILINE)
    elsewhere = {"index.md", "contributing.md", "security.md", "changelog.md"}
    assert len(listed) == len({*listed})
    assert {page for page in listed if not page.startswith("api/")} == elsewhere | {
        page.name for page in (ROOT / "docs").glob("*.md")
    }


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    """Near enough: who measures anew need not touch the README for a few percent."""
    rows = re.findall(
        r"^\| \[(\w+)\]\(docs/benchmarks.md#\1\), (.*?) \| ([\d.]+) ",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    assert len(rows) >= 5
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for name, at, figure in rows:
        measured = re.search(
            rf"^\| \[{name}\]\(#{name}\) \| {re.escape(at)} \| ([\d.]+) \|", page, re.MULTILINE
        )
        assert measured, (name, at)
        assert float(figure) == pytest.approx(float(measured[1]), rel=0.25), (name, at)
