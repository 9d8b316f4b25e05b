"""What the workers of a program wait for: of this process, and asked of another one's.

The workers that a process runs are described by `diagnostics`, from a thread that looks at
them while they go on. Over its control connection the process that started them gets that
(see `communication.explanations`). A process that runs workers and was started by no other,
as with one worker or with threads, has a control server of its own for as long, which only the
door of this machine leads to (`communication.local_door`).

`find_program` finds the process to ask, for any process of a program.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pointstamp.communication import publishing
from pointstamp.communication.control import ControlClient, ControlServer
from pointstamp.communication.explanations import ExplainProgram, Explanation, set_describer
from pointstamp.communication.local_door import enter, has_door
from pointstamp.errors import CommunicationError
from pointstamp.runtime.diagnostics import account
from pointstamp.runtime.signal_handler import responding

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker

_workers: dict[int, tuple[weakref.ref[Worker], int]] = {}
"""By identity: the workers that live, and their threads."""

_lock = threading.Lock()
_n_served = 0
_server: ControlServer | None = None


@contextmanager
def registered(worker: Worker) -> Iterator[None]:
    """Have this process answer for `worker`, which this thread runs, during the block."""
    _workers[id(worker)] = (weakref.ref(worker), threading.get_ident())
    try:
        yield
    finally:
        del _workers[id(worker)]


@contextmanager
def introspected(worker: Worker) -> Iterator[None]:
    """The same; where there is no control connection, by a server of its own, and by signal."""
    with ExitStack() as stack:
        stack.enter_context(registered(worker))
        if not publishing.is_connected():
            stack.enter_context(_served())
            stack.enter_context(responding())
        yield


@contextmanager
def _served() -> Iterator[None]:
    """Keep the control server of the workers that were started by no other process."""
    global _n_served, _server
    with _lock:
        if _n_served == 0:
            _server = ControlServer(host=None)
        _n_served += 1
    try:
        yield
    finally:
        with _lock:
            _n_served -= 1
            ended = _server if _n_served == 0 else None
        if ended is not None:
            ended.close()


def accounts() -> str | None:
    """What all workers of this process wait for; None if it has none."""
    frames = sys._current_frames()
    lines = [
        account(worker, frames.get(thread))
        for reference, thread in list(_workers.values())
        if (worker := reference()) is not None
    ]
    return "\n".join([f"process {os.getpid()}", *lines]) if lines else None


set_describer(accounts)


# Of other processes.


def ask(process: int, timeout_s: float) -> list[Explanation] | None:
    """What a process says of its workers, which have so long; None if it does not answer."""
    connection = enter(process, timeout_s)
    if connection is None:
        return None
    with ControlClient(connection, -1) as client:
        try:
            found: list[Explanation] = client.ask(ExplainProgram(timeout_s), timeout_s + 1.0)
        except CommunicationError:
            return None
    return found


def find_program(process: int) -> int | None:
    """The process to ask for the program that `process` is part of; None if it is of none.

    That is itself, if it has started workers or runs some, or else the next above it that has.
    What merely runs below it (a shell has started it) is another program: see `find_below`.
    """
    found = process
    while found > 1:
        if has_door(found):
            return found
        found = _parent(found)
    return None


def find_below(process: int) -> list[int]:
    """The processes below this one that can be asked."""
    return [found for found in _descendants(process) if has_door(found)]


def _parent(process: int) -> int:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def _descendants(process: int) -> Iterator[int]:
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from _descendants(child)
    except OSError:
        return
