"""How a command ends: its exit status, what stopped it, and an error in one message.

An error that we expect is one message; `--traceback` shows where it came from, and always for
one that we do not expect. Of a program that is run, its own frames are shown. The statuses are
in `streams`.
"""

from __future__ import annotations

import re
import signal
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pointstamp.cli.streams import DONE, FAILED, MISUSED, UNHEARD, is_unread, say
from pointstamp.communication.failure import chain
from pointstamp.errors import (
    InternalError,
    OperatorError,
    PointstampError,
    UsageError,
    WorkerError,
)

_STOPPED = {
    signal.SIGHUP: "the terminal was closed",
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
}

_BETWEEN = re.compile(
    r"\n(?:The above exception was the direct cause of the following exception|"
    r"During handling of the above exception, another exception occurred):\n\n"
)
# Of compiled modules files are relative to where they were compiled.
_OUR_FRAME = re.compile(
    rf'^  File "(?:{re.escape(str(Path(__file__).parents[1]))}|pointstamp)/[^"\n]*", line \d+.*\n'
    r"(?:    .*\n|\n)*",
    re.MULTILINE,
)


_FILE = re.compile(r'^  File "([^"\n]*)"', re.MULTILINE)
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + "/"


def end_of(work: Callable[[], object], with_traceback: bool, runs_program: bool) -> int:
    """The exit status of `work()`, or of what stopped it, which is said with what is left."""
    try:
        # Stopped by a signal, everything that was begun is cleaned up on the way out.
        with _raising_signals():
            work()
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  (all of them end here)
        # Spark's cancelled job, for one, is raised during the handling of an interruption.
        for cause in chain(error):
            if isinstance(cause, KeyboardInterrupt):
                number = next((each for each in _STOPPED if each in cause.args), signal.SIGINT)
                left = "all workers have ended" if runs_program else "nothing was written"
                say(f"{_STOPPED[number]}; {left}")
                return 128 + number
        # What a program prints is its own, and its reader may have seen enough.
        if any(isinstance(cause, BrokenPipeError) for cause in _causes(error)) and is_unread():
            sys.stdout = None
            return UNHEARD
        return _failed(error, with_traceback, runs_program)
    return DONE


@contextmanager
def _raising_signals() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a terminal that is closed raise meanwhile.

    But for those that are set to be ignored: `nohup` does so with the terminal's end, and
    a shell of Ctrl-C for what it runs in the background.
    """
    before = {
        number: signal.signal(number, _stop)
        for number in _STOPPED
        if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    # Whatever the signal, to all between here and `end_of` it is an interruption, and no error.
    raise KeyboardInterrupt(number)


def _failed(error: BaseException, with_traceback: bool, runs_program: bool) -> int:
    """Say why; the exit status."""
    found = [*_causes(error)]
    misuse = next((cause for cause in found if isinstance(cause, UsageError)), None)
    is_bug = any(isinstance(cause, InternalError) for cause in found)
    is_expected = not is_bug and any(isinstance(cause, PointstampError) for cause in found)
    own = _own_traceback(error) if runs_program and not (is_bug or misuse or with_traceback) else ""
    if own:
        print(own, end="", file=sys.stderr)
    elif with_traceback or not (is_expected or misuse):
        traceback.print_exception(error)
    # Where a program's operators were given what they cannot take, it is said which of them was.
    is_of_operator = runs_program and any(
        isinstance(cause, (OperatorError, WorkerError)) and cause.operator for cause in found
    )
    said = error if is_of_operator else misuse or error
    say(str(said) if isinstance(said, PointstampError) else f"{type(said).__name__}: {said}")
    return FAILED if misuse is None else MISUSED


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on; each once, should one be its own cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _is_of_library(file: str) -> bool:
    """Whether a file is of Python or of a package that is installed: we have called it, too.

    >>> _is_of_library("<frozen importlib._bootstrap>"), _is_of_library("/home/me/program.py")
    (True, False)
    """
    return file.startswith(("<frozen ", _STANDARD_LIBRARY)) or "-packages/" in file


def _own_traceback(error: BaseException) -> str:
    """The traceback of what the program raised, without frames of ours; empty if it has no other.

    >>> _own_traceback(ValueError("of no program"))
    ''
    """
    # Of a worker process, what that wrote.
    of_workers = (cause.original for cause in _causes(error) if isinstance(cause, WorkerError))
    whole = next(filter(None, of_workers), None) or "".join(traceback.format_exception(error))
    found = []
    for part in _BETWEEN.split(whole):
        frames = _OUR_FRAME.sub("", part)
        if any(not _is_of_library(file) for file in _FILE.findall(frames)):
            # Of our own errors, that were raised from it, the message is said anyway.
            last = frames.rstrip().rpartition("\n  ")[2].partition("\n")[2]
            if not last.startswith("pointstamp."):
                found.append(frames.strip("\n") + "\n")
    return "\n".join(found)
