"""Ends a worker whose task Spark has cancelled: its Python would compute on, for nothing.

When a job is cancelled, Spark asks the Java of a task to end, and Java waits for Python, which is
not asked. Some four seconds later it has the process killed (`spark.python.task.killTimeout`). So
the driver sends word that an action has failed to the tasks of that action, which know it by a
property of their job. A worker that gets it is interrupted as by Ctrl-C; one that does not heed
that, as it is in a long computation of compiled code, is ended.

A client of Spark Connect cannot set properties of jobs, but tags of what it asks for, which the
server makes tags of the jobs; those are a property, too.

Source: how `PythonRunner` of Spark 4 kills tasks, and `ExecuteThreadRunner` of its server for
Spark Connect tags jobs.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import TaskContext

    from pointstamp.communication.control import ControlClient

ACTION = "pointstamp.action"
"""The property of a thread's jobs that has the name of the action they are of."""

TAGS = "spark.job.tags"
"""The property that has all tags of a job, in one text."""

HEED_S = 0.5
"""How long a worker may take to end once it is interrupted."""


@dataclass(frozen=True)
class ActionFailed:
    """A message: the action of this name has failed, and its tasks are to end."""

    action: str


@dataclass(frozen=True)
class TaskBegan:
    """A message of a task that heeds `ActionFailed` from now on.

    Attributes
    ----------
    names : str
        That of the action it is of, among others.
    """

    names: str


@contextmanager
def ended_when_cancelled(context: TaskContext, control: ControlClient | None) -> Iterator[None]:
    """Interrupt what runs inside, in the main thread, once Spark has cancelled its task."""
    if threading.current_thread() is not threading.main_thread():
        yield  # a task of a test: only main threads can be interrupted
        return
    interrupt = _Interrupt()
    # A tag of Spark Connect is within a longer one; names of actions are within nothing else.
    names = f"{context.getLocalProperty(ACTION)} {context.getLocalProperty(TAGS)}"

    def failed(_: Any, message: ActionFailed) -> None:
        if message.action in names:
            interrupt()

    try:
        if control is not None:
            control.handle(ActionFailed, failed)
            control.send(TaskBegan(names))  # the answer may interrupt us before what is inside
        yield
    finally:
        interrupt.forget()


class _Interrupt:
    """Interrupts the main thread, and ends the process if it does not heed that; once at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._end = threading.Timer(HEED_S, os._exit, [1])
        self._end.daemon = True

    def __call__(self) -> None:
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._end.start()
                main = threading.main_thread().ident
                assert main is not None  # it has begun
                signal.pthread_kill(main, signal.SIGINT)

    def forget(self) -> None:
        """The worker has ended."""
        with self._lock:
            self._is_over = True
            self._end.cancel()
