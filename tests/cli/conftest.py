"""Small graphs as files, the command line in this process and in another."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointstamp.cli.app import app
from tests.os_processes import of_group
from tests.waiting import wait_for

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
    return [sys.executable, "-m", "pointstamp"]


# Searches to be stopped.

N_DENSE = 60
"""Of a complete graph: to find its 2.6 billion cliques of 8 takes minutes, and a worker some
350 MB throughout. Of 200 vertices it takes more and more."""

MOST_KIB = 4 << 20
"""Memory that a process of a search may have for its data, whatever goes wrong."""

BEGIN_S = 180.0
"""How long a search may take to say that it has begun, on a machine that does other things."""

END_S = 60.0
"""How long everything that was started may take to end: Java takes a few seconds."""


@contextlib.contextmanager
def a_long_search(
    command: list[str], folder: Path, options: list[str], until: str
) -> Iterator[subprocess.Popen[str]]:
    """A search of minutes in a process group of its own, once it has said `until`.

    When the block ends the search has to have ended, and to have left nothing.
    """
    path = folder / "dense.txt"
    path.write_text("\n".join(f"{i} {j}" for i in range(N_DENSE) for j in range(i)))
    search = ["cliques", "8", str(path), *options, "--out", str(folder / "out.parquet")]
    bounded = ["sh", "-c", f'ulimit -d {MOST_KIB}; exec "$@"', "sh", *command, *search]
    running = subprocess.Popen(bounded, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert running.stderr is not None
        with running.stderr:
            with _killing_after(BEGIN_S, running.pid):
                begun = any(until in line for line in running.stderr)
            assert begun, f"it ended, or {BEGIN_S:g} s passed, before it said {until!r}"
            with _killing_after(2 * END_S, running.pid):
                yield running
        wait_for(lambda: not of_group(running.pid), what="a process of its group is left")
    finally:
        for left in of_group(running.pid):
            print(f"left behind: {left.name}")
        _kill(running.pid)
        running.wait()
    assert list(folder.iterdir()) == [path]


@contextlib.contextmanager
def _killing_after(seconds: float, group: int) -> Iterator[None]:
    """Kill a group of processes if the block takes longer, so that what waits for it ends."""
    timer = threading.Timer(seconds, _kill, [group])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
