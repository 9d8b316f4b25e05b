"""`pointstamp run`: a program of one's own, its arguments, and what is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]

PROGRAM = r"""
import json
import sys
import pointstamp as ps
import helper

VALUE = 3

def main(worker, upto, *more):
    seen = []
    with worker.dataflow() as scope:
        numbers = scope.to_stream(range(worker.index, int(upto), worker.peers))
        numbers.exchange(lambda n: n).inspect(lambda n: seen.append(helper.square(n)))
    worker.run()
    # In one piece: lines of several workers may meet in the pipe.
    sys.stdout.write(json.dumps([worker.index, worker.peers, sum(seen), more]) + "\n")
    sys.stdout.flush()

async def later(worker):
    raise AssertionError

def items(worker):
    yield worker

async def both(worker):
    yield worker

def fails(worker):
    raise RuntimeError("no luck")

def asks(worker):
    raise ps.errors.UsageError("not like this")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my_program.py"
    path.write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("def square(n): return n * n")
    yield path
    for name in ("my_program", "helper"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("form", [["--workers", "2"], ["--workers", "2", "--threads"], []])
def test_a_program_runs_on_workers_with_its_arguments(
    command: list[str], program: Path, form: list[str]
) -> None:
    args = [*command, "run", f"{program}:main", *form, "--", "10", "--workers", "x"]
    ran = subprocess.run(args, capture_output=True, text=True, check=True, cwd=program.parent)
    said = sorted(map(json.loads, ran.stdout.splitlines()))
    peers = 2 if form else 1
    assert [line[:2] for line in said] == [[index, peers] for index in range(peers)]
    assert sum(line[2] for line in said) == sum(n * n for n in range(10))
    assert all(line[3] == ["--workers", "x"] for line in said)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("nope.py:main", [], "nope.py: there is no such file (looked from"),
        ("my_program.py", [], "'my_program.py' is not FILE.py:FUNCTION"),
        ("my_program.py:mian", ["1"], "has no 'mian'; there are main, later, items, both"),
        ("my_program.py:VALUE", [], "is a int, and is to be called by workers"),
        ("my_program.py:later", [], "is an async function: to call it would run nothing"),
        ("my_program.py:both", [], "is an async function: to call it would run nothing"),
        ("my_program.py:items", [], "is a generator: to call it would run nothing"),
        ("my_program.py:main", [], "missing a required argument: 'upto'"),
        ("my_program.py:fails", ["1"], "too many positional arguments"),
        ("my_program.py:asks", [], "not like this"),
        ("my-program.py:main", [], "name it like one, as program.py"),
        ("json.py:main", [], "is imported as the module 'json', and that is another here"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(
    run: Run, program: Path, name: str, args: list[str], said: str
) -> None:
    (program.parent / "my-program.py").write_text("def main(worker): pass")
    (program.parent / "json.py").write_text("def main(worker): pass")
    ran = run("run", name, "--", *args)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_program_that_fails_ends_with_1_and_the_first_cause(run: Run, program: Path) -> None:
    ran = run("run", f"{program}:fails")
    assert ran.status == 1
    assert "no luck" in ran.err
