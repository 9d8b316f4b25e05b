"""Answers a signal with what the workers wait for, on standard error.

`kill -USR1 PID`, of the process that started them, where `pointstamp explain PID` cannot ask:
it needs Linux, and the same user. Worker processes have a control connection, and no handler.

Rules
-----
1. Nothing of the program's is replaced: the handler is installed if SIGUSR1 has none,
   in the main thread, and taken away after the last worker. A program that installs
   its own, before or after, has that.
2. The handler raises nothing, and takes no lock that the interrupted code may hold: it wakes
   a thread, which has the answers collected.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from _socket import gethostname
from collections.abc import Callable, Iterator
from types import FrameType

from pointstamp.communication.explanations import Explanation

SIGNAL = getattr(signal, "SIGUSR1", None)
"""Which one; there is none on Windows."""

_wake: Callable[[], None] | None = None


@contextlib.contextmanager
def answering(wake: Callable[[], None]) -> Iterator[None]:
    """Have the signal call `wake` during the block.

    Outside of the main thread nothing happens, as Python wants it; nor inside of another such
    block, or where the signal is in use.
    """
    global _wake
    if (
        SIGNAL is None
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(SIGNAL) is not signal.SIG_DFL
    ):
        yield
        return
    _wake = wake
    signal.signal(SIGNAL, _answer)
    try:
        yield
    finally:
        if signal.getsignal(SIGNAL) is _answer:
            signal.signal(SIGNAL, signal.SIG_DFL)
        _wake = None


def _answer(number: int, frame: FrameType | None) -> None:
    if _wake is not None:
        _wake()


def in_words(found: Explanation) -> str:
    """An answer as it is printed, or that there is none."""
    if found.text is not None:
        is_here = found.machine == gethostname()
        return found.text if is_here else f"on {found.machine}: {found.text}"
    where = f"process {found.process}" if found.process else "a process that did not say which"
    return (
        f"{found.workers} ({where} on {found.machine or 'some machine'}) did not answer in time: "
        "it is in a call that lets no other thread run, or stopped, or has ended"
    )


def print_directly(text: str) -> None:
    """Print to standard error, past `sys.stderr`, which the program may have replaced."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))
