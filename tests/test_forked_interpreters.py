"""What tests fork from a server is as a new interpreter."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pointstamp.communication.processes import run_processes
from pointstamp.errors import WorkerError
from tests.forked_interpreters import SERVER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of Linux alone")


FEW = 10_000
"""Objects that the server freezes before it forks are more; Python 3.12 freezes some itself."""


def _is_fork() -> bool:
    return gc.get_freeze_count() > FEW


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


# Programs: each of these runs twice, as a fork and as a new interpreter, and says the same.

HOW = f"import gc, sys; print(gc.get_freeze_count() > {FEW})"

PROGRAMS = {
    "arguments": (["-c", "import sys; print(sys.argv, __name__)", "a", "-b"], {}),
    "path": (["-c", "import sys; print(sys.path)"], {}),
    "a status": (["-c", "raise SystemExit(7)"], {}),
    "a message": (["-c", "raise SystemExit('over')"], {}),
    "an error": (["-c", "def f():\n    raise ValueError(3)\nf()"], {}),
    "a warning": (["-W", "error", "-c", "import warnings; warnings.warn('so')"], {}),
    "what it is given": (["-c", "import sys; print(sys.stdin.read(), sys.stdout.encoding)"], {}),
    "at its end": (["-c", "import atexit; atexit.register(print, 'over'); print('on')"], {}),
    "a thread": (
        [
            "-c",
            "import threading\n"
            "def late():\n    threading.main_thread().join()\n    print('late')\n"
            "threading.Thread(target=late).start()\nprint('soon')",
        ],
        {},
    ),
    "signals": (
        ["-c", "import signal; print([signal.getsignal(i) for i in (1, 2, 15)])"],
        {},
    ),
    "an interrupt": (["-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"], {}),
    "a module": (["-m", "tests.names_itself", "a"], {}),
    "a directory": (["-c", "import os; print(os.getcwd())"], {"cwd": "/"}),
    "an environment": (
        ["-c", "import os, sys; print(os.environ.get('SOME'), 'HOME' in os.environ)"],
        {"env": {"SOME": "thing"}},
    ),
    "a session": (
        ["-c", "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))"],
        {"start_new_session": True},
    ),
    "descriptors": (["-c", "import os; print(sorted(os.listdir('/proc/self/fd'))[:3])"], {}),
}


def _outcome(words: list[str], given: dict[str, object]) -> tuple[object, ...]:
    ran = subprocess.run(
        [sys.executable, *words], input="in", capture_output=True, text=True, **given
    )
    # Since Python 3.13 tracebacks show the lines of what follows -c, which a fork does not know.
    errors = [line for line in ran.stderr.splitlines() if not line.startswith("    ")]
    return ran.returncode, ran.stdout, errors


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_a_fork_does_as_a_new_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, given = PROGRAMS[name]
    forked = _outcome(words, given)
    monkeypatch.setattr(SERVER, "is_on", False)
    assert forked == _outcome(words, given)


def test_a_program_is_a_fork_and_so_are_the_workers_that_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        f"{HOW}\n"
        "from pointstamp.communication.processes import run_processes\n"
        "def told(communicator):\n"
        f"    return gc.get_freeze_count() > {FEW}, __name__\n"
        "print(run_processes(told, 2), __file__ == sys.argv[0], sys.path[0])\n"
    )
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    expected = f"True\n[(True, '__main__'), (True, '__main__')] True {tmp_path}\n"
    assert (ran.stdout, ran.stderr) == (expected, "")


def test_a_program_can_be_killed_and_leaves_nothing() -> None:
    program = "print('here', flush=True); input()"
    started = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with started:
        assert started.stdout.readline() == b"here\n"
        os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == -signal.SIGKILL


def test_flags_that_are_not_known_have_a_new_interpreter() -> None:
    run = [sys.executable, "-X", "utf8", "-c", HOW]
    assert subprocess.run(run, capture_output=True, check=True).stdout == b"False\n"


def test_a_directory_that_is_not_there_is_said_by_popen(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        subprocess.run([sys.executable, "-c", HOW], cwd=tmp_path / "none")
