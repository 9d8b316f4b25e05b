"""Operator errors: what is raised where an operator's code raised an error."""

from __future__ import annotations

import contextlib
import functools
import reprlib
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FrameType, TracebackType
from typing import Any

from pointstamp.dataflow.error_policy import safe_text
from pointstamp.dataflow.program_lines import is_own
from pointstamp.errors import OperatorError, PointstampError

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def operator_error(error: Exception, operator: str, time: Any) -> OperatorError:
    """What is raised, from `error`, where the code of `operator` raised it at work on `time`.

    It says which function of the program was called, and with what: mostly that is the record.

    >>> str(operator_error(ValueError("no"), "Map", 3))
    "operator 'Map' failed at time 3: ValueError('no')"
    """
    at = "" if time is None else f" at time {time}"
    try:
        what = str(error) if isinstance(error, PointstampError) else repr(error)
    except Exception:  # noqa: BLE001  (user code runs here)
        what = type(error).__name__
    called = _called(error.__traceback__)
    return OperatorError(f"operator {operator!r} failed{at}: {what}{called}", operator, time)


def _called(frames: TracebackType | None) -> str:
    """The function that was called of code that is not the package's, its line and arguments."""
    while frames is not None and _is_between(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    if frames is None:
        return ""
    frame = frames.tb_frame
    given = ", ".join(_arguments(frame))
    return (
        f", in {frame.f_code.co_name} at {frame.f_code.co_filename}:{frames.tb_lineno}"
        f"{', called with ' * bool(given)}{given}"
    )


def _is_between(file: str) -> bool:
    """Whether a file is of the package, or of what its blocks and properties are called by."""
    return is_own(file) or file in (contextlib.__file__, functools.__file__)


def _arguments(frame: FrameType) -> list[str]:
    """The arguments of a call that are the program's, as they are now, in short."""
    code, values = frame.f_code, frame.f_locals
    n = code.co_argcount + code.co_kwonlyargcount
    n += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return [
        f"{name}={safe_text(_short, values[name])}"
        for name in code.co_varnames[:n]
        if name in values
        and name not in ("self", "cls")
        and not name.startswith(".")  # the iterator of a generator expression
        and not type(values[name]).__module__.startswith("pointstamp.")
    ]


def _short(value: Any) -> str:
    """A text of a line; of a batch, how large it is.

    >>> _short("a")
    "'a'"
    """
    kind = type(value).__name__
    if type(n_rows := getattr(value, "num_rows", None)) is int:
        return f"<{kind} of {n_rows} rows>"
    if type(shape := getattr(value, "shape", None)) is tuple and shape:
        return f"<{kind} of shape {shape}>"
    return " ".join(_SHORT.repr(value).split())


def raise_outside(error: BaseException, operator: str, time: Any) -> None:
    """Raise, in the worker's thread, what an operator's code raised in another."""
    if isinstance(error, Exception):
        raise operator_error(error, operator, time) from error
    raise error
