"""What the workers of a program wait for: of this process, and asked of another one's.

The workers that a process runs are described by `diagnostics`, from a thread that looks at
them while they go on. Over its control connection the process that started them gets that
(see `communication.explanations`). A process that was started by no other as a worker listens
itself, with a thread that waits at a door of this machine and for the handler of a signal. A
control server, with all that it imports, is made when something comes by that door.

`find_program` finds the process to ask, for any process of a program.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pointstamp.communication import publishing
from pointstamp.communication.explanations import (
    ExplainProgram,
    Explanation,
    explain_program,
    set_describer,
)
from pointstamp.communication.local_door import LocalDoor, enter, has_door, open_door
from pointstamp.errors import CommunicationError
from pointstamp.runtime.signal_handler import answering, in_words, print_directly

if TYPE_CHECKING:
    from pointstamp.communication.control import ControlServer
    from pointstamp.runtime.worker import Worker

_workers: dict[int, tuple[weakref.ref[Worker], int]] = {}
"""By identity: the workers that live, and their threads."""

_lock = threading.Lock()
_n_listening = 0
_listener: ExplainListener | None = None


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
    """The same, and listen, as `listening` does."""
    with registered(worker), listening():
        yield


@contextmanager
def listening() -> Iterator[None]:
    """Listen for what asks for explanations, in a process without a control connection."""
    global _n_listening, _listener
    if publishing.is_connected():
        yield
        return
    with ExitStack() as stack:
        with _lock:
            if _n_listening == 0:
                _listener = ExplainListener(open_door())
            _n_listening += 1
            listener = _listener
        stack.callback(_end_listening)
        if listener is not None:
            stack.enter_context(answering(listener.wake))
        yield


def _end_listening() -> None:
    global _n_listening, _listener
    with _lock:
        _n_listening -= 1
        if _n_listening:
            return
        listener, _listener = _listener, None
    if listener is not None:
        listener.close()


class ExplainListener:
    """A thread that waits at a door of this machine, and to be woken by a signal's handler.

    Parameters
    ----------
    door : LocalDoor, optional
        A control server is made when something comes by it.
    """

    def __init__(self, door: LocalDoor | None) -> None:
        self._door = door
        self._server: ControlServer | None = None
        self._is_closing = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._thread = threading.Thread(target=self._run, name="pointstamp-explain", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have the thread print what all workers wait for; takes no lock, and waits for none."""
        with suppress(OSError):  # it has been woken very often
            os.write(self._writer, b"\0")

    def close(self) -> None:
        """End the thread; nothing comes by the door any more."""
        self._is_closing = True
        self.wake()
        self._thread.join()
        if self._server is not None:
            self._server.close()
        elif self._door is not None:
            self._door.close()
        os.close(self._reader)
        os.close(self._writer)

    def _run(self) -> None:
        waiting = select.poll()
        waiting.register(self._reader, select.POLLIN)
        if self._door is not None:
            waiting.register(self._door.socket, select.POLLIN)
        while not self._is_closing:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._door is not None and self._door.socket.fileno() in ready:
                waiting.unregister(self._door.socket)
                self._serve(self._door)
            if self._reader in ready:
                os.read(self._reader, 100)
                if not self._is_closing:
                    for found in explain_program():
                        print_directly(in_words(found))

    def _serve(self, door: LocalDoor) -> None:
        from pointstamp.communication.control import ControlServer

        self._server = ControlServer(host=None, door=door)


def accounts() -> str | None:
    """What all workers of this process wait for; None if it has none."""
    from pointstamp.runtime.diagnostics import account  # most programs are never asked

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
    from pointstamp.communication.control import ControlClient

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
        return int(stat_fields(process)[1])
    except OSError:
        return 0


def stat_fields(process: int) -> list[str]:
    """What Linux has of a process in one line, from its state on; OSError where there is none."""
    # Before is its name in brackets, which may have brackets and blanks itself.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _descendants(process: int) -> Iterator[int]:
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from _descendants(child)
    except OSError:
        return
