"""Starts new interpreters of this Python for work of ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence


def start_interpreter(
    program: str,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    *,
    words: Sequence[str] = (),
    process_group: int | None = None,
) -> subprocess.Popen[bytes]:
    """A process with this one's module search path and flags that runs `program`.

    Parameters
    ----------
    program : str
        Its source.
    descriptors : sequence of int
        Those that it has of this process, besides standard output and error.
    environment : mapping of str to str, optional
        This process's, if not given.
    words : sequence of str
        The arguments of the program.
    process_group : int, optional
        That it is to be in, 0 for one of its own; this process's, if not given.

    Raises
    ------
    OSError
        When the system starts no process.
    """
    path = f"import sys; sys.path[:] = {[str(folder) for folder in sys.path]!r}\n"
    # -W, -O, -X and the like, as multiprocessing hands them on.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # not public
    return subprocess.Popen(
        [sys.executable, *flags, "-c", path + program, *words],
        stdin=subprocess.DEVNULL,
        pass_fds=descriptors,
        env=environment,
        process_group=process_group,
    )
