"""How a command ends: its exit status, what stopped it, and an error in one message.

An error that we expect is one message; `--traceback` shows where it came from, and always for
one that we do not expect. Of a program that is run, its own frames are shown. The statuses are
in `streams`.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pointstamp.cli.own_frames import causes, own_traceback
from pointstamp.cli.streams import DONE, FAILED, MISUSED, Unwritten, say, unwritten
from pointstamp.errors import InternalError, PointstampError, UsageError

_STOPPED = {
    signal.SIGHUP: "the terminal was closed",
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
}


class Stopped(KeyboardInterrupt):
    """This process was sent a signal that is to end it.

    To everything between here and the place where it is raised this is an
    interruption, and not an error of a worker: so it is a kind of the one.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = signal.Signals(number)


def end_of(work: Callable[[], object], with_traceback: bool, left: str, runs_program: bool) -> int:
    """The exit status of `work()`, or of what stopped it, which is said with what is `left`."""
    try:
        # Stopped by a signal, everything that was begun is cleaned up on the way out.
        with _raising_signals():
            work()
    except Unwritten as error:
        return unwritten(error)
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  (all of them end here)
        for cause in causes(error, handled=True):
            if isinstance(cause, KeyboardInterrupt):
                number = cause.number if isinstance(cause, Stopped) else signal.SIGINT
                say(f"{_STOPPED[number]}; {left}")
                return 128 + number
        return _failed(error, with_traceback, runs_program)
    return DONE


@contextmanager
def _raising_signals() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a terminal that is closed raise meanwhile.

    But for those that are set to be ignored: `nohup` does so with the terminal's end, and
    a shell of Ctrl-C for what it runs in the background.
    """
    before = {
        number: signal.signal(number, _stop)
        for number in _STOPPED
        if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def _failed(error: BaseException, with_traceback: bool, runs_program: bool) -> int:
    """Say why; the exit status."""
    found = [*causes(error)]
    misuse = next((cause for cause in found if isinstance(cause, UsageError)), None)
    is_bug = any(isinstance(cause, InternalError) for cause in found)
    is_expected = not is_bug and any(isinstance(cause, PointstampError) for cause in found)
    own = own_traceback(error) if runs_program and not (is_bug or misuse or with_traceback) else ""
    if own:
        print(own, end="", file=sys.stderr)
    elif with_traceback or not (is_expected or misuse):
        traceback.print_exception(error)
    said = misuse or error
    say(str(said) if isinstance(said, PointstampError) else f"{type(said).__name__}: {said}")
    return FAILED if misuse is None else MISUSED
