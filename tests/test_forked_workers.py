"""Workers that tests fork from a server are as those that are new interpreters."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from pointstamp.communication.processes import run_processes
from pointstamp.errors import WorkerError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux has orphans adopted")


def _is_fork() -> bool:
    return any("forked_workers" in word for word in sys.orig_argv)


def test_a_fork_is_a_child_of_the_process_that_asked_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOMETHING", "else")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("somewhere")

    def told(communicator):
        print("worker", communicator.index, "prints")
        return (
            _is_fork(),
            os.getppid(),
            os.environ["SOMETHING"],
            Path.cwd(),
            sys.path[0],
            os.getpid(),
            random.random(),
        )

    told_by_all = run_processes(told, 3)
    expected = (True, os.getpid(), "else", tmp_path, "somewhere")
    assert [each[:5] for each in told_by_all] == [expected] * 3
    assert len({each[5] for each in told_by_all}) == len({each[6] for each in told_by_all}) == 3
    assert sorted(capfd.readouterr().out.splitlines()) == [f"worker {i} prints" for i in range(3)]


def test_a_fork_that_ends_says_how() -> None:
    def end(communicator):
        os._exit(3)

    with pytest.raises(WorkerError, match="exited with status 3"):
        run_processes(end, 1)


@pytest.mark.new_interpreters
def test_tests_can_have_new_interpreters() -> None:
    assert run_processes(lambda communicator: _is_fork(), 2) == [False, False]


def test_a_variable_that_counts_at_imports_has_new_interpreters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert run_processes(lambda communicator: (_is_fork(), hash("a")), 1)[0][0] is False
