"""Answers a signal with what the workers wait for, on standard error.

`kill -USR1 PID`, of the process that started them, where `pointstamp explain PID` cannot ask:
it needs Linux, and the same user. Worker processes have a control connection, and no handler.

Rules
-----
1. Nothing of the program's is replaced: the handler is installed if SIGUSR1 has none,
   in the main thread, and taken away after the last worker. A program that installs
   its own, before or after, has that.
2. The handler raises nothing, and takes no lock that the interrupted code may hold: it wakes
   the thread of a control server, which has the answers collected.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType

from pointstamp.communication import publishing
from pointstamp.communication.explanations import Explanation, explain_program, post

SIGNAL = getattr(signal, "SIGUSR1", None)
"""Which one; there is none on Windows."""


@contextlib.contextmanager
def responding() -> Iterator[None]:
    """Answer the signal during the block.

    Outside of the main thread nothing happens, as Python wants it; nor in a process that has
    a control connection, inside of another such block, or where the signal is in use.
    """
    is_ours = (
        SIGNAL is not None
        and threading.current_thread() is threading.main_thread()
        and not publishing.is_connected()
        and signal.getsignal(SIGNAL) is signal.SIG_DFL
    )
    if not is_ours or SIGNAL is None:
        yield
        return
    signal.signal(SIGNAL, _answer)
    try:
        yield
    finally:
        if signal.getsignal(SIGNAL) is _answer:
            signal.signal(SIGNAL, signal.SIG_DFL)


def _answer(number: int, frame: FrameType | None) -> None:
    if not post(lambda: threading.Thread(target=_print, daemon=True).start()):
        _write(f"process {os.getpid()} has no worker at the moment")


def _print() -> None:
    for found in explain_program():
        _write(in_words(found))


def in_words(found: Explanation) -> str:
    """An answer as it is printed, or that there is none."""
    if found.text is not None:
        is_here = found.machine == socket.gethostname()
        return found.text if is_here else f"on {found.machine}: {found.text}"
    where = f"process {found.process}" if found.process else "a process that did not say which"
    return (
        f"{found.workers} ({where} on {found.machine or 'some machine'}) did not answer in time: "
        "it is in a call that lets no other thread run, or stopped, or has ended"
    )


def _write(text: str) -> None:
    # Not through `sys.stderr`, which the interrupted code may be in the middle of.
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))
