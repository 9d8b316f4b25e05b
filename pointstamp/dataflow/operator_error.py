"""Operator errors: what is raised where an operator's code raised an error."""

from __future__ import annotations

from typing import Any

from pointstamp.errors import OperatorError, PointstampError


def operator_error(error: Exception, operator: str, time: Any) -> OperatorError:
    """What is raised, from `error`, where the code of `operator` raised it at work on `time`.

    >>> str(operator_error(ValueError("no"), "Map", 3))
    "operator 'Map' failed at time 3: ValueError('no')"
    """
    at = "" if time is None else f" at time {time}"
    try:
        what = str(error) if isinstance(error, PointstampError) else repr(error)
    except Exception:  # noqa: BLE001  (user code runs here)
        what = type(error).__name__
    return OperatorError(f"operator {operator!r} failed{at}: {what}", operator, time)


def raise_outside(error: BaseException, operator: str, time: Any) -> None:
    """Raise, in the worker's thread, what an operator's code raised in another."""
    if isinstance(error, Exception):
        raise operator_error(error, operator, time) from error
    raise error
