"""How a command ends: its exit status, what stopped it, and an error in one message.

0: it went well. 1: the computation failed. 2: it was asked for wrongly, or the
input is not what it should be. 129, 130 and 143: its terminal was closed, it was
interrupted, and terminated, as shells have it. 141: what read standard output has
gone. An error that we expect is one message; `--traceback` shows where it came from,
and always for one that we do not expect.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pointstamp.cli.streams import FAILED, HUNG_UP, INTERRUPTED, MISUSED, TERMINATED
from pointstamp.errors import InternalError, PointstampError, UsageError


class Terminated(KeyboardInterrupt):
    """This process was sent SIGTERM.

    To everything between here and the place where it is raised this is an
    interruption, and not an error of a worker: so it is a kind of the one.
    """


class HungUp(KeyboardInterrupt):
    """The terminal was closed; an interruption for the same reason."""


def end_of(
    work: Callable[[], int], *, with_traceback: bool, left: str = "nothing was written"
) -> int:
    """The exit status of `work()`, or of what stopped it, which is said with what is `left`."""
    try:
        # Terminated or interrupted, everything that was begun is cleaned up on the way out.
        with raising_signals():
            return work()
    except KeyboardInterrupt as interruption:
        return _stopped(interruption, left)
    except Exception as error:  # noqa: BLE001  (the one place where all of them end)
        before = _interruption_before(error)
        if before is not None:
            return _stopped(before, left)
        return _failed(error, with_traceback)


@contextmanager
def raising_signals() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a terminal that is closed raise meanwhile.

    But for those that are set to be ignored: `nohup` does so with the terminal's end, and
    a shell of Ctrl-C for what it runs in the background.
    """
    before: dict[signal.Signals, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    for number, handler in _IGNORABLE.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# When it is stopped.


def _stopped(interruption: KeyboardInterrupt, left: str) -> int:
    what, status = "interrupted", INTERRUPTED
    if isinstance(interruption, Terminated):
        what, status = "terminated", TERMINATED
    elif isinstance(interruption, HungUp):
        what, status = "the terminal was closed", HUNG_UP
    _say(f"{what}; {left}")
    return status


def _interruption_before(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption during whose handling `error` was raised: Spark's cancelled job, for one."""
    before: BaseException | None = error
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before


# When it fails.


def _failed(error: Exception, with_traceback: bool) -> int:
    """Say why; the exit status."""
    misuse = _misuse(error)
    if with_traceback:
        traceback.print_exception(error)
    if misuse is not None:
        _say(str(misuse))
        return MISUSED
    if not _is_expected(error) and not with_traceback:
        traceback.print_exception(error)
    _say(_in_words(error))
    return FAILED


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _misuse(error: Exception) -> UsageError | None:
    """What is wrong with the request or its input, if that is why it failed."""
    return next((cause for cause in _causes(error) if isinstance(cause, UsageError)), None)


def _is_expected(error: Exception) -> bool:
    known = any(isinstance(cause, PointstampError) for cause in _causes(error))
    return known and not any(isinstance(cause, InternalError) for cause in _causes(error))


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, PointstampError) else f"{type(error).__name__}: {error}"


def _say(what: str) -> None:
    print(f"pointstamp: {what}", file=sys.stderr)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _hang_up(number: int, frame: FrameType | None) -> None:
    raise HungUp


_IGNORABLE = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: _hang_up}
