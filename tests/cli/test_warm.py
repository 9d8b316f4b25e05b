"""`pointstamp warm` compiles what is not there, says so, and has nothing to do after that."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pointstamp.cli import warm as command_of
from pointstamp.cli.tables import console_for
from pointstamp.kernels import jit
from pointstamp.kernels import precompile as kernels
from tests.cli.conftest import Ran

Run = Callable[..., Ran]
needs_numba = pytest.mark.skipif(not jit.numba_wanted(), reason="kernels run plain here")

ONE_KERNEL = """
import sys
from pointstamp.cli import main
from pointstamp.kernels import precompile
precompile.FORMS = {"sums": precompile.FORMS["sums"]}
sys.argv = ["pointstamp", "warm", *sys.argv[1:]]
main()
"""


def warmed(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`pointstamp warm` with a single kernel to compile, into `folder`."""
    return subprocess.run(
        [sys.executable, "-c", ONE_KERNEL, *args],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment},
    )


@needs_numba
def test_a_second_run_compiles_nothing(tmp_path: Path) -> None:
    first, again = warmed(tmp_path, "--json"), warmed(tmp_path, "--json")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    for ran, compiled in ((first, 1), (again, 0)):
        told = json.loads(ran.stdout)
        assert told.pop("seconds") >= 0
        assert told == {"command": "warm", "forms": 1, "compiled": compiled}
    assert warmed(tmp_path).stdout.startswith("all 1 forms of kernels were compiled before; ")


def test_where_kernels_run_plain_there_is_nothing_to_compile(tmp_path: Path) -> None:
    ran = warmed(tmp_path, POINTSTAMP_NUMBA="0")
    assert ran.returncode == 0
    assert "nothing to compile" in ran.stdout
    assert list(tmp_path.iterdir()) == []


@needs_numba
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_answer_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-c", ONE_KERNEL],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        )
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]  # after what a slow machine has time to say
    assert last.startswith("pointstamp: standard output cannot be written")


def a_warm_that(monkeypatch: pytest.MonkeyPatch, does: Callable[..., int]) -> None:
    monkeypatch.setattr(kernels, "compile_all", does)
    monkeypatch.setattr(jit, "numba_wanted", lambda: True)


def test_the_summary_says_how_many_were_compiled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "FORMS", {"a": {"b": ("int", "bool")}, "c": {"d": ("int",)}})
    a_warm_that(monkeypatch, lambda report: 2)
    ran = run("warm")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("compiled 2 of 3 forms of kernels in 0.")


def test_an_interruption_ends_with_130_and_leaves_the_handler_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupted(report: object) -> int:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it was not interrupted")

    a_warm_that(monkeypatch, interrupted)
    ran = run("warm")
    assert (ran.status, ran.out) == (130, "")
    assert ran.err == "pointstamp: interrupted; what was compiled is kept\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_cache_that_cannot_be_written_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(report: object) -> int:
        raise OSError(28, "No space left on device")

    a_warm_that(monkeypatch, full)
    ran = run("warm", "--json")
    assert (ran.status, ran.out) == (1, "")
    assert "compiled code cannot be written" in ran.err
    assert "No space left" in ran.err


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("pointstamp.cli.display.time", SimpleNamespace(monotonic=lambda: clock[0]))
    shown = io.StringIO()
    report = command_of.reporting(console_for(shown))
    for done in range(1, 6):
        clock[0] += 1
        report(f"sums.[kernel_{done}]", done, 5)
    assert shown.getvalue().splitlines() == [
        "warm    2.0 s  2 of 5, sums.[kernel_2]",
        "warm    4.0 s  4 of 5, sums.[kernel_4]",
    ]
