"""The check for leaks finds what it is for: it is what every other test leans on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pointstamp.compiled import MODULES, source
from tests.conftest import ONCE, ROOT, is_of_core

pytestmark = pytest.mark.new_interpreters

CONFTEST = (
    Path(__file__)
    .with_name("conftest.py")
    .read_text()
    # What these tests run needs no Spark and no Arrow, whose imports take longer than a limit.
    .replace('scope="session", autouse=True', 'scope="session"')
)

LEAKS = {
    "thread": (
        "import threading\n"
        "threading.Thread(target=threading.Event().wait, name='kept', daemon=True).start()",
        "thread kept",
    ),
    "process": (
        "import subprocess\nkept.append(subprocess.Popen(['sleep', '20']))",
        ": sleep 20",
    ),
    "zombie": (
        "import os\nchild = os.fork()\nif not child: os._exit(0)\n"
        "os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)",
        "ended, not waited for",
    ),
    "socket": (
        "import socket\nkept.append(socket.create_server(('127.0.0.1', 0)))",
        "tcp",
    ),
    "file": ("kept.append(open(__file__))", "test_file.py"),
    "nothing": ("import socket\nsocket.create_server(('127.0.0.1', 0)).close()", None),
}


@pytest.mark.xdist_group("waiting")
def test_a_test_that_leaves_something_behind_fails(tmp_path):
    ends = "\ndef test_end():\n    for it in kept:\n        getattr(it, 'kill', lambda: None)()\n"
    for kind, (body, _) in LEAKS.items():
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (tmp_path / f"test_{kind}.py").write_text(f"kept = []\ndef test_it():\n{lines}{ends}")
    shorter = CONFTEST.replace("SETTLE_S = 20.0", "SETTLE_S = 0.5")
    (tmp_path / "conftest.py").write_text(shorter)
    options = ["-q", "-p", "no:cacheprovider", "--junit-xml", "found.xml", "--rootdir", ".", "."]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{2 * len(LEAKS)} passed" in answer.stdout, answer.stdout + answer.stderr
    errors = {
        case.get("classname"): case.findtext("error")
        for case in ElementTree.parse(tmp_path / "found.xml").iter("testcase")
        if case.get("name") == "test_it"
    }
    for kind, (_, said) in LEAKS.items():
        error = errors[f"test_{kind}"]
        assert (error is None) == (said is None), error
        if said is not None:
            assert "the test left behind" in error
            assert said in error


def test_every_compiled_module_is_tested_in_both_modes():
    folders = {"/".join(module.split(".")[1:-1]) for module in MODULES}
    assert all(is_of_core(ROOT / "tests" / folder / "test_it.py") for folder in folders)
    assert all(is_of_core(source(module)) for module in MODULES)
    assert is_of_core(ROOT / "tests" / "simulation" / "test_it.py")
    assert not is_of_core(ROOT / "tests" / "cli" / "test_it.py")


def test_what_is_run_once_is_there_and_not_run_twice():
    assert [path for path in ONCE if not (ROOT / path).exists()] == []
    assert not any(is_of_core(ROOT / path) for path in ONCE)


GROUPS = """
import os
import pytest

@pytest.mark.xdist_group("a group")
@pytest.mark.parametrize("n", range(12))
def test_of_a_group(n, record_property):
    record_property("process", os.getpid())

@pytest.mark.parametrize("n", range(12))
def test_of_none(n):
    pass

def test_that_fails_once(tmp_path_factory):
    already = tmp_path_factory.getbasetemp().parent / "already"
    was_there = already.exists()
    already.touch()
    assert was_there
"""


@pytest.mark.xdist_group("waiting")
def test_tests_of_a_group_are_run_by_one_process(tmp_path):
    """As those that share a Spark session: each process would start one."""
    (tmp_path / "test_groups.py").write_text(GROUPS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ["-q", "-n", "2", "--dist", "loadgroup", "--junit-xml", "found.xml"]
    options += ["--reruns", "1", "--max-suite-reruns", "3", "--basetemp", "temporary"]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", "--rootdir", ".", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "25 passed, 1 rerun" in answer.stdout, answer.stdout + answer.stderr
    found = re.findall(r'name="process" value="(\d+)"', (tmp_path / "found.xml").read_text())
    assert len(found) == 12
    assert len({*found}) == 1


HANGS = """
import time
import pytest

def test_before():
    pass

@pytest.fixture
def ends_late():
    yield
    time.sleep(600)

def test_call():
    time.sleep(600)

def test_end(ends_late):
    assert not "seen"

def test_after():
    pass
"""


@pytest.mark.xdist_group("waiting")
def test_a_test_that_hangs_is_named_and_the_others_go_on(tmp_path):
    (tmp_path / "test_hangs.py").write_text(HANGS)
    (tmp_path / "conftest.py").write_text(CONFTEST.replace("LIMIT_S = 900.0", "LIMIT_S = 5.0"))
    options = ["-q", "-n", "1", "-p", "no:cacheprovider", "--rootdir", ".", "."]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = answer.stdout
    assert "crashed while running 'test_hangs.py::test_call'" in said, said + answer.stderr
    assert "crashed while running 'test_hangs.py::test_end'" in said, said
    # What failed is shown before what came after it, not at the end alone.
    assert "FAILED, at its call: test_hangs.py::test_end" in said
    assert "2 passed" in said
    assert "in test_call" in answer.stderr
    assert "in ends_late" in answer.stderr


def test_programs_under_test_hear_signals_that_are_ignored_where_tests_are_begun() -> None:
    """As `nohup` has it of a terminal that is closed, and a shell of Ctrl-C."""
    child = (
        "import signal\n"
        "heard = signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1\n"
        "print([signal.getsignal(each) for each in heard].count(signal.SIG_IGN))\n"
        "print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))\n"
    )
    program = (
        "import signal, subprocess, sys\n"
        "for each in signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1:\n"
        "    signal.signal(each, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGHUP])\n"
        "import tests.conftest\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert ran.stdout.split() == ["0", "0"]
