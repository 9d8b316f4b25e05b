"""Standard streams that are closed or full, and Ctrl-C before there is anything to stop."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import EDGES, Ran

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
MATCHES = "a\tb\tc\n1\t2\t3\n2\t3\t4\n"


def redirected(command: list[str], redirection: str, *args: object, input: str = "") -> Ran:
    """How the command line ends with its streams as the shell is told."""
    script = f'exec "$@" {redirection}'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", *command, *map(str, args)],
        input=input,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    ("redirection", "workers"),
    [("<&-", 1), ("<&-", 2), ("2>&-", 2), pytest.param("2>/dev/full", 1, marks=FULL)],
)
def test_a_stream_that_is_not_needed_may_be_closed_or_full(
    command: list[str], graph: Path, redirection: str, workers: int
) -> None:
    ran = redirected(command, redirection, "triangles", graph, "--workers", workers)
    assert (ran.status, ran.out) == (0, MATCHES)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("option", ["--count", "--json"])
def test_an_answer_without_a_standard_output_is_refused_before_it_is_looked_for(
    command: list[str], graph: Path, option: str
) -> None:
    ran = redirected(command, ">&-", "triangles", graph, option)
    assert ran.status == 2
    (line,) = ran.err.splitlines()
    assert line.startswith("pointstamp: standard output is closed, and the answer would go there")


@pytest.mark.parametrize(
    "args",
    [
        ["find", "(a)-[]->(b)", "{table}"],
        ["graph", "degrees", "{table}"],
        ["explain", "1"],
        ["log", "x"],
    ],
    ids=["find", "graph", "explain", "log"],
)
def test_every_answer_needs_a_standard_output(
    command: list[str], tmp_path: Path, args: list[str]
) -> None:
    table = tmp_path / "edges.csv"
    table.write_text("src,dst\n1,2\n")
    ran = redirected(command, ">&-", *(arg.format(table=table) for arg in args))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("pointstamp: standard output is closed, and the answer would go")


def test_a_file_is_written_without_any_standard_stream(command: list[str], graph: Path) -> None:
    out = graph.parent / "out.parquet"
    ran = redirected(command, "<&- >&- 2>&-", "triangles", graph, "--workers", 2, "--out", out)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert out.read_bytes().startswith(b"PAR1")


@FULL
@pytest.mark.parametrize(
    "args",
    [["triangles", "{graph}", "--workers", "1"], ["--version"], ["triangles", "--help"]],
    ids=["answer", "version", "help"],
)
def test_a_full_standard_output_ends_with_1_and_a_line(
    command: list[str], graph: Path, args: list[str]
) -> None:
    ran = redirected(command, ">/dev/full", *(arg.format(graph=graph) for arg in args))
    assert ran.status == 1
    *_, last = ran.err.splitlines()
    assert last == "pointstamp: standard output cannot be written: No space left on device"
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("redirection", "said"),
    [("<&-", "standard input is closed"), ("0>/dev/null", "standard input: cannot be read")],
)
def test_edges_from_a_standard_input_that_is_none_end_with_2(
    command: list[str], redirection: str, said: str
) -> None:
    ran = redirected(command, redirection, "triangles", "-", "--workers", 1, input=EDGES)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.new_interpreters
@pytest.mark.parametrize("module", ["pointstamp.cli.app", "pointstamp.cli.answer"])
def test_ctrl_c_during_an_import_is_a_line_and_130(
    command: list[str], graph: Path, module: str
) -> None:
    program = f"""
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["pointstamp", "triangles", {str(graph)!r}]
from pointstamp.cli import main
main()
"""
    ran = subprocess.run(
        [command[0], "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr == "pointstamp: interrupted; nothing was written\n"
