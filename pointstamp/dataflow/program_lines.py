"""Lines of the program that operators were made at, noted where something is to show them.

A program that is to be watched has them noted (`note_lines`); to look for one takes about a
microsecond, so that others are built without.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = str(Path(__file__).resolve().parents[1])
"""What is in there is no code of the program."""

Lines = dict[tuple[int, int], str]
"""By scope and number of the operator: "file:line"."""

_is_noted = False


def note_lines(is_noted: bool) -> None:
    """Have what this process builds from now on note its lines, or not."""
    global _is_noted
    _is_noted = is_noted


def new_lines() -> Lines | None:
    """Where a worker notes them; None if it does not."""
    return {} if _is_noted else None


def line_of_program() -> str:
    """The line that this was called from, of the first code that is not the package's.

    >>> line_of_program().rpartition(":")[2].isdecimal()
    True
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_own(file: str) -> bool:
    """Whether a file is one of the package: compiled ones are said from its folder on."""
    return file.startswith((PACKAGE, "pointstamp/"))
