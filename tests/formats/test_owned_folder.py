"""Folders that go with their process, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pointstamp.formats.owned_folder import LOCK, owned_folder

PREFIX = "pointstamp-owned-"
MAKE = f"""
import sys
from pointstamp.formats.owned_folder import owned_folder
folder = owned_folder({PREFIX!r})
(folder.path / "below").mkdir()
(folder.path / "below" / "file").write_text("x")
print(folder.path, flush=True)
sys.stdin.read()
assert (folder.path / "below" / "file").exists()
folder.remove()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def started(temporary: Path) -> subprocess.Popen[str]:
    """A process that makes a folder, and has it until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", MAKE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def place_of(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_the_next_removes_what_a_killed_process_has_left_and_nothing_else(
    temporary: Path,
) -> None:
    killed, lives = started(temporary), started(temporary)
    of_killed, of_living = place_of(killed), place_of(lives)
    (temporary / f"{PREFIX}not-locked").mkdir()
    (temporary / "pointstamp-other-1").mkdir()
    (temporary / "pointstamp-other-1" / LOCK).touch()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "pointstamp-other-1")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert of_killed.is_dir()
    folder = owned_folder(PREFIX)
    left = {path.name for path in temporary.iterdir()}
    assert left == {
        folder.path.name,
        of_living.name,
        f"{PREFIX}not-locked",
        f"{PREFIX}link",
        "pointstamp-other-1",
    }
    folder.remove()
    folder.remove()
    lives.communicate("")
    assert lives.returncode == 0
    assert not of_living.exists()
    assert not folder.path.exists()


def test_many_that_begin_at_once_leave_each_other_what_is_theirs(temporary: Path) -> None:
    for round in range(3):
        processes = [started(temporary) for _ in range(6)]
        places = [place_of(process) for process in processes]
        assert len(set(places)) == 6
        for process in processes[: round + 1]:
            process.kill()
        for process in processes:
            process.communicate("")
        assert [process.returncode for process in processes[round + 1 :]] == [0] * (5 - round)
    owned_folder(PREFIX).remove()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_is_taken_before_it_is_locked_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, taken = "fcntl.flock", []

    def taken_first(file: int, kind: int) -> None:
        if not taken:
            taken.append(Path(f"/proc/self/fd/{file}").readlink().parent)
            (taken[0] / LOCK).unlink()
            taken[0].rmdir()

    monkeypatch.setattr(lock, taken_first)
    folder = owned_folder(PREFIX)
    assert list(temporary.iterdir()) == [folder.path]
    assert folder.path != taken[0]
    folder.remove()


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_off_does_not_remove_it(temporary: Path) -> None:
    folder = owned_folder(PREFIX)
    forked = os.fork()
    if not forked:
        folder.remove()
        os._exit(0)
    os.waitpid(forked, 0)
    assert folder.path.is_dir()
    folder.remove()
