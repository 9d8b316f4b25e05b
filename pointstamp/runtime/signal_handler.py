"""Answers a signal with what the workers of this process wait for.

`kill -USR1 PID` prints it to standard error, `pointstamp explain PID` asks for it (see
`question`). Python runs the handler between two lines of the program, or when the
system ends a wait for the signal's sake; so it answers while a worker is parked, and
from the middle of an operator. Code that does not come back to Python (a long call
of a library) delays it.

Rules
-----
1. Nothing of the program's is replaced: the handler is installed if SIGUSR1 has none,
   in the main thread, and taken away after the last worker. A program that installs
   its own, before or after, has that.
2. The handler raises nothing, and takes no lock that the interrupted code may hold.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from pointstamp.runtime.diagnostics import account
from pointstamp.runtime.introspection import Responder

if TYPE_CHECKING:
    from pointstamp.runtime.worker import Worker

SIGNAL = getattr(signal, "SIGUSR1", None)
"""Which one; there is none on Windows."""

_workers: dict[int, tuple[weakref.ref[Worker], int]] = {}
"""By identity: the workers that live, and their threads."""
_n_responding = 0
_responder: Responder | None = None


@contextlib.contextmanager
def responding_for(worker: Worker) -> Iterator[None]:
    """Answer for `worker`, which this thread runs, as long as the block lasts."""
    _workers[id(worker)] = (weakref.ref(worker), threading.get_ident())
    try:
        with responding():
            yield
    finally:
        del _workers[id(worker)]


@contextlib.contextmanager
def responding(program: int = 0) -> Iterator[None]:
    """Answer the signal during the block, which is of the program that process began.

    Outside of the main thread nothing happens, as Python wants it; nor inside of
    another such block, or where the signal is in use.
    """
    global _n_responding, _responder
    if threading.current_thread() is not threading.main_thread() or SIGNAL is None:
        yield
        return
    is_ours = _n_responding == 0 and signal.getsignal(SIGNAL) is signal.SIG_DFL
    if is_ours:
        _responder = Responder(program or os.getpid())
        signal.signal(SIGNAL, _answer)
    _n_responding += 1
    try:
        yield
    finally:
        _n_responding -= 1
        if is_ours:
            if signal.getsignal(SIGNAL) is _answer:
                signal.signal(SIGNAL, signal.SIG_DFL)
            responder, _responder = _responder, None
            if responder is not None:
                responder.close()


def accounts(frame: FrameType | None = None) -> str:
    """What all workers of this process wait for; `frame` is where its main thread is."""
    frames = sys._current_frames()
    if frame is not None:
        frames[threading.main_thread().ident or 0] = frame
    lines = [
        account(worker, frames.get(thread))
        for reference, thread in list(_workers.values())
        if (worker := reference()) is not None
    ]
    return "\n".join([f"process {os.getpid()}", *(lines or ["it has no worker at the moment"])])


def _answer(number: int, frame: FrameType | None) -> None:
    try:
        nonce = _responder.pending_question() if _responder is not None else None
        text = accounts(frame)
        if nonce is not None and _responder is not None:
            _responder.answer(nonce, text)
            return
    except Exception:  # noqa: BLE001  (it would be raised anywhere in the program)
        text = traceback.format_exc()
    # Not through `sys.stderr`, which the interrupted code may be in the middle of.
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))
