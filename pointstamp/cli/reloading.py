"""`pointstamp run --reload`: a program is run again when one of its files has changed.

The program runs in a process of its own, so that nothing that it has imported stays. Its files are
those of Python in its folder and below; they are looked at every now and then, which works on every
file system. A run is stopped as by `kill`: it ends its workers first. If it has ended, or failed,
the next one begins with the next change.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pointstamp.cli.streams import say
from pointstamp.communication.interpreters import start_interpreter
from pointstamp.runtime.program_file import file_of

LOOK_S = 0.3
"""How often the files are looked at."""

SHARE = 0.05
"""How much of a processor's time looking for new files may take."""

END_S = 10.0
"""How long a run may take to end, before it is killed."""

_CHILD = """
from pointstamp.communication.parent_death import die_with_parent
die_with_parent({parent})
from pointstamp.cli import main
sys.argv[0] = "pointstamp"
main()
"""

_Look = dict[Path, tuple[int, int]]
"""By file: when it was written, and how long it is."""


def run_and_reload(program: str, words: Sequence[str]) -> None:
    """Run a program, and again whenever a file of it has changed, until interrupted.

    Parameters
    ----------
    program : str
        FILE.py:FUNCTION.
    words : sequence of str
        The command, without "--reload".

    Raises
    ------
    UsageError
        If there is no such file.
    """
    path, _ = file_of(program)
    files = ProgramFiles(path.parent)
    while True:
        with _running(words) as process:
            changed = _await_change(files, process)
        say(f"{changed.relative_to(path.parent)} has changed: running again")


class ProgramFiles:
    """The files of Python in a folder and below, but for those of environments and caches.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> files = ProgramFiles(folder)
    >>> files.changed() is None
    True
    >>> written = (folder / "program.py").write_text("x = 1")
    >>> files.changed().name, files.changed()
    ('program.py', None)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._look_again_at = 0.0
        self._seen = self._look()

    def changed(self) -> Path | None:
        """One that was written, made or removed since the last call; None if none was.

        One that was made is found later if there are so many files, of any kind, that to go
        through their names takes long.
        """
        is_due = time.monotonic() >= self._look_again_at
        now = self._look() if is_due else _written(self._seen)
        different = sorted(path for path, _ in now.items() ^ self._seen.items())
        self._seen = now
        if not different:
            return None
        self._look_again_at = 0.0  # where one is written others are, or it is there again
        return different[0]

    def _look(self) -> _Look:
        begin_s = time.thread_time()
        found: list[Path] = []
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [each for each in folders if not _is_left_out(Path(folder, each))]
            found += [Path(folder, name) for name in names if name.endswith(".py")]
        took_s = time.thread_time() - begin_s
        self._look_again_at = time.monotonic() + max(took_s / SHARE - LOOK_S, 0)
        return _written(found)


def _written(files: Iterable[Path]) -> _Look:
    found: _Look = {}
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue  # it is removed, or being replaced
        found[path] = status.st_mtime_ns, status.st_size
    return found


def _is_left_out(folder: Path) -> bool:
    return (
        folder.name.startswith((".", "__"))
        or folder.name in ("node_modules", "site-packages")
        or (folder / "pyvenv.cfg").exists()
    )


def _await_change(files: ProgramFiles, process: subprocess.Popen[bytes]) -> Path:
    has_ended = False
    while (changed := files.changed()) is None:
        if not has_ended and (status := process.poll()) is not None:
            has_ended = True
            say(f"the program has ended, with status {status}; it runs again when a file changes")
        time.sleep(LOOK_S)
    while files.changed() is not None:  # an editor may write several
        time.sleep(LOOK_S)
    return changed


@contextmanager
def _running(words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The command as another process, which is stopped at the end of the block."""
    # Python takes what it has compiled of a file for that of another one, if they were written in
    # the same second and are as long: so nothing that is compiled is kept.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    # Of a group of its own: of what a terminal interrupts this process stops it, once.
    child = _CHILD.format(parent=os.getpid())
    process = start_interpreter(child, (), environment, words=words, process_group=0)
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_S)
    except BaseException as error:
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
