"""Where in the program a job was asked for, as Spark's UI shows it with jobs, stages and queries.

PySpark takes the line that calls it, and for what we run that is a line of this package. So the
line of the program is noted where it calls us, and set for the thread that runs the job while
that runs; PySpark is kept from setting its own.

A client of Spark Connect has nowhere to say it: what it asks for has the server's lines.

Source: `SCCallSiteSync` of PySpark 4, and `SparkContext.getCallSite` of Spark.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from traceback import walk_stack
from types import FrameType
from typing import TYPE_CHECKING, Any

from pointstamp.spark.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT, LONG = "callSite.short", "callSite.long"
"""The properties of a thread in which Spark looks for it."""

N_CALLERS = 20
"""Of so many callers the lines are shown; as many as Spark shows of its own."""

_lock = threading.Lock()
_of_thread = threading.local()


@dataclass(frozen=True)
class CallSite:
    """A line of the program that asks for a job.

    Attributes
    ----------
    short : str
        What is called, and the line: `collect at report.py:12`.
    long : str
        The line and those of its callers, with the functions that they are in.
    """

    short: str
    long: str


def call_site(called: str) -> CallSite:
    """The line of the program that led here, by a call of `called`; a writer's is PySpark's own.

    >>> call_site("collect").short.startswith("collect at ")
    True
    """
    # Not above: what commits batches of a stream imports this, and no dataflow.
    from pointstamp.dataflow.program_lines import frame_of_program

    frame = frame_of_program(sys._getframe(1))
    while frame.f_back is not None and _is_of_pyspark(frame):
        frame = frame.f_back
    lines = [
        f"{each.f_code.co_filename}:{line} in {each.f_code.co_name}"
        for each, line in islice(walk_stack(frame), N_CALLERS)
    ]
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return CallSite(f"{called} at {place}", "\n".join(lines))


def _is_of_pyspark(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    return module.partition(".")[0] == "pyspark"


@contextmanager
def called_at(spark: SparkSession, site: CallSite) -> Iterator[None]:
    """Have Spark show the jobs of this thread as asked for at `site`.

    Within another such block it changes nothing: the program's line is that of the outer one.
    """
    context = context_of(spark)
    if context is None or getattr(_of_thread, "is_inside", False):
        yield
        return
    before = {name: context.getLocalProperty(name) for name in (SHORT, LONG)}
    _of_thread.is_inside = True
    try:
        context.setLocalProperty(SHORT, site.short)
        context.setLocalProperty(LONG, site.long)
        with _without_lines_of_pyspark():
            yield
    finally:
        _of_thread.is_inside = False
        for name, value in before.items():
            set_back(context, name, value)


def set_back(context: Any, name: str, value: str | None) -> None:
    """Set a local property of this thread as it was, unless the session was stopped meanwhile."""
    if context._jsc is not None:
        context.setLocalProperty(name, value)


@contextmanager
def _without_lines_of_pyspark() -> Iterator[None]:
    """Keep PySpark from setting the line that calls it, as it does within a call of its own.

    It does so in all threads: while any call of PySpark's runs, those of others have none, too.
    """
    from pyspark.traceback_utils import SCCallSiteSync

    with _lock:
        SCCallSiteSync._spark_stack_depth += 1
    try:
        yield
    finally:
        with _lock:
            SCCallSiteSync._spark_stack_depth -= 1
