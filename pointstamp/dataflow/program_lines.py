"""Lines of the program that operators are made at, noted where something is to show them.

A worker whose environment has `lines` notes them; to look for one takes about a microsecond, so
that programs that nothing watches are built without.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

W = TypeVar("W")
"""A worker."""
Result = TypeVar("Result")
Args = TypeVarTuple("Args")

PACKAGE = f"{Path(__file__).resolve().parents[1]}{os.sep}"
"""What is in there is no code of the program."""

START = "<string>"
"""The code that starts the process of a worker: no other code calls for the inputs of a service."""

Lines = dict[tuple[int, int], str]
"""By scope and number of the operator: "file:line"."""


def noting_lines(main: Callable[[W, *Args], Result]) -> Callable[[W, *Args], Result]:
    """The same program, whose worker notes where its operators are made."""

    @wraps(main)
    def noting(worker: Any, *args: *Args) -> Result:
        worker.environment.lines = {}
        return main(worker, *args)

    return noting


def line_of_program() -> str:
    """The line that this was called from, of the first code that is not the package's.

    Empty where there is only what starts a worker's process, as in a service.

    >>> line_of_program().rpartition(":")[2].isdecimal()
    True
    >>> eval("line_of_program()")
    ''
    """
    frame = frame_of_program(sys._getframe(1))
    file = frame.f_code.co_filename
    return "" if file == START else f"{file}:{frame.f_lineno}"


def frame_of_program(frame: FrameType) -> FrameType:
    """The first of a frame and its callers that is of code that is not the package's.

    The last of them, if all are the package's.
    """
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_own(file: str) -> bool:
    """Whether a file is one of the package: compiled ones are said from its folder on."""
    return file.startswith((PACKAGE, "pointstamp/"))
