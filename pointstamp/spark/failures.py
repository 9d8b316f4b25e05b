"""Why a job of Spark failed: what its workers reported, or else what Java was thrown for.

Workers report over the control connection, so that nothing is read out of the text of
Spark's exceptions. Where no worker failed, the error is Spark's own.
"""

from __future__ import annotations

import re
import weakref
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pointstamp.errors import (
    JobCancelledError,
    PointstampError,
    SparkInputError,
    SparkSetupError,
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
    if cause is not None and isinstance(cause.cause, UsageError):
        return cause.cause
    return explained(cause, error) or WorkerError(f"the Spark job failed: {innermost(error)}")


_WAITED = re.compile(r"^pointstamp\.errors\.SparkSetupError: (\d+ workers need .+)", re.MULTILINE)
_NAMED = re.compile(r"(?:[\w.$]+: )?(\[[A-Z0-9_.]+\] .+)")
"""An exception of Spark's with a name that it has for what failed."""


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
    is_input = cause is not None and isinstance(cause.cause, SparkInputError)
    reason = ""
    # A worker that Spark ends because its input failed may reach its peers alone.
    if cause is None or cause.secondary or is_input:
        reason = _of_task(str(error), named=not is_input)
    if is_input:
        reason = reason or innermost(error)
    if reason:
        found: PointstampError = WorkerError(f"the Spark job failed: {reason}")
        found.__cause__ = error
        return found
    if cause is None:
        return None
    found = cause.as_error()
    found.__cause__ = cause.cause
    return found


def _of_task(text: str, *, named: bool) -> str:
    r"""What Spark failed of in a task of a barrier stage, or a UDF there; empty if it is not that.

    named : take only what Spark has a name for, as it has none for an executor that is lost

    >>> _of_task("finished unsuccessfully.\njava.lang.X: no luck\n\tat x", named=False)
    'java.lang.X: no luck'
    >>> _of_task("finished unsuccessfully.\njava.lang.X: no luck\n\tat x", named=True)
    ''
    >>> raised = "a.B: [PYTHON_EXCEPTION] It raised: Traceback (most recent call last):\n  File x\n"
    >>> of_udf = "ValueError: no luck\n SQLSTATE: 38000\n\tat x"
    >>> _of_task(f"finished unsuccessfully.\n{raised}{of_udf}", named=True)
    'ValueError: no luck'
    """
    _, _, after = text.partition("finished unsuccessfully.")
    lines = takewhile(lambda line: not line.startswith("\tat "), after.splitlines())
    said = [line for line in lines if line.strip() and not line.startswith(" SQLSTATE: ")]
    found = _NAMED.fullmatch(said[0]) if said else None
    if found is None:
        return said[0] if said and not named else ""
    if found[1].startswith("[PYTHON_EXCEPTION]"):
        return "" if said[-1].startswith("pointstamp.") else said[-1]  # else of a worker of ours
    return found[1]


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


def too_few_slots(error: BaseException) -> SparkSetupError | None:
    r"""What to raise for Spark's error, if it is that there are fewer slots than workers.

    >>> too_few_slots(ValueError("a.b.C: [SPARK-24819]: Barrier execution mode does not")) is None
    False
    >>> too_few_slots(ValueError("barrier stages are not allowed here"))

    Or for the error of a task that has waited for them:

    >>> raised = "In a task:\npointstamp.errors.SparkSetupError: 7 workers need 7 slots\n at x"
    >>> too_few_slots(ValueError(raised))
    SparkSetupError('7 workers need 7 slots')
    """
    said = str(error)
    if (waited := _WAITED.search(said)) is not None:
        return SparkSetupError(waited[1])
    if "[SPARK-24819]" not in said:
        return None
    return SparkSetupError(
        "Spark had fewer slots than the job has workers, as often as it looked (SPARK-24819): ask "
        "for fewer workers, or give the session more executors; if spark.executor.instances and "
        "spark.executor.cores are set, slots are counted before the job. Spark may have stopped "
        "the session: then start another one"
    )


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
