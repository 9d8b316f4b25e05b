"""`pointstamp run --reload`: edit, and it runs again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pointstamp.cli import reloading as module
from tests.cli.conftest import Ran
from tests.os_processes import children
from tests.waiting import wait_for

LIMIT_S = 120.0

PROGRAM = """
from helper import number

def main(worker, *words):
    print("worker", worker.index, "of run", number, *words, flush=True)
    with worker.dataflow() as scope:
        input, stream = scope.new_input()
        stream.probe()
    {waits}
"""

WAITS = "worker.step_while(lambda: True)"


class Reloading:
    """The command, and what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def await_lines(self, *wanted: str) -> None:
        """Read until all are said, in any order."""
        left = set(wanted)
        assert self.process.stdout is not None
        said = []
        while left:
            line = self.process.stdout.readline()
            said.append(line)
            assert line, f"it has ended without {left}: {said}"
            left -= {each for each in left if each in line}


@contextmanager
def reloading(folder: Path, *options: str) -> Iterator[Reloading]:
    command = [sys.executable, "-m", "pointstamp", "run", f"{folder}/program.py:main"]
    with subprocess.Popen(
        [*command, "--reload", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        limit = threading.Timer(LIMIT_S, process.kill)
        limit.start()
        try:
            yield Reloading(process)
        finally:
            process.kill()
            limit.cancel()
            limit.join()


def write(folder: Path, number: object, waits: str = WAITS) -> None:
    (folder / "helper.py").write_text(f"number = {number}\n")
    (folder / "program.py").write_text(PROGRAM.format(waits=waits))


def test_a_program_that_runs_is_stopped_and_runs_again(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with reloading(tmp_path, "--workers", "2", "--", "--reload") as program:
        program.await_lines("worker 0 of run 1 --reload", "worker 1 of run 1 --reload")
        # As long as it was, and perhaps in the same second.
        (tmp_path / "helper.py").write_text("number = 2\n")
        program.await_lines(
            "terminated; all workers have ended",
            "helper.py has changed: running again",
            "worker 0 of run 2 --reload",
            "worker 1 of run 2 --reload",
        )
        program.process.send_signal(signal.SIGINT)
        program.await_lines("interrupted; all workers have ended")
        assert program.process.wait(LIMIT_S) == 130


def test_a_program_that_has_ended_or_failed_waits_for_a_change(tmp_path: Path) -> None:
    write(tmp_path, 1, waits="input.close()")
    with reloading(tmp_path) as program:
        program.await_lines("worker 0 of run 1", "the program has ended, with status 0")
        (tmp_path / "helper.py").write_text("number = 1 / 0\n")
        program.await_lines("ZeroDivisionError", "the program has ended, with status 1")
        (tmp_path / "helper.py").write_text("number = 3\n")
        program.await_lines("worker 0 of run 3", "the program has ended, with status 0")
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(LIMIT_S) == 143


@pytest.mark.new_interpreters  # whose processes are looked at
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: it has processes end so")
def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path) -> None:
    write(tmp_path, 1)
    with reloading(tmp_path, "--workers", "2") as program:
        program.await_lines("worker 0 of run 1", "worker 1 of run 1")
        (child,) = [each.pid for each in children(program.process.pid)]
        workers = [each.pid for each in children(child)]
        assert len(workers) == 2
        program.process.kill()
        for pid in (child, *workers):
            wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists(), what=f"{pid} is left")


def test_what_cannot_be_reloaded_is_said(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run("run", tmp_path / "none.py:main", "--reload")
    assert (ran.status, "there is no such file" in ran.err) == (2, True)
    hosts = ("--process", 0, "--hosts", "hosts.txt", "--secret", "secret.txt")
    ran = run("run", "program.py:main", "--reload", *hosts)
    assert (ran.status, "--reload runs all workers again" in ran.err) == (2, True)


def test_names_are_gone_through_seldom_where_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = []
    monkeypatch.setattr(
        module.os, "walk", lambda top, walk=os.walk: (walks.append(top), walk(top))[1]
    )
    monkeypatch.setattr(module, "SHARE", 1e-12)  # as if they were
    write(tmp_path, 1)
    files = module.ProgramFiles(tmp_path)
    (tmp_path / "new.py").write_text("")
    assert [files.changed() for _ in range(3)] == [None] * 3
    assert len(walks) == 1
    (tmp_path / "helper.py").unlink()
    assert files.changed() == tmp_path / "helper.py"
    (tmp_path / "helper.py").write_text("number = 2")
    assert files.changed() == tmp_path / "helper.py"
    assert len(walks) == 2
