"""Why a job of Spark failed: what its workers reported, or else what Java was thrown for.

Workers report over the control connection, so that nothing is read out of the text of
Spark's exceptions. Where no worker failed, the error is Spark's own.
"""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, Any

from pointstamp.errors import (
    JobCancelledError,
    PointstampError,
    SparkInputError,
    UsageError,
    WorkerError,
)
from pointstamp.spark import driver_control

if TYPE_CHECKING:
    from pointstamp.communication.control import WorkerConfig
    from pointstamp.communication.failure import Failure

_configs: weakref.WeakKeyDictionary[Any, WorkerConfig] = weakref.WeakKeyDictionary()
"""Of the DataFrames that `run` gave, where the workers of each report."""

MAX_CAUSES = 50

_CANCELLED = re.compile(
    r"(?:\S+ )?\[(?:SPARK_JOB_CANCELLED|OPERATION_CANCELED)\] (.*?)(?: SQLSTATE: \w+)?$"
)
"""How Spark's error begins, with and without Spark Connect."""


def remember(frame: Any, config: WorkerConfig) -> None:
    """Have `error_of` know the job behind a DataFrame."""
    _configs[frame] = config


def error_of(error: BaseException, frame: Any = None) -> PointstampError:
    r"""What an action on `frame` failed of, which `run` gave and which raised `error`.

    Misuse that a worker found is raised as such; else what the first worker that failed said.

    >>> error_of(ValueError("no luck\n at x"))
    WorkerError('the Spark job failed: no luck', 0, None, None, '')
    """
    config = None if frame is None else _configs.get(frame)
    cause = None if config is None else driver_control.first_cause(config)
    if cause is None:
        return WorkerError(f"the Spark job failed: {innermost(error)}")
    if isinstance(cause.cause, UsageError):
        return cause.cause
    return explained(cause, error) or cause.as_error()


_OF_TASK = re.compile(
    r"finished unsuccessfully\.\s*\n(?!\S+PythonException)(?:[\w.$]+: )?(\[[A-Z0-9_.]+\] [^\n]+)"
)
"""What Spark failed of in a task of a barrier stage, with a name that it has for that."""


_OF_PYTHON = "PythonException: [PYTHON_EXCEPTION]"
"""In the text of what Python raised in a task: a UDF of the input, or a worker of ours."""


def explained(cause: Failure | None, error: BaseException) -> PointstampError | None:
    r"""What to raise for Spark's `error`; None where it says no more than Spark does.

    That is the first cause that a worker reported. Where Spark failed to compute an input, workers
    report no more than that, if they still could, and Spark's error says of what. Its `__cause__`
    is what the worker raised, or `error`.

    >>> thrown = ValueError("barrier task 3 finished unsuccessfully.\na.b.C: [BY_ZERO] No.\n at x")
    >>> print(explained(None, thrown))
    the Spark job failed: [BY_ZERO] No.
    >>> explained(None, ValueError("barrier stages are not allowed here"))
    """
    # A worker that Spark ends because its input failed may reach its peers alone.
    may_be_input = cause is None or cause.secondary or isinstance(cause.cause, SparkInputError)
    said = _OF_TASK.search(str(error)) if may_be_input else None
    reason = None if said is None else said[1]
    if reason is None and cause is not None and isinstance(cause.cause, SparkInputError):
        reason = _of_input(str(error)) or innermost(error)
    if reason is None and may_be_input and _OF_PYTHON in str(error):
        found_there = _of_input(str(error))
        reason = None if found_there.startswith("pointstamp.") else found_there or None
    if reason is not None:
        found: PointstampError = WorkerError(f"the Spark job failed: {reason}")
        found.__cause__ = error
        return found
    if cause is None:
        return None
    found = cause.as_error()
    found.__cause__ = cause.cause
    return found


def _of_input(text: str) -> str:
    r"""Of what a task failed whose input Spark could not compute: Java's exception, or a UDF's.

    >>> _of_input("task 3 finished unsuccessfully.\njava.lang.RuntimeException: no luck\n\tat x")
    'java.lang.RuntimeException: no luck'
    >>> _of_input(
    ...     "finished unsuccessfully.\na.PythonException: Traceback (most recent call last):\n"
    ...     "  File x\nValueError: no luck\n SQLSTATE: 38000\n\tat x"
    ... )
    'ValueError: no luck'
    """
    _, _, after = text.partition("finished unsuccessfully.")
    lines = [line for line in after.splitlines() if line.strip() and "SQLSTATE: " not in line]
    of_java = next((n for n, line in enumerate(lines) if line.startswith("\tat ")), len(lines))
    if not of_java:
        return ""
    return lines[of_java - 1 if "PythonException" in lines[0] else 0]


def cancelled(error: BaseException) -> JobCancelledError | None:
    """What to raise for Spark's error, if it is that a job was cancelled.

    >>> cancelled(ValueError("[SPARK_JOB_CANCELLED] Job 3 cancelled by its user SQLSTATE: XXKDA"))
    JobCancelledError('the Spark job was cancelled: Job 3 cancelled by its user')
    >>> cancelled(ValueError("(a.b.C) [OPERATION_CANCELED] Operation has been canceled."))
    JobCancelledError('the Spark job was cancelled: Operation has been canceled.')
    >>> cancelled(ValueError("cancelled"))
    """
    found = _CANCELLED.match(innermost(error))
    return None if found is None else JobCancelledError(f"the Spark job was cancelled: {found[1]}")


def innermost(error: BaseException) -> str:
    """The first line of what Spark's exception was thrown for, in the end."""
    thrown = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    said = str(error)
    for _ in range(MAX_CAUSES):
        if thrown is None:
            break
        said = thrown.toString()
        thrown = thrown.getCause()
    return next(iter(said.splitlines()), type(error).__name__)
