"""Small graphs as files, the command line in this process and in another."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointstamp.cli.app import app
from pointstamp.kernels import jit

# Two triangles that share the edge 2-3, and a tail; 1 -> 2 is there twice, once back.
EDGES = """\
# a comment
1 2
2 1
2 3
1 3
3 4
2 4
4 5
"""


@dataclass(frozen=True)
class Ran:
    """How the command line ended, and what it printed."""

    status: int
    out: str
    err: str


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A file of the edges above."""
    path = tmp_path / "graph.txt"
    path.write_text(EDGES)
    return path


@pytest.fixture
def run() -> Callable[..., Ran]:
    """`run("triangles", path)`: the command line, in this process."""

    def call(*args: object) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                app([str(arg) for arg in args], prog_name="pointstamp")
            except SystemExit as end:
                status = int(end.code or 0)
        return Ran(status, out.getvalue(), err.getvalue())

    return call


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The command line as another process."""
    return [sys.executable, "-m", "pointstamp.cli"]


@pytest.fixture
def plain_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs and workers that are started run kernels as they are.

    To import Numba takes each of them longer than all the rest. Where it is counted, of
    real graphs and of this installation, they do; and this process goes on as before.
    """
    wanted = jit.numba_wanted()
    monkeypatch.setattr(jit, "numba_wanted", lambda: wanted)
    monkeypatch.setenv("POINTSTAMP_NUMBA", "0")
