"""How a command ends: its exit status, what stopped it, and an error in one message.

0: it went well. 1: the computation failed. 2: it was asked for wrongly, or the
input is not what it should be. 129, 130 and 143: its terminal was closed, it was
interrupted, and terminated, as shells have it. 141: what read standard output has
gone. An error that we expect is one message; `--traceback` shows where it came from,
and always for one that we do not expect. Of a program that is run, its own frames are shown.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pointstamp.cli.own_frames import own_traceback
from pointstamp.cli.streams import DONE, FAILED, MISUSED, Unwritten, unwritten
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

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = signal.Signals(number)


def end_of(
    work: Callable[[], object], *, with_traceback: bool, left: str, runs_program: bool = False
) -> int:
    """The exit status of `work()`, or of what stopped it, which is said with what is `left`."""
    try:
        # Stopped by a signal, everything that was begun is cleaned up on the way out.
        with raising_signals():
            work()
    except KeyboardInterrupt as interruption:
        return _stopped(interruption, left)
    except Unwritten as error:
        return unwritten(error.__cause__)
    except Exception as error:  # noqa: BLE001  (the one place where all of them end)
        before = _interruption_before(error)
        if before is not None:
            return _stopped(before, left)
        return _failed(error, with_traceback, runs_program)
    return DONE


@contextmanager
def raising_signals() -> Iterator[None]:
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


def _stopped(interruption: KeyboardInterrupt, left: str) -> int:
    number = interruption.number if isinstance(interruption, Stopped) else signal.SIGINT
    _say(f"{_STOPPED[number]}; {left}")
    return 128 + number


def _interruption_before(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption during whose handling `error` was raised: Spark's cancelled job, for one."""
    before: BaseException | None = error
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before


def _failed(error: Exception, with_traceback: bool, runs_program: bool) -> int:
    """Say why; the exit status."""
    causes = list(_causes(error))
    misuse = next((cause for cause in causes if isinstance(cause, UsageError)), None)
    kinds = {
        kind
        for kind in (PointstampError, InternalError)
        if any(isinstance(cause, kind) for cause in causes)
    }
    is_ours = InternalError in kinds or not runs_program
    own = "" if with_traceback or misuse is not None or is_ours else own_traceback(error)
    if own:
        print(own, end="", file=sys.stderr)
    elif with_traceback or (misuse is None and kinds != {PointstampError}):
        traceback.print_exception(error)
    said = misuse or error
    _say(str(said) if isinstance(said, PointstampError) else f"{type(said).__name__}: {said}")
    return FAILED if misuse is None else MISUSED


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _say(what: str) -> None:
    print(f"pointstamp: {what}", file=sys.stderr)
