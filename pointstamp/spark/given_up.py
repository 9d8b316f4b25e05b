"""Ends a worker whose task Spark has given up: its Python would compute on, for nothing.

When a job is cancelled, Spark interrupts the Java of a task, or asks it to end. Python is not
asked. Where Java was interrupted it closes its connection to Python, which notices when it next
writes something: a worker in a long loop does so much later, and one that waits for such a worker
never. Where it was not interrupted (a job group is not, unless the program says so) Java
waits for Python, and has its process killed some four seconds later.

So a worker hears of it in two ways. The driver sends word that an action has failed to the
tasks of that action, which know it by a property of its job. And the worker watches the
connection to Java, in a thread that sleeps until that is closed. Either interrupts it as Ctrl-C
does; one that does not heed that, as it is in a long computation of compiled code, is ended.

Source: how `PythonRunner` of Spark 4 kills tasks, and `worker.py` of PySpark, whose frame has
the connection. Where it has not, or the system cannot say that the other end has closed
(only Linux can), what is left is the word of the driver.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import TaskContext

    from pointstamp.communication.control import ControlClient

ACTION = "pointstamp.action"
"""The property of a thread's jobs that has the name of the action they are of."""

HEED_S = 0.5
"""How long a worker may take to end once it is interrupted."""


@dataclass(frozen=True)
class ActionFailed:
    """A message: the action of this name has failed, and its tasks are to end."""

    action: str


@contextmanager
def ended_when_given_up(context: TaskContext, control: ControlClient | None) -> Iterator[None]:
    """Interrupt what runs inside, in the main thread, once Spark has given up its task."""
    if threading.current_thread() is not threading.main_thread():
        yield  # a task of a test: only main threads can be interrupted
        return
    interrupt = _Interrupt()
    action = context.getLocalProperty(ACTION)
    if control is not None and action is not None:

        def failed(_: Any, message: ActionFailed) -> None:
            if message.action == action:
                interrupt()

        control.handle(ActionFailed, failed)
    try:
        with watching(connection_to_java(), interrupt):
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


@contextmanager
def watching(descriptor: int | None, closed: Callable[[], object]) -> Iterator[None]:
    """Have `closed` called, by another thread, if the other end of a connection is closed.

    >>> import socket
    >>> from threading import Event
    >>> here, there = socket.socketpair()
    >>> seen = Event()
    >>> with here, watching(here.fileno(), seen.set):
    ...     there.close()
    ...     seen.wait(10.0)
    True
    """
    ends = getattr(select, "POLLRDHUP", None)
    if descriptor is None or ends is None:
        yield
        return
    done, done_here = os.pipe()
    asked = select.poll()
    asked.register(descriptor, ends)
    asked.register(done, 0)  # what is asked of any descriptor is whether it has ended

    def watch() -> None:
        if done not in (found for found, _ in asked.poll()):
            closed()

    thread = threading.Thread(target=watch, name="pointstamp-given-up", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(done_here)
        thread.join()
        os.close(done)


def connection_to_java() -> int | None:
    """The descriptor of the connection that the rows of this task come by; None if unknown."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in ("pyspark.worker", "__main__"):
            stream = frame.f_locals.get("outfile")
            if stream is not None:
                return int(stream.fileno())
        frame = frame.f_back  # type: ignore[assignment]
    return None
