"""The traceback of a program without our frames: what of an error is its author's business."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path

from pointstamp.errors import WorkerError

_BETWEEN = re.compile(
    r"\n(?:The above exception was the direct cause of the following exception|"
    r"During handling of the above exception, another exception occurred):\n\n"
)
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]*)", line \d+.*\n(?:    .*\n|\n)*', re.MULTILINE)
_FOLDER = str(Path(__file__).parents[1])


def own_traceback(error: BaseException) -> str:
    """The traceback of what the program raised, without frames of ours; empty if it has no other.

    >>> own_traceback(ValueError("of no program"))
    ''
    """
    found = []
    for part in _BETWEEN.split(_whole(error)):
        frames = _FRAME.sub(_unless_ours, part)
        if _FRAME.search(frames):
            # Of our own errors, that were raised from it, the message is said anyway.
            last = frames.rstrip().rpartition("\n  ")[2].partition("\n")[2]
            if not last.startswith("pointstamp."):
                found.append(frames.strip("\n") + "\n")
    return "\n".join(found)


def causes(error: BaseException, *, handled: bool = False) -> Iterator[BaseException]:
    """An error, what it was raised from, or with `handled` during the handling of, and so on.

    Spark's cancelled job, for one, is raised during the handling of an interruption.
    """
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or (cause.__context__ if handled else None)


def _whole(error: BaseException) -> str:
    """The traceback with its causes; of a worker process, what that wrote."""
    for cause in causes(error):
        if isinstance(cause, WorkerError) and cause.original:
            return cause.original
    return "".join(traceback.format_exception(error))


def _unless_ours(frame: re.Match[str]) -> str:
    # Of compiled modules files are relative to where they were compiled.
    is_ours = frame["file"].startswith((f"{_FOLDER}/", "pointstamp/"))
    return "" if is_ours else frame[0]
